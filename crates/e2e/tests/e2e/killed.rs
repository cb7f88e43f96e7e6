//! SIGKILL of acpd: what the next start finds, and what the log still has.

use acpd_e2e::{Exit, Message, Scratch};
use acpd_eventlog::{EventLog, Options};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;

/// The number of `session/update` events in the log, and of the end of a run.
const UPDATE: u16 = 4;
const ENDED: u16 = 9;

/// All events of a session that has ended: kind and payload.
fn logged(state: &Path, session: &str) -> Vec<(u16, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let log = EventLog::open(state, Options::default()).expect("the log opens");
        let mut cursor = log.cursor(session, 0).await.expect("the session is there");
        let mut events = Vec::new();
        while let Some(block) = cursor.next().await.expect("its events can be read") {
            let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("payloads are JSON");
            events.extend(block.events().map(|event| (event.kind, text(event.payload))));
        }
        log.close().await;
        events
    })
}

fn updates(messages: &[Message]) -> Vec<&str> {
    let updates = messages.iter().filter(|message| message.method() == Some("session/update"));
    updates.map(|message| message.raw.as_str()).collect()
}

/// What a later acpd says of a session.
fn record_of(scratch: &Scratch, session: &str) -> Value {
    let mut later = scratch.stdio("example");
    later.initialize();
    let asked = later.prompt(session, "hello");
    let error = later.error(&asked);
    assert_eq!(error["code"], -32002, "{error}");
    later.finish();
    error["data"]["terminationInfo"].clone()
}

// contract 1.2, SU-3, TM-4, UP-5
#[test]
fn the_session_is_recorded_as_lost_and_no_delivered_event_is_missing() {
    for wanted in [1, 300, 5_000] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        client.prompt(&session, "stream 5000000 200");
        while updates(client.received()).len() < wanted {
            client.next_message().expect("there is more");
        }
        client.signal(Signal::KILL);
        assert_eq!(client.ended().0, Exit::Signal(9));

        let info = record_of(&scratch, &session);
        let expected = json!({"reason": "error", "terminatedBy": "daemon", "cause": "daemon_lost",
            "message": "daemon stopped while the session was live"});
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&info[field], value, "{info}");
        }
        assert!(
            info.get("exitCode").is_none() && info.get("signal").is_none() && info.get("stderr").is_none()
        );

        let events = logged(&scratch.state(), &session);
        let kept: Vec<&str> =
            events.iter().filter(|(kind, _)| *kind == UPDATE).map(|(_, text)| text.as_str()).collect();
        let seen = updates(client.received());
        assert!(seen.len() >= wanted && kept.len() >= seen.len(), "{} of {}", kept.len(), seen.len());
        assert!(kept[..seen.len()] == seen[..], "what was delivered is what is in the log");
        assert_eq!(events.last().map(|(kind, _)| *kind), Some(ENDED));
        assert_eq!(info["lastEventSeq"], events.len() - 1);
    }
}

// TM-4: set once; a second start changes nothing
#[test]
fn the_record_is_written_once() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.signal(Signal::KILL);
    client.ended();
    let first = record_of(&scratch, &session);
    assert_eq!(record_of(&scratch, &session), first);
    assert_eq!(logged(&scratch.state(), &session).iter().filter(|(kind, _)| *kind == ENDED).count(), 1);
}

// contract 6: several processes share a state directory; one that lives is not taken for dead, and who asks another for
// its session learns its pid
#[test]
fn a_host_that_lives_keeps_its_sessions() {
    let scratch = Scratch::new();
    let (mut one, first) = scratch.session("example");
    let (mut other, second) = scratch.session("example");
    assert_ne!(first, second);
    let pids = [one.pid(), other.pid()];
    for (client, own, foreign, pid) in
        [(&mut one, &first, &second, pids[1]), (&mut other, &second, &first, pids[0])]
    {
        let asked = client.prompt(foreign, "hello");
        let error = client.error(&asked);
        let data = json!({"sessionId": foreign, "pid": pid});
        assert_eq!((&error["code"], &error["data"]), (&json!(-32603), &data));
        assert!(error["message"].as_str().expect("text").contains(&pid.to_string()), "{error}");
        assert_eq!(client.turn(own, "hello"), "end_turn");
    }
    other.close_input();
    other.read_to_end();
    assert_eq!(one.turn(&first, "hello"), "end_turn");
    one.finish();
    other.finish();
}

// contract 6, SU-3: a dead host is found while another one lives, and only its own sessions are lost
#[test]
fn the_death_of_one_host_is_nothing_to_another() {
    let scratch = Scratch::new();
    let (mut one, first) = scratch.session("example");
    let (mut other, second) = scratch.session("example");
    other.signal(Signal::KILL);
    other.read_to_end();
    let mut third = scratch.stdio("example");
    third.initialize();
    let asked = third.prompt(&second, "hello");
    assert_eq!(third.error(&asked)["data"]["terminationInfo"]["cause"], "daemon_lost");
    let asked = third.prompt(&first, "hello");
    assert_eq!(third.error(&asked)["data"].get("terminationInfo"), None);
    assert_eq!(one.turn(&first, "hello"), "end_turn");
    third.close_input();
    third.read_to_end();
    one.finish();
}
