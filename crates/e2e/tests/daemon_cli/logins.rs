//! `acpd agents login`, and what a session says that wants a login.

use crate::cli::{done, fails, run};
use crate::known_agents::{command, stand_in, start};
use acpd_e2e::{Exit, Http, PseudoTerminal, Scratch};
use rustix::process::Signal;
use serde_json::{Value, json};

/// An example agent `wants`, which wants a login in these ways.
fn scratch(ways: &str) -> Scratch {
    Scratch::new().example("wants", &["--login", ways])
}

fn begins(scratch: &Scratch) -> bool {
    run(scratch, &["run", "--agent", "wants", "hello"]).0 == Exit::Code(0)
}

// issue 14: a session that wants a login says the command: exit code 6, 424 of REST, the text of ACP
#[test]
fn a_session_that_wants_a_login_says_the_command() {
    let scratch = scratch("agent,variable");
    scratch.config_file();
    let (exit, out, err) = run(&scratch, &["run", "--agent", "wants", "hello"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(6), ""), "{err}");
    let typed = format!("`acpd agents login wants --config {}", scratch.path("config.toml").display());
    assert!(err.contains("✗ the agent wants a login: Authentication required\n"), "{err}");
    assert!(
        err.contains(&typed) && err.contains("Example account") && err.contains("EXAMPLE_AGENT_KEY"),
        "{err}"
    );
    let mut daemon = scratch.serve();
    let err = fails(&scratch, 6, &["run", "--format", "quiet", "--agent", "wants", "hello"]);
    assert!(err.contains("`acpd agents login wants "), "{err}");
    let body = json!({"agent": "wants", "cwd": scratch.work()}).to_string();
    let headers = [("Content-Type", "application/json")];
    let refused = Http::on(daemon.connect()).request("POST", "/v1/sessions", &headers, &body);
    assert_eq!((refused.status, &*refused.problem()), (424, "authentication_required"));
    let detail = refused.json()["detail"].as_str().expect("words").to_owned();
    assert_eq!(detail, "Authentication required; `acpd agents login wants` logs it in");
    assert_eq!(refused.json()["authMethods"][0]["id"], "agent");
    let mut client = scratch.stdio("wants");
    client.initialize();
    let setup = json!({"cwd": scratch.work(), "mcpServers": []});
    let error = client.refused("session/new", &setup);
    assert_eq!(error["code"], -32000);
    assert_eq!(error["message"], "Authentication required; `acpd agents login wants` logs it in");
    crate::cli::leave(client);
    daemon.stop();
}

// issue 14: an agent logs in by itself when it is asked to, and afterwards it is seen
#[test]
fn an_agent_logs_in_by_itself() {
    let scratch = scratch("agent");
    scratch.config_file();
    assert!(!begins(&scratch));
    let (exit, out, err) = run(&scratch, &["agents", "login", "wants"]);
    assert_eq!((exit, out.trim()), (Exit::Code(0), "wants is logged in: it begins a session"), "{err}");
    assert!(err.contains("wants logs in by itself: Example account"), "{err}");
    assert!(begins(&scratch));
}

// issue 14: of several ways one is named; without a terminal they are listed, and nothing is done
#[test]
fn without_a_terminal_the_ways_are_listed() {
    let scratch = scratch("agent,terminal,older,variable");
    scratch.config_file();
    let err = fails(&scratch, 2, &["agents", "login", "wants"]);
    for way in ["--method agent", "--method terminal", "--method older", "--method variable"] {
        assert!(err.contains(way), "{way}: {err}");
    }
    let err = fails(&scratch, 2, &["agents", "login", "wants", "--method", "other"]);
    assert!(err.contains("no such --method") && err.contains("--method older"), "{err}");
    let err = fails(&scratch, 2, &["agents", "login", "wants", "--method", "terminal"]);
    assert!(
        err.contains("needs a terminal") && err.contains("acpd agents login wants --method terminal"),
        "{err}"
    );
    assert!(!begins(&scratch));
    let (exit, _, err) = run(&scratch, &["agents", "login", "wants", "--method", "agent"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert!(begins(&scratch));
    // One that names no way and has no command of its makers.
    let err = fails(&scratch, 1, &["agents", "login", "example"]);
    assert!(err.contains("example names no way to log in"), "{err}");
}

// issue 14: a way for terminals runs on this one: what is typed reaches it, how it ends is told, and it is chosen by a key
#[test]
fn a_way_for_terminals_runs_on_this_one() {
    let scratch = scratch("agent,terminal,older");
    let login = |method: &[&str]| {
        PseudoTerminal::new().start(&scratch, &[&["agents", "login", "wants"], method].concat())
    };
    let mut wrong = login(&["--method", "older"]);
    // Not behind the arguments of ACP's own kind: it has no greeting.
    wrong.wait_for("hello; the word is");
    wrong.press("nonsense\r");
    wrong.wait_for("that is not the word");
    let (shown, status) = wrong.end();
    assert!(
        status.code() == Some(1) && shown.contains("the login of wants ended with exit status: 1"),
        "{shown}"
    );
    assert!(!begins(&scratch));

    let mut right = login(&[]);
    right.wait_for("2  In the terminal");
    right.wait_for("a number: ");
    right.press("2");
    right.wait_for("welcome; the word is");
    right.press("example\r");
    right.wait_for("you are logged in");
    let (shown, status) = right.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(shown.contains("wants is logged in: it begins a session"), "{shown}");
    assert!(begins(&scratch));
}

// issue 14: Ctrl-C goes to the program of the login, and nothing is left behind; so it is when acpd is told to stop
#[test]
fn a_login_can_be_left() {
    let scratch = scratch("terminal,never");
    let mut left =
        PseudoTerminal::new().start(&scratch, &["agents", "login", "wants", "--method", "terminal"]);
    left.wait_for("the word is");
    left.press("\x03");
    let (shown, status) = left.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    scratch.mark().only_left(&[]).expect("it is gone");

    let mut stopped =
        PseudoTerminal::new().start(&scratch, &["agents", "login", "wants", "--method", "terminal"]);
    stopped.wait_for("the word is");
    stopped.signal(Signal::TERM);
    let (shown, status) = stopped.end();
    assert_ne!(status.code(), Some(0), "{shown}");
    scratch.mark().only_left(&[]).expect("it is gone");

    let mut waits = PseudoTerminal::new().start(&scratch, &["agents", "login", "wants", "--method", "never"]);
    waits.wait_for("Ctrl-C gives up");
    waits.signal(Signal::INT);
    let (shown, status) = waits.end();
    assert_eq!(status.code(), Some(130), "{shown}");

    let mut chooses = PseudoTerminal::new().start(&scratch, &["agents", "login", "wants"]);
    chooses.wait_for("a number: ");
    chooses.press("\x1b");
    let (shown, status) = chooses.end();
    assert_eq!(status.code(), Some(130), "{shown}");
    scratch.mark().only_left(&[]).expect("it is gone");
}

// issue 14: variables are named, with the place where they are to be set; once they are, that is the login
#[test]
fn variables_are_said_to_be_set() {
    let scratch = scratch("variable");
    scratch.config_file();
    let (exit, out, err) = run(&scratch, &["agents", "login", "wants"]);
    assert_eq!(exit, Exit::Code(6), "{err}");
    assert!(err.contains("EXAMPLE_AGENT_KEY is not set"), "{err}");
    assert!(out.contains("[agents.wants]\n  env = { EXAMPLE_AGENT_KEY = \"...\" }\n"), "{out}");
    assert!(out.contains(&scratch.path("config.toml").display().to_string()), "{out}");
    let mut set = scratch.command(acpd_e2e::acpd());
    set.env("EXAMPLE_AGENT_KEY", "x");
    let (exit, out, err) = start(&scratch, set, &["agents", "login", "wants"]).end();
    assert!(exit == Exit::Code(0) && out.contains("has its variables"), "{out}{err}");
}

// issue 14: the login of a known agent is seen by what is there, before and after
#[test]
fn the_login_of_a_known_agent_is_seen() {
    let scratch = Scratch::new();
    scratch.config_file();
    stand_in(&scratch, &scratch.path("bin/codex-acp"), "[ \"$1\" = --version ] && echo 2.6.0 && exit 0");
    let with = || {
        let mut command = command(&scratch, &["bin"]);
        let file = scratch.path(".codex/auth.json");
        command.env("LOGIN", format!("--login agent --login-file {}", file.display()));
        command
    };
    let seen = || {
        let (_, out, err) = start(&scratch, with(), &["agents", "list", "--json"]).end();
        let listed: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        let mut agents = listed["agents"].as_array().expect("a list").iter();
        agents.find(|agent| agent["name"] == "codex").expect("it is found")["loggedIn"].clone()
    };
    assert_eq!(seen(), false);
    let (exit, _, err) = start(&scratch, with(), &["run", "--agent", "codex", "hello"]).end();
    assert!(exit == Exit::Code(6) && err.contains("acpd agents login codex"), "{err}");
    let (exit, out, err) = start(&scratch, with(), &["agents", "login", "codex"]).end();
    assert_eq!((exit, out.trim()), (Exit::Code(0), "codex is logged in"), "{err}");
    assert_eq!(seen(), true);
    let (exit, out, err) = start(&scratch, with(), &["run", "--agent", "codex", "hello"]).end();
    assert_eq!((exit, out.trim()), (Exit::Code(0), "hello"), "{err}");
    done(&scratch, &["agents", "list"]);
}
