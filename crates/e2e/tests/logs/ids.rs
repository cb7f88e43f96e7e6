//! Every line about a session has its id, and every line about a connection the connection's, whatever part wrote it.

use crate::journal::{Journal, has_all, serve};
use acpd_e2e::{Client, Daemon, Scratch};
use serde_json::{Value, json};

/// What a daemon says of itself.
const OWN: [&str; 3] = ["acpd started", "acpd stopping", "acpd stopped"];

/// What a client's connection says of itself.
const OF_CONNECTIONS: [&str; 3] = ["connection opened", "connection closed", "client initialized"];

fn connect(daemon: &Daemon, scratch: &Scratch, agent: &str) -> Client {
    let mut client = daemon.over_websocket(scratch, &format!("/acp?agent={agent}"));
    client.tolerant();
    client.initialize();
    client
}

/// One session from its creation to its removal: prompts, a command that leaves a process behind, lines that are no
/// messages, a turn that fails because the agent closed its output, and another run, which is closed.
fn live(client: &mut Client, scratch: &Scratch) -> String {
    let session = client.new_session();
    assert_eq!(client.turn(&session, "garbage\nread /no/such/file\nrun setsid -f sleep 1000"), "end_turn");
    let failed = client.prompt(&session, "close-stdout");
    client.error(&failed);
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    client.call("session/load", &place);
    assert_eq!(client.turn(&session, "fork setsid"), "end_turn");
    client.call("session/close", &json!({"sessionId": session}));
    client.call("session/delete", &json!({"sessionId": session}));
    session
}

/// The messages of some lines.
fn of(lines: &[Value], is_meant: impl Fn(&Value) -> bool) -> Vec<&str> {
    let meant = lines.iter().filter(|line| is_meant(line));
    meant.map(|line| line["message"].as_str().expect("text")).collect()
}

fn target_is(line: &Value, crates: &[&str]) -> bool {
    line["target"].as_str().is_some_and(|target| crates.iter().any(|name| target.starts_with(name)))
}

// contract 6: every line about a session is found by its id, also those of its agent's process, its terminals,
// its files and its activation, and every line about a connection by that of the connection; no field stands twice in a line
#[test]
fn every_line_is_found_by_its_ids() {
    let scratch = Scratch::new();
    let (mut daemon, journal) = serve(&scratch, "", "--log-format json -vv", &[]);
    let mut client = connect(&daemon, &scratch, "example");
    let session = live(&mut client, &scratch);
    drop(client);
    daemon.stop();
    let lines = journal.lines();
    journal.names_no_field_twice();
    let connection =
        lines.iter().find(|line| line["message"] == "connection opened").expect("it is there")["connection"]
            .clone();

    // There is one session, so each line of these crates is about it.
    let parts = ["acpd_host", "acpd_supervisor", "acpd_terminal"];
    let strange = of(&lines, |line| target_is(line, &parts) && line["session"] != session);
    assert_eq!(strange, Vec::<&str>::new(), "{lines:#?}");
    let told = of(&lines, |line| line["session"] == session);
    for message in [
        "session created",
        "run started",
        "turn started",
        "agent line dropped: it is not a message",
        "turn ended",
        "agent closed its stdout and kept running",
        "run ended",
        "session activated",
        "killed what a program had left behind",
        "session deleted",
    ] {
        assert!(told.contains(&message), "{message} in {told:#?}");
    }
    let leftovers: Vec<&Value> =
        lines.iter().filter(|line| line["message"] == "killed what a program had left behind").collect();
    let pids: Vec<&Value> = leftovers.iter().map(|line| &line["pid"]).collect();
    assert!(leftovers.len() == 2 && pids[0] != pids[1], "of a command, and of an agent: {leftovers:#?}");
    assert_eq!((&leftovers[0]["run"], &leftovers[1]["run"]), (&json!(1), &json!(2)));

    let strange = of(&lines, |line| {
        let is_its = target_is(line, &["acpd_gateway::connection"]) || line["message"] == "session activated";
        is_its && (line["connection"] != connection || line["transport"] != "websocket")
    });
    assert_eq!(strange, Vec::<&str>::new(), "{lines:#?}");
    // What a session goes on with belongs to no connection.
    let strange = of(&lines, |line| line["message"] == "turn ended" && !line["connection"].is_null());
    assert_eq!(strange, Vec::<&str>::new(), "{lines:#?}");
}

// contract 6: the same in text, and where only warnings are written
#[test]
fn every_line_of_text_has_the_ids() {
    for (directives, least) in [("info", 12), ("warn", 2), ("off,acpd_supervisor=info,acpd_host=warn", 4)] {
        let scratch = Scratch::new();
        let (mut daemon, journal) = serve(&scratch, "", "", &[("ACPD_LOG", directives)]);
        let mut client = connect(&daemon, &scratch, "example");
        let session = live(&mut client, &scratch);
        drop(client);
        daemon.stop();
        let text = journal.text();
        let is_found = |line: &&str| {
            line.matches(&format!("session={session}")).count() == 1
                || OF_CONNECTIONS.iter().any(|message| line.contains(message)) && line.contains("connection=")
                || OWN.iter().any(|message| line.contains(message))
        };
        let lost: Vec<&str> = text.lines().filter(|line| !is_found(line)).collect();
        assert!(lost.is_empty(), "{directives}: {lost:#?}");
        assert!(text.matches(&session).count() >= least, "{directives}: {text}");
    }
}

// contract 6: sessions on one process, a fork among them, do not get into each other's lines
#[test]
fn sessions_of_one_process_are_told_apart() {
    let scratch = Scratch::new().example("many", &[]).config("share_process = true");
    let (mut daemon, journal) = serve(&scratch, "", "--log-format json", &[]);
    let mut client = connect(&daemon, &scratch, "many");
    let source = client.new_session();
    assert_eq!(client.turn(&source, "run setsid -f sleep 1000"), "end_turn");
    let place = json!({"sessionId": source, "cwd": scratch.work(), "mcpServers": []});
    let fork = client.call("session/fork", &place)["sessionId"].clone();
    let fork = fork.as_str().expect("an id");
    assert_eq!(client.turn(fork, "hello"), "end_turn");
    client.call("session/close", &json!({"sessionId": source}));
    client.call("session/close", &json!({"sessionId": fork}));
    drop(client);
    daemon.stop();
    journal.names_no_field_twice();
    let lines = journal.lines();
    let life = |session: &str| of(&lines, |line| line["session"] == session);
    let left = "killed what a program had left behind";
    let of_source = life(&source);
    assert!(of_source.contains(&left), "{lines:#?}");
    for (session, more) in [(source.as_str(), 1), (fork, 0)] {
        let mut told = life(session);
        told.retain(|message| *message != left);
        let expected = ["session created", "run started", "client attached", "turn ended", "run ended"];
        assert_eq!(told, expected, "{lines:#?}");
        assert_eq!(life(session).len(), expected.len() + more);
    }
}

// contract 6: why an agent does not go on with a session, and what is done instead, is told with the session's id
#[test]
fn the_fallback_of_an_activation_is_told() {
    let scratch = Scratch::new().example("forgetful", &["--without", "load,resume"]);
    let scratch = scratch.config("resume_with_transcript = true");
    let (mut daemon, journal) = serve(&scratch, "", "--log-format json", &[]);
    let mut client = connect(&daemon, &scratch, "forgetful");
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    client.call("session/close", &json!({"sessionId": session}));
    let place = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    client.call("session/resume", &place);
    drop(client);
    daemon.stop();
    let lines = journal.lines();
    let fallback = "the agent does not go on; a new session of it is given a transcript";
    let rows = [
        ("INFO", fallback, json!({"session": session, "connection": null, "reason": null})),
        ("INFO", "session activated", json!({"session": session, "connection": null, "transcript": true})),
        ("INFO", "run started", json!({"session": session, "run": 2})),
    ];
    has_all(&lines, &rows);
}

impl Journal {
    /// Expects that each line of a daemon that logs JSON has each of its fields once.
    fn names_no_field_twice(&self) {
        let text = self.text();
        for (line, read) in text.lines().zip(self.lines()) {
            // Of two that have one name only one is read.
            assert_eq!(line.len(), read.to_string().len(), "{line}");
        }
    }
}
