//! A disk that is full, and how room is made on it: a small volume of its own, where the test may mount one.

use acpd_e2e::{Daemon, Http, Scratch, Volume, noise, until};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The volume: less than two write-ahead files of the usual size.
const VOLUME: &str = "size=20m,mode=700";

/// Takes all that is left of a volume.
fn fill(volume: &Volume) -> PathBuf {
    let path = volume.path().join("filler");
    let mut size = 1 << 20;
    let mut file = std::fs::File::create(&path).expect("a file takes no room yet");
    while size > 0 {
        if std::io::Write::write_all(&mut file, &vec![0; size]).is_err() {
            size /= 2;
        }
    }
    path
}

fn call(daemon: &Daemon, method: &str, path: &str) -> (u16, Value) {
    let answer = Http::on(daemon.connect()).request(method, path, &[], "");
    let body = if answer.body.is_empty() { Value::Null } else { answer.json() };
    (answer.status, body)
}

fn until_ready(daemon: &Daemon, ready: bool) -> Value {
    until("it is ready, or not", || {
        Some(call(daemon, "GET", "/v1/ready").1).filter(|body| body["ready"] == json!(ready))
    })
}

/// What `one: two: three` says more than once.
fn repeated(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split(": ").collect();
    parts.iter().enumerate().find(|(at, part)| parts[..*at].contains(part)).map(|(_, part)| *part)
}

/// Fills the disk of a daemon and deletes a session there. `lives`: it goes on in the room that this made.
fn make_room(scratch: &Scratch) {
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(scratch, "/acp?agent=stateless");
    client.tolerant();
    client.initialize();
    let (big, idle, endless) = (client.new_session(), client.new_session(), client.new_session());
    for seed in 1..4 {
        assert_eq!(client.turn(&big, &noise(seed)), "end_turn");
    }
    client.call("session/close", &json!({"sessionId": big}));
    assert_eq!(client.turn(&idle, "hello"), "end_turn");
    let answers = (10..60).map(|seed| {
        let asked = client.prompt(&endless, &noise(seed));
        client.answer(&asked).json["error"].clone()
    });
    let error = answers.into_iter().find(|error| !error.is_null()).expect("as much does not fit");
    let message = error["data"]["terminationInfo"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("no room left for the event log"), "{message}");
    assert!(!message.contains("limit") && repeated(&message).is_none(), "{message}");
    let reason = until_ready(&daemon, false)["reason"].as_str().expect("a reason").to_owned();
    assert_eq!(repeated(&reason), None, "{reason}");

    let (status, body) = call(&daemon, "DELETE", &format!("/v1/sessions/{big}"));
    assert_eq!(status, 204, "{body}");
    assert_eq!(call(&daemon, "GET", &format!("/v1/sessions/{big}")).0, 404);
    client.call("session/delete", &json!({"sessionId": endless}));
    until_ready(&daemon, true);
    let session = client.new_session();
    assert_eq!(client.turn(&session, &noise(5)), "end_turn");
    drop(client);
    daemon.stop();

    // The end of what was idle is known, and the daemon starts.
    let mut daemon = scratch.serve();
    let (status, found) = call(&daemon, "GET", &format!("/v1/sessions/{idle}"));
    assert_eq!((status, &found["terminationInfo"]["cause"]), (200, &json!("daemon_shutdown")), "{found}");
    assert_eq!(call(&daemon, "GET", &format!("/v1/sessions/{big}")).0, 404);
    daemon.stop();
}

// contract 6: what is kept for ends and for a start is for those: started on a full disk, acpd is not ready and no session
// begins or goes on, until there is room again
#[test]
fn nothing_begins_in_the_room_that_a_start_was_given() {
    let scratch = Scratch::new().example("stateless", &["--no-state"]);
    let Some(volume) = Volume::mount(&scratch, VOLUME) else { return };
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    drop(client);
    daemon.stop();

    let filler = fill(&volume);
    let mut daemon = scratch.serve();
    // A log that is slow on a busy machine is a reason, too.
    until("it says why", || {
        let (status, body) = call(&daemon, "GET", "/v1/ready");
        assert_eq!((status, &body["ready"]), (503, &json!(false)), "{body}");
        body["reason"].as_str().is_some_and(|reason| reason.contains("no room left")).then_some(())
    });
    let mut client = daemon.over_websocket(&scratch, "/acp?agent=stateless");
    client.tolerant();
    client.initialize();
    let place = json!({"cwd": scratch.work(), "mcpServers": []});
    let error = client.refused("session/new", &place);
    assert!(error["message"].to_string().contains("no room left"), "{error}");
    // It is shown, and that is all.
    let mut old = daemon.over_websocket(&scratch, "/acp");
    old.tolerant();
    old.initialize();
    let mut load = place.clone();
    load["sessionId"] = json!(session);
    let asked = old.request("session/load", &load);
    old.answer(&asked);
    let asked = old.prompt(&session, "hello");
    old.error(&asked);
    assert_eq!(call(&daemon, "GET", &format!("/v1/sessions/{session}")).0, 200);

    std::fs::remove_file(filler).expect("it is there");
    until_ready(&daemon, true);
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    drop((client, old));
    daemon.stop();
}

// contract 6: on a full disk a session can be deleted, the ends of the others are recorded, and the daemon starts again
#[test]
fn a_deletion_makes_room() {
    // An agent that writes no files of its own: the room is for acpd.
    let scratch = Scratch::new().example("stateless", &["--no-state"]);
    let Some(volume) = Volume::mount(&scratch, VOLUME) else { return };
    make_room(&scratch);
    // Not a byte is left beside what acpd keeps for this.
    let filler = fill(&volume);
    let mut daemon = scratch.serve();
    assert_eq!(call(&daemon, "GET", "/v1/sessions").0, 200);
    daemon.stop();
    std::fs::remove_file(filler).expect("it is there");
    let mut daemon = scratch.serve();
    until_ready(&daemon, true);
    daemon.stop();
}
