//! Directives that send something: each once.

use serde_json::{Value, json};

use crate::peer::Peer;

fn one_update(text: &str) -> Value {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let played = peer.play(&session, text);
    assert_eq!(played.stop_reason(), "end_turn");
    let updates = played.updates();
    assert_eq!(updates.len(), 1, "{updates:?}");
    updates[0].clone()
}

// contract 4
#[test]
fn other_text_is_echoed_word_by_word() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let played = peer.play(&session, "what a fine day\nis it not");
    let texts: Vec<Value> = played.updates().iter().map(|update| update["content"]["text"].clone()).collect();
    assert_eq!(texts, ["what ", "a ", "fine ", "day", "\nis ", "it ", "not"]);
    assert!(played.updates().iter().all(|update| update["messageId"] == "turn-1-agent"));
    assert_eq!(played.stop_reason(), "end_turn");

    let link = json!({"type": "resource_link", "name": "a", "uri": "file:///a"});
    let played = peer.ask("session/prompt", json!({"sessionId": session, "prompt": [link]}));
    assert_eq!(played.text(), "[resource_link file:///a]");
}

// contract 4
#[test]
fn stream_sends_numbered_chunks_of_the_size() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    for (text, count, bytes) in [("stream 3", 3, 64), ("stream 5000 200", 5_000, 200), ("stream 0", 0, 0)] {
        let updates = peer.play(&session, text).updates();
        assert_eq!(updates.len(), count);
        for (number, update) in updates.iter().enumerate() {
            let text = update["content"]["text"].as_str().expect("text");
            assert_eq!(text.len(), bytes);
            assert_eq!(text[..8].parse(), Ok(number));
        }
    }
}

// contract 4
#[test]
fn each_kind_of_update() {
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "messageId": "turn-1-thought",
        "content": {"type": "text", "text": "let me see"}});
    assert_eq!(one_update("think let me see"), thought);
    let entry = |content| json!({"content": content, "priority": "medium", "status": "pending"});
    let entries = [entry("one"), entry("and two")];
    assert_eq!(one_update("plan one, and two"), json!({"sessionUpdate": "plan", "entries": entries}));
    let entry = |content, status| json!({"content": content, "priority": "medium", "status": status});
    let entries = [entry("one", "completed"), entry("two", "in_progress"), entry("[three]", "pending")];
    assert_eq!(
        one_update("plan [x] one,[>] two,[three]"),
        json!({"sessionUpdate": "plan", "entries": entries})
    );
    assert_eq!(
        one_update("title My day"),
        json!({"sessionUpdate": "session_info_update", "title": "My day"})
    );
    let command = |name| json!({"name": name, "description": format!("example command {name}")});
    let commands = json!({"sessionUpdate": "available_commands_update",
        "availableCommands": [command("a"), command("b")]});
    assert_eq!(one_update("commands a,b"), commands);
    let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"});
    assert_eq!(one_update("mode plan"), mode);
    let usage = json!({"sessionUpdate": "usage_update", "used": 5, "size": 1_000});
    assert_eq!(one_update("usage 5 1000"), usage);
    let cost = json!({"amount": 0.25, "currency": "USD"});
    let usage = json!({"sessionUpdate": "usage_update", "used": 5, "size": 1_000, "cost": cost});
    assert_eq!(one_update("usage 5 1000 0.25 USD"), usage);
}

// contract 7.3: an agent tells at the end of a turn what it has used
#[test]
fn a_turn_ends_with_what_it_has_used() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let played = peer.play(&session, "turn-usage input 11 output 7\nturn-usage output 8");
    let usage = json!({"inputTokens": 11, "outputTokens": 8});
    assert_eq!(played.answer["result"], json!({"stopReason": "end_turn", "usage": usage}));
}

// contract 4, contract 1.5
#[test]
fn tools_is_a_notification_of_its_own() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let played = peer.play(&session, "tools grep,sed");
    let params = json!({"sessionId": session, "tools": ["grep", "sed"]});
    assert_eq!(played.messages, [json!({"jsonrpc": "2.0", "method": "session/started", "params": params})]);
}

// contract 4
#[test]
fn tool_goes_from_pending_to_completed() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let updates = peer.play(&session, "tool paint the fence").updates();
    let states: Vec<Value> = updates.iter().map(|update| update["status"].clone()).collect();
    assert_eq!(states, ["pending", "in_progress", "completed"]);
    assert_eq!(updates[0]["title"], "paint the fence");
    assert!(updates.iter().all(|update| update["toolCallId"] == "turn-1-call-1"));
}

// contract 4
#[test]
fn env_cwd_and_params_are_reported() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    assert_eq!(peer.play(&session, "env EXAMPLE_VARIABLE").text(), "its value");
    assert_eq!(peer.play(&session, "env NO_SUCH_VARIABLE").text(), "NO_SUCH_VARIABLE is not set");
    assert!(peer.play(&session, "cwd").text().starts_with("/tmp (process in /"));
    assert_eq!(peer.play(&session, "params").text(), r#"{"cwd":"/tmp","mcpServers":[]}"#);

    let here = std::env::current_dir().expect("a directory");
    let session = peer.result("session/new", json!({"cwd": here, "mcpServers": []}))["sessionId"].clone();
    let text = peer.play(session.as_str().expect("an id"), "cwd").text();
    assert_eq!(text, here.to_string_lossy());
}

// contract 4
#[test]
fn sleep_ends_by_itself() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    let played = peer.play(&session, "sleep 1\nawake");
    assert_eq!((played.text().as_str(), played.stop_reason()), ("awake", "end_turn"));
}

// contract 4, FR-7
#[test]
fn garbage_is_not_json() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "garbage");
    for _ in 0..3 {
        let line = peer.line().expect("a line");
        assert!(serde_json::from_slice::<Value>(&line).is_err());
    }
    assert_eq!(peer.message()["result"]["stopReason"], "end_turn");
}

// contract 4, FR-6
#[test]
fn big_is_one_line_of_that_size() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "big 1000000");
    assert_eq!(peer.line().expect("a line").len(), 1_000_001, "and its newline");
    assert_eq!(peer.message()["result"]["stopReason"], "end_turn");
}

// contract 4
#[test]
fn badutf8_is_one_invalid_byte() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "badutf8");
    let line = peer.line().expect("a line");
    assert_eq!(line.iter().filter(|byte| !byte.is_ascii()).count(), 1);
    let text = String::from_utf8_lossy(&line).into_owned();
    let message: Value = serde_json::from_str(&text).expect("JSON but for that byte");
    assert_eq!(message["params"]["update"]["content"]["text"], "\u{fffd}");
    assert_eq!(peer.message()["result"]["stopReason"], "end_turn");
}

// contract 4
#[test]
fn flood_is_one_long_line() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "flood 300000");
    let line = peer.line().expect("a line");
    assert_eq!(line.len(), 300_001);
    assert!(line[..300_000].iter().all(|byte| *byte == b'x'));
    assert_eq!(peer.message()["result"]["stopReason"], "end_turn");
}
