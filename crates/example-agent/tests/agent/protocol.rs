//! JSON-RPC, initialization, turns and cancellation.

use serde_json::{Value, json};

use crate::peer::{Peer, prompt};

// IN-1, IN-3
#[test]
fn initialize_answers_version_1_whatever_is_asked() {
    for version in [1, 2, 65_535] {
        let mut peer = Peer::spawn(&["--no-state"]);
        let result = peer.result("initialize", json!({"protocolVersion": version}));
        assert_eq!(result["protocolVersion"], 1);
        assert_eq!(result["agentInfo"]["name"], "example");
        assert_eq!(result["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["authMethods"], json!([]));
        assert_eq!(result["agentCapabilities"]["loadSession"], true);
    }
    let mut peer = Peer::spawn(&["--no-state"]);
    assert_eq!(peer.error_code("session/list", json!({})), -32600);
    assert_eq!(peer.error_code("initialize", json!({})), -32602);
}

// FR-3, FR-4, FR-5
#[test]
fn what_is_broken_or_unknown_is_answered_once_and_nothing_else() {
    let mut peer = Peer::start(&[]);
    for (line, id, code) in [
        ("nonsense", Value::Null, -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"_example/ping"}]"#, Value::Null, -32600),
        (r#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#, json!("a"), -32601),
        (r#"{"jsonrpc":"2.0","id":null,"method":"no/such"}"#, Value::Null, -32601),
    ] {
        peer.write(r#"{"jsonrpc":"2.0","method":"no/such/notification","params":[]}"#);
        peer.write(r#"{"jsonrpc":"2.0","method":"$/unknown"}"#);
        peer.write(line);
        let answer = peer.message();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
    }
    peer.write(
        r#"{"jsonrpc":"2.0","id":12345678901234567890123,"method":"_example/ping","params":{"x":[1]}}"#,
    );
    let line = peer.line().expect("an answer");
    let expected = "{\"jsonrpc\":\"2.0\",\"id\":12345678901234567890123,\"result\":{\"x\":[1]}}\n";
    assert_eq!(String::from_utf8_lossy(&line), expected);
}

// SE-20
#[test]
fn an_unknown_session_is_named() {
    let mut peer = Peer::start(&[]);
    for method in ["session/prompt", "session/load", "session/resume", "session/fork", "session/close"] {
        let params = json!({"sessionId": "nobody", "cwd": "/", "mcpServers": [], "prompt": []});
        let answer = peer.ask(method, params).answer;
        assert_eq!(answer["error"]["code"], -32002, "{method}");
        assert_eq!(answer["error"]["data"], json!({"sessionId": "nobody"}), "{method}");
    }
    peer.notify("session/cancel", json!({"sessionId": "nobody"}));
    assert!(peer.ping().messages.is_empty());
}

// contract 4, PR-4
#[test]
fn a_cancel_right_behind_the_prompt_ends_what_waits_or_streams() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    for text in ["hang", "sleep 1000000", "stream 18446744073709551615 200"] {
        let id = peer.begin(&session, text);
        peer.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(peer.until_answer(id).stop_reason(), "cancelled", "{text}");
        assert!(peer.ping().messages.is_empty(), "an update after the answer");
    }
    peer.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(peer.play(&session, "hello").stop_reason(), "end_turn");
}

// PR-9
#[test]
fn cancel_request_for_a_prompt_is_a_cancel() {
    let mut peer = Peer::start(&[]);
    let (one, other) = (peer.new_session(), peer.new_session());
    let first = peer.begin(&one, "hang");
    let second = peer.begin(&other, "hang");
    peer.notify("$/cancel_request", json!({"requestId": second}));
    assert_eq!(peer.until_answer(second).stop_reason(), "cancelled");
    assert!(peer.ping().messages.is_empty(), "the other turn goes on");
    peer.notify("$/cancel_request", json!({"requestId": first}));
    assert_eq!(peer.until_answer(first).stop_reason(), "cancelled");
}

// PR-8, SE-21
#[test]
fn a_session_has_one_turn_at_a_time_and_others_go_on() {
    let mut peer = Peer::start(&[]);
    let (busy, other) = (peer.new_session(), peer.new_session());
    let id = peer.begin(&busy, "hang");
    assert_eq!(peer.error_code("session/prompt", prompt(&busy, "hello")), -32600);
    assert_eq!(peer.play(&other, "hello").text(), "hello");
    peer.notify("session/cancel", json!({"sessionId": busy}));
    assert_eq!(peer.until_answer(id).stop_reason(), "cancelled");
}

// contract 4
#[test]
fn ignore_cancel_ignores_it_in_that_session() {
    let mut peer = Peer::start(&[]);
    let (deaf, other) = (peer.new_session(), peer.new_session());
    assert_eq!(peer.play(&deaf, "ignore-cancel").stop_reason(), "end_turn");
    peer.begin(&deaf, "hang");
    peer.notify("session/cancel", json!({"sessionId": deaf}));
    let id = peer.begin(&other, "hang");
    peer.notify("session/cancel", json!({"sessionId": other}));
    let played = peer.until_answer(id);
    assert_eq!((played.stop_reason(), played.messages.len()), ("cancelled", 0));
    assert!(peer.ping().messages.is_empty(), "the deaf turn was not answered");
}

// FR-10
#[test]
fn bad_parameters_are_refused() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    for (method, params) in [
        ("session/new", json!({"cwd": "relative", "mcpServers": []})),
        ("session/new", json!({"cwd": "/tmp"})),
        ("session/new", json!({"cwd": "/tmp", "mcpServers": "none"})),
        ("session/new", json!({"cwd": "/tmp", "mcpServers": [], "additionalDirectories": ["a"]})),
        ("session/prompt", json!({"sessionId": session})),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"text": "hi"}]})),
        ("session/prompt", prompt(&session, "exit soon")),
        ("session/set_mode", json!({"sessionId": session, "modeId": "nope"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": "nope"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "shout", "value": "yes"})),
        ("session/list", json!({"cwd": "relative"})),
        ("session/list", json!({"cursor": "garbage"})),
    ] {
        assert_eq!(peer.error_code(method, params.clone()), -32602, "{method} {params}");
    }
    let answer = peer.ask("session/prompt", prompt(&session, "hello\nexit soon")).answer;
    assert_eq!(answer["error"]["message"], "bad arguments of exit: usage is `exit N`");
    peer.result("session/new", json!({"cwd": "/tmp", "mcpServers": null}));
}
