//! `_sandboxagent/session/terminate`: the six rules of contract 1.1 but the bound, which is in `bounds`.

use crate::asking::{TERMINATE, answer_place, close, ends_of, entry, listed, meta, of, until_ended};
use crate::stored::{ENDED, of_kind, stored};
use crate::tapped::{heard, tapped};
use acpd_e2e::Scratch;
use rustix::process::Signal;
use serde_json::{Value, json};

fn terminated() -> Value {
    json!({"terminated": true, "reason": "terminated", "terminatedBy": "daemon"})
}

fn recorded(reason: &str, by: &str) -> Value {
    json!({"terminated": true, "reason": reason, "terminatedBy": by, "alreadyEnded": true})
}

// contract 1.1: rule 1, the whole process tree of a session that owns it, and nobody else's
#[test]
fn the_whole_tree_of_the_session_ends() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let other = client.new_session();
    let asked = client.prompt(&session, "fork\nfork setsid\nbegun\nhang");
    client.until_text("begun");
    assert_eq!(client.call(TERMINATE, &of(&session)), terminated());
    assert_eq!(client.result(&asked), json!({"stopReason": "cancelled"}));
    let living = scratch.mark().running("example-agent");
    assert_eq!(living.len(), 1, "one agent is left, and no sleeper: {living:?}");
    assert_eq!(client.turn(&other, "hello"), "end_turn");
    let info = meta(&entry(&mut client, &session))["terminationInfo"].clone();
    assert_eq!((&info["leaked"], &info["initiator"]), (&json!(true), &json!("e2e")), "{info}");
    client.finish();
}

// contract 1.1: rule 1, the turn is cancelled before the process is stopped
#[test]
fn the_agent_hears_of_it_first() {
    let scratch = tapped(Scratch::new(), "tapped", "", "");
    let (mut client, session) = scratch.session("tapped");
    let asked = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    assert_eq!(client.call(TERMINATE, &of(&session)), terminated());
    assert_eq!(client.result(&asked), json!({"stopReason": "cancelled"}));
    assert_eq!(heard(&scratch, "tapped"), ["initialize", "session/new", "session/prompt", "session/cancel"]);
    client.finish();
}

// contract 1.1, FR-3, PR-5: rule 2, everything pending is answered
#[test]
fn everything_pending_is_answered() {
    let scratch = tapped(Scratch::new(), "deaf", "/set_mode/d", "");
    let (mut client, session) = scratch.session("deaf");
    let running = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    let queued = client.prompt(&session, "never");
    let unanswered = client.request("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}));
    assert_eq!(client.call(TERMINATE, &of(&session)), terminated());
    for prompt in [&running, &queued] {
        assert_eq!(client.result(prompt), json!({"stopReason": "cancelled"}));
    }
    let error = client.error(&unanswered);
    assert_eq!(error["data"]["terminationInfo"]["cause"], "client_terminate", "{error}");
    client.finish();
}

// contract 1.1, SE-15, TM-4: rule 3, the end once, after the last output, before the answer
#[test]
fn the_end_is_told_between_the_last_output_and_the_answer() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "stream 50000000");
    client.until("some output", |m| m.text().is_some());
    let asked = client.request(TERMINATE, &of(&session));
    let answer = answer_place(&mut client, &asked);
    client.answer(&prompt);
    client.call("session/list", &json!({}));
    let since = client.since(&asked);
    let end =
        since.iter().position(|m| m.method() == Some("_sandboxagent/session/ended")).expect("it was told");
    let last = since.iter().rposition(|m| m.method() == Some("session/update")).expect("there was output");
    assert!(last < end && end < answer, "{last} {end} {answer}");
    let data = json!({"reason": "terminated", "terminated_by": "daemon"});
    assert_eq!(since[end].json["params"], json!({"session_id": session, "data": data}));
    client.finish();
    assert_eq!(ends_of(&client, &session), 1);
}

// contract 1.1, TM-4: rule 4, on an ended session the recorded end counts, and nothing happens
#[test]
fn it_does_nothing_to_a_session_that_has_ended() {
    let scratch = Scratch::new();
    let (mut client, crashed) = scratch.session("example");
    let (closed, ended) = (client.new_session(), client.new_session());
    let asked = client.prompt(&crashed, "exit 3");
    client.error(&asked);
    close(&mut client, &closed);
    assert_eq!(client.call(TERMINATE, &of(&ended)), terminated());
    let expected = [
        (&crashed, recorded("error", "agent")),
        (&closed, recorded("completed", "daemon")),
        (&ended, recorded("terminated", "daemon")),
    ];
    let before = listed(&mut client, &json!({}));
    for (session, result) in &expected {
        for _ in 0..2 {
            assert_eq!(client.call(TERMINATE, &of(session)), *result);
        }
    }
    assert_eq!(listed(&mut client, &json!({})), before);
    client.finish();
    for (session, _) in &expected {
        assert_eq!((ends_of(&client, session), of_kind(&stored(&scratch, session), ENDED).len()), (1, 1));
    }
    // Nor does another process, later.
    let mut later = scratch.stdio("example");
    later.initialize();
    for (session, result) in &expected {
        assert_eq!(later.call(TERMINATE, &of(session)), *result);
    }
    assert_eq!(listed(&mut later, &json!({})), before);
    later.finish();
}

// contract 1.1: rule 4, a session whose daemon died has its record too, which a terminate makes final
#[test]
fn a_lost_session_has_ended_already() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.signal(Signal::KILL);
    client.ended();
    let mut later = scratch.stdio("example");
    later.initialize();
    for _ in 0..2 {
        assert_eq!(later.call(TERMINATE, &of(&session)), recorded("terminated", "daemon"));
    }
    later.finish();
}

// contract 1.1: rule 4, concurrent calls make one end and as many successes
#[test]
fn concurrent_calls_make_one_end() {
    for prompt in [None, Some("begun\nhang"), Some("begun\nignore-cancel\nignore-sigterm\nhang")] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        if let Some(prompt) = prompt {
            client.prompt(&session, prompt);
            client.until_text("begun");
        }
        let calls: Vec<_> = (0..3).map(|_| client.request(TERMINATE, &of(&session))).collect();
        for call in &calls {
            let mut result = client.result(call);
            // One that comes after the end may say so.
            let members = result.as_object_mut().expect("a result is an object");
            assert!(members.remove("alreadyEnded").is_none_or(|already| already == true));
            assert_eq!(result, terminated());
        }
        client.is_alone();
        client.finish();
        assert_eq!(ends_of(&client, &session), 1);
        assert_eq!(of_kind(&stored(&scratch, &session), ENDED).len(), 1);
    }
}

// contract 1.1, contract 1.2: the first cause wins, whoever comes with another one
#[test]
fn a_close_and_a_terminate_make_one_end() {
    for methods in [["session/close", TERMINATE], [TERMINATE, "session/close"]] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        client.prompt(&session, "begun\nhang");
        client.until_text("begun");
        let calls = methods.map(|method| client.request(method, &of(&session)));
        for call in &calls {
            client.result(call);
        }
        let info = meta(&entry(&mut client, &session))["terminationInfo"].clone();
        let first = if methods[0] == TERMINATE { "client_terminate" } else { "client_close" };
        assert_eq!(info["cause"], first);
        client.finish();
        assert_eq!(ends_of(&client, &session), 1);
    }
}

// TM-4: a crash that races with a terminate or a close makes one record, and both are answered
#[test]
fn a_race_with_a_crash_makes_one_record() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    let mut sessions = Vec::new();
    for round in 0..12 {
        let session = client.new_session();
        let prompt =
            client.prompt(&session, ["exit 3", "begun\nexit 0", "stream 50\nsignal KILL"][round % 3]);
        let call = client.request(if round % 2 == 0 { TERMINATE } else { "session/close" }, &of(&session));
        client.result(&call);
        client.answer(&prompt);
        until_ended(&mut client, &session, 1);
        sessions.push(session);
    }
    client.finish();
    for session in &sessions {
        let events = stored(&scratch, session);
        assert_eq!((ends_of(&client, session), of_kind(&events, ENDED).len()), (1, 1));
        assert_eq!(events.last().map(|event| event.kind), Some(ENDED));
    }
}

// contract 1.1, SE-20: rule 5
#[test]
fn an_unknown_session_is_an_error() {
    let scratch = Scratch::new();
    let (mut client, _) = scratch.session("example");
    let error = client.refused(TERMINATE, &of("nobody"));
    assert_eq!((&error["code"], &error["data"]), (&json!(-32002), &json!({"sessionId": "nobody"})));
    assert_eq!(client.refused(TERMINATE, &json!({}))["code"], -32602);
    client.finish();
}
