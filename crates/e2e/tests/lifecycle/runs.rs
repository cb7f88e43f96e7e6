//! Runs: ended sessions that are taken up again, and those that are not.

use crate::asking::{
    TERMINATE, close, ends_of, entry, ids, listed, meta, of, take_part, taking, until_ended,
};
use crate::stored::{ENDED, RUN_STARTED, stored};
use acpd_e2e::{Client, Scratch};
use serde_json::{Value, json};

const LOAD: &str = "session/load";
const RESUME: &str = "session/resume";

/// The ends and starts of runs in the log, in order.
fn life(scratch: &Scratch, session: &str) -> Vec<String> {
    let events = stored(scratch, session);
    let turning = events.iter().filter(|event| [RUN_STARTED, ENDED].contains(&event.kind));
    turning
        .map(|event| match event.kind {
            ENDED => event.json()["cause"].as_str().unwrap_or_default().to_owned(),
            _ => "run".to_owned(),
        })
        .collect()
}

/// A turn that ends the agent; the prompt is answered.
fn crash(client: &mut Client, session: &str) {
    let before = ends_of(client, session);
    let asked = client.prompt(session, "exit 3");
    client.error(&asked);
    until_ended(client, session, before + 1);
}

// contract 1: completed and error sessions go on in a new run; the record of the earlier one stays
#[test]
fn an_ended_session_is_taken_up_again() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "first"), "end_turn");
    let created = meta(&entry(&mut client, &session))["createdAt"].clone();
    for (method, ends) in [(LOAD, 1), (RESUME, 2)] {
        match ends {
            1 => close(&mut client, &session),
            _ => crash(&mut client, &session),
        }
        assert_eq!(meta(&entry(&mut client, &session))["ended"], true);
        take_part(&mut client, &scratch, method, &session);
        let live = entry(&mut client, &session);
        let own = meta(&live);
        assert_eq!((&own["ended"], &own["state"]), (&json!(false), &json!("idle")));
        assert_eq!((own.get("terminationInfo"), &own["createdAt"]), (None, &created));
        assert_eq!(client.turn(&session, "again"), "end_turn");
        assert_eq!(ends_of(&client, &session), ends, "once per run, and none for a run that goes on");
        assert_eq!(ids(&listed(&mut client, &json!({}))), [&session]);
    }
    client.finish();
    assert_eq!(ends_of(&client, &session), 3);
    let expected = ["run", "client_close", "run", "agent_crash", "run", "daemon_shutdown"];
    assert_eq!(life(&scratch, &session), expected);
}

// contract 1: a prompt to an ended session starts nothing by itself
#[test]
fn a_prompt_starts_no_run() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    close(&mut client, &session);
    let before = entry(&mut client, &session);
    let asked = client.prompt(&session, "hello");
    assert_eq!(client.error(&asked)["code"], -32002);
    assert_eq!(
        client.refused("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}))["code"],
        -32002
    );
    client.is_alone();
    assert_eq!(entry(&mut client, &session), before);
    client.finish();
    assert_eq!(life(&scratch, &session), ["run", "client_close"]);
}

// contract 1, TM-3: terminated is final; a load shows the history and how it ended, and starts nothing
#[test]
fn terminated_is_final() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "words"), "end_turn");
    client.call(TERMINATE, &of(&session));
    let before = entry(&mut client, &session);
    let info = meta(&before)["terminationInfo"].clone();
    let check = |client: &mut Client| {
        let agents = scratch.mark().running("example-agent").len();
        let (result, replayed) = take_part(client, &scratch, LOAD, &session);
        assert_eq!((replayed.len(), &meta(&result)["resumable"]), (2, &json!(false)), "{result}");
        assert!(meta(&result)["reason"].as_str().unwrap().contains("terminated, which is final"), "{result}");
        assert_eq!(meta(&result)["terminationInfo"], info);
        let asked = client.prompt(&session, "hello");
        let error = client.error(&asked);
        assert_eq!(error["code"], -32002);
        assert_eq!(error["data"], json!({"sessionId": session, "terminationInfo": info}));
        let error = client.refused(RESUME, &taking(&scratch, &session));
        assert_eq!((&error["code"], &error["data"]["resumable"]), (&json!(-32603), &json!(false)), "{error}");
        assert_eq!(entry(client, &session), before);
        assert_eq!(scratch.mark().running("example-agent").len(), agents);
    };
    check(&mut client);
    check(&mut client);
    client.finish();
    let mut later = scratch.stdio("example");
    later.initialize();
    check(&mut later);
    later.finish();
    assert_eq!(life(&scratch, &session), ["run", "client_terminate"]);
}

// SU-6: an agent that crashes again and again is not started for ever
#[test]
fn a_crash_loop_is_bounded() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for _ in 0..3 {
        crash(&mut client, &session);
        take_part(&mut client, &scratch, RESUME, &session);
    }
    crash(&mut client, &session);
    let says_why = |text: &Value| {
        let text = text.as_str().unwrap();
        assert!(text.contains("taken up 3 times within 60 s; try again in"), "{text}");
    };
    let error = client.refused(RESUME, &taking(&scratch, &session));
    assert_eq!((&error["code"], &error["data"]["resumable"]), (&json!(-32603), &json!(false)));
    says_why(&error["message"]);
    let (result, _) = take_part(&mut client, &scratch, LOAD, &session);
    assert_eq!(meta(&result)["resumable"], false);
    says_why(&meta(&result)["reason"]);
    // Another session is not to blame.
    let other = client.new_session();
    assert_eq!(client.turn(&other, "hello"), "end_turn");
    client.finish();
}

// contract 1: opening and closing is no crash loop
#[test]
fn closing_often_is_no_crash_loop() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for _ in 0..6 {
        close(&mut client, &session);
        take_part(&mut client, &scratch, RESUME, &session);
        assert_eq!(client.turn(&session, "hello"), "end_turn");
    }
    client.finish();
}

// contract 1, TM-4: a session whose daemon was killed goes on with the next one, its record kept
#[test]
fn a_lost_session_is_taken_up_again() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "words"), "end_turn");
    client.signal(rustix::process::Signal::KILL);
    client.ended();
    let mut later = scratch.stdio("example");
    later.initialize();
    assert_eq!(meta(&entry(&mut later, &session))["terminationInfo"]["cause"], "daemon_lost");
    let (_, replayed) = take_part(&mut later, &scratch, LOAD, &session);
    assert_eq!(replayed.len(), 2);
    assert_eq!(later.turn(&session, "more"), "end_turn");
    assert_eq!(meta(&entry(&mut later, &session))["ended"], false);
    later.finish();
    assert_eq!(life(&scratch, &session), ["run", "daemon_lost", "run", "daemon_shutdown"]);
}

// SU-6: an agent that dies while it is asked to take a session up leaves it as it was
#[test]
fn a_death_while_taking_up_changes_nothing() {
    let scratch = Scratch::new();
    let flag = scratch.path("dead");
    let script = format!(
        "[ -e '{}' ] && exec sh -c 'read line; echo dying >&2; exit 9'; exec '{}' example-agent",
        flag.display(),
        acpd_e2e::acpd().display()
    );
    let scratch = scratch.shell("mortal", &["-c".to_owned(), script]);
    let (mut client, session) = scratch.session("mortal");
    assert_eq!(client.turn(&session, "words"), "end_turn");
    close(&mut client, &session);
    let before = entry(&mut client, &session);
    std::fs::write(&flag, "").unwrap();
    let error = client.refused(RESUME, &taking(&scratch, &session));
    assert_eq!(error["data"]["terminationInfo"]["exitCode"], 9, "{error}");
    assert_eq!(entry(&mut client, &session), before);
    std::fs::remove_file(&flag).unwrap();
    take_part(&mut client, &scratch, RESUME, &session);
    assert_eq!(client.turn(&session, "more"), "end_turn");
    client.finish();
}
