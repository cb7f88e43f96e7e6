//! Agents that misbehave: bounded memory, and a clear error or tolerance (requirements FR, SU).

use acpd_e2e::{Client, Scratch, peak_memory, shell_agent, taking_shell_agent};
use serde_json::{Value, json};
use std::path::Path;

/// What acpd may have resident at its peak, whatever an agent does.
const MEMORY: u64 = 200 << 20;

/// Prompts and expects the session to fail: the record.
fn fails(client: &mut Client, session: &str, prompt: &str) -> Value {
    let asked = client.prompt(session, prompt);
    let info = client.error(&asked)["data"]["terminationInfo"].clone();
    assert_eq!(info["reason"], "error", "{info}");
    client.is_alone();
    info
}

fn message(info: &Value) -> &str {
    info["message"].as_str().expect("an error has a message")
}

// FR-6: a line without an end is cut off by name, in bounded memory
#[test]
fn a_line_without_an_end() {
    let scratch = Scratch::new()
        .shell("endless", &shell_agent("take; tr '\\0' x < /dev/zero"))
        .shell("mute", &taking_shell_agent("take; tr '\\0' x < /dev/zero"));
    let (mut client, session) = scratch.session("endless");
    let info = fails(&mut client, &session, "go");
    assert_eq!(message(&info), "agent wrote a line over the limit of 67108864 bytes");
    assert_eq!((&info["terminatedBy"], &info["cause"]), (&json!("agent"), &json!("protocol_error")));
    assert!(peak_memory(client.pid()) < MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    client.finish();

    // The same before `initialize` is answered.
    let mut client = scratch.stdio("mute");
    let error = client.refused("initialize", &json!({"protocolVersion": 1}));
    assert_eq!(error["data"]["terminationInfo"]["cause"], "protocol_error", "{error}");
    let told = error["message"].as_str().unwrap();
    assert!(told.contains("line over the limit of 67108864 bytes"), "{told}");
    assert!(peak_memory(client.pid()) < MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    client.finish();
}

// FR-6: 1 GiB with an end is no different
#[test]
fn a_line_of_a_gibibyte() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let info = fails(&mut client, &session, "flood 1073741824");
    assert_eq!(message(&info), "agent wrote a line over the limit of 67108864 bytes");
    assert!(peak_memory(client.pid()) < MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    client.finish();
}

// FR-6: the limit is configurable, and exact
// quirk huge-line
#[test]
fn the_limit_of_a_line_can_be_set() {
    let scratch = Scratch::new().config("[limits]\nline_bytes = \"100 KiB\"");
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "big 102400"), "end_turn");
    let info = fails(&mut client, &session, "big 102401");
    assert_eq!(message(&info), "agent wrote a line over the limit of 102400 bytes");
    client.finish();
}

// FR-6: images and diffs travel as one line
// quirk huge-line
#[test]
fn a_line_of_50_mib_passes() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let asked = client.prompt(&session, "big 52428800\nhello");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let text = client.text_since(&asked, &session);
    assert!(text.len() > 52_428_000 && text.ends_with("hello"));
    assert!(peak_memory(client.pid()) < 2 * MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    client.finish();
}

// SU-4: stderr is drained, whatever its amount
// quirk chatter (most agents): standard error is read all the time, in bounded memory, and logged on request
#[test]
fn stderr_without_an_end() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    // A GiB, in turns of which each is waited for: all of it takes longer than one may on a busy machine.
    for _ in 0..8 {
        assert_eq!(client.turn(&session, "flood-stderr 134217728"), "end_turn");
    }
    assert_eq!(client.turn(&session, "stderr 100000\nhello"), "end_turn");
    assert!(peak_memory(client.pid()) < MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    client.finish();
}

// SU-8
#[test]
fn an_agent_that_closes_a_pipe_and_lives_is_stopped() {
    let scratch = Scratch::new()
        .shell("deaf", &shell_agent("exec 0</dev/null; while :; do sleep 100; done"))
        .shell("dumb", &shell_agent("take; exec 1>&2; while :; do sleep 100; done"));
    for (agent, pipe) in [("deaf", "stdin"), ("dumb", "stdout")] {
        let (mut client, session) = scratch.session(agent);
        let info = fails(&mut client, &session, "hello");
        assert_eq!(message(&info), format!("agent closed its {pipe} and kept running"));
        assert_eq!(info["cause"], "protocol_error");
        client.finish();
    }
    let (mut client, session) = scratch.session("example");
    let info = fails(&mut client, &session, "close-stdout\nhang");
    assert_eq!(message(&info), "agent closed its stdout and kept running");
    client.finish();
}

// FR-7
// quirk banner (agents started by a wrapper): lines that are no message are skipped
// quirk not-json
#[test]
fn noise_is_skipped() {
    let scratch = Scratch::new().example("chatty", &["--banner"]);
    let (mut client, session) = scratch.session("chatty");
    let asked = client.prompt(&session, "one\ngarbage\nflood 100000\ntwo");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(client.text_since(&asked, &session), "one\ntwo");
    client.finish();
}

// an invalid byte costs one character
// quirk bad-utf8
#[test]
fn an_invalid_byte_becomes_a_replacement_character() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let asked = client.prompt(&session, "badutf8");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(client.text_since(&asked, &session), "\u{fffd}");
    client.finish();
}

// IN-6: a hung `session/new` is bounded too
// quirk silent-session-new (agents with a helper that is too old): the client gets an error after the time for a start
#[test]
fn an_agent_that_never_answers_session_new() {
    let scratch = Scratch::new()
        .timeout("initialize", "300ms")
        .shell("slow", &taking_shell_agent("take; answer '{\"protocolVersion\":1}'; while take; do :; done"));
    let mut client = scratch.stdio("slow");
    client.initialize();
    let error = client.refused("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    assert_eq!(error["message"], "the agent did not answer session/new within 0.3 s");
    client.finish();
}

// FR-3: broken answers of an agent are answers
#[test]
fn broken_answers_reach_whoever_asked() {
    let both = "take; printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":1,\"error\":{\"code\":1,\"message\":\"x\"}}\\n' $id; take";
    let scratch = Scratch::new().shell("both", &shell_agent(both)).shell(
        "unnamed",
        &taking_shell_agent("take; answer '{\"protocolVersion\":1}'; take; answer '{}'; take"),
    );
    let (mut client, session) = scratch.session("both");
    let asked = client.prompt(&session, "x");
    let error = client.error(&asked);
    assert!(error["message"].as_str().unwrap().contains("both result and error"), "{error}");
    client.finish();
    let mut client = scratch.stdio("unnamed");
    client.initialize();
    let error = client.refused("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    assert!(error["message"].as_str().unwrap().contains("names no sessionId"), "{error}");
    client.finish();
}

// UP-7: what is said of sessions that nobody knows is dropped
// quirk unknown-session-update
#[test]
fn updates_of_strange_sessions_are_dropped() {
    let strange = "take; printf '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"other\",\"update\":{}}}\\n'; update mine; answer '{\"stopReason\":\"end_turn\"}'; take";
    let scratch = Scratch::new().shell("strange", &shell_agent(strange));
    let (mut client, session) = scratch.session("strange");
    let asked = client.prompt(&session, "x");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    let since = client.since(&asked);
    assert_eq!((since.len(), since[0].text()), (2, Some("mine")));
    client.finish();
}

// SU-6, FR-3: an agent that dies right behind its answer to session/new
#[test]
fn an_agent_that_dies_with_its_answer() {
    let scratch = Scratch::new().shell("brief", &shell_agent("exit 4"));
    for _ in 0..10 {
        let mut client = scratch.stdio("brief");
        client.initialize();
        let asked = client.request("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
        let answer = client.answer(&asked);
        let info = match answer.json["result"]["sessionId"].as_str() {
            Some(session) => {
                let refused = client.prompt(session, "hello");
                client.error(&refused)["data"]["terminationInfo"].clone()
            }
            None => answer.json["error"]["data"]["terminationInfo"].clone(),
        };
        assert_eq!(info["exitCode"], 4, "{}", answer.raw);
        client.finish();
    }
}

// SU-1: exit means reaped; a grandchild that holds the pipes delays nothing and is told as leaked
// quirk output-held-open (agents that are launchers or leave a daemon): the session ends with the process, whoever
// holds its output, and what is left is ended
#[test]
fn a_grandchild_that_holds_the_pipes() {
    for fork in ["fork", "fork setsid"] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let info = fails(&mut client, &session, &format!("{fork}\nexit 6"));
        assert_eq!((&info["exitCode"], &info["leaked"]), (&json!(6), &json!(true)));
        client.finish();
    }
}

// FR-6, PR-8: an agent that does not read costs a bounded backlog, and is told as such
#[test]
fn an_agent_that_does_not_read() {
    let scratch = Scratch::new()
        .timeout("cancel", "300ms")
        .shell("unread", &shell_agent("while :; do sleep 100; done"));
    let (mut client, session) = scratch.session("unread");
    let prompt = client.prompt(&session, &"x".repeat(20 << 20));
    let refused = client.request("_any/request", &json!({"sessionId": session}));
    let error = client.error(&refused);
    assert!(error["message"].as_str().unwrap().contains("the agent does not read its input"), "{error}");
    client.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(client.result(&prompt), json!({"stopReason": "cancelled"}));
    assert!(peak_memory(client.pid()) < MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    client.finish();
}

/// The bytes in the files of a directory.
fn size(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("it is there").flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

// UP-2: a client that does not read costs no memory, delays no agent, and loses nothing
#[test]
fn a_client_that_does_not_read() {
    const CHUNKS: usize = 60_000;
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.tolerant();
    let asked = client.prompt(&session, &format!("stream {CHUNKS} 5000\nexit 9"));
    // Not a byte of it is read before the agent is through and gone, which takes a busy machine as long as the log grows.
    let mut written = 0;
    while scratch.mark().only_left(&[client.pid()]).is_err() {
        let now = size(&scratch.state());
        assert!(now > written, "nothing goes on: {now} bytes are written");
        written = now;
    }
    assert!(peak_memory(client.pid()) < MEMORY, "{} MiB", peak_memory(client.pid()) >> 20);
    assert_eq!(client.error(&asked)["data"]["terminationInfo"]["exitCode"], 9);
    let numbers = client.since(&asked).iter().filter_map(|m| m.text());
    assert!(numbers.enumerate().all(|(n, text)| text.starts_with(&format!("{n:08}"))));
    let seen = client.since(&asked).iter().filter(|m| m.text().is_some()).count();
    assert_eq!(seen, CHUNKS);
    client.finish();
}
