//! Ready or not, and the end of a daemon with streams open.

use crate::door::{client, entry, plain, stream};
use acpd_e2e::{Daemon, Deadline, Scratch, WebSocket, limit_files, until};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

// contract 6: a daemon that can record nothing says so within a second, and goes on answering
#[test]
fn a_full_disk_is_told() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let status = |daemon: &Daemon, path: &str| {
        let answer = plain(daemon, "GET", path, &[]);
        (answer.status, answer.json())
    };
    assert_eq!(daemon.until_ready(), json!({"ready": true}));
    until("all is well", || (status(&daemon, "/v1/health").1["status"] == "ok").then_some(()));
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    limit_files(daemon.pid(), Some(0));
    let deadline = Deadline::after(Duration::from_secs(1));
    loop {
        // What is asked for later than that is told.
        let is_over = deadline.is_over();
        let (code, body) = status(&daemon, "/v1/ready");
        if code == 503 {
            assert_eq!(body["ready"], false);
            assert!(body["reason"].as_str().expect("a reason").contains("event log"), "{body}");
            break;
        }
        assert!(!is_over, "it says that it is ready: {body}");
    }
    for path in ["/v1/health", "/v2/health"] {
        let (code, body) = status(&daemon, path);
        assert_eq!((code, &body["status"]), (200, &json!("degraded")), "{body}");
        assert!(
            body["reason"].is_string() && body["version"].is_string() && body["uptimeMs"].is_u64(),
            "{body}"
        );
    }
    // What is there can still be read.
    let shown = plain(&daemon, "GET", &format!("/v1/sessions/{session}/events?limit=1"), &[]);
    assert_eq!((shown.status, &shown.json()["events"][0]["seq"]), (200, &json!(1)));
    limit_files(daemon.pid(), None);
    drop(client);
    daemon.stop();
}

// SC-5, contract 6: at the end each stream gets the end of its session, and then its own
#[test]
fn a_stop_tells_every_stream() {
    let scratch = Scratch::new().config(&entry("a", "scope = \"control\""));
    let mut daemon = scratch.serve();
    let mut owner = client(&daemon, &scratch, "a");
    let sessions = [(); 3].map(|()| owner.new_session());
    let asked = owner.prompt(&sessions[0], "hang");
    owner.prompt(&sessions[1], "ask edit");
    let path = |session: &str| format!("/v1/sessions/{session}/events");
    let mut streams =
        sessions.each_ref().map(|session| stream(&daemon, "a", &path(session)).expect("a stream"));
    let token = crate::door::bearer("a");
    let mut idle = WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &token)]).expect("a socket");
    for (events, kind) in streams.iter_mut().zip(["prompt", "permission_requested"]) {
        events.until(kind, |event| event.event.as_deref() == Some(kind));
    }
    daemon.signal(Signal::TERM);
    for events in &mut streams {
        let end = events.until("the end", |event| event.event.as_deref() == Some("ended"));
        let info = &end.json()["terminationInfo"];
        let facts = (&info["reason"], &info["terminatedBy"], &info["cause"]);
        assert_eq!(facts, (&json!("completed"), &json!("daemon"), &json!("daemon_shutdown")), "{info}");
        assert_eq!(events.next_data(), None, "nothing comes behind it");
    }
    assert_eq!(idle.until_close().0, 1001);
    assert_eq!(owner.result(&asked)["stopReason"], "cancelled");
    owner.read_to_end();
    assert_eq!(owner.ends().len(), 3);
    daemon.expect_good_end();
}

// SC-5, contract 6: a second signal does not wait for the graces of a process without a session either
#[test]
fn a_second_signal_hurries_what_has_no_session() {
    let scratch = Scratch::with_default_graces().timeout("stdin_grace", "10m").timeout("term_grace", "10m");
    let (ready, asked) = (scratch.path("ready"), scratch.path("asked"));
    let body = format!(
        "trap '' TERM; take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'; : >'{}'\n\
         while IFS= read -r line; do :; done; : >'{}'; exec sleep 1000",
        ready.display(),
        asked.display()
    );
    let scratch = scratch.shell("stubborn", &acpd_e2e::taking_shell_agent(&body)).config("spare = 1");
    let mut daemon = scratch.serve();
    until("there is a spare", || ready.exists().then_some(()));
    daemon.signal(Signal::TERM);
    until("it was asked to leave", || asked.exists().then_some(()));
    daemon.signal(Signal::TERM);
    daemon.expect_good_end();
}

// SC-5, contract 6: a second signal does not wait for graces
#[test]
fn a_second_signal_hurries() {
    let scratch = Scratch::with_default_graces().timeout("stdin_grace", "10m").timeout("term_grace", "10m");
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "ignore-sigterm"), "end_turn");
    let path = format!("/v1/sessions/{session}/events");
    let mut events = acpd_e2e::Http::on(daemon.connect()).events(&path, &[]).expect("a stream");
    events.until("the first turn", |event| event.event.as_deref() == Some("turn_ended"));
    client.prompt(&session, "hang");
    events.until("the second turn", |event| event.event.as_deref() == Some("prompt"));
    daemon.signal(Signal::TERM);
    // It is on its way: the turn was cancelled, and the agent has not ended.
    events.until("the end of the turn", |event| event.event.as_deref() == Some("turn_ended"));
    daemon.signal(Signal::TERM);
    let end = events.until("the end", |event| event.event.as_deref() == Some("ended"));
    assert!(end.json()["terminationInfo"]["escalation"].to_string().contains("kill"), "{:?}", end.data);
    daemon.expect_good_end();
}
