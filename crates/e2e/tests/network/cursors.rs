//! Clients that keep cursors: they come back where they were, under the same id.

use acpd_e2e::{Client, Daemon, Http, Message, Scratch, until};
use serde_json::{Value, json};
use std::cell::Cell;

const META: &str = "sandboxagent.dev";

/// A client that keeps cursors, and comes back as the one with this secret.
fn keeping(daemon: &Daemon, scratch: &Scratch, more: &Value) -> Client {
    let mut client = daemon.over_websocket(scratch, "/acp?agent=example");
    let mut own = json!({"secret": "a secret of a client"});
    own.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
    client.call(
        "initialize",
        &json!({
            "protocolVersion": 1,
            "clientCapabilities": {"_meta": {META: {"cursors": true}}},
            "_meta": {META: own},
        }),
    );
    client
}

fn event(message: &Message) -> Option<u64> {
    message.json["params"]["_meta"][META]["event"]["seq"].as_u64()
}

fn texts(messages: &[Message]) -> Vec<(u64, String)> {
    let text = |message: &Message| Some((event(message)?, message.text()?.to_owned()));
    messages.iter().filter_map(text).collect()
}

fn prompt(session: &str, text: &str) -> Value {
    let meta = json!({META: {"idempotencyKey": "k"}});
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": meta})
}

// contract 7.3: a client that comes back behind an event gets all that follows, once, as it happened; its question is put to
// it again, and its prompt, sent again, is answered by the turn
#[test]
fn a_client_goes_on_where_it_was() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut watching = daemon.over_websocket(&scratch, "/acp?agent=example");
    watching.initialize();
    let mut client = keeping(&daemon, &scratch, &json!({}));
    let session = client.new_session();
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    watching.call("session/resume", &place);
    let words = "stream 20\nask execute\nstream 10";
    client.request("session/prompt", &prompt(&session, words));
    let seen = client
        .until("the fifth text", |message| message.text().is_some_and(|text| text.starts_with("00000004 ")));
    let first = texts(client.received());
    assert!(first.is_sorted_by(|one, two| one.0 < two.0), "{first:?}");
    let after = event(&seen).expect("it is of an event");
    // What is on its way is lost with the connection.
    drop(client);
    watching.until("the question", |message| message.method() == Some("session/request_permission"));

    let mut client = keeping(&daemon, &scratch, &json!({"joins": session}));
    let mut load = place.clone();
    load["_meta"] = json!({META: {"after": after, "activate": false}});
    let loaded = client.call("session/load", &load);
    let asked = client.request("session/prompt", &prompt(&session, words));
    // It was asked behind the event, so it comes before the answer.
    let asks = |message: &&Message| message.method() == Some("session/request_permission");
    let questions: Vec<_> = client.received().iter().filter(asks).cloned().collect();
    let [question] = &questions[..] else { panic!("{questions:?}") };
    assert_eq!(loaded["_meta"][META]["openQuestions"], json!([event(question)]));
    let option = question.json["params"]["options"][0]["optionId"].clone();
    let answer = json!({"outcome": {"outcome": "selected", "optionId": option}});
    client.write_line(json!({"jsonrpc": "2.0", "id": question.json["id"], "result": answer}).to_string());
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let mut all = first;
    all.retain(|(seq, _)| *seq <= after);
    all.extend(texts(client.received()));
    assert!(all.is_sorted_by(|one, two| one.0 < two.0), "{all:?}");
    watching
        .until("the last text", |message| message.text().is_some_and(|text| text.starts_with("00000009 ")));
    let told = watching.received().iter().filter_map(|one| one.text().map(str::to_owned));
    let told: Vec<_> = told.filter(|text| text != words).collect();
    assert_eq!(all.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), told);
    daemon.stop();
}

// contract 7.3: a client that knows no terminals and was away when a command ended is shown all that the command said, in
// the call that it was shown before
#[test]
fn a_command_that_ended_meanwhile_is_shown() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut watching = daemon.over_websocket(&scratch, "/acp?agent=example");
    let terminals = json!({"_meta": {META: {"terminals": true}}});
    watching.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": terminals}));
    let mut client = keeping(&daemon, &scratch, &json!({}));
    let session = client.new_session();
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    watching.call("session/resume", &place);
    let go = scratch.work().join("go");
    let wait = format!("until test -e {}; do sleep 0.02; done", go.display());
    client.request(
        "session/prompt",
        &prompt(&session, &format!("run sh -c \"echo one; {wait}; echo two\"\nstream 3")),
    );
    let is_a_call = |message: &Message| message.json["params"]["update"]["sessionUpdate"] == "tool_call";
    let call = client.until("the call", is_a_call).json["params"].clone();
    let after = call["_meta"][META]["event"]["seq"].as_u64().expect("it is of an event");
    drop(client);
    std::fs::write(&go, "").expect("it is writable");
    let (ended, told) = (Cell::new(false), Cell::new(false));
    watching.until("the end of the command, and the last text", |message| {
        ended.set(ended.get() || message.json["params"]["state"] == "finished");
        told.set(told.get() || message.text().is_some_and(|text| text.starts_with("00000002 ")));
        ended.get() && told.get()
    });

    let mut client = keeping(&daemon, &scratch, &json!({"joins": session}));
    let mut load = place;
    load["_meta"] = json!({META: {"after": after}});
    client.call("session/load", &load);
    let shown = |message: &Message| {
        let update = &message.json["params"]["update"];
        let text = update["content"][0]["content"]["text"].as_str()?;
        (update["toolCallId"] == call["update"]["toolCallId"]).then(|| text.to_owned())
    };
    let shown: Vec<_> = client.received().iter().filter_map(shown).collect();
    assert_eq!(shown, ["one\ntwo\n"]);
    assert!(!client.received().iter().any(is_a_call), "it has seen the call");
    daemon.stop();
}

// contract 7.3: what a client alone was asked waits for it to come back for a moment, and goes another way behind that
#[test]
fn a_file_request_waits_for_its_client() {
    let scratch = Scratch::new().config("[files]\nforward = true");
    let mut daemon = scratch.serve();
    let file = scratch.work().join("file");
    std::fs::write(&file, "on disk").expect("it is writable");
    let with_files = |more: &Value| {
        let mut client = daemon.over_websocket(&scratch, "/acp?agent=example");
        let mut own = json!({"secret": "a secret of a client"});
        own.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        let capabilities = json!({"fs": {"readTextFile": true}, "_meta": {META: {"cursors": true}}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "_meta": {META: own}});
        client.call("initialize", &params);
        client
    };
    let mut client = with_files(&json!({}));
    let session = client.new_session();
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    let words = format!("read {}", file.display());
    client.request("session/prompt", &prompt(&session, &words));
    let is_read = |message: &Message| message.method() == Some("fs/read_text_file");
    let first = client.until("the request", is_read);
    drop(client);
    let mut client = with_files(&json!({"joins": session}));
    let mut load = place;
    load["_meta"] = json!({META: {"after": event(&first).expect("it is of an event"), "activate": false}});
    client.call("session/load", &load);
    let again = client.received().iter().find(|message| is_read(message)).cloned();
    let again = again.unwrap_or_else(|| client.until("the request again", is_read));
    assert_eq!(event(&again), event(&first));
    let content = json!({"content": "not saved yet"});
    client.write_line(json!({"jsonrpc": "2.0", "id": again.json["id"], "result": content}).to_string());
    client.until_text("not saved yet");
    // It does not come back.
    let asked = client.prompt(&session, &words);
    client.until("the second request", is_read);
    drop(client);
    let mut other = daemon.over_websocket(&scratch, "/acp?agent=example");
    other.initialize();
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    other.call("session/resume", &place);
    other.until_text("on disk");
    drop(asked);
    daemon.stop();
}

// contract 7.3: a session that has ended is not taken up for a client that wants to know what it has missed
#[test]
fn an_end_that_was_missed_is_told() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let mut client = keeping(&daemon, &scratch, &json!({}));
    let session = client.new_session();
    client.turn(&session, "hello");
    let after = client.received().iter().filter_map(event).max().expect("an update");
    drop(client);
    daemon.kill();
    daemon.wait();
    let mut daemon = scratch.serve();
    let mut client = keeping(&daemon, &scratch, &json!({}));
    let mut load = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    load["_meta"] = json!({META: {"after": after, "activate": false}});
    let loaded = client.call("session/load", &load);
    assert_eq!(loaded["_meta"][META]["terminationInfo"]["cause"], "daemon_lost", "{loaded}");
    let told = client.received().iter().find(|one| one.method() == Some("_sandboxagent/session/ended"));
    assert!(event(told.expect("the end")).is_some_and(|seq| seq > after));
    assert!(texts(client.received()).is_empty());
    let error = client.refused("session/prompt", &prompt(&session, "more"));
    assert_eq!(error["data"]["terminationInfo"]["cause"], "daemon_lost", "{error}");
    load["_meta"][META]["after"] = json!(after + 100);
    assert_eq!(client.refused("session/load", &load)["code"], -32602);
    assert_eq!(client.refused("session/resume", &load)["code"], -32002);
    assert_eq!(scratch.mark().running("example-agent").len(), 1, "that of the connection");
    daemon.stop();
}

// contract 7.3: the same creation under a key is one session, for a client that has lost the answer
#[test]
fn a_session_is_created_once_under_a_key() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let params = json!({"cwd": scratch.work(), "mcpServers": [], "_meta": {META: {"idempotencyKey": "k"}}});
    let mut client = keeping(&daemon, &scratch, &json!({}));
    let first = client.call("session/new", &params);
    drop(client);
    let mut client = keeping(&daemon, &scratch, &json!({}));
    let second = client.call("session/new", &params);
    assert_eq!((&first["sessionId"], &first["modes"]), (&second["sessionId"], &second["modes"]));
    let session = first["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    let mut other = params;
    other["_meta"][META]["title"] = json!("another");
    assert_eq!(client.refused("session/new", &other)["code"], -32602);
    assert!(scratch.mark().running("example-agent").len() <= 2);
    daemon.stop();
}

/// The sessions that a daemon lists.
fn listed(daemon: &Daemon) -> Vec<Value> {
    let list = Http::on(daemon.connect()).request("GET", "/v1/sessions", &[], "").json();
    list["sessions"].as_array().expect("a list").clone()
}

// contract 7.3: a creation that met the death of the daemon, and comes again under its key, is answered with its session, which is
// live again, however often; a session that a client has ended stays ended
#[test]
fn a_creation_that_met_a_kill_comes_again() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let params = json!({"cwd": scratch.work(), "mcpServers": [], "_meta": {META: {"idempotencyKey": "k"}}});
    let mut client = keeping(&daemon, &scratch, &json!({}));
    client.request("session/new", &params);
    // Its answer is lost with the daemon.
    let session = until("the session is there", || Some(listed(&daemon).first()?["sessionId"].clone()));
    let session = session.as_str().expect("an id").to_owned();
    daemon.kill();
    drop(client);
    for runs in 2..=3 {
        let mut daemon = scratch.serve();
        let mut client = keeping(&daemon, &scratch, &json!({}));
        let created = client.call("session/new", &params);
        assert_eq!(
            (&created["sessionId"], created["modes"].is_object()),
            (&json!(session), true),
            "{created}"
        );
        assert_eq!(client.turn(&session, "hello"), "end_turn");
        let all = listed(&daemon);
        assert_eq!(
            (all.len(), &all[0]["ended"], &all[0]["metadata"]["runs"]),
            (1, &json!(false), &json!(runs))
        );
        daemon.kill();
    }
    let mut daemon = scratch.serve();
    let mut client = keeping(&daemon, &scratch, &json!({}));
    client.call("session/new", &params);
    client.call("session/close", &json!({"sessionId": session}));
    let error = client.refused("session/new", &params);
    assert_eq!(
        (&error["code"], &error["data"]["terminationInfo"]["cause"]),
        (&json!(-32002), &json!("client_close"))
    );
    daemon.stop();
}
