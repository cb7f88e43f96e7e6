//! Creating sessions, and naming them wrongly (requirements SE).

use acpd_e2e::{Client, Scratch, acpd};
use serde_json::{Value, json};
use std::collections::HashSet;

fn new(client: &mut Client, params: &Value) -> String {
    client.call("session/new", params)["sessionId"].as_str().expect("an id").to_owned()
}

// SE-1
#[test]
fn session_ids_are_unique_across_agents_and_restarts() {
    let scratch = Scratch::new().example("other", &["--no-state"]);
    let mut ids = HashSet::new();
    for agent in ["example", "other", "example"] {
        let (mut client, session) = scratch.session(agent);
        assert!(ids.insert(session));
        assert!(ids.insert(client.new_session()));
        client.finish();
    }
}

// SE-2, FR-10, contract 7.2
// quirk relative-directory (clients in front of agents that take it): it is refused before an agent is asked, and the error
// names the field
#[test]
fn a_bad_setup_is_refused_in_words() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    let file = scratch.path("file");
    std::fs::write(&file, "").unwrap();
    let partitioned = |partition: &Value| json!({"cwd": scratch.work(), "mcpServers": [], "_meta": {"sandboxagent.dev": {"partition": partition}}});
    for (params, begin) in [
        (json!({"cwd": "work", "mcpServers": []}), "cwd: \"work\" is not absolute"),
        (json!({"cwd": "", "mcpServers": []}), "cwd: \"\" is not absolute"),
        (json!({"mcpServers": []}), "cwd: "),
        (json!({"cwd": 5, "mcpServers": []}), "cwd: "),
        (json!({"cwd": "/nowhere/at/all", "mcpServers": []}), "cwd: \"/nowhere/at/all\" is not a directory"),
        (json!({"cwd": file, "mcpServers": []}), "cwd: "),
        (json!({"cwd": scratch.work(), "mcpServers": "none"}), "mcpServers: "),
        (partitioned(&json!("both")), "_meta[\"sandboxagent.dev\"].partition: local or failover is required"),
        (partitioned(&json!(7)), "_meta[\"sandboxagent.dev\"].partition: local or failover is required"),
        (partitioned(&json!("failover")), "partition: failover needs a fleet, and this daemon is in none"),
        (json!([]), "params: "),
    ] {
        let error = client.refused("session/new", &params);
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().starts_with(begin), "{error}");
    }
    // The process is still good for a session.
    assert_eq!(scratch.mark().running("example-agent").len(), 1);
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
}

// SE-2: the agent sees the session's directory, whatever acpd's own is
#[test]
fn the_agent_sees_the_sessions_directory() {
    let scratch = Scratch::new();
    let elsewhere = scratch.path("else where");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut client = scratch.stdio("example");
    client.initialize();
    for _ in 0..2 {
        let session = new(&mut client, &json!({"cwd": elsewhere, "mcpServers": []}));
        let asked = client.prompt(&session, "cwd");
        client.result(&asked);
        assert!(client.text_since(&asked, &session).starts_with(elsewhere.to_str().unwrap()));
    }
    client.finish();
}

// SE-3: delivered to the agent of that session only
#[test]
fn the_setup_reaches_the_agent_unchanged() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    let server = json!({"name": "m", "command": "/bin/true", "args": ["-x"],
        "env": [{"name": "KEY", "value": "secret"}]});
    let first = json!({"cwd": scratch.work(), "mcpServers": [server],
        "additionalDirectories": [scratch.state()], "_meta": {"trace": "t", "n": 1.50}});
    let second = json!({"cwd": scratch.work(), "mcpServers": []});
    for params in [first, second] {
        let session = new(&mut client, &params);
        let asked = client.prompt(&session, "params");
        client.result(&asked);
        let seen: Value = serde_json::from_str(&client.text_since(&asked, &session)).unwrap();
        assert_eq!(seen, params);
    }
    client.finish();
}

// SE-3: secrets of a session's setup are neither logged nor recorded
#[test]
fn secrets_of_the_setup_are_not_written_down() {
    let scratch = Scratch::new();
    let mut command = scratch.command(acpd());
    command.args(["-vvv", "stdio", "--agent", "quiet", "--state-dir"]).arg(scratch.state());
    let scratch = scratch.example("quiet", &["--no-state"]);
    command.arg("--config").arg(scratch.config_file());
    let mut client = scratch.client(command);
    client.initialize();
    let secret = "a-very-secret-value";
    let server = json!({"name": "m", "command": "/bin/true", "args": [],
        "env": [{"name": "KEY", "value": secret}]});
    let session = new(&mut client, &json!({"cwd": scratch.work(), "mcpServers": [server]}));
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.close_input();
    let (_, stderr) = client.ended();
    assert!(!stderr.contains(secret) && stderr.contains("session"), "{stderr}");
    for file in std::fs::read_dir(scratch.state()).unwrap().flatten().filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{:?}", file.path());
    }
}

// SE-20
#[test]
fn unknown_sessions_are_named() {
    let scratch = Scratch::new();
    let (mut client, _) = scratch.session("example");
    for id in ["nope", "", "\u{1f980}\n"] {
        for (method, more) in [
            ("session/prompt", json!({"prompt": [{"type": "text", "text": "x"}]})),
            ("session/set_mode", json!({"modeId": "plan"})),
            ("session/set_config_option", json!({"configId": "model", "value": "x"})),
            ("_example/ping", json!({})),
        ] {
            let mut params = more;
            params["sessionId"] = json!(id);
            let error = client.refused(method, &params);
            assert_eq!((&error["code"], &error["data"]), (&json!(-32002), &json!({"sessionId": id})));
        }
        client.notify("session/cancel", &json!({"sessionId": id}));
    }
    for params in [json!({}), json!({"sessionId": 5, "prompt": []})] {
        assert_eq!(client.refused("session/prompt", &params)["code"], -32602);
    }
    client.finish();
}

// FR-10
#[test]
fn a_prompt_of_another_shape_is_refused() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    for prompt in [json!("text"), json!([1]), json!([{}]), Value::Null] {
        let error = client.refused("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().starts_with("prompt: "), "{error}");
    }
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
}

// UP-7: what an agent says of a session before its `session/new` answer comes after that answer, complete
// quirk updates-before-session (agents that tell of commands and usage first): they are held, and follow the answer that names the
// session
#[test]
fn early_updates_are_not_lost() {
    let scratch = Scratch::new().example("early", &["--early-updates"]);
    let mut client = scratch.stdio("early");
    client.initialize();
    for _ in 0..5 {
        let asked = client.request("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
        let session = client.result(&asked)["sessionId"].as_str().unwrap().to_owned();
        client.until_text("early");
        let since = client.since(&asked);
        assert!(since[0].is_answer());
        let kinds: Vec<_> = since[1..].iter().filter_map(|m| m.update_kind()).collect();
        assert_eq!(kinds, ["available_commands_update", "agent_message_chunk"]);
        assert!(since[1..].iter().all(|m| m.session() == Some(&session)));
    }
    client.finish();
}

// IN-3: what is listed works, with the agent's own results
#[test]
fn modes_and_options_can_be_set() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.call("session/set_mode", &json!({"sessionId": session, "modeId": "plan"})), json!({}));
    assert!(client.received().iter().any(|m| m.update_kind() == Some("current_mode_update")));
    let shout = json!({"sessionId": session, "configId": "shout", "type": "boolean", "value": true});
    let result = client.call("session/set_config_option", &shout);
    assert_eq!(result["configOptions"].as_array().unwrap().len(), 2);
    let asked = client.prompt(&session, "hello");
    client.result(&asked);
    assert_eq!(client.text_since(&asked, &session), "HELLO");
    client.finish();
}
