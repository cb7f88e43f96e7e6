//! How sessions end, and what everybody is told (contract 1.2).

use acpd_e2e::{Client, Scratch, shell_agent, timeless};
use rustix::process::Signal;
use serde_json::{Value, json};

fn numbered(text: &str, range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|n| format!("{text} {n}")).collect::<Vec<_>>().join("\n")
}

/// Prompts with something that ends the agent. Gives the record of the error and `params` of the notification.
fn die(client: &mut Client, session: &str, prompt: &str) -> (Value, Value) {
    let asked = client.prompt(session, prompt);
    let error = client.error(&asked);
    assert_eq!(error["code"], -32603, "{error}");
    if client.ends().is_empty() {
        client.until("the end", |m| m.method() == Some("_sandboxagent/session/ended"));
    }
    let ends = client.ends();
    assert_eq!(ends.len(), 1);
    (error["data"]["terminationInfo"].clone(), ends[0].json["params"].clone())
}

// contract 1.2, PR-11, TM-1
#[test]
fn a_crash_is_told_with_code_and_stderr() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let (info, ended) = die(&mut client, &session, "some words\ncrash");
    let (head, tail) = (numbered("crash line", 1..=50), numbered("crash line", 201..=250));
    let expected = json!({"session_id": session, "data": {
        "reason": "error", "terminated_by": "agent", "message": "agent exited with exit status: 1",
        "exit_code": 1,
        "stderr": {"head": head, "tail": tail, "truncated": true, "total_lines": 250}}});
    assert_eq!(ended, expected);
    let expected = json!({
        "reason": "error", "terminatedBy": "agent", "message": "agent exited with exit status: 1", "exitCode": 1,
        "stderr": {"head": head, "tail": tail, "truncated": true, "totalLines": 250},
        "cause": "agent_crash", "turnActive": true, "leaked": false});
    assert_eq!(timeless(info), expected);
    client.finish();
    // Once, and after the last output of the agent.
    assert_eq!(client.ends().len(), 1);
    let end = client.received().iter().position(|m| m.json["params"]["session_id"] == session).unwrap();
    let last_update = client.received().iter().rposition(|m| m.method() == Some("session/update")).unwrap();
    assert!(last_update < end);
    let words: String = client.received().iter().filter_map(|m| m.text()).collect();
    assert_eq!(words, "some words");
}

// contract 1.2
// quirk ends-in-turn (agents whose launcher hides a failure): it is an error with the exit code 0, and no good end
#[test]
fn exit_codes_in_a_turn_are_errors_with_their_code() {
    for (code, message, cause) in [
        (3, "agent exited with exit status: 3", "agent_crash"),
        (137, "agent exited with exit status: 137", "agent_crash"),
        (0, "agent exited with exit status: 0 during a turn", "agent_exit"),
    ] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let (info, ended) = die(&mut client, &session, &format!("exit {code}"));
        let data =
            json!({"reason": "error", "terminated_by": "agent", "message": message, "exit_code": code});
        assert_eq!(ended, json!({"session_id": session, "data": data}));
        let expected = json!({"reason": "error", "terminatedBy": "agent", "message": message,
            "exitCode": code, "cause": cause, "turnActive": true, "leaked": false});
        assert_eq!(timeless(info), expected);
        client.finish();
    }
}

// contract 1.2: a signal is named, and there is no exit code beside it
#[test]
fn signals_are_named() {
    for name in ["KILL", "SEGV", "TERM"] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let (info, ended) = die(&mut client, &session, &format!("signal {name}"));
        let (signal, message) = (format!("SIG{name}"), format!("agent was killed by SIG{name}"));
        let data = json!({"reason": "error", "terminated_by": "agent", "message": message, "signal": signal});
        assert_eq!(ended, json!({"session_id": session, "data": data}));
        assert_eq!((&info["signal"], info.get("exitCode")), (&json!(signal), None));
        assert_eq!(info["cause"], "agent_crash");
        client.finish();
    }
}

/// What ends a session.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Request(&'static str),
    InputClosed,
    Signal,
}

/// Ends a session whose agent ignores that its turn is cancelled: the end is told behind the answers to what was pending,
/// and before the one to the request that asked for it.
fn is_told_last(mut client: Client, how: Ending, stop: impl FnOnce(&mut Client)) {
    client.initialize();
    let session = client.new_session();
    let running = client.prompt(&session, "ignore-cancel\nbegun\nhang");
    client.until_text("begun");
    let waiting = client.prompt(&session, "hello");
    // Answered behind it, so the prompt waits in its session by then.
    client.call("session/status", &json!({"sessionId": session}));
    let asked = match how {
        Ending::Request(method) => Some(client.request(method, &json!({"sessionId": session}))),
        Ending::InputClosed | Ending::Signal => {
            stop(&mut client);
            None
        }
    };
    for pending in [&running, &waiting] {
        assert_eq!(client.result(pending), json!({"stopReason": "cancelled"}), "{how:?}");
        assert_eq!(client.ends().len(), 0, "{how:?}: the end was told before an answer");
    }
    client.until("the end", |message| message.method() == Some("_sandboxagent/session/ended"));
    if let Some(asked) = asked {
        let answers = client.since(&asked).iter().filter(|message| message.is_answer()).count();
        assert_eq!(answers, 2, "{how:?}: the answer came before the end");
        client.result(&asked);
    }
    client.close_input();
    client.read_to_end();
    assert_eq!(client.ends().len(), 1, "{how:?}");
}

const TERMINATE: Ending = Ending::Request("_sandboxagent/session/terminate");
const CLOSE: Ending = Ending::Request("session/close");

// contract 7.3, contract 1.1: the end follows the answers to everything that was pending, however it comes, also with an
// agent that does not answer its cancelled turn
#[test]
fn the_end_follows_the_answers_of_what_was_pending() {
    let scratch = Scratch::new();
    for how in [CLOSE, TERMINATE, Ending::InputClosed, Ending::Signal] {
        is_told_last(scratch.stdio("example"), how, |client| match how {
            Ending::Signal => client.signal(Signal::TERM),
            _ => client.close_input(),
        });
    }
}

// contract 7.3, contract 1.1: the same of a daemon, for a front end, over a WebSocket and over HTTP
#[test]
fn the_end_follows_the_answers_in_a_daemon() {
    let scratch = Scratch::new();
    for how in [CLOSE, TERMINATE, Ending::Signal] {
        for transport in 0..3 {
            let mut daemon = scratch.serve();
            let client = match transport {
                0 => scratch.stdio("example"),
                1 => daemon.over_websocket(&scratch, "/acp?agent=example"),
                _ => daemon.over_http(&scratch, "/acp?agent=example"),
            };
            is_told_last(client, how, |_| daemon.signal(Signal::TERM));
            match how {
                Ending::Signal => drop(daemon.expect_good_end()),
                _ => drop(daemon.stop()),
            }
        }
    }
}

// contract 7.3, PR-11: and when the agent dies
#[test]
fn a_death_is_told_behind_the_answers() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let running = client.prompt(&session, "begun\nsleep 100\ncrash");
    let waiting = client.prompt(&session, "hello");
    for pending in [&running, &waiting] {
        assert_eq!(client.error(pending)["data"]["terminationInfo"]["exitCode"], 1);
        assert_eq!(client.ends().len(), 0, "the end was told before an answer");
    }
    client.until("the end", |message| message.method() == Some("_sandboxagent/session/ended"));
    client.finish();
}

// contract 1.2: exit 0 while idle is in good order
#[test]
fn an_agent_may_leave_while_idle() {
    let scratch = Scratch::new().shell(
        "leaver",
        &shell_agent("take; update hello; answer '{\"stopReason\":\"end_turn\"}'; echo bye >&2"),
    );
    let (mut client, session) = scratch.session("leaver");
    assert_eq!(client.turn(&session, "x"), "end_turn");
    let ended = client.until("the end", |m| m.method() == Some("_sandboxagent/session/ended"));
    let expected = json!({"session_id": session, "data": {"reason": "completed", "terminated_by": "agent"}});
    assert_eq!(ended.json["params"], expected);
    let refused = client.prompt(&session, "again");
    let error = client.error(&refused);
    let info = timeless(error["data"]["terminationInfo"].clone());
    assert_eq!(info["cause"], "agent_exit");
    assert_eq!((&info["lastStopReason"], &info["turnActive"]), (&json!("end_turn"), &json!(false)));
    client.finish();
}

// contract 1.2: 100 lines are all there, 101 are not; absent when there is none; 4 KiB a line
#[test]
fn stderr_is_cut_where_the_contract_says() {
    let all = |n| json!({"head": numbered("stderr line", 1..=n), "truncated": false, "total_lines": n});
    let cut = json!({"head": numbered("stderr line", 1..=50), "tail": numbered("stderr line", 52..=101),
        "truncated": true, "total_lines": 101});
    let long = json!({"head": "x".repeat(4096), "truncated": false, "total_lines": 1});
    for (directive, expected) in [
        ("think nothing", None),
        ("stderr 1", Some(all(1))),
        ("stderr 100", Some(all(100))),
        ("stderr 101", Some(cut)),
        ("flood-stderr 100000", Some(long)),
    ] {
        let scratch = Scratch::new();
        let (mut client, session) = scratch.session("example");
        let (_, ended) = die(&mut client, &session, &format!("{directive}\nexit 2"));
        assert_eq!(ended["data"].get("stderr"), expected.as_ref(), "{directive}");
        client.finish();
    }
}

// contract 1: a prompt after the end names the end and starts nothing
#[test]
fn a_prompt_after_the_end_is_refused_with_the_record() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let (info, _) = die(&mut client, &session, "exit 5");
    client.is_alone();
    for _ in 0..2 {
        let asked = client.prompt(&session, "hello");
        let error = client.error(&asked);
        assert_eq!(error["code"], -32002);
        assert_eq!(error["data"], json!({"sessionId": session, "terminationInfo": info}));
    }
    client.is_alone();
    client.finish();
}

// FR-3, PR-11, SU-6: whatever was open is answered at once when the agent dies
#[test]
fn everything_pending_is_answered_when_the_agent_dies() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let prompts: Vec<_> =
        ["hello\nhang", "second", "third"].map(|text| client.prompt(&session, text)).into_iter().collect();
    client.until_text("hello");
    let agents = scratch.mark().running("example-agent");
    assert_eq!(agents.len(), 1, "{agents:?}");
    let pid = rustix::process::Pid::from_raw(i32::try_from(agents[0].pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    for prompt in &prompts {
        let info = client.error(prompt)["data"]["terminationInfo"].clone();
        assert_eq!((&info["signal"], &info["turnActive"]), (&json!("SIGKILL"), &json!(true)));
    }
    client.finish();
}

// SE-21: the death of one session's agent is nothing to another session
#[test]
fn other_sessions_go_on() {
    let scratch = Scratch::new();
    let (mut client, first) = scratch.session("example");
    let second = client.new_session();
    let slow = client.prompt(&second, "begun\nsleep 300\ndone");
    client.until_text("begun");
    let (_, ended) = die(&mut client, &first, "crash");
    assert_eq!(ended["session_id"], first);
    assert_eq!(client.result(&slow)["stopReason"], "end_turn");
    assert_eq!(client.turn(&second, "hello"), "end_turn");
    client.finish();
}

/// Ends acpd in the middle of a turn, or idle, and expects the record of a shutdown.
fn shut_down(prompt: Option<&str>, end: impl Fn(&mut Client)) {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let running = prompt.map(|text| client.prompt(&session, text));
    if running.is_some() {
        client.until_text("begun");
    }
    end(&mut client);
    client.read_to_end();
    if let Some(running) = &running {
        assert_eq!(client.result(running), json!({"stopReason": "cancelled"}));
    }
    let expected = json!({"session_id": session, "data": {"reason": "completed", "terminated_by": "daemon"}});
    let ends: Vec<_> = client.ends().iter().map(|end| end.json["params"].clone()).collect();
    assert_eq!(ends, [expected]);
    client.expect_good_end();
    let mut later = scratch.stdio("example");
    later.initialize();
    let asked = later.prompt(&session, "hello");
    let error = later.error(&asked);
    assert_eq!(error["code"], -32002);
    let info = timeless(error["data"]["terminationInfo"].clone());
    assert_eq!((&info["reason"], &info["cause"]), (&json!("completed"), &json!("daemon_shutdown")));
    assert_eq!((&info["initiator"], info.get("exitCode")), (&json!("e2e"), None));
    later.finish();
}

// contract 6, SC-5: the client's end of file ends everything in good order
#[test]
fn end_of_input_shuts_down() {
    shut_down(None, Client::close_input);
    shut_down(Some("begun\nhang"), Client::close_input);
}

// contract 6, SC-5
#[test]
fn sigterm_and_sigint_shut_down() {
    shut_down(None, |client| client.signal(Signal::TERM));
    shut_down(Some("begun\nhang"), |client| client.signal(Signal::TERM));
    shut_down(Some("begun\nignore-cancel\nignore-sigterm\nhang"), |client| client.signal(Signal::INT));
}
