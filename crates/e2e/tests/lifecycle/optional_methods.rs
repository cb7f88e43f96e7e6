//! Optional methods of agents: asked once, remembered, worked around (contract 1.4).

use crate::asking::{answer_place, close, ends_of, entry, meta, of, take_part, taking, until_ended};
use crate::stored::{RUN_STARTED, Stored, stored};
use crate::tapped::{heard, lacking, tapped, times_heard};
use acpd_e2e::{Client, Scratch};
use serde_json::{Value, json};

const CLOSE: &str = "session/close";
const STOP: &str = "session/stop";
const LOAD: &str = "session/load";
const RESUME: &str = "session/resume";
const FORK: &str = "session/fork";

fn initialized(scratch: &Scratch, agent: &str) -> (Client, Value) {
    let mut client = scratch.stdio(agent);
    let result = client.initialize();
    (client, result["agentCapabilities"].clone())
}

/// By which method each run after the first was taken up.
fn taken_up_by(scratch: &Scratch, session: &str) -> Vec<String> {
    let events = stored(scratch, session);
    let runs = events.iter().filter(|event| event.kind == RUN_STARTED).map(Stored::json).skip(1);
    runs.map(|run| run["method"].as_str().unwrap_or_default().to_owned()).collect()
}

fn remembered(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.state().join("agent-methods.json")).unwrap_or_default()
}

// contract 1.4, SE-17: resume, else load; close, else stop, else acpd by itself. What an agent does not list is never
// sent to it, IN-5
#[test]
fn what_an_agent_lacks_is_worked_around() {
    for (args, closing, taking_up) in [
        ("", Some(CLOSE), RESUME),
        ("--without resume", Some(CLOSE), LOAD),
        ("--without close,resume", None, LOAD),
        ("--without close,load", None, RESUME),
        ("--legacy-stop", Some(STOP), RESUME),
        ("--legacy-stop --without resume,list,delete", Some(STOP), LOAD),
    ] {
        let scratch = tapped(Scratch::new(), "tapped", "", args);
        let (mut client, session) = scratch.session("tapped");
        assert_eq!(client.turn(&session, "before"), "end_turn");
        close(&mut client, &session);
        assert_eq!(until_ended(&mut client, &session, 1)["reason"], "completed");
        take_part(&mut client, &scratch, RESUME, &session);
        assert_eq!(client.turn(&session, "after"), "end_turn");
        client.finish();
        let optional = [CLOSE, STOP, LOAD, RESUME, FORK, "session/list", "session/delete"];
        let heard = heard(&scratch, "tapped");
        let sent: Vec<&str> =
            heard.iter().map(String::as_str).filter(|method| optional.contains(method)).collect();
        let expected: Vec<&str> = closing.into_iter().chain([taking_up]).collect();
        assert_eq!(sent, expected, "{args}");
        assert_eq!(taken_up_by(&scratch, &session), [taking_up]);
        assert_eq!(remembered(&scratch), "", "nothing had to be found out");
    }
}

// contract 1.4, SE-6, SE-9: an agent that can do neither; the history is there, the session stays as it is
#[test]
fn a_session_that_cannot_be_taken_up_can_be_read() {
    let scratch = Scratch::new().example("forgetful", &["--without", "load,resume"]);
    let (mut client, session) = scratch.session("forgetful");
    assert_eq!(client.turn(&session, "words to keep"), "end_turn");
    close(&mut client, &session);
    let before = entry(&mut client, &session);
    let refused = |client: &mut Client, method: &str| {
        let error = client.refused(method, &taking(&scratch, &session));
        assert_eq!((&error["code"], &error["data"]["resumable"]), (&json!(-32603), &json!(false)), "{error}");
        assert!(error["message"].as_str().unwrap().contains("can neither resume nor load"), "{error}");
    };
    refused(&mut client, RESUME);
    let (result, replayed) = take_part(&mut client, &scratch, LOAD, &session);
    assert_eq!(replayed.len(), 4, "{replayed:#?}");
    assert_eq!(meta(&result)["resumable"], false);
    assert!(meta(&result)["reason"].as_str().unwrap().contains("can neither resume nor load"), "{result}");
    // Prompts answer that error.
    let asked = client.prompt(&session, "hello");
    let error = client.error(&asked);
    assert_eq!((&error["code"], &error["data"]["resumable"]), (&json!(-32603), &json!(false)), "{error}");
    refused(&mut client, RESUME);
    assert_eq!(entry(&mut client, &session), before);
    client.finish();
    assert_eq!(ends_of(&client, &session), 1);
}

// SE-9, contract 1.4: an agent that does not know the session any more says so, and so does acpd
// quirk unknown-session-codes (all agents, each with a code of its own): any error is taken as a refusal, and told in
// its own words
#[test]
fn a_refusal_of_the_agent_is_told() {
    let scratch = Scratch::new().example("forgetful", &["--no-state"]);
    let (mut client, session) = scratch.session("forgetful");
    assert_eq!(client.turn(&session, "words"), "end_turn");
    close(&mut client, &session);
    let before = entry(&mut client, &session);
    let error = client.refused(RESUME, &taking(&scratch, &session));
    assert_eq!((&error["code"], &error["data"]["resumable"]), (&json!(-32603), &json!(false)), "{error}");
    assert!(error["message"].as_str().unwrap().contains("refused session/resume"), "{error}");
    let (result, replayed) = take_part(&mut client, &scratch, LOAD, &session);
    assert_eq!((replayed.len(), &meta(&result)["resumable"]), (2, &json!(false)));
    assert_eq!(entry(&mut client, &session), before);
    assert_eq!(remembered(&scratch), "", "another error than -32601 says nothing of the method");
    client.finish();
}

// contract 1.4: a resume that the agent only says it has is tried once, ever; load stands in
// quirk method-missing (agents that offer what they lack): it is asked for once, and `session/load` stands in
#[test]
fn a_missing_resume_is_asked_for_once() {
    let scratch = lacking(Scratch::new(), "liar", RESUME, "");
    for round in 1..=2 {
        let (mut client, session) = scratch.session("liar");
        for _ in 0..2 {
            assert_eq!(client.turn(&session, "hello"), "end_turn");
            close(&mut client, &session);
            take_part(&mut client, &scratch, RESUME, &session);
        }
        client.finish();
        assert_eq!(taken_up_by(&scratch, &session), [LOAD, LOAD]);
        assert_eq!(times_heard(&scratch, "liar", RESUME), 1);
        assert_eq!(times_heard(&scratch, "liar", LOAD), 2 * round);
        assert!(remembered(&scratch).contains(RESUME), "{}", remembered(&scratch));
    }
}

// contract 1.4, SE-17: a close that the agent only says it has is tried once, ever, and acpd closes by itself
#[test]
fn a_missing_close_is_asked_for_once() {
    let scratch = lacking(Scratch::new(), "liar", CLOSE, "");
    for _ in 0..2 {
        let (mut client, session) = scratch.session("liar");
        let second = client.new_session();
        for session in [&session, &second] {
            client.prompt(session, "begun\nhang");
            client.until_text("begun");
            close(&mut client, session);
            assert_eq!(until_ended(&mut client, session, 1)["reason"], "completed");
        }
        client.finish();
        assert_eq!(times_heard(&scratch, "liar", CLOSE), 1);
    }
    assert!(remembered(&scratch).contains(CLOSE));
}

// contract 1.4, IN-3: a fork that the agent only says it has is hidden once that is known, also after a restart
#[test]
fn a_missing_fork_is_hidden() {
    let scratch = lacking(Scratch::new(), "liar", FORK, "");
    let (mut client, capabilities) = initialized(&scratch, "liar");
    assert_eq!(capabilities["sessionCapabilities"]["fork"], json!({}));
    let session = client.new_session();
    for _ in 0..2 {
        assert_eq!(client.refused(FORK, &taking(&scratch, &session))["code"], -32601);
    }
    assert_eq!(times_heard(&scratch, "liar", FORK), 1);
    let again = client.initialize();
    assert_eq!(again["agentCapabilities"]["sessionCapabilities"].get("fork"), None);
    client.finish();
    let (mut client, capabilities) = initialized(&scratch, "liar");
    assert_eq!(capabilities["sessionCapabilities"].get("fork"), None);
    let session = client.new_session();
    assert_eq!(client.refused(FORK, &taking(&scratch, &session))["code"], -32601);
    assert_eq!(times_heard(&scratch, "liar", FORK), 1);
    client.finish();
}

// contract 1.4, IN-3: what acpd does itself is offered whatever the agent lacks; the rest is not
#[test]
fn what_works_is_offered() {
    let scratch = Scratch::new()
        .example("poor", &["--without", "load,resume,fork,list,close,delete"])
        .example("old", &["--legacy-stop"]);
    for (agent, fork) in [("example", true), ("poor", false), ("old", true)] {
        let (mut client, capabilities) = initialized(&scratch, agent);
        assert_eq!(capabilities["loadSession"], true);
        let session = &capabilities["sessionCapabilities"];
        for name in ["list", "resume", "close", "delete"] {
            assert_eq!(session[name], json!({}), "{agent} {name}");
        }
        assert_eq!(session.get("fork").is_some(), fork, "{agent}");
        // The first draft's place is no place of the stable protocol.
        assert_eq!(capabilities.get("session"), None);
        assert_eq!(meta(&capabilities)["stop"], json!({}));
        if !fork {
            let session = client.new_session();
            assert_eq!(client.refused(FORK, &taking(&scratch, &session))["code"], -32601);
        }
        client.finish();
    }
}

// contract 1.4: on request, close is also advertised where its first draft had it; an old agent's own claim is not
// passed on without that
#[test]
fn the_first_drafts_place_of_stop_is_opt_in() {
    for (switch, expected) in [("", None), ("false", None), ("true", Some(json!({"stop": {}})))] {
        let mut scratch = Scratch::new().example("old", &["--legacy-stop"]).example("new", &[]);
        if !switch.is_empty() {
            scratch = scratch.config(&format!("[compat]\nsession_stop = {switch}"));
        }
        for agent in ["old", "new"] {
            let (mut client, capabilities) = initialized(&scratch, agent);
            assert_eq!(capabilities.get("session"), expected.as_ref(), "{agent} {switch}");
            assert_eq!(capabilities["sessionCapabilities"]["close"], json!({}));
            assert_eq!(meta(&capabilities)["stop"], json!({}));
            // A second `initialize` says the same.
            assert_eq!(client.initialize()["agentCapabilities"], capabilities);
            client.finish();
        }
    }
}

// contract 1.4: a client's `session/stop` is a close, whatever the agent calls it
#[test]
fn stop_is_close() {
    for args in [&[][..], &["--legacy-stop"], &["--without", "close"]] {
        let scratch = Scratch::new().example("agent", args);
        let (mut client, session) = scratch.session("agent");
        let asked = client.request(STOP, &of(&session));
        assert_eq!(client.result(&asked), json!({}));
        let place = answer_place(&mut client, &asked);
        assert_eq!(place, 1, "the end comes first");
        assert_eq!(meta(&entry(&mut client, &session))["terminationInfo"]["cause"], "client_close");
        client.finish();
    }
}
