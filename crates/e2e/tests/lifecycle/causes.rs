//! Every cause of an end that can be had, with its exact record wherever it is told (contract 1.2).

use crate::asking::{TERMINATE, close, entry, meta, of, take_part, until_ended};
use crate::stored::{ENDED, ids, of_kind, stored};
use acpd_e2e::{Client, Scratch, containment_here, shell_agent, taking_shell_agent, timeless};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The record of an ended session, the same in list, status, errors and a failed load; without what differs from
/// run to run, which must be there.
fn record(client: &mut Client, scratch: &Scratch, session: &str) -> Value {
    let listed = meta(&entry(client, session)).clone();
    assert_eq!((&listed["ended"], &listed["state"]), (&json!(true), &json!("ended")));
    let status = client.call("session/status", &of(session));
    let info = &meta(&status)["terminationInfo"];
    let mut in_a_list = meta(&status).clone();
    in_a_list["terminationInfo"].as_object_mut().expect("it has ended").remove("stderr");
    assert_eq!((&status["status"], &in_a_list), (&json!("saved"), &listed));
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]});
    let error = client.refused("session/prompt", &prompt);
    assert_eq!(error["code"], -32002);
    assert_eq!(error["data"], json!({"sessionId": session, "terminationInfo": info}));
    if info["reason"] == "terminated" {
        let (result, _) = take_part(client, scratch, "session/load", session);
        assert_eq!(meta(&result)["terminationInfo"], *info);
    }
    info.clone()
}

/// Ends a session of `agent` by `end` and expects this record, in the log too.
fn ends_as(scratch: &Scratch, agent: &str, end: impl Fn(&mut Client, &str), expected: &Value) {
    let (mut client, session) = scratch.session(agent);
    end(&mut client, &session);
    until_ended(&mut client, &session, 1);
    let info = record(&mut client, scratch, &session);
    assert_eq!(timeless(info.clone()), *expected);
    assert_eq!(info["containment"], containment_here());
    client.finish();
    let events = stored(scratch, &session);
    let recorded = of_kind(&events, ENDED);
    assert_eq!(recorded.len(), 1);
    assert_eq!(serde_json::from_str::<Value>(recorded[0]).expect("JSON"), info);
    assert_eq!(info["lastEventSeq"], events.len() - 1);
}

fn prompting(text: &str) -> impl Fn(&mut Client, &str) {
    move |client, session| drop(client.prompt(session, text))
}

// contract 1.2, TM-1, TM-3: the agent ends by itself
#[test]
fn ends_by_the_agent() {
    let error = |message: &str, cause: &str, more: Value| {
        let mut record = json!({"reason": "error", "terminatedBy": "agent", "message": message, "cause": cause,
            "turnActive": true, "leaked": false});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    for (prompt, expected) in [
        (
            "exit 0",
            error("agent exited with exit status: 0 during a turn", "agent_exit", json!({"exitCode": 0})),
        ),
        ("exit 3", error("agent exited with exit status: 3", "agent_crash", json!({"exitCode": 3}))),
        ("signal SEGV", error("agent was killed by SIGSEGV", "agent_crash", json!({"signal": "SIGSEGV"}))),
        (
            "stderr 2\nclose-stdout\nhang",
            error(
                "agent closed its stdout and kept running",
                "protocol_error",
                json!({"stderr": {"head": "stderr line 1\nstderr line 2", "truncated": false, "totalLines": 2},
                    "escalation": ["stdin_closed"]}),
            ),
        ),
    ] {
        ends_as(&Scratch::new(), "example", prompting(prompt), &expected);
    }
    let leaver = shell_agent("take; answer '{\"stopReason\":\"end_turn\"}'; echo bye >&2");
    let expected = json!({"reason": "completed", "terminatedBy": "agent", "cause": "agent_exit",
        "turnActive": false, "lastStopReason": "end_turn", "leaked": false});
    ends_as(&Scratch::new().shell("leaver", &leaver), "leaver", prompting("x"), &expected);
}

// contract 1.2, TM-1, TM-2: somebody ends it; what the process does then is as it was asked
#[test]
fn ends_by_the_daemon() {
    let record = |reason: &str, cause: &str, initiator: &str| {
        json!({"reason": reason, "terminatedBy": "daemon", "cause": cause, "initiator": initiator,
            "turnActive": false, "leaked": false, "escalation": ["stdin_closed"]})
    };
    let closing = |client: &mut Client, session: &str| close(client, session);
    let closed = record("completed", "client_close", "e2e");
    ends_as(&Scratch::new(), "example", closing, &closed);
    // An exit code after our stop is no crash.
    let sulker = shell_agent("while IFS= read -r line; do :; done; echo sulking >&2; exit 7");
    ends_as(&Scratch::new().shell("sulker", &sulker), "sulker", closing, &closed);
    let terminating = |client: &mut Client, session: &str| drop(client.call(TERMINATE, &of(session)));
    ends_as(&Scratch::new(), "example", terminating, &record("terminated", "client_terminate", "e2e"));
    let idle = Scratch::new().timeout("idle", "200ms");
    ends_as(&idle, "example", |_, _| {}, &record("completed", "idle_timeout", "daemon"));
}

// contract 1.2, TM-1: what the record says of the last turn, and of an agent that has to be killed
#[test]
fn a_turn_that_was_cancelled_by_the_end_is_told() {
    let stubborn = "ignore-cancel\nignore-sigterm\nready\nhang";
    let end = |client: &mut Client, session: &str| {
        assert_eq!(client.turn(session, "hello"), "end_turn");
        client.prompt(session, stubborn);
        client.until_text("ready");
        client.call(TERMINATE, &of(session));
    };
    let expected = json!({"reason": "terminated", "terminatedBy": "daemon", "cause": "client_terminate",
        "initiator": "e2e", "turnActive": true, "lastStopReason": "end_turn", "leaked": false,
        "escalation": ["stdin_closed", "terminated", "killed"]});
    ends_as(&Scratch::new(), "example", end, &expected);
}

// contract 1.2: a session in which something happens is not idle
#[test]
fn a_turn_is_not_idleness() {
    // Long enough for the prompt to come in time on a busy machine.
    let scratch = Scratch::new().timeout("idle", "5s");
    let (mut client, session) = scratch.session("example");
    let asked = client.prompt(&session, "begun\nsleep 5500\ndone");
    assert_eq!(client.result(&asked)["stopReason"], "end_turn");
    assert_eq!(client.text_since(&asked, &session), "begun\ndone");
    assert_eq!(
        until_ended(&mut client, &session, 1),
        json!({"reason": "completed", "terminated_by": "daemon"})
    );
    client.is_alone();
    client.finish();
}

// contract 1.2, TM-4: how acpd itself ended is found by the next one
#[test]
fn ends_with_acpd() {
    for (signal, reason, cause, message) in [
        (Signal::TERM, "completed", "daemon_shutdown", None),
        (Signal::KILL, "error", "daemon_lost", Some("daemon stopped while the session was live")),
    ] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        assert_eq!(client.turn(&session, "hello"), "end_turn");
        client.signal(signal);
        client.ended();
        let mut later = scratch.stdio("example");
        later.initialize();
        let info = record(&mut later, &scratch, &session);
        assert_eq!(info.get("containment").is_none(), cause == "daemon_lost", "no end of a process was seen");
        let info = timeless(info);
        assert_eq!((&info["reason"], &info["terminatedBy"]), (&json!(reason), &json!("daemon")));
        assert_eq!((&info["cause"], info["message"].as_str()), (&json!(cause), message));
        assert!(info.get("exitCode").or(info.get("signal")).or(info.get("stderr")).is_none(), "{info}");
        later.finish();
    }
}

// contract 1.2, SU-5: an agent that never came so far as to have a session
#[test]
fn ends_before_a_session() {
    let scratch = Scratch::new()
        .timeout("initialize", "300ms")
        .agent("missing", "/nowhere/agent", &[])
        .shell("mute", &taking_shell_agent("echo hush >&2; while IFS= read -r line; do :; done"))
        .shell("early", &taking_shell_agent("exit 4"));
    for (agent, cause) in
        [("missing", "spawn_failed"), ("mute", "initialize_timeout"), ("early", "agent_crash")]
    {
        let mut client = scratch.stdio(agent);
        let error = client.refused("initialize", &json!({"protocolVersion": 1}));
        let info = &error["data"]["terminationInfo"];
        let basics = (&info["reason"], &info["terminatedBy"], &info["cause"]);
        assert_eq!(basics, (&json!("error"), &json!("agent"), &json!(cause)), "{error}");
        assert!(info["message"].is_string() && info["endedAt"].is_string());
        let stderr = json!({"head": "hush", "truncated": false, "totalLines": 1});
        assert_eq!(info.get("stderr"), (agent == "mute").then_some(&stderr));
        client.finish();
    }
}

// contract 1.2, SU-4: stderr in the record, whole or cut
#[test]
fn stderr_is_in_the_record() {
    let numbered = |text: &str, range: std::ops::RangeInclusive<u32>| {
        range.map(|n| format!("{text} {n}")).collect::<Vec<_>>().join("\n")
    };
    let x = |n: usize| "x".repeat(n);
    let printing = |script: &str| shell_agent(&format!("take; {{ {script}; }} >&2; exit 1"));
    let xs = |n: usize| format!("head -c {n} /dev/zero | tr '\\0' x");
    let scratch = Scratch::new()
        .shell("invalid", &printing("printf 'a\\377b\\n'"))
        .shell("cut", &printing(&format!("{}; printf 'éé\\nshort\\n'", xs(4095))))
        .shell("torn", &printing("printf 'one\\ntwo'"));
    for (agent, prompt, expected) in [
        (
            "example",
            "crash",
            json!({"head": numbered("crash line", 1..=50), "tail": numbered("crash line", 201..=250),
                "truncated": true, "totalLines": 250}),
        ),
        (
            "example",
            "stderr 100\nexit 1",
            json!({"head": numbered("stderr line", 1..=100), "truncated": false, "totalLines": 100}),
        ),
        (
            "example",
            "flood-stderr 1048576\nexit 1",
            json!({"head": x(4096), "truncated": false, "totalLines": 1}),
        ),
        ("invalid", "x", json!({"head": "a\u{fffd}b", "truncated": false, "totalLines": 1})),
        ("cut", "x", json!({"head": format!("{}\nshort", x(4095)), "truncated": false, "totalLines": 2})),
        ("torn", "x", json!({"head": "one\ntwo", "truncated": false, "totalLines": 2})),
    ] {
        let (mut client, session) = scratch.session(agent);
        let asked = client.prompt(&session, prompt);
        client.error(&asked);
        let info = record(&mut client, &scratch, &session);
        assert_eq!(info["stderr"], expected, "{agent} {prompt}");
        client.finish();
    }
}

// contract 1.2: stderr is of this process only
#[test]
fn stderr_of_an_earlier_run_is_not_told_again() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.prompt(&session, "stderr 3\nexit 1");
    let first = until_ended(&mut client, &session, 1);
    assert_eq!(first["stderr"]["total_lines"], 3);
    take_part(&mut client, &scratch, "session/resume", &session);
    client.prompt(&session, "exit 1");
    let second = until_ended(&mut client, &session, 2);
    assert_eq!((&second["exit_code"], second.get("stderr")), (&json!(1), None));
    client.finish();
}

// contract 1.2: an agent that answers for a session and exits before the session runs has a whole record all the same,
// whichever of the two acpd heard of first
#[test]
fn an_exit_behind_the_first_answer_is_recorded() {
    let script = "take; answer '{\"protocolVersion\":1,\"agentCapabilities\":{}}'\n\
                  take; echo gone >&2; answer '{\"sessionId\":\"shell-1\"}'; exit 3";
    let scratch = Scratch::new().shell("gone", &taking_shell_agent(script));
    // Which of the two comes first is for the system to say.
    for attempt in 0..100 {
        if attempt >= 8 && !ids(&scratch).is_empty() {
            break;
        }
        let mut client = scratch.stdio("gone");
        client.initialize();
        let asked = client.request("session/new", &json!({"cwd": "/usr", "mcpServers": []}));
        if let Some(session) = client.answer(&asked).json["result"]["sessionId"].as_str() {
            until_ended(&mut client, session, 1);
        }
        client.finish();
    }
    let sessions = ids(&scratch);
    assert!(!sessions.is_empty(), "an answered session is in the log");
    for session in sessions {
        let events = stored(&scratch, &session);
        let info = events.last().expect("it was created").json();
        assert_eq!((&info["cause"], &info["turnActive"]), (&json!("agent_crash"), &json!(false)), "{info}");
        assert_eq!(info["lastEventSeq"], events.len() - 1, "{info}");
        assert!(info["startedAt"].is_string(), "{info}");
    }
}
