//! Close, stop, delete and detach.

use crate::asking::{
    DETACH, TERMINATE, answer_place, close, ends_of, entry, listed, meta, of, take_part, taking, until_ended,
};
use acpd_e2e::Scratch;
use serde_json::{Value, json};

// SE-14, PR-5: the prompt is answered, then the close; the process is gone by then
#[test]
fn a_close_in_a_turn_cancels_it() {
    for method in ["session/close", "session/stop"] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let prompt = client.prompt(&session, "begun\nhang");
        client.until_text("begun");
        let queued = client.prompt(&session, "never");
        let asked = client.request(method, &of(&session));
        assert_eq!(client.result(&asked), json!({}));
        assert_eq!(scratch.mark().running("example-agent").len(), 0);
        for prompt in [&prompt, &queued] {
            assert_eq!(client.result(prompt), json!({"stopReason": "cancelled"}));
        }
        let place = answer_place(&mut client, &asked);
        let since = client.since(&asked);
        assert_eq!(since[..place].iter().filter(|m| m.is_answer()).count(), 2, "{since:#?}");
        assert_eq!(ends_of(&client, &session), 1);
        client.is_alone();
        client.finish();
    }
}

// SE-15: a closed session is listed and can be loaded; a prompt names its state
#[test]
fn a_closed_session_stays() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    close(&mut client, &session);
    assert_eq!(
        until_ended(&mut client, &session, 1),
        json!({"reason": "completed", "terminated_by": "daemon"})
    );
    let asked = client.prompt(&session, "again");
    let error = client.error(&asked);
    assert_eq!(error["message"], "session has ended");
    assert_eq!(error["data"]["terminationInfo"]["reason"], "completed");
    assert_eq!(meta(&entry(&mut client, &session))["ended"], true);
    // Closing what is closed is no error, and no second end.
    close(&mut client, &session);
    assert_eq!(client.call("session/stop", &of(&session)), json!({}));
    let (_, replayed) = take_part(&mut client, &scratch, "session/load", &session);
    assert_eq!(replayed.len(), 2);
    assert_eq!(client.turn(&session, "again"), "end_turn");
    client.finish();
}

// SE-15: whoever prompts right behind the end is told of it
#[test]
fn a_prompt_right_behind_the_end_gets_the_record() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    for _ in 0..15 {
        let session = client.new_session();
        let crash = client.prompt(&session, "exit 3");
        until_ended(&mut client, &session, 1);
        let late = client.prompt(&session, "hello");
        client.error(&crash);
        let error = client.error(&late);
        assert_eq!(error["data"]["terminationInfo"]["exitCode"], 3, "{error}");
    }
    client.finish();
}

// SE-16: of what is not there; of what is live, which is closed first; what is deleted is unknown
#[test]
fn delete_is_for_good() {
    let scratch = Scratch::new();
    let (mut client, live) = scratch.session("example");
    let [closed, ended] = [(); 2].map(|()| client.new_session());
    close(&mut client, &closed);
    client.call(TERMINATE, &of(&ended));
    assert_eq!(client.call("session/delete", &of("nobody")), json!({}));
    let prompt = client.prompt(&live, "begun\nhang");
    client.until_text("begun");
    for session in [&live, &closed, &ended] {
        for _ in 0..2 {
            assert_eq!(client.call("session/delete", &of(session)), json!({}));
        }
        assert_eq!(ends_of(&client, session), 1, "the end was told before the answer");
    }
    assert_eq!(client.result(&prompt), json!({"stopReason": "cancelled"}));
    assert_eq!(listed(&mut client, &json!({})), Vec::<Value>::new());
    for session in [&live, &closed, &ended] {
        for method in ["session/load", "session/resume", "session/status", TERMINATE, "session/close"] {
            let error = client.refused(method, &taking(&scratch, session));
            assert_eq!((&error["code"], &error["data"]), (&json!(-32002), &of(session)), "{method}");
        }
        let asked = client.prompt(session, "hello");
        assert_eq!(client.error(&asked)["data"], of(session));
    }
    client.finish();
    let mut later = scratch.stdio("example");
    later.initialize();
    assert_eq!(listed(&mut later, &json!({})), Vec::<Value>::new());
    later.finish();
}

// contract 1: who detaches sees nothing more; the turn goes on, is answered, and is in the history
#[test]
fn a_detached_session_lives_on() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "begun\nsleep 300\ndone");
    client.until_text("begun");
    let asked = client.request(DETACH, &of(&session));
    assert_eq!(client.result(&asked), json!({}));
    assert_eq!(client.result(&prompt)["stopReason"], "end_turn");
    let place = answer_place(&mut client, &asked);
    assert!(client.since(&asked)[place..].iter().all(|m| m.method().is_none()), "nothing more is seen");
    // Not attached, not served (and no harm in leaving twice).
    let late = client.prompt(&session, "hello");
    assert_eq!(client.error(&late)["code"], -32002);
    assert_eq!(client.call(DETACH, &of(&session)), json!({}));
    let (_, replayed) = take_part(&mut client, &scratch, "session/load", &session);
    assert!(replayed.last().is_some_and(|line| line.contains("done")), "{replayed:#?}");
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    assert_eq!(client.refused(DETACH, &of("nobody"))["data"], of("nobody"));
    client.finish();
}

// contract 1: an end that comes later is not told to who has left; it is in the list
#[test]
fn who_has_left_is_told_no_end() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.call(DETACH, &of(&session));
    close(&mut client, &session);
    assert_eq!(meta(&entry(&mut client, &session))["terminationInfo"]["cause"], "client_close");
    client.finish();
    assert_eq!(ends_of(&client, &session), 0);
}

// SE-20: whatever the method; deleting what is not there is the exception
#[test]
fn an_unknown_session_is_named_by_every_method() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let unknown = "00000000-0000-7000-8000-000000000000";
    let mut params = taking(&scratch, unknown);
    params["prompt"] = json!([]);
    params["modeId"] = json!("plan");
    params["configId"] = json!("model");
    params["value"] = json!("example-small");
    for method in [
        "session/prompt",
        "session/load",
        "session/resume",
        "session/fork",
        "session/status",
        "session/close",
        "session/stop",
        TERMINATE,
        DETACH,
        "session/set_mode",
        "session/set_config_option",
    ] {
        for id in [unknown, "no id"] {
            params["sessionId"] = json!(id);
            let error = client.refused(method, &params);
            assert_eq!((&error["code"], &error["data"]), (&json!(-32002), &of(id)), "{method}: {error}");
        }
        let error = client.refused(method, &json!({}));
        assert_eq!(error["code"], -32602, "{method}: {error}");
    }
    assert_eq!(client.call("session/delete", &of("no id")), json!({}));
    client.notify("session/cancel", &of(unknown));
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
}
