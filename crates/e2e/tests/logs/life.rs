//! The log of a daemon with everything that is told at info and warn.

use crate::journal::{Row, has_all, serve};
use acpd_e2e::{Client, Daemon, Http, Scratch};
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const ANSWER: &str = "allow-once";

fn entry(name: &str, scope: &str) -> String {
    let hash = Sha256::digest(format!("{name}-secret"));
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("[tokens.{name}]\nhash = \"sha256:{digits}\"\nscope = \"{scope}\"\n")
}

fn client(daemon: &Daemon, scratch: &Scratch, token: &str, path: &str) -> Client {
    let bearer = format!("Bearer {token}-secret");
    let mut client = daemon.over_websocket_with(scratch, path, &[("Authorization", &bearer)]);
    client.tolerant();
    client
}

fn allow(client: &mut Client) {
    let asked = client.until("a question", |message| message.method() == Some("session/request_permission"));
    let answer = json!({"outcome": {"outcome": "selected", "optionId": ANSWER}});
    client.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": answer}).to_string());
}

fn of_session<'a>(lines: &'a [Value], session: &str) -> Vec<&'a str> {
    let lines = lines.iter().filter(|line| line["session"] == session);
    lines.map(|line| line["message"].as_str().expect("text")).collect()
}

// contract 6: at info an operator follows every session, run, turn, connection and refusal by its id, at warn every crash
// and refused token, without a flag and without a word of what is said
#[test]
fn a_whole_life_is_told_by_ids() {
    let tokens = [entry("ci", "control"), entry("eye", "observe"), entry("ops", "admin")];
    let scratch = Scratch::new().agent("nothing", "/no/such/program", &[]).config(&tokens.join("\n"));
    let (mut daemon, journal) =
        serve(&scratch, "", "--log-format json", &[("ACPD_TOKEN", "environment-secret")]);

    let mut owner = client(&daemon, &scratch, "ci", "/acp");
    let mut hello = acpd_e2e::initialize()["params"].clone();
    hello["clientInfo"] = json!({"name": "editor", "version": "1.2"});
    owner.call("initialize", &hello);
    let session = owner.new_session();
    assert_eq!(owner.turn(&session, "xyzzy is what was said"), "end_turn");
    let asked = owner.prompt(&session, "ask edit xyzzy");
    allow(&mut owner);
    assert_eq!(owner.result(&asked)["stopReason"], "end_turn");
    let asked = owner.prompt(&session, "xyzzy\ncrash");
    owner.error(&asked);
    let cwd = scratch.work();
    let place = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    owner.call("session/load", &place);
    assert_eq!(owner.turn(&session, "fork setsid"), "end_turn");
    owner.call("session/close", &json!({"sessionId": session}));
    let kept = owner.new_session();

    let mut watcher = client(&daemon, &scratch, "eye", "/acp");
    watcher.initialize();
    watcher.refused("session/new", &json!({"cwd": cwd, "mcpServers": []}));
    drop(watcher);
    journal.wait_for(&("INFO", "connection closed", json!({"token": "eye"})));
    let mut hopeful = client(&daemon, &scratch, "ops", "/acp?agent=nothing");
    hopeful.refused("initialize", &acpd_e2e::initialize()["params"]);
    drop(hopeful);
    let mut lost = client(&daemon, &scratch, "ops", "/acp?agent=nix");
    lost.refused("initialize", &acpd_e2e::initialize()["params"]);
    drop(lost);

    let ask = |headers: &[(&str, &str)]| {
        Http::on(daemon.connect()).request("GET", "/v1/sessions?token=query-secret", headers, "").status
    };
    for _ in 0..7 {
        assert_eq!(ask(&[("Authorization", "Bearer wrong-secret")]), 401);
    }
    assert_eq!(ask(&[("Origin", "http://elsewhere.example")]), 403);

    let all = scratch.config_file();
    let text = std::fs::read_to_string(&all).expect("it is there");
    std::fs::write(&all, text.replace(&entry("ci", "control"), "")).expect("it is written");
    daemon.signal(Signal::HUP);
    owner.read_to_end();
    journal.wait_for(&("INFO", "connection closed", json!({"token": "ci", "reason": "revoked"})));
    daemon.stop();

    let lines = journal.lines();
    let of_client = |message: &str, token: &str| {
        let is_it = |line: &&Value| line["message"] == message && line["token"] == token;
        lines.iter().find(is_it).unwrap_or_else(|| panic!("{message} of {token}"))["connection"].clone()
    };
    let (own, eye) = (of_client("connection opened", "ci"), of_client("connection opened", "eye"));
    let of_session_row = |level, message, more: Value| {
        let mut fields = json!({"session": session});
        fields.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        (level, message, fields)
    };
    let there = Value::Null;
    let rows: Vec<Row<'_>> = vec![
        (
            "INFO",
            "acpd started",
            json!({"version": there, "pid": daemon.pid(), "listening": daemon.url(),
            "socket": daemon.socket(), "state_dir": scratch.state(), "config": all, "tokens": 3,
            "agents": "example,nothing"}),
        ),
        (
            "INFO",
            "connection opened",
            json!({"connection": own, "transport": "websocket", "token": "ci", "agent": "example"}),
        ),
        ("INFO", "client initialized", json!({"connection": own, "client": "editor", "version": "1.2"})),
        of_session_row(
            "INFO",
            "session created",
            json!({"agent": "example", "cwd": cwd, "client": there, "token": "ci"}),
        ),
        of_session_row("INFO", "run started", json!({"run": 1, "pid": there, "agent": "example"})),
        of_session_row("INFO", "client attached", json!({"connection": own, "seq": 0})),
        of_session_row(
            "INFO",
            "turn ended",
            json!({"run": 1, "turn": 1, "stop_reason": "end_turn", "duration_ms": there}),
        ),
        of_session_row(
            "INFO",
            "question waiting",
            json!({"run": 1, "turn": 2, "question": there, "topic": "permission"}),
        ),
        of_session_row(
            "INFO",
            "question answered",
            json!({"question": there, "client": there, "connection": own}),
        ),
        of_session_row("INFO", "turn ended", json!({"run": 1, "turn": 2, "stop_reason": "end_turn"})),
        of_session_row(
            "WARN",
            "run ended",
            json!({"run": 1, "pid": there, "agent": "example", "cause": "agent_crash",
            "code": 1, "error": "agent exited with exit status: 1", "turn_active": true, "leftovers": 0,
            "duration_ms": there}),
        ),
        of_session_row(
            "INFO",
            "session activated",
            json!({"agent": "example", "pid": there, "method": there,
            "transcript": false, "client": there}),
        ),
        of_session_row("INFO", "run started", json!({"run": 2, "pid": there})),
        of_session_row(
            "INFO",
            "run ended",
            json!({"run": 2, "cause": "client_close", "by": there, "leftovers": 1}),
        ),
        of_session_row(
            "INFO",
            "killed what a program had left behind",
            json!({"run": 2, "pid": there, "killed": 1}),
        ),
        (
            "INFO",
            "request refused",
            json!({"connection": eye, "token": "eye", "method": "session/new", "code": -32003,
            "reason": there}),
        ),
        (
            "INFO",
            "connection closed",
            json!({"connection": eye, "token": "eye", "reason": "left", "duration_ms": there}),
        ),
        (
            "WARN",
            "agent not started",
            json!({"agent": "nothing", "cause": "spawn_failed", "cwd": there, "error": there}),
        ),
        (
            "WARN",
            "request refused",
            json!({"peer": there, "method": "GET", "path": "/v1/sessions", "status": 401,
            "reason": "unauthorized"}),
        ),
        ("WARN", "request refused", json!({"status": 403, "reason": "foreign_origin"})),
        ("WARN", "requests refused, not told one by one", json!({"reason": "unauthorized", "more": 2})),
        ("INFO", "token revoked, what it has open ends", json!({"token": "ci"})),
        ("INFO", "read the configuration anew", json!({"tokens": 2, "agents": 2})),
        (
            "INFO",
            "request refused",
            json!({"connection": there, "token": "ops", "method": "initialize", "code": -32602,
            "reason": "no agent named \"nix\" is configured (there are: example, nothing)"}),
        ),
        (
            "INFO",
            "connection closed",
            json!({"connection": own, "token": "ci", "client": "editor", "reason": "revoked"}),
        ),
        ("INFO", "acpd stopping", json!({"sessions": 1})),
        ("INFO", "run ended", json!({"session": kept, "cause": "daemon_shutdown", "by": "daemon"})),
        ("INFO", "acpd stopped", json!({"uptime_s": there})),
    ];
    has_all(&lines, &rows);
    // A client that was refused its agent has not said a name.
    let nameless: Vec<_> = lines
        .iter()
        .filter(|line| line["message"] == "connection closed" && line["token"] == "ops")
        .collect();
    assert!(nameless.len() == 2 && nameless.iter().all(|line| line["client"].is_null()), "{nameless:?}");

    // Every line of one session is found by its id, and there is none per message.
    assert_eq!(
        of_session(&lines, &session),
        [
            "session created",
            "run started",
            "client attached",
            "turn ended",
            "question waiting",
            "question answered",
            "turn ended",
            "run ended",
            "session activated",
            "run started",
            "client attached",
            "turn ended",
            "killed what a program had left behind",
            "run ended",
        ]
    );
    let text = journal.text();
    assert!(!text.contains("secret"), "{text}");
    assert!(!text.contains("xyzzy"), "{text}");
    assert_eq!(text.matches("\"status\":401").count(), 5, "{text}");
}

// contract 6: the same lines for people; a session of any length costs the same number of them
#[test]
fn text_lines_are_found_by_the_same_ids() {
    let scratch = Scratch::new();
    let (mut daemon, journal) = serve(&scratch, "", "", &[]);
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.tolerant();
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "stream 2000 10"), "end_turn");
    let asked = client.prompt(&session, "crash");
    client.error(&asked);
    drop(client);
    daemon.stop();
    let text = journal.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(&format!("session={session}"))).collect();
    let expected: [(&str, &[&str]); 5] = [
        (" INFO ", &["session created", "agent=\"example\"", "cwd=", "client="]),
        (" INFO ", &["run started", "run=1", "pid="]),
        (" INFO ", &["client attached", "connection="]),
        (" INFO ", &["turn ended", "turn=1", "stop_reason=\"end_turn\"", "duration_ms="]),
        (" WARN ", &["run ended", "cause=\"agent_crash\"", "code=1", "leftovers=0"]),
    ];
    assert_eq!(lines.len(), expected.len(), "{text}");
    for (line, (level, parts)) in lines.iter().zip(expected) {
        assert!(line.contains(level) && parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
    }
    assert!(text.lines().next().is_some_and(|first| first.contains("acpd started")), "{text}");
}

// contract 6: ACPD_LOG goes over the flags, and what the guide for operators gives as examples shows something
#[test]
fn the_directives_of_the_guide_show_something() {
    for (directives, shown, hidden) in [
        (
            "acpd_gateway=debug,warn",
            vec!["request peer=", "connection opened"],
            vec!["session created", "acpd started"],
        ),
        (
            "acpd_host=debug,info",
            vec!["turn started", "session created", "acpd started"],
            vec!["request peer="],
        ),
        ("warn", vec!["run ended", "agent_crash"], vec!["session created", "acpd started"]),
    ] {
        let scratch = Scratch::new();
        let (mut daemon, journal) = serve(&scratch, "", "", &[("ACPD_LOG", directives)]);
        let mut client = daemon.over_websocket(&scratch, "/acp");
        client.tolerant();
        client.initialize();
        let session = client.new_session();
        let asked = client.prompt(&session, "crash");
        client.error(&asked);
        drop(client);
        assert_eq!(Http::on(daemon.connect()).request("GET", "/v1/sessions", &[], "").status, 200);
        daemon.stop();
        let text = journal.text();
        assert!(shown.iter().all(|part| text.contains(part)), "{directives}: {text}");
        assert!(hidden.iter().all(|part| !text.contains(part)), "{directives}: {text}");
    }
}

// contract 6: a command that hosts its own session shows how it ended once, in its own words
#[test]
fn run_alone_is_told_by_itself() {
    let scratch = Scratch::new();
    let state = scratch.state();
    let (_, _, stderr) =
        scratch.run(&["run", "--embedded", "--state-dir", state.to_str().expect("text"), "crash"]);
    assert!(stderr.contains("agent exited with exit status: 1") && !stderr.contains("WARN"), "{stderr}");
}

// contract 1.2, contract 6: what a killed daemon could not tell of its sessions, the next one does
#[test]
fn a_lost_session_is_told_at_the_next_start() {
    let scratch = Scratch::new().keep("0s");
    let mut daemon = scratch.serve();
    let mut client = daemon.over_websocket(&scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    daemon.kill();
    let (mut next, journal) = serve(&scratch, "", "--log-format json", &[]);
    journal.wait_for(&(
        "WARN",
        "run ended with the acpd that hosted it",
        json!({"session": session, "agent": "example", "cause": "daemon_lost"}),
    ));
    drop(client);
    next.stop();
}
