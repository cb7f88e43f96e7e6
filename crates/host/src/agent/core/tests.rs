//! The agent's core, stepped without a runtime.

use super::telling::BACKLOG;
use super::*;
use crate::agent::Marks;
use acpd_record::TurnNumber;
use std::collections::BTreeMap;

const TICKET: Ticket = Ticket::Turn(TurnNumber(1));

struct Stage {
    core: AgentCore,
    said: u64,
}

impl Stage {
    fn new() -> Self {
        Self { core: AgentCore::new(Framing::Plain, 0, 0), said: 0 }
    }

    fn line(&mut self, line: &str) -> Effects {
        let mut out = Effects::default();
        self.said += line.len() as u64 + 1;
        self.core.line(Bytes::copy_from_slice(line.as_bytes()), self.said, &mut out);
        out.complete()
    }

    fn bind(&mut self, native: &str) -> (RouteId, Effects) {
        self.bind_with(native, History::Keep)
    }

    fn bind_with(&mut self, native: &str, history: History) -> (RouteId, Effects) {
        let claim = Claim::new(native);
        assert!(self.core.claim(claim.known()));
        let mut out = Effects::default();
        let route = self.core.bind(claim, history, &mut out);
        (route, out.complete())
    }

    fn request(&mut self, whom: For) -> Effects {
        let mut out = Effects::default();
        self.core.request(whom, "session/prompt", Some(b"{}"), &mut out);
        out.complete()
    }

    /// What the agent was sent, line by line.
    fn sent(&mut self) -> Vec<String> {
        let text = String::from_utf8(self.core.unwritten().to_vec()).expect("text");
        self.core.written(text.len());
        text.lines().map(str::to_owned).collect()
    }
}

fn update(native: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{native}","update":{{"sessionUpdate":"agent_message_chunk"}}}}}}"#
    )
}

fn answer(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// What is delivered, in short.
fn delivered(effects: &Effects) -> Vec<String> {
    let message = |message: &FromAgent| match message {
        FromAgent::Notification { .. } => "notification".to_owned(),
        FromAgent::Request { method, .. } => method.clone(),
        FromAgent::Answer { ticket, answer } => format!("answer {ticket:?} {}", answer.is_error),
        FromAgent::Withdrawn { id, .. } => format!("withdrawn {}", id.as_raw()),
        FromAgent::NotReading { ticket, .. } => format!("not reading {ticket:?}"),
    };
    let delivered = effects.deliveries.iter().map(|delivery| match delivery {
        Delivery::Session(RouteId(route), SessionInput::Messages(messages)) => {
            format!("{route}: {}", messages.iter().map(message).collect::<Vec<_>>().join(", "))
        }
        Delivery::Session(RouteId(route), SessionInput::Replayed(lines)) => {
            format!("{route}: replay of {}", lines.len())
        }
        Delivery::Session(_, SessionInput::Gone(_)) => "gone".to_owned(),
        Delivery::Call(CallNumber(call), answer) => format!("call {call} {}", answer.is_error),
    });
    delivered.collect()
}

// FR-1: ids of this hop; each answer goes where its request came from, once
#[test]
fn an_answer_finds_its_request() {
    let mut stage = Stage::new();
    let (route, _) = stage.bind("\"a\"");
    stage.request(For::Session { route, ticket: TICKET });
    stage.request(For::Call(CallNumber(7)));
    assert_eq!(stage.sent().len(), 2);
    assert!(stage.core.owes_answers());
    assert_eq!(delivered(&stage.line(&answer(1))), ["call 7 false"]);
    assert_eq!(delivered(&stage.line(&answer(0))), ["0: answer Turn(TurnNumber(1)) false"]);
    let again = stage.line(&answer(0));
    assert_eq!((delivered(&again).len(), again.notes), (0, vec![Note::Unasked]));
    assert!(!stage.core.owes_answers());
}

// FR-3: a request that is answered in a broken way is still answered
#[test]
fn a_broken_answer_is_an_error() {
    let mut stage = Stage::new();
    stage.request(For::Call(CallNumber(1)));
    let broken = r#"{"jsonrpc":"2.0","id":0,"result":1,"error":{"code":1,"message":"x"}}"#;
    assert_eq!(delivered(&stage.line(broken)), ["call 1 true"]);
}

// UP-1, SE-1: messages go to their session in order; without an id to the only one there is
#[test]
fn messages_go_to_their_session() {
    let mut stage = Stage::new();
    stage.bind("\"a\"");
    let nameless = r#"{"jsonrpc":"2.0","method":"x"}"#;
    assert_eq!(delivered(&stage.line(nameless)), ["0: notification"]);
    stage.bind("\"b\"");
    assert!(delivered(&stage.line(nameless)).is_empty());
    let mut out = Effects::default();
    for native in ["b", "a", "b"] {
        stage.core.line(update(native).into(), 1, &mut out);
    }
    assert_eq!(delivered(&out.complete()), ["1: notification, notification", "0: notification"]);
}

// an answer to a caller does not overtake what was said before it
#[test]
fn an_answer_to_a_caller_keeps_its_place() {
    let mut stage = Stage::new();
    stage.bind("\"a\"");
    stage.request(For::Call(CallNumber(1)));
    let mut out = Effects::default();
    for line in [update("a"), answer(0), update("a")] {
        stage.core.line(line.into(), 1, &mut out);
    }
    assert_eq!(delivered(&out.complete()), ["0: notification", "call 1 false", "0: notification"]);
}

// UP-7: what is said of a session before it is known waits for it; a request is refused
// quirk updates-before-session
#[test]
fn messages_wait_for_their_session() {
    let mut stage = Stage::new();
    assert!(delivered(&stage.line(&update("a"))).is_empty());
    let request = r#"{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"a"}}"#;
    stage.line(request);
    assert_eq!(
        stage.sent(),
        [
            r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32002,"message":"session not found","data":{"sessionId":"a"}}}"#
        ]
    );
    assert_eq!(delivered(&stage.bind("\"a\"").1), ["0: notification"]);
    stage.core.unbind(RouteId(0));
    assert!(delivered(&stage.line(&update("a"))).is_empty());
}

// SE-7: what was replayed before the answer is delivered as that
#[test]
fn a_replay_comes_first() {
    let mut stage = Stage::new();
    stage.line(&update("a"));
    let (_, effects) = stage.bind_with("\"a\"", History::Drop(Box::default(), u64::MAX));
    assert_eq!(delivered(&effects), ["0: replay of 1"]);
    stage.core.disown("\"b\"".into());
    stage.line(&update("b"));
    assert!(delivered(&stage.bind("\"b\"").1).is_empty());
}

// PR-10: a withdrawal names no session, so each hears of it; ours names the id of this hop
#[test]
fn requests_are_withdrawn_both_ways() {
    let mut stage = Stage::new();
    let (route, _) = stage.bind("\"a\"");
    stage.bind("\"b\"");
    let withdrawal = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}"#;
    assert_eq!(delivered(&stage.line(withdrawal)), ["0: withdrawn 4", "1: withdrawn 4"]);
    stage.request(For::Session { route, ticket: TICKET });
    stage.sent();
    stage.core.withdraw(route, TICKET);
    stage.core.withdraw(route, Ticket::Close);
    assert_eq!(stage.sent(), [r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}"#]);
}

// an agent that does not read is asked nothing more, and says so to whom it concerns
#[test]
fn an_agent_that_does_not_read_is_not_asked() {
    let mut stage = Stage::new();
    let (route, _) = stage.bind("\"a\"");
    stage.core.pass(RouteId(0), &vec![b'x'; BACKLOG], None, None);
    assert!(stage.core.is_behind());
    let refused = stage.request(For::Session { route, ticket: TICKET });
    assert_eq!(delivered(&refused), ["0: not reading Turn(TurnNumber(1))"]);
    assert_eq!(delivered(&stage.request(For::Call(CallNumber(1)))), ["call 1 true"]);
    stage.core.written(1);
    assert!(delivered(&stage.request(For::Call(CallNumber(2)))).is_empty());
    stage.core.stdin_ended();
    assert!(stage.core.unwritten().is_empty());
}

// SU-8, FR-6: after a lost line nothing counts, and the fault is the first one
#[test]
fn a_line_that_is_too_long_ends_the_connection() {
    let mut stage = Stage::new();
    stage.bind("\"a\"");
    let mut out = Effects::default();
    stage.core.line_too_long(10, &mut out);
    stage.core.fail("later".to_owned(), &mut out);
    assert!(out.stop);
    assert!(delivered(&stage.line(&update("a"))).is_empty());
    let fault = stage.core.take_fault().expect("it failed");
    assert_eq!(fault.message(), "agent wrote a line over the limit of 10 bytes");
}

// FR-5, FR-7, contract 7.3: noise, broken messages, acpd's own namespace, updates of no session
// quirk not-json
// quirk unknown-session-update
#[test]
fn odd_lines_are_noted() {
    let mut stage = Stage::new();
    stage.bind("\"a\"");
    let own = r#"{"jsonrpc":"2.0","method":"_acpd/x","params":{"sessionId":"a"}}"#;
    for (line, note) in [
        ("hello", Note::Noise { line: "hello".to_owned(), first: false }),
        (own, Note::OwnName { method: "_acpd/x".to_owned(), first: true }),
        (own, Note::OwnName { method: "_acpd/x".to_owned(), first: false }),
        (r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#, Note::Stray),
    ] {
        let effects = stage.line(line);
        assert_eq!((effects.notes, effects.deliveries.len()), (vec![note], 0), "{line}");
    }
    let effects = stage.line(r#"{"jsonrpc":"2.0","id":3,"method":7}"#);
    assert!(matches!(&effects.notes[..], [Note::Broken { line, .. }] if line.contains("\"method\":7")));
    assert!(stage.sent()[0].contains(r#""id":3,"error""#));
    assert!(stage.line("  ").notes.is_empty());
}

// ADR 22: a request that the host before had begun to serve is served, once, also where nothing that it heard was settled
#[test]
fn what_was_begun_is_served_again() {
    let line = r#"{"jsonrpc":"2.0","id":0,"method":"terminal/create","params":{"sessionId":"a"}}"#;
    let marks = Marks::new(BTreeMap::from([("served/0".to_owned(), line.to_owned())]));
    for known in [0, 1, 500] {
        let mut stage = Stage { core: AgentCore::new(Framing::Kept, 0, 1), said: 0 };
        let claim = Claim::new("\"a\"");
        assert!(stage.core.claim(claim.known()));
        stage.core.bind_again(claim, known, None);
        let mut out = Effects::default();
        stage.core.serve_again(&marks, &mut out);
        assert_eq!(delivered(&out.complete()).len(), 1, "{known}");
        assert_eq!(delivered(&stage.line(line)).len(), 0, "it comes again from the pipe");
    }
}

// quirk bytes-before-frame
#[test]
fn an_answer_behind_stray_bytes_is_heard() {
    let mut stage = Stage::new();
    stage.request(For::Call(CallNumber(1)));
    let heard = stage.line(&format!("\u{1b}]0;my agent\u{7}> {}\u{1b}[0m", answer(0)));
    assert_eq!(
        (delivered(&heard), heard.notes),
        (vec!["call 1 false".to_owned()], vec![Note::StrayBytes(19)])
    );
}

// FR-7: what is dropped while an answer is awaited is named, the first line once
#[test]
fn the_first_dropped_line_is_kept_until_the_next_request() {
    let mut stage = Stage::new();
    let first = |heard: Effects| matches!(heard.notes[..], [Note::Noise { first: true, .. }]);
    assert!(!first(stage.line("a banner")));
    assert_eq!(stage.core.dropped_line(), None);
    stage.request(For::Call(CallNumber(1)));
    let cut = &answer(0)[..20];
    assert!(first(stage.line(&format!("log: {cut}"))) && !first(stage.line("another")));
    assert_eq!(stage.core.dropped_line(), Some(format!("log: {cut}")));
    stage.request(For::Call(CallNumber(2)));
    assert!(stage.core.dropped_line().is_some(), "the first is awaited still");
    for id in [0, 1] {
        stage.line(&answer(id));
    }
    stage.request(For::Call(CallNumber(3)));
    assert_eq!(stage.core.dropped_line(), None);
    assert!(first(stage.line("in the next turn")));
}

// FR-5, FR-7: so is what was meant to be a message, whatever it begins with
#[test]
fn a_broken_message_is_named_like_any_other_line() {
    for line in [r#"{"jsonrpc":"2.0","id":0,"result":{"#, "{hello", "[1, 2]", r#"{"jsonrpc":"2.0"}"#] {
        let mut stage = Stage::new();
        stage.request(For::Call(CallNumber(1)));
        let heard = stage.line(line);
        assert!(matches!(&heard.notes[..], [Note::Broken { line: named, .. }] if named == line), "{line}");
        assert_eq!(stage.core.dropped_line().as_deref(), Some(line));
    }
}

// contract 1.7: what names its session twice is nobody's; a request is refused at once
#[test]
fn what_names_two_sessions_goes_to_none() {
    let mut stage = Stage::new();
    stage.bind("\"a\"");
    let params = r#""params":{"sessionId":"a","sessionId":"b"}"#;
    let heard = stage.line(&format!(r#"{{"jsonrpc":"2.0","method":"x",{params}}}"#));
    assert_eq!((delivered(&heard).len(), heard.notes), (0, vec![Note::Ambiguous("params.sessionId")]));
    stage.line(&format!(r#"{{"jsonrpc":"2.0","id":3,"method":"x",{params}}}"#));
    let sent = stage.sent();
    assert!(sent[0].starts_with(r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"#), "{sent:?}");
}

/// The marks that a keeper has when it was sent these frames.
fn stored(frames: &[u8]) -> Marks {
    let text = String::from_utf8_lossy(frames);
    let mut stored = BTreeMap::new();
    for (at, _) in text.match_indices('{') {
        let mut json = serde_json::Deserializer::from_str(&text[at..]).into_iter::<serde_json::Value>();
        let Some(Ok(head)) = json.next() else { continue };
        let (key, value) = match &head["mark"] {
            serde_json::Value::Null => (head["key"].as_str(), head["value"].as_str()),
            mark => (mark[0].as_str(), mark[1].as_str()),
        };
        match (key, value) {
            (Some(key), Some(value)) => drop(stored.insert(key.to_owned(), value.to_owned())),
            (Some(key), None) => drop(stored.remove(key)),
            (None, _) => {}
        }
    }
    Marks::new(stored)
}

// contract 7.3, FR-3: what was answered and is read again by the next host is answered by none, whether its session has ended
// since, was never known, or goes on; a request that came later under the same id is another one
#[test]
fn what_was_answered_is_not_answered_again() {
    let kept = |lease| Stage { core: AgentCore::new(Framing::Kept, 0, lease), said: 0 };
    let ask = |id: &str, session: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"fs/read_text_file","params":{{"sessionId":"{session}"}}}}"#
        )
    };
    let lines = [ask("1", "a"), ask("2", "a"), ask("3", "nobody"), ask("\"x y\"", "b"), ask("5", "b")];
    let mut stage = kept(0);
    let ((a, _), (b, _)) = (stage.bind("\"a\""), stage.bind("\"b\""));
    lines.iter().for_each(|line| drop(stage.line(line)));
    let id = |json| OwnedId::parse(json).expect("an id");
    stage.core.serve(a, &id("1"), lines[0].as_bytes(), lines[0].len() as u64 + 1);
    stage.core.pass(a, b"{}\n", Some(&id("1")), Some(7));
    stage.core.pass(a, b"{}\n", Some(&id("2")), Some(8));
    stage.core.pass(b, b"{}\n", Some(&id("\"x y\"")), None);
    stage.core.unbind(a);
    let marks = stored(stage.core.unwritten());
    assert_eq!(marks.answered_requests().len(), 4);
    // Twice, since the next host may be killed as well.
    for lease in [1, 2] {
        let mut next = kept(lease);
        let claim = Claim::new("\"b\"");
        assert!(next.core.claim(claim.known()));
        next.core.bind_again(claim, 0, None);
        next.core.serve_again(&marks, &mut Effects::default());
        let heard: Vec<_> = lines.iter().flat_map(|line| delivered(&next.line(line))).collect();
        assert_eq!(heard, ["0: fs/read_text_file"], "the one without an answer");
        assert!(next.core.unwritten().is_empty(), "nothing is refused");
        assert_eq!(delivered(&next.line(&ask("\"x y\"", "b"))).len(), 1, "another one");
        next.line(&ask("9", "a"));
        assert!(!next.core.unwritten().is_empty(), "a new one of a session that has ended is refused");
    }
}
