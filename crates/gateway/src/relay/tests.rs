//! A relay between a client and its connection, with a node in memory that has the session `b`.

mod node;

use super::*;
use crate::connection::{Arrival, LAST_EVENTS};
use crate::identity::Allowance;
use crate::outbox::outbox;
use acpd_fleet::NodeName;
use futures_util::{SinkExt, StreamExt};
use node::{Node, Peer, Way};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message as Frame;

/// What no request waits longer for when its node does not answer (design fleet).
const ANSWERED: Duration = Duration::from_secs(5);

struct Client {
    lines: mpsc::Sender<Arrival>,
    written: mpsc::Receiver<Bytes>,
    /// What the connection is given.
    here: mpsc::Receiver<Arrival>,
    node: Node,
    gone: CancellationToken,
    relaying: tokio::task::JoinHandle<Option<()>>,
}

impl Client {
    /// One that is introduced, with this token for other nodes.
    async fn new(token: Option<&'static str>) -> Self {
        let mut client = Self::begun(token, true).await;
        let params = json!({"protocolVersion": 1, "_meta": {"x": 1}});
        client.say(&json!({"id": 0, "method": "initialize", "params": params})).await;
        client.here().await;
        client
    }

    /// Of an agent that this node has, or not.
    async fn begun(token: Option<&'static str>, has_agent: bool) -> Self {
        let node = Node::new().await;
        let (lines, arrivals) = mpsc::channel(16);
        let (outbox, written) = outbox();
        let gone = CancellationToken::new();
        let access = FleetAccess {
            fleet: node.fleet(),
            token: token.map(HeaderValue::from_static),
            is_forwarded: false,
            farewell: Farewell::default(),
        };
        let io = ConnectionIo { arrivals, gone: gone.clone(), outbox, last_events: LAST_EVENTS };
        let scope = TaskScope::default();
        let identity = Identity::local(Allowance::UNLIMITED);
        let (relay, io) = Relay::before(io, scope.clone(), (identity, has_agent), access);
        let relaying = scope.spawn("relay", relay.run(|| false, None));
        Self { lines, written, here: io.arrivals, node, gone, relaying }
    }

    async fn say(&self, message: &Value) {
        self.lines.send(Arrival::Line(message.to_string().into())).await.expect("it is read");
    }

    async fn ask(&self, id: u64, method: &str) {
        self.say(&json!({"id": id, "method": method, "params": {"sessionId": "b"}})).await;
    }

    async fn here(&mut self) -> Value {
        match self.here.recv().await {
            Some(Arrival::Line(line)) => serde_json::from_slice(&line).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    /// What the client gets next.
    async fn hear(&mut self) -> Value {
        let line = self.written.recv().await.expect("a line");
        assert!(line.ends_with(b"\n"), "a whole line");
        serde_json::from_slice(&line).expect("JSON")
    }

    /// The node's end of the next upstream, which was initialized.
    async fn peer(&mut self) -> Peer {
        let mut peer = self.node.connected().await;
        let initialize = peer.hear().await;
        assert_eq!(initialize["method"], "initialize");
        peer.say(&json!({"id": initialize["id"], "result": {}})).await;
        peer
    }

    /// The same, and the client has loaded the session.
    async fn loaded(&mut self) -> Peer {
        self.ask(1, "session/load").await;
        let mut peer = self.peer().await;
        let load = peer.hear().await;
        peer.say(&json!({"id": load["id"], "result": {}})).await;
        assert_eq!(self.hear().await["id"], 1);
        peer
    }
}

// contract 7.3: the caller's token goes to the node, what the client said of itself, and the session; what comes back is the
// client's, and other lines go to the connection
#[tokio::test(start_paused = true)]
async fn a_client_speaks_with_another_node() {
    let mut client = Client::new(Some("Bearer one")).await;
    client.ask(1, "session/load").await;
    let mut peer = client.node.connected().await;
    let head = peer.head.to_ascii_lowercase();
    for header in ["get /acp?agent=claude%2d2 http/1.1", "authorization: bearer one", "acpd-forwarded-by: a"]
    {
        assert!(head.contains(header), "{header}: {head}");
    }
    let initialize = peer.hear().await;
    let meta = json!({"x": 1, "sandboxagent.dev": {"joins": "b"}});
    assert_eq!(initialize["params"], json!({"protocolVersion": 1, "_meta": meta}));
    peer.say(&json!({"id": initialize["id"], "result": {}})).await;
    assert_eq!(peer.hear().await, json!({"id": 1, "method": "session/load", "params": {"sessionId": "b"}}));
    let update = json!({"method": "session/update", "params": {"sessionId": "b", "n": 1.0}});
    peer.say(&update).await;
    peer.say(&json!({"id": 1, "result": {}})).await;
    assert_eq!(client.hear().await, update);
    assert_eq!(client.hear().await, json!({"id": 1, "result": {}}));
    peer.say(&json!({"id": 3, "method": "session/request_permission", "params": {"sessionId": "b"}})).await;
    let asked = client.hear().await;
    client.say(&json!({"id": asked["id"], "result": {"a": 1}})).await;
    assert_eq!(peer.hear().await, json!({"id": 3, "result": {"a": 1}}));
    client.say(&json!({"id": 4, "method": "session/new", "params": {}})).await;
    assert_eq!(client.here().await["id"], 4);
    client.gone.cancel();
    assert_eq!(client.relaying.await.expect("no panic"), Some(()));
    assert!(peer.ends().await, "the node learns that the client is gone");
}

// contract 7.3: whatever a node does instead of answering, a request is answered within seconds, with the node and what helps
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_reached_is_said_so() {
    for (way, code, words) in [
        (Way::Refuses, -32603, "node b, which has it, does not answer (client error (Connect): refused)"),
        (Way::Silent, -32603, "nothing within"),
        (Way::Answers("401 Unauthorized", ""), -32003, "does not know the token"),
        (Way::Answers("429 Too Many Requests", r#"{"detail":"too many"}"#), -32603, "refuses: too many"),
        (Way::Answers("502 Bad Gateway", "<html>"), -32603, "refuses: 502"),
    ] {
        let mut client = Client::new(Some("Bearer one")).await;
        client.node.goes(way);
        let begun = Instant::now();
        client.ask(1, "session/prompt").await;
        let answer = client.hear().await;
        assert!(begun.elapsed() < ANSWERED, "{way:?}: {:?}", begun.elapsed());
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(words), "{way:?}: {message}");
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(code)), "{way:?}");
        assert_eq!(answer["error"]["data"], json!({"sessionId": "b", "node": "b"}), "{way:?}");
        client.node.goes(Way::Serves);
        client.loaded().await;
    }
}

// design fleet, access: callers at the Unix socket have no token for other nodes
#[tokio::test(start_paused = true)]
async fn a_caller_without_a_token_is_told_that_one_is_needed() {
    let mut client = Client::new(None).await;
    client.node.goes(Way::Answers("401 Unauthorized", ""));
    client.ask(1, "session/load").await;
    let answer = client.hear().await;
    assert!(answer["error"]["message"].as_str().expect("a message").contains("set ACPD_TOKEN"), "{answer}");
}

// contract 7.3: what the node says of its own failure is what the client is answered
#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_begin_says_why() {
    let mut client = Client::new(None).await;
    client.ask(1, "session/load").await;
    let mut peer = client.node.connected().await;
    let initialize = peer.hear().await;
    let error = json!({"code": -32603, "message": "no such agent", "data": {"agent": "claude-2"}});
    peer.say(&json!({"id": initialize["id"], "error": error})).await;
    assert_eq!(client.hear().await, json!({"jsonrpc": "2.0", "id": 1, "error": error}));
}

// contract 7.3: a client outlives the node, and comes back to it by its next message
#[tokio::test(start_paused = true)]
async fn a_lost_node_is_reached_again() {
    let mut client = Client::new(None).await;
    let mut peer = client.loaded().await;
    client.ask(2, "session/prompt").await;
    peer.hear().await;
    drop(peer);
    let answer = client.hear().await;
    assert!(
        answer["id"] == 2 && answer["error"]["message"].as_str().expect("a message").contains("lost"),
        "{answer}"
    );
    assert_eq!(client.hear().await["params"]["reason"], "unreachable");
    client.loaded().await;
}

// design fleet: a node that stands still in a turn is found out by its health; one that only takes long is not
#[tokio::test(start_paused = true)]
async fn a_node_that_stands_still_is_found_out() {
    let mut client = Client::new(None).await;
    let mut peer = client.loaded().await;
    client.ask(2, "session/prompt").await;
    peer.hear().await;
    assert!(tokio::time::timeout(Duration::from_secs(60), client.hear()).await.is_err(), "it lives");
    client.node.goes(Way::Silent);
    let begun = Instant::now();
    let answer = client.hear().await;
    assert!(begun.elapsed() < ANSWERED, "{:?}", begun.elapsed());
    assert!(answer["error"]["message"].as_str().expect("a message").contains("says nothing"), "{answer}");
}

// design fleet: neither does one that takes nothing hold up what is for this node for long
#[tokio::test(start_paused = true)]
async fn a_node_that_takes_nothing_is_found_out() {
    let mut client = Client::new(None).await;
    let _not_read = client.loaded().await;
    client.node.goes(Way::Silent);
    let begun = Instant::now();
    let flood = json!({"method": "session/cancel", "params": {"sessionId": "b", "x": "x".repeat(60_000)}});
    let lines = client.lines.clone();
    let here = json!({"method": "session/cancel", "params": {"sessionId": "own"}});
    let saying = async {
        for line in std::iter::repeat_n(&flood, 40).chain([&here]) {
            lines.send(Arrival::Line(line.to_string().into())).await.expect("it is read");
        }
    };
    let (heard, ()) = tokio::join!(client.here(), saying);
    assert_eq!(heard, here);
    assert!(begun.elapsed() < 2 * ANSWERED, "{:?}", begun.elapsed());
}

// contract 7.3: what nothing needs is let go, and made anew for what comes then
#[tokio::test(start_paused = true)]
async fn what_nothing_needs_ends() {
    let mut client = Client::new(None).await;
    client.ask(1, "session/status").await;
    let mut peer = client.peer().await;
    let status = peer.hear().await;
    peer.say(&json!({"id": status["id"], "result": {}})).await;
    client.hear().await;
    let begun = Instant::now();
    assert!(peer.ends().await);
    assert!(begun.elapsed() > Duration::from_secs(20) && begun.elapsed() < Duration::from_secs(60));
    client.loaded().await;
}

// UP-2: a client that does not read holds up the node, at no cost here, and can still say something
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_holds_up_the_node() {
    let mut client = Client::new(None).await;
    let mut peer = client.loaded().await;
    let update =
        json!({"method": "session/update", "params": {"sessionId": "b", "text": "x".repeat(60_000)}});
    let mut sent = 0;
    let flood = async {
        loop {
            peer.say(&update).await;
            sent += 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(1), flood).await.is_err());
    assert!((8..40).contains(&sent), "{sent}");
    client.say(&json!({"method": "session/cancel", "params": {"sessionId": "b"}})).await;
    assert_eq!(peer.hear().await["method"], "session/cancel");
    for _ in 0..sent {
        assert_eq!(client.hear().await, update);
    }
}

// contract 7.3: where this node lacks the agent, the client's own `initialize` is answered by the node of its session
#[tokio::test(start_paused = true)]
async fn a_node_answers_for_its_agent() {
    let mut client = Client::begun(None, false).await;
    let joins = json!({"protocolVersion": 1, "_meta": {"sandboxagent.dev": {"joins": "b"}}});
    let initialize = json!({"id": "i", "method": "initialize", "params": joins});
    client.say(&initialize).await;
    client.ask(1, "session/load").await;
    let mut peer = client.node.connected().await;
    assert_eq!(peer.hear().await, initialize);
    let answer = json!({"id": "i", "result": {"agentInfo": {"name": "claude-2"}}});
    peer.say(&answer).await;
    assert_eq!(client.hear().await, answer);
    assert_eq!(peer.hear().await["method"], "session/load");
    client.node.goes(Way::Refuses);
    drop(peer);
    assert_eq!(client.hear().await["id"], 1);
    client.say(&json!({"id": "j", "method": "initialize", "params": joins})).await;
    let refused = client.hear().await;
    assert!(
        refused["id"] == "j" && refused["error"]["message"].as_str().expect("a message").contains("node b"),
        "{refused}"
    );
}
