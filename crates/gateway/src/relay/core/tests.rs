//! Lines of a client and of nodes `b` and `c`, of which each has the session of its name and `b2`.

use super::*;
use crate::identity::Allowance;
use crate::relay::refusal::Loss;
use serde_json::{Value, json};

const NODES: [&str; 2] = ["b", "c"];

struct Table {
    core: RelayCore,
    gone: Option<&'static str>,
    /// Nodes that have an address.
    reached: Vec<&'static str>,
    /// Forks that the directory does not have yet.
    fresh: Vec<&'static str>,
}

impl Table {
    /// Of a client that is introduced.
    fn new() -> Self {
        let mut table = Self::of(Identity::local(Allowance::UNLIMITED), false);
        table.introduce();
        table
    }

    fn of(identity: Identity, is_forwarded: bool) -> Self {
        let core = RelayCore::new(identity, is_forwarded, true);
        Self { core, gone: None, reached: NODES.to_vec(), fresh: Vec::new() }
    }

    fn introduce(&mut self) {
        let params = json!({"protocolVersion": 1});
        assert_eq!(self.say(&json!({"id": 0, "method": "initialize", "params": params})), "here");
    }

    fn owner(&self, session: &SessionId) -> Option<Owner> {
        let name = session.as_str();
        let node = NODES.into_iter().find(|node| name.starts_with(node) && !self.fresh.contains(&name))?;
        Some(Owner {
            node: NodeName::try_from(node.to_owned()).expect("a name"),
            id: NodeId(node.to_owned()),
            address: self.reached.contains(&node).then(|| format!("http://{node}")),
            agent: "claude".to_owned(),
            gone_since: self.gone.map(str::to_owned),
        })
    }

    /// What becomes of a line, in words.
    fn say(&mut self, line: &Value) -> String {
        let line = Bytes::from(line.to_string());
        let mut core = std::mem::replace(
            &mut self.core,
            RelayCore::new(Identity::local(Allowance::UNLIMITED), false, true),
        );
        let said = core.said(&line, |session| self.owner(session));
        self.core = core;
        match said {
            Said::Here => "here".to_owned(),
            Said::There { upstream: UpstreamId(upstream), new, line: sent, .. } => {
                let new = new.map(|to| {
                    let asked = if to.is_asked { " as asked" } else { "" };
                    format!(" new to {} for {}{asked}", to.address, to.session)
                });
                let new = new.unwrap_or_default();
                let changed = if sent == line { String::new() } else { format!(" {}", text(&sent)) };
                format!("over {upstream}{new}{changed}")
            }
            Said::Answered { session, line } => {
                let answer: Value = serde_json::from_slice(&line).expect("JSON");
                assert_eq!(
                    answer["error"]["data"]["sessionId"].as_str().unwrap_or(session.as_str()),
                    session.as_str()
                );
                format!(
                    "answered {} {} {}",
                    answer["id"], answer["error"]["code"], answer["error"]["message"]
                )
            }
            Said::Dropped(why) => format!("dropped: {why}"),
        }
    }

    fn ask(&mut self, id: u64, method: &str, session: &str) -> String {
        self.say(&json!({"id": id, "method": method, "params": {"sessionId": session}}))
    }

    fn tell(&mut self, method: &str, session: &str) -> String {
        self.say(&json!({"method": method, "params": {"sessionId": session}}))
    }

    /// What becomes of a line of a node, in words.
    fn hear(&mut self, upstream: u64, line: &Value) -> String {
        match self.core.heard(UpstreamId(upstream), &Bytes::from(line.to_string())) {
            Heard::Told { to, begins, line } => {
                let begins = begins.map(|session| format!(" begins {session}")).unwrap_or_default();
                let line = text(&line);
                format!("{to:?}{begins} {}", line.strip_suffix('\n').expect("a whole line"))
            }
            Heard::Removed(session) => format!("removed {session}"),
            Heard::Nothing => "nothing".to_owned(),
            Heard::Broken(what) => format!("broken: {what}"),
        }
    }

    /// Attaches the client to the session `b`, over upstream 1.
    fn load(&mut self) {
        self.ask(1, "session/load", "b");
        self.hear(1, &json!({"id": 1, "result": {}}));
    }

    fn lose(&mut self, upstream: u64) -> Vec<String> {
        let node = NodeName::try_from("b".to_owned()).expect("a name");
        let told = self.core.lost(UpstreamId(upstream), &node, &Loss::Lost("killed".to_owned()));
        let mut told: Vec<String> =
            told.iter().map(|(session, line)| format!("{session} {}", text(line).trim())).collect();
        told.sort();
        told
    }
}

fn text(line: &[u8]) -> &str {
    std::str::from_utf8(line).expect("text")
}

// contract 7.3: what names a session of another node goes there, by one way for each session; all else stays
#[test]
fn a_session_of_another_node_is_reached() {
    let mut table = Table::new();
    for (line, expected) in [
        (json!({"id": 1, "method": "session/new", "params": {"sessionId": "b"}}), "here"),
        (json!({"id": 2, "method": "session/list", "params": {"sessionId": "b"}}), "here"),
        (json!({"id": 3, "method": "session/prompt", "params": {"sessionId": "own"}}), "here"),
        (json!({"id": 4, "method": "session/prompt", "params": {"sessionId": 7}}), "here"),
        (json!({"method": "$/x", "params": {"sessionId": "b"}}), "here"),
        (json!({"id": 5, "result": {}}), "here"),
        (json!(7), "here"),
        (
            json!({"id": 6, "method": "session/load", "params": {"sessionId": "b"}}),
            "over 1 new to http://b for b",
        ),
        (json!({"id": "7", "method": "session/prompt", "params": {"sessionId": "b"}}), "over 1"),
        (json!({"method": "session/cancel", "params": {"sessionId": "b"}}), "over 1"),
        (json!({"id": 8, "method": "_x/y", "params": {"sessionId": "b"}}), "over 1"),
        (json!({"method": "session/cancel", "params": {"sessionId": "b2"}}), "over 2 new to http://b for b2"),
        (
            json!({"id": 9, "method": "session/resume", "params": {"sessionId": "c"}}),
            "over 3 new to http://c for c",
        ),
    ] {
        assert_eq!(table.say(&line), expected, "{line}");
    }
}

// IN-1, MC-3: nothing goes on before `initialize`, nor what the client's scope does not include
#[test]
fn what_the_client_may_not_do_is_refused_here() {
    let observer = Identity::of_token("ci", Scope::Observe, true, Allowance::UNLIMITED);
    let mut table = Table::of(observer, false);
    assert_eq!(table.ask(1, "session/load", "b"), "here");
    table.introduce();
    assert_eq!(table.ask(2, "session/prompt", "b"), "here");
    assert_eq!(table.tell("session/cancel", "b"), "here");
    assert_eq!(table.ask(3, "session/load", "b"), "over 1 new to http://b for b");
}

// contract 7.3: what cannot be reached is answered with the node and what helps, or dropped
#[test]
fn a_node_that_is_not_reached_is_named() {
    let mut table = Table::new();
    table.gone = Some("T");
    let gone = "node b, which has it, cannot be reached since T; nothing was done";
    assert_eq!(table.ask(1, "session/load", "b"), format!("answered 1 -32603 \"{gone}\""));
    assert_eq!(table.tell("session/cancel", "b"), format!("dropped: {gone}"));
    table.gone = None;
    table.reached.clear();
    let answer = table.ask(1, "session/load", "b");
    assert!(answer.contains("`address`") && answer.contains("node b"), "{answer}");
    let mut table = Table::of(Identity::local(Allowance::UNLIMITED), true);
    table.introduce();
    let answer = table.ask(1, "session/load", "b");
    assert!(answer.starts_with("answered 1 -32002") && answer.contains("not here but on node b"), "{answer}");
}

// contract 7.3: where this node lacks the agent, that of the session answers `initialize`
#[test]
fn an_agent_that_is_not_here_is_answered_for_there() {
    let mut table = Table::new();
    let initialize = |joins: &str| {
        let meta = json!({"sandboxagent.dev": {"joins": joins}});
        json!({"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "_meta": meta}})
    };
    assert_eq!(table.say(&initialize("b")), "here", "the agent is here");
    table.core = RelayCore::new(Identity::local(Allowance::UNLIMITED), false, false);
    assert_eq!(table.say(&initialize("own")), "here");
    assert_eq!(table.say(&initialize("b")), "over 1 new to http://b for b as asked");
    let answer = json!({"id": 1, "result": {"protocolVersion": 1}});
    assert_eq!(table.hear(1, &answer), format!("Connection {answer}"));
    assert_eq!(table.ask(2, "session/load", "b"), "over 1");
    assert_eq!(table.say(&initialize("b")), "over 1");
}

// contract 7.3: a node that the fleet has not heard of is used as long as it is connected
#[test]
fn what_is_connected_goes_on() {
    let mut table = Table::new();
    table.load();
    table.gone = Some("T");
    assert_eq!(table.tell("session/cancel", "b"), "over 1");
    assert_eq!(table.lose(1).len(), 1);
    assert!(table.tell("session/cancel", "b").starts_with("dropped"), "it is not connected any more");
}

// FR-3: an answer comes once, from the node that was asked, and an id is open once
#[test]
fn a_request_is_answered_once() {
    let mut table = Table::new();
    table.ask(1, "session/prompt", "b");
    table.ask(2, "session/prompt", "c");
    assert_eq!(
        table.ask(1, "session/prompt", "c"),
        "answered 1 -32600 \"a request with the id 1 is open already\""
    );
    assert_eq!(table.hear(2, &json!({"id": 1, "result": {}})), "nothing", "another node answers");
    let answer = json!({"id": 1, "result": {"stopReason": "end_turn"}});
    assert_eq!(table.hear(1, &answer), format!("About(SessionId(b)) {answer}"));
    assert_eq!(table.hear(1, &answer), "nothing", "it has answered");
    assert_eq!(table.ask(1, "session/prompt", "b"), "over 1");
}

// FR-3: a request is withdrawn where it went
#[test]
fn a_withdrawal_follows_its_request() {
    let mut table = Table::new();
    table.ask(1, "session/prompt", "b");
    let withdraw = |id: u64| json!({"method": "$/cancel_request", "params": {"requestId": id}});
    assert_eq!((table.say(&withdraw(1)).as_str(), table.say(&withdraw(2)).as_str()), ("over 1", "here"));
    table.hear(1, &json!({"id": 1, "result": {}}));
    assert_eq!(table.say(&withdraw(1)), "here");
}

// PE-1: each node's question has an id of its own here, and its answer goes back under that of the node
#[test]
fn an_answer_goes_to_the_node_that_asked() {
    let mut table = Table::new();
    table.load();
    table.ask(2, "session/load", "c");
    let question = json!({"id": 5, "method": "session/request_permission", "params": {"sessionId": "b", "x": {"id": 5}}});
    let asked = table.hear(1, &question);
    let (address, line) = asked.split_once(' ').expect("an address");
    let line: Value = serde_json::from_str(line).expect("JSON");
    let id = line["id"].as_u64().expect("a number");
    assert_eq!((address, &line["params"]), ("Viewer(SessionId(b))", &question["params"]));
    let same_of_c = json!({"id": 5, "method": "session/request_permission", "params": {"sessionId": "c"}});
    assert!(!table.hear(2, &same_of_c).contains(&id.to_string()));
    let theirs = json!({"id": 5, "result": {"id": 5}}).to_string();
    assert_eq!(table.say(&json!({"id": id, "result": {"id": 5}})), format!("over 1 {theirs}"));
    let refused =
        json!({"method": "_sandboxagent/answer_refused", "params": {"requestId": 5, "sessionId": "b"}});
    let own =
        json!({"method": "_sandboxagent/answer_refused", "params": {"requestId": id, "sessionId": "b"}});
    assert_eq!(table.hear(1, &refused), format!("Viewer(SessionId(b)) {own}"));
    let withdrawn = json!({"method": "$/cancel_request", "params": {"requestId": 5}});
    let own = json!({"method": "$/cancel_request", "params": {"requestId": id}});
    assert_eq!(table.hear(1, &withdrawn), format!("Connection {own}"));
    assert!(table.hear(1, &json!({"id": "x", "method": "m"})).starts_with("broken"));
}

// contract 7.3: when a node is lost, what it owed is answered, once; the client is told of what it watched, and of questions
// that need no answer any more
#[test]
fn a_lost_node_leaves_nothing_open() {
    let mut table = Table::new();
    table.load();
    table.ask(2, "session/prompt", "b");
    table.ask(3, "session/prompt", "c");
    let question =
        |id: u64| json!({"id": id, "method": "session/request_permission", "params": {"sessionId": "b"}});
    let asked = [1, 2].map(|id| table.hear(1, &question(id)));
    let own: Vec<Value> = asked
        .iter()
        .map(|line| serde_json::from_str(line.split_once(' ').expect("an address").1).expect("JSON"))
        .collect();
    table.say(&json!({"id": own[0]["id"], "result": {}}));
    let told = table.lose(1);
    assert_eq!(told.len(), 3, "{told:?}");
    let has = |words: &str| {
        assert_eq!(told.iter().filter(|line| line.contains(words)).count(), 1, "{words}: {told:?}")
    };
    has(r#""id":2,"error":"#);
    has(&format!(r#"{{"requestId":{}}}"#, own[1]["id"]));
    has(r#""reason":"unreachable""#);
    assert_eq!(
        table.say(&json!({"id": own[1]["id"], "result": {}})),
        "dropped: it answers what a node asked that is not connected any more"
    );
    assert_eq!(table.lose(1), Vec::<String>::new());
    assert_eq!(table.ask(4, "session/load", "b"), "over 3 new to http://b for b");
    assert!(table.hear(2, &json!({"id": 3, "result": {}})).starts_with("About"), "others go on");
}

// contract 7.3: what the client does not watch and asks nothing of is let go
#[test]
fn an_upstream_that_nothing_needs_ends() {
    let mut table = Table::new();
    table.ask(1, "session/status", "b");
    assert!(!table.core.forget_idle(UpstreamId(1)), "an answer is owed");
    table.hear(1, &json!({"id": 1, "result": {}}));
    assert!(table.core.forget_idle(UpstreamId(1)));
    assert_eq!(table.ask(1, "session/load", "b"), "over 2 new to http://b for b");
    table.hear(2, &json!({"id": 1, "result": {}}));
    assert!(!table.core.forget_idle(UpstreamId(2)), "it is watched");
    table.ask(2, "_sandboxagent/session/detach", "b");
    table.hear(2, &json!({"id": 2, "result": {}}));
    assert!(table.core.forget_idle(UpstreamId(2)));
}

// contract 7.3: a fork is reached before the directory has it, and is not reached any more when it has it no more
#[test]
fn a_fork_is_where_its_source_is() {
    let mut table = Table::new();
    table.fresh = vec!["b2"];
    table.load();
    table.ask(2, "session/fork", "b");
    let forked = json!({"id": 2, "result": {"sessionId": "b2"}});
    assert_eq!(table.hear(1, &forked), format!("Connection begins b2 {forked}"));
    assert_eq!(table.ask(3, "session/prompt", "b2"), "over 1");
    let update = json!({"method": "session/update", "params": {"sessionId": "b2"}});
    assert_eq!(table.hear(1, &update), format!("Viewer(SessionId(b2)) {update}"));
    table.fresh.clear();
    assert_eq!(table.ask(4, "session/prompt", "b2"), "over 1");
    table.fresh = vec!["b2"];
    assert_eq!(table.ask(5, "session/prompt", "b2"), "here");
}

// HT-9: the reader of a session's stream learns that it was removed
#[test]
fn a_removed_session_is_told() {
    let mut table = Table::new();
    table.load();
    let closed = |reason: &str| json!({"method": "_sandboxagent/closed", "params": {"reason": reason, "sessionId": "b"}});
    assert!(table.hear(1, &closed("stalled")).starts_with("Viewer(SessionId(b))"));
    assert_eq!(table.hear(1, &closed("deleted")), "removed b");
    assert!(table.core.forget_idle(UpstreamId(1)));
}

// contract 7.2: however much a client asks, what is kept is bounded
#[test]
fn what_is_open_is_bounded() {
    let mut table = Table::new();
    for id in 0..REQUESTS as u64 {
        assert!(table.ask(id, "session/prompt", "b").starts_with("over 1"), "{id}");
    }
    assert!(table.ask(REQUESTS as u64, "session/prompt", "b").starts_with("answered"));
    table.lose(1);
    for number in 0..UPSTREAMS {
        assert!(table.tell("session/cancel", &format!("b-{number}")).contains("new"), "{number}");
    }
    assert!(table.tell("session/cancel", "b-last").starts_with("dropped"));
    assert!(table.ask(1, "session/load", "b-last").starts_with("answered"));
}

// FR-3: what is still owed when this node ends is answered
#[test]
fn a_node_that_ends_answers_what_it_owes() {
    let mut table = Table::new();
    table.ask(1, "session/prompt", "b");
    let error = own_error(-1, "over".to_owned());
    let told = table.core.drain(&error);
    assert_eq!(told.len(), 1);
    assert!(text(&told[0].1).contains(r#""id":1,"error""#));
    assert_eq!(table.core.drain(&error), []);
}
