//! Sessions across requests and processes.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peer::{Peer, text_of};

fn state() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn at(session: &str) -> Value {
    json!({"sessionId": session, "cwd": "/tmp", "mcpServers": []})
}

fn ids(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().expect("sessions is a list");
    sessions.iter().map(|entry| entry["sessionId"].as_str().expect("an id")).collect()
}

// contract 4, SE-4, UP-4
#[test]
fn a_fresh_process_replays_exactly_what_was_sent() {
    let state = state();
    let mut first = Peer::start_in(state.path(), &[]);
    let session = first.new_session();
    let all =
        "hello world\nthink hm\nplan a,b\ntitle T\ncommands c\nmode plan\nusage 1 2\ntool t\nstream 1000 20";
    let played = first.play(&session, all);
    first.result(
        "session/set_config_option",
        json!({"sessionId": session, "configId": "shout", "value": true}),
    );
    first.close_stdin();
    assert!(first.end().0.success());

    let mut second = Peer::start_in(state.path(), &[]);
    let loaded = second.ask("session/load", at(&session));
    let updates = loaded.updates();
    assert_eq!(updates[0]["sessionUpdate"], "user_message_chunk");
    assert_eq!(updates[0]["content"]["text"], all);
    assert_eq!(updates[1..], played.updates());
    assert_eq!(loaded.answer["result"]["modes"]["currentModeId"], "plan");
    assert_eq!(loaded.answer["result"]["configOptions"][1]["currentValue"], true);
    assert!(second.ping().messages.is_empty(), "a replay update after the answer");

    let again = second.play(&session, "again");
    assert_eq!(again.text(), "AGAIN");
    assert_eq!(again.updates()[0]["messageId"], "turn-2-agent");
}

// SE-8
#[test]
fn a_resume_replays_nothing() {
    let state = state();
    let mut first = Peer::start_in(state.path(), &[]);
    let session = first.new_session();
    first.play(&session, "hello\nmode plan");
    let mut second = Peer::start_in(state.path(), &[]);
    assert_eq!(second.error_code("session/prompt", json!({"sessionId": session, "prompt": []})), -32002);
    let resumed = second.ask("session/resume", json!({"sessionId": session, "cwd": "/tmp"}));
    assert!(resumed.messages.is_empty());
    assert_eq!(resumed.answer["result"]["modes"]["currentModeId"], "plan");
    assert_eq!(second.play(&session, "hello").text(), "hello");
}

// SE-18
#[test]
fn a_fork_goes_its_own_way() {
    let mut peer = Peer::start(&[]);
    let source = peer.new_session();
    peer.play(&source, "common");
    let result = peer.result("session/fork", json!({"sessionId": source, "cwd": "/var"}));
    let fork = result["sessionId"].as_str().expect("an id").to_owned();
    assert_ne!(fork, source);
    peer.play(&fork, "only-fork");
    peer.play(&source, "only-source");
    for (session, own) in [(&fork, "commononly-fork"), (&source, "commononly-source")] {
        let replay = peer.ask("session/load", at(session)).updates();
        assert_eq!(text_of(&replay, "agent_message_chunk"), own);
    }
    assert!(peer.play(&fork, "cwd").text().starts_with("/var"));
}

// SE-11, SE-12
#[test]
fn the_list_is_newest_first_filtered_and_paged() {
    let state = state();
    let mut peer = Peer::start_in(state.path(), &["--page-size", "2"]);
    assert_eq!(peer.result("session/list", json!({})), json!({"sessions": []}));
    let sessions: Vec<String> = (0..5).map(|_| peer.new_session()).collect();
    let params = json!({"cwd": "/var", "mcpServers": [], "additionalDirectories": ["/usr"]});
    let elsewhere = peer.result("session/new", params)["sessionId"].clone();
    peer.play(&sessions[0], "title The newest");

    let mut listed = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = peer.result("session/list", json!({"cwd": "/tmp", "cursor": cursor}));
        assert!(page["sessions"].as_array().expect("a list").len() <= 2);
        listed.extend(page["sessions"].as_array().expect("a list").clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        assert_eq!(peer.error_code("session/list", json!({"cursor": cursor})), -32602, "another filter");
    }
    assert_eq!(listed.len(), 5);
    assert_eq!((&listed[0]["sessionId"], &listed[0]["title"]), (&json!(sessions[0]), &json!("The newest")));
    let mut times: Vec<&str> = listed.iter().filter_map(|entry| entry["updatedAt"].as_str()).collect();
    assert_eq!(times.len(), 5);
    times.reverse();
    assert!(times.is_sorted());

    let other = peer.result("session/list", json!({"cwd": "/var"}));
    assert_eq!(other["sessions"][0]["sessionId"], elsewhere);
    assert_eq!(other["sessions"][0]["additionalDirectories"], json!(["/usr"]));
}

// SE-14, SE-15
#[test]
fn a_close_cancels_the_turn_first_and_keeps_the_session_loadable() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "hang");
    let close = peer.request("session/close", json!({"sessionId": session}));
    let played = peer.until_answer(close);
    assert_eq!(played.messages.len(), 1, "the prompt's answer comes before");
    assert_eq!((&played.messages[0]["id"], &played.answer["result"]), (&json!(prompt), &json!({})));
    assert_eq!(played.messages[0]["result"]["stopReason"], "cancelled");

    assert_eq!(peer.error_code("session/prompt", json!({"sessionId": session, "prompt": []})), -32002);
    assert_eq!(ids(&peer.result("session/list", json!({}))), [session.as_str()]);
    peer.result("session/load", at(&session));
    assert_eq!(peer.play(&session, "hello").text(), "hello");
}

// SE-16
#[test]
fn a_delete_removes_and_repeats() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let prompt = peer.begin(&session, "hang");
    let delete = peer.request("session/delete", json!({"sessionId": session}));
    assert_eq!(peer.until_answer(prompt).stop_reason(), "cancelled");
    assert_eq!(peer.until_answer(delete).answer["result"], json!({}));
    assert_eq!(peer.result("session/delete", json!({"sessionId": session})), json!({}));
    assert_eq!(peer.error_code("session/load", at(&session)), -32002);
    assert_eq!(peer.result("session/list", json!({})), json!({"sessions": []}));
}

// UP-6
#[test]
fn modes_and_config_options_are_set() {
    let mut peer = Peer::start(&[]);
    let result = peer.result("session/new", json!({"cwd": "/tmp", "mcpServers": []}));
    assert_eq!(result["modes"]["currentModeId"], "default");
    let session = &result["sessionId"];
    let played = peer.ask("session/set_mode", json!({"sessionId": session, "modeId": "plan"}));
    assert_eq!(played.answer["result"], json!({}));
    assert_eq!(played.updates(), [json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"})]);
    let params = json!({"sessionId": session, "configId": "model", "value": "example-large"});
    let options = peer.result("session/set_config_option", params)["configOptions"].clone();
    assert_eq!(options.as_array().map(Vec::len), result["configOptions"].as_array().map(Vec::len));
    assert_eq!(options[0]["currentValue"], "example-large");

    let mut plain = Peer::spawn(&["--no-state"]);
    plain.result("initialize", json!({"protocolVersion": 1}));
    let result = plain.result("session/new", json!({"cwd": "/tmp", "mcpServers": []}));
    assert_eq!(result["configOptions"].as_array().map(Vec::len), Some(1), "no boolean for this client");
}

// contract 4
#[test]
fn a_lesser_agent_lacks_method_and_capability() {
    let without = ["load", "resume", "fork", "list", "close", "delete"];
    let mut peer = Peer::spawn(&["--no-state", "--without", &without.join(",")]);
    let capabilities = peer.initialize()["agentCapabilities"].clone();
    assert_eq!(capabilities["loadSession"], false);
    let session = peer.new_session();
    for name in without {
        assert!(capabilities["sessionCapabilities"].get(name).is_none(), "{name}");
        assert_eq!(peer.error_code(&format!("session/{name}"), at(&session)), -32601, "{name}");
    }
    assert_eq!(peer.error_code("session/stop", at(&session)), -32601);
}

// contract 4, contract 1.4
#[test]
fn legacy_stop_knows_only_stop() {
    let mut peer = Peer::spawn(&["--no-state", "--legacy-stop"]);
    let capabilities = peer.initialize()["agentCapabilities"].clone();
    assert_eq!(capabilities["session"], json!({"stop": {}}));
    assert!(capabilities["sessionCapabilities"].get("close").is_none());
    let session = peer.new_session();
    assert_eq!(peer.error_code("session/close", at(&session)), -32601);
    assert_eq!(peer.result("session/stop", json!({"sessionId": session})), json!({}));
    assert_eq!(peer.error_code("session/prompt", json!({"sessionId": session, "prompt": []})), -32002);
}

// UP-7
#[test]
fn early_updates_come_before_the_answer() {
    let mut peer = Peer::start(&["--early-updates"]);
    let played = peer.ask("session/new", json!({"cwd": "/tmp", "mcpServers": []}));
    let kinds: Vec<Value> = played.updates().iter().map(|update| update["sessionUpdate"].clone()).collect();
    assert_eq!(kinds, ["available_commands_update", "agent_message_chunk"]);
    let session = &played.answer["result"]["sessionId"];
    assert!(played.messages.iter().all(|message| &message["params"]["sessionId"] == session));
}
