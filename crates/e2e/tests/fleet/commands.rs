//! What commands say of a fleet, and do when a part of it is lost or replaced.

use crate::nodes::{Fleet, Node, ROOT};
use acpd_e2e::{Exit, Started, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The words of a command for the daemon of a node, with a token for the others.
fn words<'a>(node: &Node, words: &[&'a str]) -> Vec<std::borrow::Cow<'a, str>> {
    let text = |path: std::path::PathBuf| path.into_os_string().into_string().expect("it is text");
    let file = node.scratch.path("root.token");
    std::fs::write(&file, ROOT).expect("there is room");
    let subcommands = if matches!(words[0], "sessions" | "nodes") { 2 } else { 1 };
    let mut all: Vec<std::borrow::Cow<'a, str>> =
        words[..subcommands].iter().map(|word| (*word).into()).collect();
    all.extend(["--connect".into(), node.daemon.url().into(), "--token-file".into(), text(file).into()]);
    all.extend(words[subcommands..].iter().map(|word| std::borrow::Cow::from(*word)));
    all
}

/// Runs a command to its end: its exit code, stdout and stderr.
fn run(node: &Node, command: &[&str]) -> (Exit, String, String) {
    let words = words(node, command);
    node.scratch.run(&words.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

fn start(node: &Node, command: &[&str]) -> Started {
    let words = words(node, command);
    node.scratch.start(&words.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

/// Runs a command and expects success: stdout and stderr.
fn done(node: &Node, command: &[&str]) -> (String, String) {
    let (exit, out, err) = run(node, command);
    assert_eq!(exit, Exit::Code(0), "{command:?}: {err}");
    (out, err)
}

fn fails(node: &Node, code: i32, command: &[&str]) -> String {
    let (exit, out, err) = run(node, command);
    assert_eq!(exit, Exit::Code(code), "{command:?}: {out}{err}");
    err
}

fn hand_over(node: &Node) -> Value {
    let (out, _) = done(node, &["handover", "--json"]);
    serde_json::from_str(&out).expect("JSON")
}

/// Closes a session, whose agent would outlive its daemon.
fn close(node: &Node, session: &str) {
    assert_eq!(node.ask("POST", &format!("/v1/sessions/{session}/close"), &Value::Null).status, 204);
}

/// Waits until the turn of a session, which says something at its end, runs.
fn runs(node: &Node, session: &str) {
    let path = format!("/v1/sessions/{session}");
    until("its turn runs", || (node.get(&path).json()["state"] == "running").then_some(()));
}

// design fleet, operations: a daemon counts its own sessions, also of a list that has those of all nodes; and says how its
// fleet stands
#[test]
fn a_daemon_counts_its_own_sessions() {
    let fleet = Fleet::lasting(&[("a", ""), ("b", "")], "60s");
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let theirs = b.create(&json!({}));
    let own = a.create(&json!({}));
    a.sees(&theirs, "it is listed", |_| true);
    let (out, _) = done(a, &["status", "--json"]);
    let status: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(status["sessions"], json!({"idle": 1}), "{status}");
    assert_eq!(
        status["fleet"],
        json!({"node": "a", "stale": false, "nodes": 2, "unreachable": [], "draining": false})
    );
    let (out, _) = done(a, &["status"]);
    assert!(out.contains("\n  sessions  1 live, 1 idle\n"), "{out}");
    assert!(out.ends_with("\n  fleet     node a, one of 2; its engine answers\n"), "{out}");
    let told = hand_over(a);
    assert_eq!((&told["sessions"], &told["wentOn"]), (&json!(1), &json!(1)), "{told}");
    close(a, &own);
    close(b, &theirs);
}

// contract 7.3: the daemon that is asked, and the node of the session, are replaced in the middle of a turn: the command goes
// on, the prompt is sent once, and all of the turn is shown
#[test]
fn a_prompt_outlives_a_hand_over_of_either_node() {
    let fleet = Fleet::start_kept(&["a", "b"], "60s", "");
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = b.create(&json!({}));
    a.sees(&session, "it is listed", |_| true);
    for (replaced, words) in [(b, "of the node"), (a, "of the door")] {
        let prompted = start(a, &["sessions", "prompt", &session, &format!("sleep 1500\n{words}")]);
        runs(b, &session);
        hand_over(replaced);
        let (exit, out, err) = prompted.end();
        assert_eq!((exit, out.trim_end()), (Exit::Code(0), words), "{err}");
        assert!(err.contains("end_turn") && !err.contains("failed"), "{err}");
    }
    let events = crate::archive::events(b, &session);
    assert_eq!(events.iter().filter(|event| event["kind"] == "prompt").count(), 2);
    close(b, &session);
}

// contract 7.1: of a session whose node is lost commands say so, and do not wait for what does not come
#[test]
fn a_lost_node_is_told() {
    let mut fleet = Fleet::two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = b.create(&json!({"prompt": "ask edit"}));
    a.sees(&session, "it asks", |listed| listed["state"] == "waiting");
    crate::archive::archived(b, a, &session);
    let mut followed = start(a, &["sessions", "events", &session, "--follow"]);
    let first = followed.next_line().expect("its events");
    assert!(first.contains("created"), "{first}");
    // It asks again once the node counts as lost: before, it is told that the node does not answer.
    followed.suspend();
    fleet.nodes[1].daemon.kill();
    let a = &fleet.nodes[0];
    a.sees(&session, "it is shown", |listed| listed["reachable"] == false);
    followed.signal(Signal::CONT);
    let (exit, out, err) = followed.end();
    assert_eq!(exit, Exit::Code(1), "{err}");
    assert!(err.contains("node b, which has it, cannot be reached"), "{out}{err}");
    assert!(err.contains(&format!("acpd sessions events {session} --follow --after ")), "{err}");
    let err = fails(a, 1, &["sessions", "answer", &session]);
    assert!(err.contains("node b, which has the session, cannot be reached since"), "{err}");
    let err = fails(a, 1, &["sessions", "answer", &session, "allow-once"]);
    assert!(err.contains("cannot be reached since"), "{err}");
    let (out, _) = done(a, &["sessions", "show", &session]);
    let is_node =
        |line: &str| line.starts_with("node ") && line.contains(" b, which cannot be reached since ");
    assert!(out.lines().any(is_node), "{out}");
    let (out, _) = done(a, &["status"]);
    assert!(out.contains("node a, one of 2; unreachable: b; its engine answers"), "{out}");
    let (_, out, _) = run(a, &["doctor"]);
    assert!(out.contains("!!  fleet: node b cannot be reached"), "{out}");
    fleet.server.kill();
    let a = &fleet.nodes[0];
    until("it is said", || (a.get("/v1/sessions").json()["stale"] == true).then_some(()));
    let (out, err) = done(a, &["sessions", "list"]);
    assert!(
        out.contains("unreachable") && err.contains("the engine of the fleet does not answer"),
        "{out}{err}"
    );
}

// design fleet: a client with one session waits for its node, and goes on where it was when that is back
#[test]
fn a_prompt_waits_for_a_node_that_comes_back() {
    let mut fleet = Fleet::start_kept(&["a", "b"], "60s", "");
    let session = fleet.nodes[1].create(&json!({}));
    fleet.nodes[0].sees(&session, "it is listed", |_| true);
    let prompted = start(&fleet.nodes[0], &["sessions", "prompt", &session, "sleep 1500\nback"]);
    runs(&fleet.nodes[1], &session);
    let address = fleet.nodes[1].daemon.address().to_string();
    let node = &mut fleet.nodes[1];
    node.daemon.kill();
    node.daemon = node.scratch.serve_on(&address);
    let (exit, out, err) = prompted.end();
    assert_eq!((exit, out.trim_end()), (Exit::Code(0), "back"), "{err}");
    let events = crate::archive::events(&fleet.nodes[1], &session);
    assert_eq!(events.iter().filter(|event| event["kind"] == "prompt").count(), 1);
    close(&fleet.nodes[1], &session);
}

// contract 7.1: acpd nodes drain says what it waits for, who there is, and how to undo it
#[test]
fn a_node_is_drained_and_who_waits_is_told() {
    let fleet = Fleet::lasting_two();
    let [a, b] = &fleet.nodes[..] else { panic!("there are two") };
    let session = a.create(&json!({}));
    let err = fails(a, 2, &["nodes", "drain"]);
    assert!(err.contains("NAME is missing") && err.contains("the fleet has a, b"), "{err}");
    let err = fails(a, 4, &["nodes", "drain", "x"]);
    assert!(err.contains("no node is called x; the fleet has a, b"), "{err}");
    let drained = start(a, &["nodes", "drain", "a"]);
    until("it drains", || (b.knows("a")["draining"] == true).then_some(()));
    close(a, &session);
    let (exit, out, err) = drained.end();
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert!(err.contains("1 live session left; Ctrl-C stops the waiting, and a stays drained"), "{err}");
    assert!(out.contains("none is live there; `acpd nodes undrain a`"), "{out}");
    let (out, _) = done(a, &["nodes", "undrain", "a"]);
    assert_eq!(out, "a takes new sessions\n");
}
