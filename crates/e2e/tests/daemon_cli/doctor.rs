//! `acpd doctor`: what is wrong, and what to do about it (contract 7.1).

use crate::cli::{args, json, run};
use crate::operate::later_daemon;
use crate::reaching::{TOKEN, with_token};
use acpd_e2e::{Exit, Scratch, acpd};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

/// The remedies of what is not well, each with what it is about.
fn remedies(told: &Value) -> Vec<(String, String)> {
    let checks = told["checks"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let wrong = checks.iter().filter(|check| check["ok"] == false);
    wrong.map(|check| (text(&check["about"]), text(&check["remedy"]))).collect()
}

// contract 7.1: all is well: exit 0, without a daemon and beside one, and --start starts every agent
#[test]
fn all_is_well() {
    let scratch = Scratch::new();
    let example = acpd();
    let scratch = scratch.agent("own", &example, &["example-agent".to_owned()]);
    scratch.config_file();
    let (exit, out, err) = run(&scratch, &["doctor"]);
    assert!(exit == Exit::Code(0) && out.ends_with("all is well\n"), "{out}{err}");
    assert!(out.contains("daemon: none serves") && out.contains("state, made at the first use"), "{out}");
    let mut daemon = scratch.serve();
    let told = json(&scratch, &["doctor", "--start"]);
    assert_eq!((&told["ok"], remedies(&told)), (&Value::Bool(true), Vec::new()), "{told}");
    let text = told.to_string();
    for words in [
        "own started in",
        "a quick check finds it whole",
        "acpd.sock",
        "nothing that an agent starts outlives that agent",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    daemon.stop();
}

// contract 7.1: findings: exit 1, each with its remedy
#[test]
fn each_finding_has_a_remedy() {
    let scratch = Scratch::new();
    let hash = "0".repeat(64);
    let scratch = scratch
        .agent("gone", "/no/such/agent", &[])
        .agent("silent", "/bin/false", &[])
        .config(&format!("[tokens.old]\nhash = \"sha256:{hash}\"\nexpires = \"2020-01-01\""));
    scratch.config_file();
    scratch.exempt_logs("it is no database");
    std::fs::create_dir_all(scratch.state()).expect("a directory");
    std::fs::set_permissions(scratch.state(), Permissions::from_mode(0o755)).expect("it is ours");
    std::fs::write(scratch.state().join("acpd.db"), "no database at all ".repeat(99)).expect("a file");
    let units = scratch.path(".config/systemd/user");
    std::fs::create_dir_all(&units).expect("a directory");
    std::fs::write(units.join("acpd.service"), "[Service]\nExecStart=/no/such/acpd serve\nKillMode=mixed\n")
        .expect("a file");
    let (exit, out, err) = run(&scratch, &["doctor", "--start", "--json"]);
    assert_eq!(exit, Exit::Code(1), "{out}{err}");
    let told: Value = serde_json::from_str(&out).expect("JSON");
    let found = remedies(&told);
    for (about, remedy) in [
        ("configuration", "acpd token rotate old"),
        ("agents", "mend command in [agents.gone]"),
        ("agents", "acpd agents check silent"),
        ("state", "chmod 700"),
        ("log", "restore it from a backup"),
        ("unit", "install acpd there"),
    ] {
        assert!(found.iter().any(|found| found.0 == about && found.1.contains(remedy)), "{remedy}: {out}");
    }
    assert_eq!(found.len(), 6, "{out}");
    let (exit, out, _) = run(&scratch, &["doctor"]);
    assert!(
        exit == Exit::Code(1) && out.contains("\n!!  state: ") && out.contains("\n    -> chmod 700"),
        "{out}"
    );
    // A configuration that cannot be read does not keep the rest from being looked at.
    std::fs::write(scratch.path("broken.toml"), "[servr]\n[timeouts]\nidle = 1\n").expect("a file");
    let broken = scratch.path("broken.toml").to_string_lossy().into_owned();
    let (exit, out, _) = scratch.run(&["doctor", "--config", &broken]);
    assert!(exit == Exit::Code(1) && out.contains("broken.toml:1:2: unknown section"), "{out}");
    assert!(out.contains("broken.toml:3:8") && out.contains("limits: "), "{out}");
    assert!(out.ends_with("\n3 findings\n"), "the unit, and each mistake once: {out}");
}

// contract 7.1: a daemon that is named and not there, or does not know its configuration yet
#[test]
fn a_daemon_is_looked_at() {
    let scratch = Scratch::new();
    scratch.config_file();
    let (exit, out, _) = run(&scratch, &["doctor", "--connect", "http://127.0.0.1:1"]);
    assert!(exit == Exit::Code(1) && out.contains("!!  daemon: "), "{out}");
    let mut daemon = scratch.serve();
    let file = scratch.path("config.toml");
    let read = std::fs::metadata(scratch.state().join("daemon.config")).and_then(|note| note.modified());
    let later = read.expect("a time") + std::time::Duration::from_secs(5);
    let opened = std::fs::File::options().append(true).open(&file).expect("it is there");
    opened.set_modified(later).expect("it is ours");
    let (exit, out, _) = run(&scratch, &["doctor"]);
    assert!(exit == Exit::Code(1) && out.contains("-> acpd reload"), "{out}");
    // One that lost its socket still keeps another from starting.
    let socket = daemon.socket();
    std::fs::rename(&socket, scratch.path("socket")).expect("it is ours");
    let (exit, out, _) = run(&scratch, &["doctor"]);
    assert!(exit == Exit::Code(1) && out.contains(&format!("-> kill {}", daemon.pid())), "{out}");
    std::fs::rename(scratch.path("socket"), socket).expect("it is ours");
    daemon.stop();
}

// contract 7.1: a daemon elsewhere: its version, and whether it takes the token
#[test]
fn a_daemon_elsewhere_is_looked_at() {
    let scratch = with_token("observe");
    let mut daemon = scratch.serve();
    let url = daemon.url();
    for (token, exit, words) in [
        (TOKEN, 0, "all is well"),
        ("", 1, "-> a token that it knows"),
        ("wrong", 1, "-> a token that it knows"),
    ] {
        let mut command = scratch.command(acpd());
        command.args(args(&scratch, &["doctor", "--connect", &url]).iter().map(AsRef::<str>::as_ref));
        command.env("ACPD_TOKEN", token);
        let (ended, out, err) = scratch.start_command(command).end();
        assert!(ended == Exit::Code(exit) && out.contains(words), "{token}: {out}{err}");
    }
    daemon.stop();
    let (url, answering) = later_daemon(["{}"]);
    let (exit, out, _) = run(&scratch, &["doctor", "--connect", &url]);
    assert!(exit == Exit::Code(1) && out.contains("is acpd 99.0.0, this is"), "{out}");
    assert!(out.contains("-> restart it by the newer one"), "{out}");
    answering.join().expect("it answered");
}
