//! The front end's decisions, stepped without a runtime.

use super::*;
use serde_json::{Value, json};

/// A front end. What it sends is told in words: `>` to the daemon, `<` to the client.
struct Stage(FrontCore);

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn request(id: &Value, method: &str, params: &Value) -> Bytes {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn result(id: &Value, result: &Value) -> Bytes {
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error(id: &Value, code: i64) -> Bytes {
    line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}))
}

fn notification(method: &str, params: &Value) -> Bytes {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Params of an event.
fn of_event(seq: u64, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({META: {"event": {"seq": seq}}});
    params
}

fn update(seq: u64) -> Bytes {
    notification("session/update", &of_event(seq, &json!({"sessionId": "s", "text": seq})))
}

fn ended(seq: u64) -> Bytes {
    notification("_sandboxagent/session/ended", &of_event(seq, &json!({"session_id": "s", "data": {}})))
}

fn question(id: u64, seq: u64) -> Bytes {
    request(&json!(id), "session/request_permission", &of_event(seq, &json!({"sessionId": "s"})))
}

/// What matters of a line.
fn words(line: &Bytes) -> String {
    let json: Value = serde_json::from_slice(line).expect("JSON");
    let own = &json["params"]["_meta"][META];
    let mut words = vec![json["id"].to_string()];
    words
        .extend(json["method"].as_str().map(|method| method.rsplit('/').next().unwrap_or(method).to_owned()));
    let answer = ["result", "error"].into_iter().find(|answer| !json[*answer].is_null());
    words.extend(answer.map(str::to_owned));
    for name in ["idempotencyKey", "after", "joins", "event"] {
        words.extend((!own[name].is_null()).then(|| format!("{name}={}", own[name])));
    }
    for name in ["text", "requestId", "reason"] {
        let value = &json["params"][name];
        words.extend((!value.is_null()).then(|| value.to_string()));
    }
    words.retain(|word| word != "null");
    words.join(" ").replace('"', "")
}

fn told(out: &Out) -> Vec<String> {
    let daemon = out.to_daemon.iter().map(|line| format!("> {}", words(line)));
    let client = out.to_client.iter().map(|line| format!("< {}", words(line)));
    let lost = out.lost.iter().map(|loss| format!("lost {} {:?}", loss.why, loss.retry));
    daemon.chain(client).chain(lost).collect()
}

impl Stage {
    /// A client that has initialized, and a session `s` whose last event it has seen is 3.
    fn new() -> Self {
        let mut stage = Self(FrontCore::new("a secret of a client".to_owned(), "f".to_owned()));
        let capable = json!({"agentCapabilities": {"_meta": {META: {"cursors": {}}}}});
        stage.client(request(&json!(0), "initialize", &json!({"protocolVersion": 1})));
        stage.daemon(result(&json!(0), &capable));
        stage.client(request(&json!("new"), "session/new", &json!({"cwd": "/"})));
        let created = json!({"sessionId": "s", "_meta": {META: {"seq": 0}}});
        assert_eq!(stage.daemon(result(&json!("new"), &created)), ["< new result"]);
        assert_eq!(stage.daemon(update(3)), ["< update 3"]);
        stage
    }

    fn step(&mut self, take: impl FnOnce(&mut FrontCore, &mut Out)) -> Vec<String> {
        let mut out = Out::default();
        take(&mut self.0, &mut out);
        told(&out)
    }

    fn client(&mut self, line: Bytes) -> Vec<String> {
        self.step(|core, out| core.client_said(line, || "k".to_owned(), out))
    }

    fn daemon(&mut self, line: Bytes) -> Vec<String> {
        self.step(|core, out| core.daemon_said(line, out))
    }

    fn prompts(&mut self, id: &str) -> Vec<String> {
        self.client(request(&json!(id), "session/prompt", &json!({"sessionId": "s", "prompt": []})))
    }

    /// The link is lost, and there is another one.
    fn relink(&mut self) -> Vec<String> {
        self.0.lost();
        self.step(|core, out| core.linked(out))
    }

    /// The daemon tells how far the session is, with what it asks.
    fn attached(&mut self, id: &str, seq: u64, open: &Value) -> Vec<String> {
        let own = json!({"seq": seq, "openQuestions": open});
        self.daemon(result(&json!(id), &json!({"_meta": {META: own}})))
    }
}

// contract 7.3: what the client sends is passed on, an initialize that can come again, prompts and creations under a key;
// what it is told is as if no link could be lost
#[test]
fn a_link_is_prepared_for_its_loss() {
    let mut core = FrontCore::new("a secret of a client".to_owned(), "f".to_owned());
    let mut out = Out::default();
    core.client_said(
        request(&json!(0), "initialize", &json!({"protocolVersion": 1})),
        || "k".to_owned(),
        &mut out,
    );
    let sent: Value = serde_json::from_slice(&out.to_daemon[0]).expect("JSON");
    assert_eq!(sent["params"]["_meta"][META]["secret"], "a secret of a client");
    assert_eq!(sent["params"]["clientCapabilities"]["_meta"][META]["cursors"], true);
    assert_eq!((&sent["id"], &sent["params"]["protocolVersion"]), (&json!(0), &json!(1)));
    let mut stage = Stage::new();
    assert_eq!(stage.prompts("a"), ["> a prompt idempotencyKey=k"]);
    let keyed = json!({"sessionId": "s", "_meta": {META: {"idempotencyKey": "own"}}});
    assert_eq!(stage.client(request(&json!(7), "session/prompt", &keyed)), ["> 7 prompt idempotencyKey=own"]);
    assert_eq!(stage.daemon(update(4)), ["< update 4"]);
    assert_eq!(stage.daemon(result(&json!("a"), &json!({"stopReason": "end_turn"}))), ["< a result"]);
    assert_eq!(stage.client(request(&json!(8), "_x/y", &json!({}))), ["> 8 y"]);
}

// contract 7.3: on a new link the client is introduced, attached behind what it has seen, and its requests are sent again
// or answered; what it is told goes on, and nothing is told twice
#[test]
fn everything_is_asked_for_again() {
    let mut stage = Stage::new();
    stage.prompts("a");
    stage.client(request(&json!(1), "session/new", &json!({"cwd": "/"})));
    stage.client(request(&json!(2), "session/set_mode", &json!({"sessionId": "s"})));
    stage.client(request(&json!(3), "session/fork", &json!({"sessionId": "s"})));
    stage.client(request(&json!(4), "authenticate", &json!({})));
    stage.client(request(&json!(5), "session/load", &json!({"sessionId": "t"})));
    stage.client(notification("session/cancel", &json!({"sessionId": "s"})));
    assert_eq!(
        stage.relink(),
        [
            "> f-1 initialize joins=s",
            "> f-2 load after=3",
            "> a prompt idempotencyKey=k",
            "> cancel_request a",
            "> 1 new idempotencyKey=k",
            "> 2 set_mode",
            "> 5 load",
            "< 3 error",
            "< 4 error",
        ]
    );
    assert_eq!(stage.daemon(result(&json!("f-1"), &json!({}))), [] as [&str; 0]);
    assert_eq!(stage.daemon(update(4)), ["< update 4"]);
    assert_eq!(stage.attached("f-2", 4, &json!([])), [] as [&str; 0]);
    assert_eq!(stage.daemon(update(4)), [] as [&str; 0]);
    assert_eq!(stage.daemon(result(&json!("a"), &json!({"stopReason": "end_turn"}))), ["< a result"]);
    // Once more, with less to do.
    stage.daemon(update(9));
    assert_eq!(stage.relink()[..2], ["> f-3 initialize joins=s", "> f-4 load after=9"]);
}

// contract 7.3, PE-3: a question that the client has is not put to it again; its answer goes on under the daemon's new id; one
// that was answered elsewhere is withdrawn
#[test]
fn questions_stay_with_the_client() {
    let mut stage = Stage::new();
    for (id, seq) in [(1, 4), (2, 5), (3, 6)] {
        assert_eq!(stage.daemon(question(id, seq)), [format!("< {id} request_permission")]);
    }
    // It may not have arrived.
    assert_eq!(stage.client(result(&json!(2), &json!({}))), ["> 2 result"]);
    stage.relink();
    assert_eq!(stage.daemon(question(1, 5)), ["> 1 result"]);
    assert_eq!(stage.daemon(question(2, 4)), [] as [&str; 0]);
    assert_eq!(stage.attached("f-2", 7, &json!([4, 5])), ["< cancel_request 3"]);
    assert_eq!(stage.client(result(&json!(1), &json!({}))), ["> 2 result"]);
    assert_eq!(stage.client(result(&json!(3), &json!({}))), [] as [&str; 0]);
    // An answer that does not count is told, and the question put anew.
    let refused = notification("_sandboxagent/answer_refused", &json!({"requestId": 2, "sessionId": "s"}));
    assert_eq!(stage.daemon(refused), ["< answer_refused 1"]);
    assert_eq!(stage.daemon(question(3, 4)), ["< 4 request_permission"]);
    assert_eq!(
        stage.daemon(notification("$/cancel_request", &json!({"requestId": 3}))),
        ["< cancel_request 4"]
    );
}

// contract 1.2, contract 7.3: a session that ended meanwhile is told its end, behind the answers to what was pending
#[test]
fn an_end_is_told_behind_the_answers() {
    let mut stage = Stage::new();
    stage.prompts("a");
    stage.daemon(question(1, 4));
    assert_eq!(stage.relink()[1], "> f-2 load after=4");
    assert_eq!(stage.daemon(update(5)), ["< update 5"]);
    assert_eq!(stage.daemon(ended(6)), [] as [&str; 0]);
    let over = result(&json!("f-2"), &json!({"_meta": {META: {"seq": 6, "resumable": false}}}));
    assert_eq!(stage.daemon(over), ["< cancel_request 1"]);
    // Lost once more: it is told again, and held again.
    assert_eq!(stage.relink()[1], "> f-4 load after=5");
    assert_eq!(stage.daemon(ended(6)), [] as [&str; 0]);
    let over = result(&json!("f-4"), &json!({"_meta": {META: {"seq": 6, "resumable": false}}}));
    assert_eq!(stage.daemon(over), [] as [&str; 0]);
    assert_eq!(stage.daemon(error(&json!("a"), -32002)), ["< a error", "< ended"]);
    assert_eq!(stage.relink(), ["> f-5 initialize"]);
}

// contract 7.3: one that was removed is told so, unless the client itself has it removed
#[test]
fn a_session_that_is_not_there_is_closed() {
    for (method, told) in [("session/list", vec!["< closed deleted"]), ("session/delete", vec![])] {
        let mut stage = Stage::new();
        stage.client(request(&json!(1), method, &json!({"sessionId": "s"})));
        stage.relink();
        assert_eq!(stage.daemon(error(&json!("f-2"), -32002)), told, "{method}");
    }
}

// contract 7.3: a client is attached to what it asked for and has not left
#[test]
fn what_was_left_is_not_attached_to() {
    for (method, answer, again) in [
        ("_sandboxagent/session/detach", json!({}), false),
        ("session/close", json!({}), false),
        ("session/resume", json!({"_meta": {META: {"seq": 8}}}), true),
        ("session/load", json!({"_meta": {META: {"seq": 8}}}), true),
        ("session/load", json!({"_meta": {META: {"seq": 8, "resumable": false}}}), false),
    ] {
        let mut stage = Stage::new();
        stage.client(request(&json!(1), method, &json!({"sessionId": "s"})));
        stage.daemon(result(&json!(1), &answer));
        let asked = stage.relink();
        assert_eq!(
            asked.get(1).map(String::as_str),
            again.then_some("> f-2 load after=8"),
            "{method} {answer}"
        );
    }
}

// contract 7.3: a hand-over is a loss, and says when to come back; other ends of streams are the client's to know
#[test]
fn a_hand_over_is_a_loss() {
    let mut stage = Stage::new();
    let closed = |reason: &str| {
        notification("_sandboxagent/closed", &json!({"reason": reason, "retryMs": 250, "sessionId": "s"}))
    };
    assert_eq!(stage.daemon(closed("handover")), ["lost it is handed over to another process Some(250ms)"]);
    assert_eq!(stage.relink()[1], "> f-2 load after=3");
    assert_eq!(stage.daemon(closed("deleted")), ["< closed deleted"]);
    assert_eq!(stage.relink(), ["> f-3 initialize"]);
    // A daemon that cannot serve it yet is one that is not there yet.
    assert_eq!(stage.daemon(error(&json!("f-3"), -32603)), ["lost no None"]);
}

// contract 7.3: an initialize that was lost is sent again as it was, and a daemon that knows no cursors is not come back to
#[test]
fn what_is_not_initialized_is_asked_again() {
    let mut stage = Stage(FrontCore::new("a secret of a client".to_owned(), "f".to_owned()));
    assert!(stage.relink().is_empty() && stage.0.can_go_on());
    stage.client(request(&json!("i"), "initialize", &json!({"protocolVersion": 1})));
    assert_eq!(stage.relink(), ["> i initialize"]);
    assert_eq!(stage.daemon(result(&json!("i"), &json!({}))), ["< i result"]);
    assert!(!stage.0.can_go_on() && stage.0.is_idle());
}

// FR-5, IN-1: what comes before initialize is answered as without a daemon, which would close the link over it
#[test]
fn what_comes_before_initialize_is_answered() {
    let mut stage = Stage(FrontCore::new("a secret of a client".to_owned(), "f".to_owned()));
    let mut answer = |line: &str| {
        let mut out = Out::default();
        stage.0.client_said(Bytes::copy_from_slice(line.as_bytes()), || "k".to_owned(), &mut out);
        assert!(out.to_daemon.is_empty(), "{line}");
        let answer = out.to_client.first().map(|line| serde_json::from_slice::<Value>(line).expect("JSON"));
        answer.map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()))
    };
    assert_eq!(answer("garbage"), Some((Value::Null, json!(-32700))));
    assert_eq!(answer(r#"{"id":7,"method":"session/new"}"#), Some((json!(7), json!(-32600))));
    assert_eq!(answer(r#"{"jsonrpc":"2.0","method":"session/cancel"}"#), None);
    stage.client(request(&json!("i"), "initialize", &json!({"protocolVersion": 1})));
    let mut out = Out::default();
    stage.0.client_said(Bytes::from_static(b"garbage"), || "k".to_owned(), &mut out);
    assert_eq!((out.to_daemon.len(), out.to_client.len()), (1, 0), "from then on the daemon judges");
}

// FR-8: a client that keeps cursors itself sees what it has asked for
#[test]
fn what_the_client_wants_to_know_is_left() {
    let mut stage = Stage(FrontCore::new("a secret of a client".to_owned(), "f".to_owned()));
    let capabilities = json!({"_meta": {META: {"cursors": true}}});
    stage.client(request(&json!(0), "initialize", &json!({"clientCapabilities": capabilities})));
    assert_eq!(stage.daemon(update(3)), ["< update event={seq:3} 3"]);
}

/// The node that has the session is lost, as a daemon says it.
fn node_lost(id: &Value) -> Bytes {
    let data = json!({"node": "b", "sessionId": "s"});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "gone", "data": data}}))
}

// contract 7.3: the node of the only session is waited for, and what was open is asked again under its key; that the daemon answers
// is no sign that the node does
#[test]
fn the_node_of_the_only_session_is_waited_for() {
    let mut stage = Stage::new();
    stage.prompts("p");
    assert_eq!(stage.daemon(node_lost(&json!("p"))), ["lost gone None"]);
    let again = ["> f-1 initialize joins=s", "> f-2 load after=3", "> p prompt idempotencyKey=k"];
    assert_eq!(stage.relink(), again);
    let mut out = Out::default();
    stage.0.daemon_said(result(&json!("f-1"), &json!({})), &mut out);
    assert!(!out.is_back);
    assert_eq!(stage.daemon(node_lost(&json!("f-2"))), ["lost gone None"]);
    stage.relink();
    stage.daemon(result(&json!("f-3"), &json!({})));
    let mut out = Out::default();
    stage.0.daemon_said(result(&json!("f-4"), &json!({})), &mut out);
    assert!(out.is_back);
    assert_eq!(stage.daemon(result(&json!("p"), &json!({}))), ["< p result"]);
    let closed = notification(CLOSED, &json!({"reason": "unreachable", "detail": "gone", "sessionId": "s"}));
    assert_eq!(stage.daemon(closed.clone()), ["lost gone None"]);
    // One with other sessions is told.
    stage.client(request(&json!("t"), "session/new", &json!({"cwd": "/"})));
    stage.daemon(result(&json!("t"), &json!({"sessionId": "t", "_meta": {META: {"seq": 0}}})));
    stage.prompts("q");
    assert_eq!(stage.daemon(node_lost(&json!("q"))), ["< q error"]);
    assert_eq!(stage.daemon(closed), ["< closed unreachable"]);
}

// UP-2: an agent whose answer looks like the loss of a node is asked again a few times, and not without end
#[test]
fn what_looks_like_a_lost_node_is_believed_a_few_times() {
    let mut stage = Stage::new();
    stage.prompts("p");
    let mut asked = 1;
    while stage.daemon(node_lost(&json!("p"))) == ["lost gone None"] {
        asked += 1;
        assert!(asked < 100);
        stage.relink();
        let own = 2 * (asked - 1);
        stage.daemon(result(&json!(format!("f-{}", own - 1)), &json!({})));
        stage.daemon(result(&json!(format!("f-{own}")), &json!({})));
    }
    assert_eq!(asked, 9);
}

// contract 7.3, PR-9: a cancel that may not have been heard is sent again on each link, until the end of its turn is the answer;
// prompts that wait in line behind are not withdrawn with it
#[test]
fn a_cancel_is_sent_again_until_its_turn_has_ended() {
    let mut stage = Stage::new();
    stage.prompts("a");
    stage.prompts("b");
    stage.client(notification("session/cancel", &json!({"sessionId": "s"})));
    let again = ["> a prompt idempotencyKey=k", "> cancel_request a", "> b prompt idempotencyKey=k"];
    for _ in 0..2 {
        assert_eq!(stage.relink()[2..], again);
    }
    assert_eq!(stage.daemon(result(&json!("a"), &json!({"stopReason": "cancelled"}))), ["< a result"]);
    assert_eq!(stage.relink()[2..], again[2..]);
}
