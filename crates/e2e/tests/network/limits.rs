//! Bounds on what one client may hold.

use crate::raw::{JSON, Raw, once};
use acpd_e2e::{Http, Scratch, WebSocket, initialize, request, until};
use serde_json::json;

// HT-12, HT-2: ids, bodies and connections have limits
#[test]
fn ids_bodies_and_connections_are_bounded() {
    let scratch = Scratch::new().config("[limits]\nline_bytes = 65536\nconnections = 2");
    let mut daemon = scratch.serve();
    let long = "x".repeat(1025);
    let mut client = Raw::new(&daemon);
    let answer = once(&daemon, "GET", &[("Acp-Connection-Id", &long), ("Accept", "*/*")], "");
    assert_eq!((answer.status, &*answer.problem()), (400, "bad_request"));
    let refused = client.try_open(Some(&long), None).expect_err("it is too long");
    assert_eq!(refused.status, 400);

    let large = request(5, "session/list", &json!({"x": "x".repeat(70_000)}));
    let answer = client.try_post(&large, None);
    assert_eq!((answer.status, &*answer.problem()), (413, "too_large"));
    // One that does not say how long it is.
    let mut http = Http::on(daemon.connect());
    let head =
        format!("POST /acp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n", daemon.address());
    http.write(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes());
    let chunk = "x".repeat(40_000);
    for _ in 0..2 {
        http.write(format!("{:x}\r\n{chunk}\r\n", chunk.len()).as_bytes());
    }
    assert_eq!(http.answer().status, 413);

    let second = Raw::new(&daemon);
    let third = once(&daemon, "POST", &[JSON], &initialize().to_string());
    assert_eq!((third.status, &*third.problem()), (429, "too_many_connections"));
    let socket = WebSocket::open(daemon.connect(), "/acp", &[]).expect_err("they count together");
    assert_eq!((socket.status, &*socket.problem()), (429, "too_many_connections"));
    assert_eq!(second.delete(), 202);
    until("one has left", || WebSocket::open(daemon.connect(), "/acp", &[]).ok());
    daemon.stop();
}

// HT-4: streams of sessions that the connection does not know are few, but for sessions that are there
#[test]
fn streams_of_unknown_sessions_are_few() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (_other, _connection, session) = Raw::with_session(&daemon, &scratch);
    let client = Raw::new(&daemon);
    let open = |number: usize| client.try_open(Some(&format!("unknown-{number}")), None);
    let streams: Vec<_> = (0..16).map(|number| open(number).expect("it is accepted")).collect();
    let refused = open(16).expect_err("one too many");
    assert_eq!((refused.status, &*refused.problem()), (404, "session_not_found"));
    client.open(Some(&session)).close();
    drop(streams);
    daemon.stop();
}
