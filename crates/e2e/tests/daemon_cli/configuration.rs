//! `acpd config`: a first file, what is in force, and every mistake (contract 7.1).

use acpd_e2e::{Exit, Scratch, acpd};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn run(scratch: &Scratch, variables: &[(&str, &str)], words: &[&str]) -> (Exit, String, String) {
    let mut command = scratch.command(acpd());
    command.args(words).envs(variables.iter().copied());
    scratch.start_command(command).end()
}

// contract 7.1: init writes a file that changes nothing, and never over one
#[test]
fn a_first_file_is_written_once() {
    let scratch = Scratch::new();
    let before = run(&scratch, &[], &["config", "show", "--json"]).1;
    let (exit, out, err) = run(&scratch, &[], &["config", "init"]);
    let file = scratch.path(".config/acpd/config.toml");
    assert!(exit == Exit::Code(0) && out.contains(".config/acpd/config.toml"), "{err}");
    let text = std::fs::read_to_string(&file).expect("it is there");
    assert!(text.contains("\n[timeouts]\n") && text.contains("\n# term_grace = \"5s\""), "{text}");
    let values = |shown: &str| serde_json::from_str::<Value>(shown).expect("JSON")["values"].clone();
    assert_eq!(values(&before), values(&run(&scratch, &[], &["config", "show", "--json"]).1));
    std::fs::write(&file, "# mine\n").expect("it is ours");
    let (exit, out, err) = run(&scratch, &[], &["config", "init"]);
    assert!(exit == Exit::Code(2) && out.is_empty() && err.contains("stays as it is"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "# mine\n");
}

// contract 7.1: show tells what each value comes from, and no secret
#[test]
fn what_is_in_force_has_its_source() {
    let scratch = Scratch::new();
    let file = scratch.path("c.toml");
    let hash = "ab".repeat(32);
    let text = format!(
        "[timeouts]\nterm_grace = \"90s\"\n\n[agents.a]\ncommand = \"a\"\nenv = {{ KEY = \"secret\" }}\n\n[tokens.t]\nhash = \
         \"sha256:{hash}\"\nexpires = \"2099-01-01\"\n"
    );
    std::fs::write(&file, text).expect("the file is written");
    let file = file.to_str().expect("text");
    let variables = [("ACPD_SERVER_LISTEN", "127.0.0.1:1")];
    let flags = ["--config", file, "--state-dir", "/s"];
    let (exit, shown, err) = run(&scratch, &variables, &[&["config", "show"], &flags[..]].concat());
    assert_eq!(exit, Exit::Code(0), "{err}");
    for line in [
        "listen = \"127.0.0.1:1\"  # ACPD_SERVER_LISTEN".to_owned(),
        "path = \"/s\"  # --state-dir".to_owned(),
        format!("term_grace = \"90s\"  # {file}:2"),
        "stdin_grace = \"3s\"  # default".to_owned(),
        "permission = \"never\"  # default".to_owned(),
        format!("command = \"a\"  # {file}:5"),
        format!("expires = \"2099-01-01T00:00:00Z\"  # {file}:10"),
        "# tls_cert is not set".to_owned(),
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
    let (_, json, _) = run(&scratch, &variables, &[&["config", "show", "--json"], &flags[..]].concat());
    for text in [&shown, &json] {
        assert!(!text.contains("secret") && !text.contains(&hash) && text.contains("(hidden)"), "{text}");
    }
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let values = json["values"].as_array().expect("a list");
    let listen = values.iter().find(|value| value["key"] == "server.listen").expect("it is shown");
    assert_eq!(listen["source"], "ACPD_SERVER_LISTEN");
    // What is shown is a configuration again, but for what is hidden.
    let again = scratch.path("again.toml");
    std::fs::write(&again, shown.replace("hash = \"(hidden)\"", &format!("hash = \"sha256:{hash}\"")))
        .expect("written");
    let (exit, out, _) = run(&scratch, &[], &["config", "check", again.to_str().expect("text")]);
    assert_eq!(exit, Exit::Code(0), "{out}{shown}");
}

// contract 7.1: check tells all mistakes with line and column, as serve tells the first
#[test]
fn every_mistake_is_told() {
    let scratch = Scratch::new();
    let file = scratch.path("c.toml");
    let path = file.to_str().expect("text");
    let text = "[server]\nlistenn = 1\nlisten = \"x\"\n\n[timeouts]\nidle = 5\n\n[agents.a]\ncommand = 1\n\n[tokens.t]\nscope = \"root\"\n";
    std::fs::write(&file, text).expect("the file is written");
    let variables = [("ACPD_LIMITS_SESSIONS", "many")];
    let (exit, out, err) = run(&scratch, &variables, &["config", "check", path]);
    assert!(exit == Exit::Code(2) && err.is_empty(), "{out}{err}");
    for told in [
        "c.toml:2:1: unknown key \"listenn\"",
        "c.toml:3:10: \"listen\" in [server]",
        "c.toml:6:8: \"idle\" in [timeouts]",
        "c.toml:9:11: \"command\" in [agents.a]",
        "\"scope\" in [tokens.t]",
        "[tokens.t] needs the key \"hash\"",
        "environment variable ACPD_LIMITS_SESSIONS",
    ] {
        assert_eq!(out.matches(told).count(), 1, "{told}: {out}");
    }
    assert!(out.ends_with("7 mistakes\n"), "{out}");
    let (exit, json, _) = run(&scratch, &variables, &["config", "check", path, "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((exit, json["mistakes"].as_array().map(Vec::len)), (Exit::Code(2), Some(7)));
    std::fs::write(&file, "[server]\nlisten = \"0.0.0.0:1\"\n").expect("the file is written");
    let (exit, out, _) = run(&scratch, &[], &["config", "check", path]);
    assert!(exit == Exit::Code(2) && out.contains("acpd token new"), "{out}");
    std::fs::write(&file, "[client]\nconnect = \"http://127.0.0.1:1\"\ntoken_file = \"gone\"\n")
        .expect("written");
    let (exit, out, _) = run(&scratch, &[], &["config", "check", path]);
    assert!(
        exit == Exit::Code(2) && out.contains("token_file in [client]: ") && out.contains("gone"),
        "{out}"
    );
    std::fs::write(&file, "").expect("the file is written");
    let (exit, out, _) = run(&scratch, &[], &["config", "check", "--config", path]);
    assert!(exit == Exit::Code(0) && out.contains("is fine"), "{out}");
    let (exit, _, err) = run(&scratch, &[], &["config", "check", "/no/such.toml"]);
    assert_eq!(exit, Exit::Code(2), "{err}");
}

// contract 7.1: a daemon that began without a configuration file is told of the first that a command writes
#[test]
fn a_daemon_is_told_of_its_first_file() {
    let scratch = Scratch::new();
    let mut serve = scratch.command(acpd());
    serve.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut daemon = serve.stderr(Stdio::null()).spawn().expect("acpd starts");
    let lines = BufReader::new(daemon.stdout.take().expect("it is piped")).lines();
    let listens = lines.map_while(Result::ok).any(|line| line.contains("127.0.0.1:"));
    assert!(listens, "it says where it listens");
    let (exit, _, err) = scratch.run(&["token", "new", "first", "--scope", "admin"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert!(err.contains("The running daemon knows it."), "{err}");
    let (exit, out, err) = scratch.run(&["token", "new", "second", "--scope", "observe"]);
    assert_eq!(exit, Exit::Code(0), "{out} {err}");
    let (exit, out, err) = scratch.run(&["token", "list"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    assert!(out.contains("first") && out.contains("second") && !err.contains("reload"), "{out} {err}");
    assert_eq!(scratch.run(&["stop"]).0, Exit::Code(0));
    daemon.wait().expect("it has ended");
}
