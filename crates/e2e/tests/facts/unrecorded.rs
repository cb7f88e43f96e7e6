//! What a client is answered when the log fails under the very events that the answer stands behind.

use crate::hosted::{close, entry, open_with};
use acpd_e2e::{PATIENCE, Scratch, initialize, shell_agent};
use acpd_eventlog::Options;
use acpd_gateway::{
    Allowance, Arrival, ConnectionIo, ConnectionOptions, Identity, LAST_EVENTS, outbox, serve,
};
use acpd_host::{EventKind, Host, SessionId};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What SQLite's files grow by, in bytes.
const PAGE: u64 = 8192;

/// A client without a transport.
struct Lines {
    sender: mpsc::Sender<Arrival>,
    pieces: mpsc::Receiver<Bytes>,
    received: Vec<Value>,
}

impl Lines {
    fn attach(host: &Host, agent: &str) -> Self {
        let (sender, arrivals) = mpsc::channel(8);
        let (outbox, pieces) = outbox();
        let options = ConnectionOptions {
            identity: Identity::local(Allowance::UNLIMITED),
            agent: agent.to_owned(),
            transport: "lines",
            ends_host: false,
            session_stop: false,
            fleet: None,
        };
        let io = ConnectionIo { arrivals, gone: CancellationToken::new(), outbox, last_events: LAST_EVENTS };
        host.scope().spawn("client", serve(host.clone(), options, io));
        Self { sender, pieces, received: Vec::new() }
    }

    async fn send(&self, message: Value) {
        self.sender.send(Arrival::Line(message.to_string().into())).await.expect("it is read");
    }

    /// Reads until something has come; where it stands in all that has.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> usize {
        loop {
            if let Some(at) = self.received.iter().position(&is_it) {
                return at;
            }
            let piece = tokio::time::timeout(PATIENCE, self.pieces.recv()).await.expect("it comes");
            let text = String::from_utf8(piece.expect("it is served").to_vec()).expect("text");
            self.received.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
        }
    }

    async fn call(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let at = self.until(|message| message["id"] == id && message.get("method").is_none()).await;
        self.received[at].clone()
    }
}

/// All events of a session: their kinds, and the payload of the last.
async fn events(host: &Host, session: &SessionId) -> (Vec<EventKind>, Value) {
    let mut cursor = host.cursor(session, 0).await.expect("it is there");
    let (mut kinds, mut last) = (Vec::new(), Value::Null);
    while let Some(block) = cursor.next().await.expect("it can be read") {
        for event in block.events() {
            kinds.push(EventKind::from_number(event.kind).expect("it is one of ours"));
            last = serde_json::from_slice(event.payload).expect("JSON");
        }
    }
    (kinds, last)
}

/// Prompts until the log is full; whether the end of a turn was lost together with what its agent said at last.
async fn fill(pages: u64) -> bool {
    let scratch = Scratch::new();
    // What is said and the answer in one write, which acpd reads, and records, as one.
    let body = "n=0\nwhile take; do n=$((n + 1))\n\
        lines=$(update \"$n $(printf '%03000d' 0)\"; answer '{\"stopReason\":\"end_turn\"}')\n\
        printf '%s\\n' \"$lines\"; done";
    let agent = entry(&scratch, "noisy", "/bin/sh", &shell_agent(body));
    let options = Options { max_bytes: Some(pages * PAGE), ..Options::default() };
    let host = open_with(&scratch, [agent], options).await;
    let mut client = Lines::attach(&host, "noisy");
    client.call(1, "initialize", initialize()["params"].clone()).await;
    let setup = json!({"cwd": scratch.work(), "mcpServers": []});
    let session = client.call(2, "session/new", setup).await["result"]["sessionId"].clone();
    let id = session.as_str().and_then(SessionId::parse).expect("there is room for a session");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go on"}]});

    let (mut turns, mut refused) = (0, Value::Null);
    for number in 10..1000 {
        let answer = client.call(number, "session/prompt", prompt.clone()).await;
        if answer["result"]["stopReason"] != "end_turn" {
            refused = answer;
            break;
        }
        turns += 1;
    }
    let info = &refused["error"]["data"]["terminationInfo"];
    assert!(info["message"].as_str().is_some_and(|message| message.contains("no room left")), "{refused}");
    let ended = client.until(|message| message["method"] == "_sandboxagent/session/ended").await;
    let answered = client.received.iter().position(|message| *message == refused).expect("it came");
    assert!(answered < ended, "{:?}", &client.received[ended..]);

    let (kinds, end) = events(&host, &id).await;
    let recorded = kinds.iter().filter(|kind| **kind == EventKind::TurnEnded).count();
    assert_eq!(recorded, turns, "{kinds:?}");
    assert_eq!(kinds.last(), Some(&EventKind::Ended));
    assert_eq!(end["lastEventSeq"], kinds.len() - 1, "{end}");
    drop(client);
    close(host).await;
    kinds[kinds.len() - 2] == EventKind::Prompt
}

// PR-11, contract 7.3: a turn whose end was not recorded is no success to the client, which learns of the end in front of it;
// the record names the last event that there is
#[tokio::test]
async fn an_answer_counts_only_with_what_it_stands_behind() {
    let mut lost = false;
    for pages in 40..44 {
        lost |= fill(pages).await;
    }
    assert!(lost, "the log was never full at the end of a turn");
}
