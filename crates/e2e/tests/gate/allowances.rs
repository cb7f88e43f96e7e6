//! What one token may hold at a time, and that it is nobody else's concern.

use crate::door::{JSON, ask, bearer, client, entry, initialize, message, stream};
use acpd_e2e::{Http, Scratch, WebSocket, until};
use serde_json::json;
use std::net::Shutdown;

// HT-12: ACP over HTTP, WebSockets and event streams count together, until they are closed or their client dies
#[test]
fn connections_of_all_kinds_count_together() {
    let a = entry("a", "scope = \"control\"\nconnections = 3");
    let scratch =
        Scratch::new().config(&format!("{a}\n{}", entry("b", "scope = \"control\"\nsees = \"all\"")));
    let mut daemon = scratch.serve();
    let mut first = client(&daemon, &scratch, "a");
    let session = first.new_session();
    let events = format!("/v1/sessions/{session}/events");
    let open = initialize(&daemon, "a");
    let id = open.header("acp-connection-id").expect("it is given").to_owned();
    let reading = stream(&daemon, "a", &events).expect("the third");
    let token = bearer("a");
    let refused = || {
        let socket = WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &token)]);
        [
            socket.expect_err("too many"),
            initialize(&daemon, "a"),
            stream(&daemon, "a", &events).expect_err("too many"),
        ]
    };
    for answer in refused() {
        assert_eq!((answer.status, &*answer.problem()), (429, "too_many_connections"));
    }
    // What holds nothing is not held up, nor is anybody else.
    assert_eq!(ask(&daemon, "a", "GET", &events).status, 200);
    let mut second = client(&daemon, &scratch, "b");
    second.new_session();
    drop(stream(&daemon, "b", &events).expect("another token"));
    // A client that is killed, a stream that breaks, a connection that is deleted: each frees its place.
    let killed = reading.socket();
    killed.shutdown(Shutdown::Both).expect("it is open");
    let reading = until("a place is free", || stream(&daemon, "a", &events).ok());
    let gone = Http::on(daemon.connect()).request(
        "DELETE",
        "/acp",
        &[("Authorization", &token), ("Acp-Connection-Id", &id)],
        "",
    );
    assert_eq!(gone.status, 202);
    let socket = until("a place is free", || {
        WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &token)]).ok()
    });
    socket.stream().shutdown(Shutdown::Both).expect("it is open");
    let open =
        until("a place is free", || Some(initialize(&daemon, "a")).filter(|answer| answer.status == 200));
    assert!(open.header("acp-connection-id").is_some());
    for answer in refused() {
        assert_eq!(answer.status, 429);
    }
    drop(reading);
    daemon.stop();
}

// HT-12: live sessions; those that begin at the same time count too, and a session ended is a place freed
#[test]
fn live_sessions_are_counted() {
    let limited = |name| entry(name, "scope = \"control\"\nsessions = 2");
    let scratch = Scratch::new().config(&format!("{}\n{}", limited("a"), limited("b")));
    let mut daemon = scratch.serve();
    let mut clients = [(); 3].map(|()| client(&daemon, &scratch, "a"));
    let new = json!({"cwd": scratch.work(), "mcpServers": []});
    let asked = clients.each_mut().map(|client| [(); 2].map(|()| client.request("session/new", &new)));
    let answers: Vec<_> = clients
        .iter_mut()
        .zip(&asked)
        .flat_map(|(client, asked)| [0, 1].map(|which| client.answer(&asked[which]).json))
        .collect();
    let sessions: Vec<_> =
        answers.iter().filter_map(|answer| answer["result"]["sessionId"].as_str()).collect();
    assert_eq!(sessions.len(), 2, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.get("error").is_some()) {
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]),
            (&json!(-32003), &json!({"sessions": 2}))
        );
    }
    let (first, second) = (json!({"sessionId": sessions[0]}), sessions[1].to_owned());
    let mut again = new.clone();
    again["sessionId"] = json!(second);
    let [client_a, ..] = &mut clients;
    for (method, params) in [("session/new", &new), ("session/new", &again), ("session/fork", &again)] {
        assert_eq!(client_a.refused(method, params)["code"], -32003, "{method} {params}");
    }
    client_a.call("session/load", &again);
    let mut other = client(&daemon, &scratch, "b");
    other.new_session();
    // Closed, and its place taken: it has to wait until there is another.
    client_a.call("session/close", &first);
    let third = client_a.new_session();
    let mut ended = new.clone();
    ended["sessionId"] = first["sessionId"].clone();
    assert_eq!(client_a.refused("session/resume", &ended)["code"], -32003);
    client_a.call("_sandboxagent/session/terminate", &json!({"sessionId": third}));
    client_a.call("session/resume", &ended);
    // One that fails is no session: the place is free again.
    client_a.call("session/close", &first);
    for _ in 0..3 {
        assert_eq!(client_a.refused("session/new", &json!({"cwd": "relative"}))["code"], -32602);
    }
    client_a.new_session();
    daemon.stop();
}

// HT-12: requests in a second, with the time to wait; another token is not held up
#[test]
fn requests_are_slowed_down() {
    let tokens =
        [entry("a", "scope = \"control\"\nrequests_per_second = 1"), entry("b", "scope = \"admin\"")];
    let scratch = Scratch::new().config(&tokens.join("\n"));
    let mut daemon = scratch.serve();
    let token = bearer("a");
    let refused = until("too many", || {
        Some(ask(&daemon, "a", "GET", "/v1/sessions")).filter(|answer| answer.status == 429)
    });
    assert_eq!(refused.problem(), "too_many_requests");
    let wait: u64 = refused.header("retry-after").expect("it is told").parse().expect("seconds");
    assert!((1..=2).contains(&wait), "{wait}");
    let flood = || {
        (0..50).any(|_| {
            let body = message(1, "session/list", &json!({}));
            let headers = [JSON, ("Authorization", &*token)];
            Http::on(daemon.connect()).request("POST", "/acp", &headers, &body).status == 429
        })
    };
    assert!(flood(), "on every route");
    for _ in 0..20 {
        assert_eq!(ask(&daemon, "b", "GET", "/v1/sessions").status, 200);
    }
    until("a second is over", || (ask(&daemon, "a", "GET", "/v1/sessions").status == 200).then_some(()));
    daemon.stop();
}
