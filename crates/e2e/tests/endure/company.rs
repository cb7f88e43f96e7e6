//! Viewers of every kind at one session: they come and go as they like, are asked together, and none of them is needed.

use crate::acp::attach;
use crate::flow::driver;
use crate::rest::{Came, Viewer, get};
use acpd_e2e::{Client, Daemon, Message, Scratch, acpd, until};
use serde_json::{Value, json};

/// A front end of the daemon on stdio, by its URL or by the socket of the state directory.
fn front_end(scratch: &Scratch, connect: Option<&str>) -> Client {
    let mut command = scratch.command(acpd());
    command.args(["stdio", "--agent", "example"]).arg("--state-dir").arg(scratch.state());
    command.arg("--config").arg(scratch.path("config.toml"));
    if let Some(url) = connect {
        command.args(["--connect", url]);
    }
    scratch.client(command)
}

/// A client over each transport, attached to the session.
fn everybody(daemon: &Daemon, scratch: &Scratch, session: &str) -> [Client; 4] {
    let clients = [
        daemon.over_websocket(scratch, "/acp"),
        daemon.over_http(scratch, "/acp"),
        front_end(scratch, None),
        front_end(scratch, Some(&daemon.url())),
    ];
    clients.map(|mut client| {
        client.tolerant();
        client.initialize();
        client.call("session/load", &attach(scratch, session));
        client
    })
}

fn leave(mut client: Client) {
    client.close_input();
    client.read_to_end();
}

fn until_asked(client: &mut Client) -> Message {
    let method = "session/request_permission";
    if let Some(asked) = client.received().iter().find(|message| message.method() == Some(method)) {
        return asked.clone();
    }
    client.until("the question", |message| message.method() == Some(method))
}

/// Answers a question with an option.
pub(crate) fn choose(client: &mut Client, asked: &Message, option: &str) {
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": outcome}).to_string());
}

// MC-1, MC-2, UP-1, PE-2, PE-3: viewers over every transport come and go while a turn runs; all that are there when it asks
// are asked, one answer counts, the others are told
#[test]
fn viewers_come_and_go_and_are_asked_together() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = driver(&daemon, &scratch);
    let address = daemon.address();
    let turn = client.prompt(&session, "stream 4000 200\nask edit Go on?\nstream 4000 200\ndone");
    client.until_text("00000100");
    // In the middle of it, at once and one after the other.
    for mut visitor in everybody(&daemon, &scratch, &session) {
        visitor.until_said("00000500");
        leave(visitor);
    }
    let asked = until_asked(&mut client);
    let [socket, http, by_socket, by_url] = everybody(&daemon, &scratch, &session);
    let mut others = [socket, by_socket, by_url];
    let mut http = http;
    let questions: Vec<Message> = others.iter_mut().map(until_asked).collect();
    let question = until_asked(&mut http);
    for other in &questions {
        assert_eq!(other.json["params"], asked.json["params"], "all are asked the same");
    }
    let open = get(address, &format!("/v1/sessions/{session}"));
    assert_eq!(
        (&open["state"], open["snapshot"]["openPermissionRequests"].as_array().map(Vec::len)),
        (&json!("waiting"), Some(1))
    );
    // One that was asked leaves; that is no answer.
    let [socket, by_socket, by_url] = others;
    leave(by_url);
    choose(&mut http, &question, "allow-always");
    for (mut other, question) in [socket, by_socket].into_iter().zip(&questions) {
        other.until("the withdrawal", |message| {
            message.method() == Some("$/cancel_request")
                && message.json["params"]["requestId"] == question.json["id"]
        });
        choose(&mut other, question, "reject-once");
        other.until("the refusal", |message| message.method() == Some("_sandboxagent/answer_refused"));
        other.until_said("done");
        leave(other);
    }
    assert_eq!(client.result(&turn)["stopReason"], "end_turn");
    assert!(client.text_since(&turn, &session).contains("permission selected allow-always"));
    let mut viewer = Viewer::of(&session);
    let mut events = viewer.open(address);
    viewer.read_to("turn_ended", &mut events);
    let kind = |kind: &str| {
        let kind = format!("\"kind\":\"{kind}\"");
        viewer.seen.iter().filter(|event| event.contains(&kind)).count()
    };
    assert_eq!((kind("permission_requested"), kind("permission_resolved")), (1, 1));
    daemon.stop();
}

// PR-12, MC-2: the last viewer leaves in the middle of a turn, which goes on; who comes later sees all of it and its end
#[test]
fn a_turn_needs_no_viewer() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let (mut client, session) = driver(&daemon, &scratch);
    let address = daemon.address();
    let go = scratch.path("go");
    let wait = format!("run sh -c \"while ! [ -e {} ]; do sleep 0.01; done; echo went\"", go.display());
    client.prompt(&session, &format!("stream 1000 200\nhere\n{wait}\nstream 4000 200\ndone"));
    let mut viewer = Viewer::of(&session);
    let mut events = viewer.open(address);
    let mut all = everybody(&daemon, &scratch, &session);
    for viewer in all.iter_mut().chain([&mut client]) {
        viewer.until_said("here");
    }
    while !viewer.seen.last().is_some_and(|event| event.contains("here\"}")) {
        assert!(matches!(viewer.take(&mut events), Came::Event(_)));
    }
    events.close();
    all.into_iter().chain([client]).for_each(leave);
    until("all have left", || (viewers(address) == 0.0).then_some(()));
    assert_eq!(get(address, &format!("/v1/sessions/{session}"))["state"], "running");
    std::fs::write(&go, "").expect("the scratch directory is writable");

    let mut events = viewer.open(address);
    viewer.read_to("turn_ended", &mut events);
    assert_eq!(viewer.last()["stopReason"], "end_turn");
    let texts: Vec<Value> =
        viewer.seen.iter().map(|event| serde_json::from_str(event).expect("JSON")).collect();
    let chunks = texts.iter().filter(|event| {
        let text = event["message"]["params"]["update"]["content"]["text"].as_str();
        text.is_some_and(|text| text.len() == 200 && text.starts_with("0000"))
    });
    assert_eq!(chunks.count(), 5000);
    daemon.stop();
}

/// How many connections and streams the daemon counts.
fn viewers(address: std::net::SocketAddr) -> f64 {
    let answer = acpd_e2e::Http::on(acpd_e2e::connect(address)).request("GET", "/metrics", &[], "");
    let text = String::from_utf8(answer.body).expect("it is text");
    let counted = text.lines().filter(|line| line.starts_with("acpd_viewers"));
    counted
        .map(|line| line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).expect("a number"))
        .sum()
}
