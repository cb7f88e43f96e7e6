//! The events of a session over a WebSocket: the same stream, and the same refusals.

use acpd_e2e::{Daemon, Http, Opcode, Scratch, WebSocket};
use serde_json::{Value, json};

fn path(session: &str, after: u64) -> String {
    format!("/v1/sessions/{session}/events?after={after}")
}

/// A session that has said something, and waits.
fn session(daemon: &Daemon, scratch: &Scratch, prompt: &str) -> String {
    let body = json!({"cwd": scratch.work(), "prompt": prompt}).to_string();
    let json = [("Content-Type", "application/json")];
    let created = Http::on(daemon.connect()).request("POST", "/v1/sessions", &json, &body);
    assert_eq!(created.status, 201, "{}", created.problem());
    created.json()["sessionId"].as_str().expect("an id").to_owned()
}

fn close(daemon: &Daemon, session: &str) {
    let path = format!("/v1/sessions/{session}/close");
    let json = [("Content-Type", "application/json")];
    assert_eq!(Http::on(daemon.connect()).request("POST", &path, &json, "").status, 204);
}

/// The messages of the frames, without comments, up to one that has this in it.
fn messages(socket: &mut WebSocket, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    while !all.last().is_some_and(|message: &String| message.contains(last)) {
        let frame = socket.next_frame().expect("the stream goes on");
        assert_eq!(frame.opcode, Opcode::Text, "{:?}", frame.close());
        let text = String::from_utf8(frame.payload).expect("text");
        assert!(text.ends_with("\n\n"), "whole messages: {text}");
        let whole = text.split_terminator("\n\n").filter(|message| !message.starts_with(':'));
        all.extend(whole.map(str::to_owned));
    }
    all
}

fn numbers(messages: &[String]) -> Vec<u64> {
    let data = messages.iter().filter_map(|message| message.split_once("\ndata: "));
    data.map(|(_, json)| {
        serde_json::from_str::<Value>(json).expect("JSON")["seq"].as_u64().expect("a number")
    })
    .collect()
}

// quirk six-connections (browsers): a session's events come over a WebSocket too, which is not counted among them, and the
// inspector follows sessions so
// contract 1.6: over a WebSocket come the same events in the same order, behind the cursor, to the end of the run
#[test]
fn a_websocket_has_the_events_of_the_stream() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let session = session(&daemon, &scratch, "é😀\nstream 300 100");
    let mut socket = WebSocket::open(daemon.connect(), &path(&session, 0), &[]).expect("a WebSocket");
    let first = messages(&mut socket, "event: turn_ended");
    // Another one goes on where this one has left.
    let seen = *numbers(&first).last().expect("some");
    drop(socket);
    let mut socket = WebSocket::open(daemon.connect(), &path(&session, seen), &[]).expect("a WebSocket");
    close(&daemon, &session);
    let rest = messages(&mut socket, "event: ended");
    assert_eq!(socket.until_close().0, 1000, "the stream has ended");
    let all = [first, rest].concat();
    assert_eq!(numbers(&all), (1..=all.len() as u64).collect::<Vec<_>>(), "nothing is lost, nothing twice");
    let mut stream = Http::on(daemon.connect())
        .events(&path(&session, 0), &[("Accept", "text/event-stream")])
        .expect("a stream");
    let as_stream: Vec<Value> = std::iter::from_fn(|| stream.next_data()).map(|event| event.json()).collect();
    let as_frames: Vec<Value> = all
        .iter()
        .filter_map(|message| message.split_once("\ndata: "))
        .map(|(_, json)| serde_json::from_str(json).expect("JSON"))
        .collect();
    assert_eq!(as_frames, as_stream);
    let end = path(&session, all.len() as u64);
    let mut over = WebSocket::open(daemon.connect(), &end, &[]).expect("a WebSocket");
    assert_eq!(over.until_close().0, 1000, "there is nothing behind the last event");
    daemon.stop();
}

// contract 1.7: what is refused is answered as without the upgrade
#[test]
fn a_refusal_is_no_websocket() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let session = session(&daemon, &scratch, "hello");
    let unknown = "01a207c0-b435-750c-8c3e-000000000000";
    let foreign = [("Origin", "http://elsewhere.example")];
    for (path, headers, status) in [
        (path(unknown, 0), &[][..], 404),
        (path(&session, 1_000_000), &[], 409),
        (path(&session, 0).replace("=0", "=x"), &[], 400),
        (path(&session, 0), &foreign, 403),
        (format!("/v1/sessions/{session}"), &[], 200),
    ] {
        let answer = WebSocket::open(daemon.connect(), &path, headers).expect_err(&path);
        assert_eq!(answer.status, status, "{path}");
    }
    let mut http = Http::on(daemon.connect());
    let old = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "8")];
    let answer = http.request("GET", &path(&session, 0), &old, "");
    assert_eq!((answer.status, answer.header("sec-websocket-version")), (426, Some("13")));
    daemon.stop();
}

// contract 1.6, HT-12: a reader that takes nothing is counted as stalled, whatever it asks of the socket; others go on
#[test]
fn a_websocket_that_takes_no_events_stalls_alone() {
    let scratch = Scratch::new().timeout("viewer_stall", "5s");
    let mut daemon = scratch.serve();
    let session = session(&daemon, &scratch, "stream 400 65536");
    let slow = WebSocket::open(daemon.connect(), &path(&session, 0), &[]).expect("a WebSocket");
    let mut quick = WebSocket::open(daemon.connect(), &path(&session, 0), &[]).expect("a WebSocket");
    let all = messages(&mut quick, "event: turn_ended");
    assert_eq!(numbers(&all), (1..=all.len() as u64).collect::<Vec<_>>());
    acpd_e2e::until_stalled(daemon.address(), "sse");
    drop(slow);
    daemon.stop();
}

// contract 1.6: the stream says that the daemon ends, and the socket is closed behind it
#[test]
fn the_end_of_the_daemon_is_told_on_the_websocket() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let session = session(&daemon, &scratch, "hello");
    let mut socket = WebSocket::open(daemon.connect(), &path(&session, 0), &[]).expect("a WebSocket");
    messages(&mut socket, "event: turn_ended");
    daemon.signal(rustix::process::Signal::TERM);
    let last = messages(&mut socket, "event: ended");
    assert!(last.len() < 10, "{last:?}");
    assert_eq!(socket.until_close().0, 1000);
    daemon.expect_good_end();
}
