//! Commands that an agent runs through acpd.

use crate::together::events;
use acpd_e2e::{Client, Scratch};
use serde_json::{Value, json};

fn said(client: &mut Client, session: &str, text: &str) -> String {
    let asked = client.prompt(session, text);
    client.result(&asked);
    client.text_since(&asked, session)
}

/// A client that wants to know what terminals say.
fn watching(scratch: &Scratch) -> (Client, String) {
    let mut client = scratch.stdio("example");
    client.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientInfo": {"name": "e2e", "version": "1"},
            "clientCapabilities": {"_meta": {"sandboxagent.dev": {"terminals": true}}}}),
    );
    let session = client.new_session();
    (client, session)
}

fn told(client: &Client) -> Vec<Value> {
    let of_terminals = client.received().iter().filter(|m| m.method() == Some("_sandboxagent/terminal"));
    of_terminals.map(|message| message.json["params"].clone()).collect()
}

// contract 2.3, TE-1, TE-2, TE-5: the session's directory, arguments as they are, the real end
#[test]
fn an_agent_runs_commands() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let pwd = said(&mut client, &session, "run pwd");
    assert_eq!(pwd, format!("exit code 0\n{}\n", scratch.work().display()));
    let failed = said(&mut client, &session, "run sh -c \"echo out; echo err >&2; exit 3\"");
    assert_eq!(failed, "exit code 3\nout\nerr\n");
    // A line without arguments is a shell's.
    let line = said(&mut client, &session, "run \"echo one && echo two | tr w W\"");
    assert_eq!(line, "exit code 0\none\ntWo\n");
    let missing = said(&mut client, &session, "run no-such-command");
    assert!(missing.contains("-32603") && missing.contains("no-such-command"), "{missing}");
    client.is_alone_but_for("example-agent");
    client.finish();
}

// contract 2.3, TE-6, TE-7: the agent's own timeout pattern
#[test]
fn the_timeout_pattern_works() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let text = said(&mut client, &session, "run-timeout 100 sh -c \"echo begun; sleep 1000\"");
    assert!(text.contains("timed out after 100 ms") && text.contains("SIGTERM"), "{text}");
    assert!(text.contains("begun"), "{text}");
    client.finish();
}

// contract 2.3: the host's own bound, by the name of the command
#[test]
fn a_commands_time_is_bounded_by_configuration() {
    let scratch = Scratch::new().config("[terminal.command_timeouts]\nsleep = \"100ms\"");
    let (mut client, session) = scratch.session("example");
    let text = said(&mut client, &session, "run sleep 1000");
    assert!(text.contains("SIGTERM"), "{text}");
    client.finish();
    let events = events(&scratch, &session);
    let ended = events.iter().rfind(|event| event.0 == 17).expect("it is in the log");
    assert_eq!(ended.1["state"], "timed_out");
    assert_eq!(ended.1["exitStatus"], json!({"exitCode": null, "signal": "SIGTERM"}));
}

// TE-11, PR-5, SE-14: a cancelled turn, a close and a crash leave no command behind
#[test]
fn no_command_outlives_its_session_or_its_cancelled_turn() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompt = client.prompt(&session, "here\nrun sleep 1000");
    client.until("the call", |m| m.update_kind() == Some("tool_call"));
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(client.result(&prompt)["stopReason"], "cancelled");
    client.is_alone_but_for("example-agent");
    for end in ["session/close", "_sandboxagent/session/terminate"] {
        let session = client.new_session();
        let prompt = client.prompt(&session, "ignore-cancel\nrun sh -c \"setsid sleep 1000 & sleep 1000\"");
        client.until("the call", |m| m.update_kind() == Some("tool_call"));
        client.call(end, &json!({"sessionId": session}));
        client.answer(&prompt);
        assert!(scratch.mark().running("sleep").is_empty(), "{end}");
    }
    client.finish();
}

// TE-10, contract 1.6: what a terminal said is told as it comes, is in the log, and in the end is there for who comes later
#[test]
fn what_a_terminal_said_stays_visible() {
    let scratch = Scratch::new();
    let (mut client, session) = watching(&scratch);
    said(&mut client, &session, "run sh -c \"echo first; echo second\"");
    let live = told(&client);
    let text: String = live.iter().filter_map(|told| told["output"].as_str()).collect();
    assert_eq!(text, "first\nsecond\n");
    let last = live.last().expect("it ended");
    assert_eq!(last["finalOutput"], json!({"text": "first\nsecond\n", "truncated": false}));
    assert_eq!((&last["state"], &last["sessionId"]), (&json!("finished"), &json!(session)));
    client.finish();
    let mut later = scratch.stdio("example");
    later.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientInfo": {"name": "e2e", "version": "1"},
            "clientCapabilities": {"_meta": {"sandboxagent.dev": {"terminals": true}}}}),
    );
    later.call("session/load", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    assert_eq!(told(&later), std::slice::from_ref(last));
    later.finish();
    // Who does not ask for it is not told.
    let mut other = scratch.stdio("example");
    other.initialize();
    other.call("session/load", &json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []}));
    assert!(told(&other).is_empty());
    other.finish();
}

// contract 1.1, contract 2.3, TE-10, TE-11: an end waits for a command that ignores SIGTERM, and its last words are told first
#[test]
fn an_end_waits_for_a_stubborn_command() {
    for end in ["session/close", "_sandboxagent/session/terminate"] {
        let scratch = Scratch::new().config("[terminal]\ngraceful_shutdown_timeout = \"300ms\"");
        let (mut client, session) = watching(&scratch);
        let prompt =
            client.prompt(&session, "run sh -c \"trap '' TERM; echo begun; while :; do sleep 0.05; done\"");
        client.until("its output", |m| m.json["params"]["output"] == "begun\n");
        client.call(end, &json!({"sessionId": session}));
        assert!(scratch.mark().running("while").is_empty(), "{end}");
        client.answer(&prompt);
        let last = told(&client).pop().expect("its end was told");
        assert_eq!((&last["state"], &last["exitStatus"]["signal"]), (&json!("released"), &json!("SIGKILL")));
        let place = |method: &str| client.received().iter().rposition(|m| m.method() == Some(method));
        assert!(place("_sandboxagent/terminal") < place("_sandboxagent/session/ended"), "{end}");
        client.finish();
    }
}
