//! `initialize`, towards the client and towards the agent (requirements IN, SU-5).

use acpd_e2e::{Client, Message, Scratch, acpd, check_from_client, shell_agent, taking_shell_agent};
use serde_json::{Value, json};
use std::collections::HashMap;

fn version(client: &mut Client, params: &Value) -> Value {
    client.call("initialize", params)["protocolVersion"].clone()
}

/// A client whose agent cannot be used: the error, and nothing is left running.
fn unusable(scratch: &Scratch, agent: &str) -> Value {
    let mut client = scratch.stdio(agent);
    let error = client.refused("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(error["code"], -32603, "{error}");
    client.is_alone();
    // The connection is still good, and so is acpd.
    client.refused("_example/ping", &json!({}));
    client.finish();
    error
}

// IN-1
#[test]
fn whatever_is_offered_version_1_is_spoken() {
    let scratch = Scratch::new();
    for offer in [
        json!({"protocolVersion": 1}),
        json!({"protocolVersion": 2}),
        json!({"protocolVersion": 65535}),
        json!({"protocolVersion": 2, "capabilities": {"session": {}}, "info": {"name": "v2", "version": "1"}}),
        json!({"protocolVersion": 2, "clientCapabilities": "of another shape", "clientInfo": []}),
    ] {
        let mut client = scratch.stdio("example");
        assert_eq!(version(&mut client, &offer), 1, "{offer}");
        let session = client.new_session();
        assert_eq!(client.turn(&session, "hello"), "end_turn");
        client.finish();
    }
}

// IN-1, FR-10
#[test]
fn an_offer_without_a_version_is_refused() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    for params in [json!({}), json!({"protocolVersion": "1"}), json!([]), json!({"protocolVersion": null})] {
        assert_eq!(client.refused("initialize", &params)["code"], -32602, "{params}");
    }
    for method in ["proxy/initialize", "proxy/successor"] {
        assert_eq!(client.refused(method, &json!({"protocolVersion": 1}))["code"], -32601);
    }
    assert_eq!(version(&mut client, &json!({"protocolVersion": 1})), 1);
    client.finish();
}

// IN-2: an error at once, not a hang; no agent is started for it
#[test]
fn nothing_goes_before_initialize() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    for method in ["session/new", "session/prompt", "session/set_mode", "authenticate", "_example/ping"] {
        let params = json!({"sessionId": "s", "cwd": scratch.work(), "mcpServers": []});
        let error = client.refused(method, &params);
        assert_eq!(error["code"], -32600, "{method}: {error}");
        assert!(error["message"].as_str().unwrap().contains("initialize"), "{error}");
    }
    client.notify("session/cancel", &json!({"sessionId": "s"}));
    client.is_alone();
    client.initialize();
    client.finish();
}

// IN-2
#[test]
fn a_second_initialize_is_negotiated_like_the_first() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    let first = client.initialize();
    assert_eq!(client.initialize(), first);
    assert_eq!(scratch.mark().running("example-agent").len(), 1);
    let session = client.new_session();
    assert_eq!(client.initialize(), first);
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    assert_eq!(scratch.mark().running("example-agent").len(), 1);
    client.finish();
}

// IN-3: listed means callable, unlisted means -32601; FR-9: what is acpd's own is in _meta
#[test]
fn exactly_what_is_listed_can_be_called() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    let result = client.initialize();
    assert!(result["agentInfo"]["name"].is_string() && result["agentInfo"]["version"].is_string());
    assert_eq!(result["_meta"]["sandboxagent.dev"]["host"]["name"], "acpd");
    let capabilities = &result["agentCapabilities"];
    let of_session = |name: &str| capabilities["sessionCapabilities"][name].is_object();
    let gated = [
        ("session/load", capabilities["loadSession"] == true),
        ("session/list", of_session("list")),
        ("session/resume", of_session("resume")),
        ("session/fork", of_session("fork")),
        ("session/close", of_session("close")),
        ("session/delete", of_session("delete")),
        ("session/archive", of_session("archive")),
        ("session/status", of_session("status")),
        ("session/set_title", of_session("setTitle")),
        ("logout", capabilities["auth"]["logout"].is_object()),
        ("mcp/message", capabilities["mcpCapabilities"]["acp"] == true),
    ];
    for (method, listed) in gated {
        let session = client.new_session();
        let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
        let asked = client.request(method, &params);
        let answer = client.answer(&asked);
        let unknown = answer.json["error"]["code"] == -32601;
        assert_eq!(!unknown, listed, "{method}: {}", answer.raw);
    }
    client.finish();
}

// IN-6: bounded, reaped, and the error says what the agent wrote
// quirk silent-initialize (programs that do not speak ACP): the agent is ended after the time for a start, and the
// error has its last words
#[test]
fn an_agent_that_never_answers_is_given_up() {
    let stubborn =
        "echo 'waiting for the moon' >&2; trap '' TERM; take; while :; do read -r line || sleep 100; done";
    let scratch = Scratch::new()
        .timeout("initialize", "300ms")
        .example("silent", &["--hang-initialize"])
        .shell("stubborn", &taking_shell_agent(stubborn));
    for (agent, stderr) in [("silent", None), ("stubborn", Some("waiting for the moon"))] {
        let error = unusable(&scratch, agent);
        let info = &error["data"]["terminationInfo"];
        assert_eq!((&info["cause"], &info["reason"]), (&json!("initialize_timeout"), &json!("error")));
        assert_eq!(info["stderr"]["head"].as_str(), stderr, "{info}");
        assert!(error["message"].as_str().unwrap().contains("0.3 s"), "{error}");
    }
}

// SU-5: each way not to start has words of its own
#[test]
fn each_failure_to_start_is_told_apart() {
    let scratch = Scratch::new();
    let plain_file = scratch.path("plain-file");
    std::fs::write(&plain_file, "#!/bin/sh\n").unwrap();
    let error_answer = "take; printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32000,\"message\":\"no license\"}}\\n' $id; take";
    let scratch = scratch
        .agent("absent", "/no/such/program", &[])
        .agent("nameless", "no-such-program-anywhere", &[])
        .agent("plain", &plain_file, &[])
        .example("quits", &["--exit-before-initialize", "7"])
        .example("leaves", &["--exit-before-initialize", "0"])
        .shell("killed", &taking_shell_agent("take; kill -9 $$"))
        .shell("v2", &taking_shell_agent("take; answer '{\"protocolVersion\":2}'; take"))
        .shell("odd", &taking_shell_agent("take; answer '[]'; take"))
        .shell("refuses", &taking_shell_agent(error_answer));
    for (agent, cause, words, field) in [
        ("absent", "spawn_failed", "/no/such/program", json!({})),
        ("nameless", "spawn_failed", "no-such-program-anywhere", json!({})),
        ("plain", "spawn_failed", "plain-file", json!({})),
        ("quits", "agent_crash", "exit status: 7", json!({"exitCode": 7})),
        ("leaves", "agent_exit", "exit status: 0", json!({"exitCode": 0})),
        ("killed", "agent_crash", "SIGKILL", json!({"signal": "SIGKILL"})),
        ("v2", "protocol_error", "it speaks protocol version 2", json!({})),
        ("odd", "protocol_error", "protocolVersion is missing", json!({})),
        ("refuses", "protocol_error", "no license", json!({})),
    ] {
        let error = unusable(&scratch, agent);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(agent) && message.contains(words) && !message.contains('\n'), "{message}");
        let info = &error["data"]["terminationInfo"];
        assert_eq!((&info["cause"], &info["reason"]), (&json!(cause), &json!("error")), "{agent}: {info}");
        for (name, value) in field.as_object().unwrap() {
            assert_eq!(&info[name], value, "{agent}: {info}");
        }
    }
    let quits = unusable(&scratch, "quits");
    assert_eq!(quits["data"]["terminationInfo"]["stderr"]["head"], "example agent: exit before initialize");
}

// SU-6: after a failure the next attempt starts anew
#[test]
fn a_failed_start_can_be_repeated() {
    let scratch = Scratch::new();
    let once = scratch.path("once");
    let script = "if mkdir \"$1\" 2>/dev/null; then exit 1; fi; exec \"$0\" example-agent --no-state";
    let args = ["-c", script, acpd().to_str().unwrap(), once.to_str().unwrap()].map(str::to_owned);
    let scratch = scratch.shell("second-try", &args);
    let mut client = scratch.stdio("second-try");
    client.refused("initialize", &json!({"protocolVersion": 1}));
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.finish();
}

// IN-4, IN-5: once, valid, and the same whichever client is attached; everything else the agent gets is valid too
#[test]
fn what_the_agent_gets_is_valid_and_independent_of_the_client() {
    let scratch = Scratch::new();
    let heard = scratch.path("heard");
    let script = "tee -a \"$0\" | exec \"$1\" example-agent --no-state";
    let args = ["-c", script, heard.to_str().unwrap(), acpd().to_str().unwrap()].map(str::to_owned);
    let scratch = scratch.shell("overheard", &args);
    for offer in [
        json!({"protocolVersion": 1}),
        json!({"protocolVersion": 9, "clientInfo": {"name": "one", "version": "1"},
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true}}),
    ] {
        let mut client = scratch.stdio("overheard");
        client.call("initialize", &offer);
        let session = client.new_session();
        let asked = client.prompt(&session, "begun\nask edit\nread /etc/hostname\nhang");
        client.until_text("begun");
        client.call("session/set_mode", &json!({"sessionId": session, "modeId": "plan"}));
        client.notify("session/cancel", &json!({"sessionId": session}));
        client.result(&asked);
        let asked = client.request_as(
            "\"w\"",
            "session/prompt",
            &json!({"sessionId": session, "prompt": [{"type": "text", "text": "again\nhang"}]}),
        );
        client.until_text("again");
        client.notify("$/cancel_request", &json!({"requestId": "w"}));
        client.result(&asked);
        client.finish();
    }
    let heard = std::fs::read_to_string(&heard).unwrap();
    let messages: Vec<Message> =
        heard.lines().map(|line| Message::read(line.into()).expect("acpd writes messages")).collect();
    // The agent numbers its requests from 0: a permission request and a file to read.
    let asked = HashMap::from([(0, "session/request_permission"), (1, "fs/read_text_file")]);
    for message in &messages {
        let asked = message.json["id"].as_u64().filter(|_| message.is_answer()).and_then(|id| asked.get(&id));
        check_from_client(&message.json, asked.copied())
            .unwrap_or_else(|wrong| panic!("{wrong}: {}", message.raw));
    }
    let offers: Vec<_> =
        messages.iter().filter(|m| m.method() == Some("initialize")).map(|m| &m.json["params"]).collect();
    assert_eq!(offers.len(), 2);
    assert_eq!((offers[0], &offers[0]["clientInfo"]["name"]), (offers[1], &json!("acpd")));
}

// IN-7: a client gets what it said it understands
#[test]
fn updates_are_filtered_by_what_the_client_understands() {
    let notice = r#"{"sessionUpdate":"notice","severity":"info","title":"x"}"#;
    let body = format!(
        "take; printf '{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"shell-1\",\"update\":%s}}}}\\n' '{notice}'; update after; answer '{{\"stopReason\":\"end_turn\"}}'; take"
    );
    let scratch = Scratch::new().shell("notices", &shell_agent(&body));
    for understands in [false, true] {
        let mut client = scratch.stdio("notices");
        if understands {
            client.initialize();
        } else {
            client.call("initialize", &json!({"protocolVersion": 1}));
        }
        let session = client.new_session();
        assert_eq!(client.turn(&session, "x"), "end_turn");
        let seen = client.received().iter().any(|m| m.update_kind() == Some("notice"));
        assert_eq!(seen, understands);
        assert_eq!(client.received().iter().filter_map(|m| m.text()).collect::<Vec<_>>(), ["after"]);
        client.finish();
    }
}

// IN-7: boolean options only for clients that know them
#[test]
fn boolean_options_are_for_clients_that_know_them() {
    let scratch = Scratch::new();
    for (understands, options) in [(true, 2), (false, 1)] {
        let mut client = scratch.stdio("example");
        let capabilities =
            if understands { json!({"session": {"configOptions": {"boolean": {}}}}) } else { json!({}) };
        client.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": capabilities}));
        let result = client.call("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
        assert_eq!(result["configOptions"].as_array().unwrap().len(), options);
        client.finish();
    }
}

// SU-7: the user's environment passes, acpd's own does not, the entry's own wins
#[test]
fn the_agents_environment() {
    let scratch = Scratch::new();
    let own = json!(acpd());
    let scratch = scratch.config(&format!(
        "[agents.env]\ncommand = {own}\nargs = [\"example-agent\", \"--no-state\"]\nenv = {{ MINE = \"entry\", ACPD_MEANT = \"yes\" }}"
    ));
    let mut command = scratch.command(acpd());
    command.args(["stdio", "--agent", "env", "--state-dir"]).arg(scratch.state());
    command.arg("--config").arg(scratch.config_file());
    command.env("OTEL_X", "1").env("MINE", "inherited").env("ACPD_CONFIG", "/nowhere");
    let mut client = scratch.client(command);
    client.initialize();
    let session = client.new_session();
    let asked = client.prompt(&session, "env OTEL_X\nenv MINE\nenv ACPD_CONFIG\nenv ACPD_MEANT");
    client.result(&asked);
    assert_eq!(client.text_since(&asked, &session), "1\nentry\nACPD_CONFIG is not set\nyes");
    client.finish();
}
