//! `acpd token`: what is printed, what is kept, and what happens to the file.

use crate::door::plain;
use acpd_e2e::{Exit, Scratch, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

/// Runs `acpd token` with a configuration.
fn token(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let config = scratch.path("config.toml").to_string_lossy().into_owned();
    scratch.run(&[&["token"], args, &["--config", &config]].concat())
}

fn made(scratch: &Scratch, name: &str, args: &[&str]) -> String {
    let (exit, stdout, stderr) = token(scratch, &[&["new", name], args].concat());
    assert_eq!(exit, Exit::Code(0), "{stderr}");
    let token = stdout.strip_suffix('\n').expect("one line").to_owned();
    assert!(token.strip_prefix("acpd_").is_some_and(|random| random.len() == 64), "{token}");
    assert!(!stderr.contains(&token), "it is printed once");
    token
}

fn digits(token: &str) -> String {
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

// contract 1.7: the file gets the hash, behind what is there; its mode, its link and every byte of it stay
#[test]
fn a_token_is_added_and_nothing_else_changes() {
    let scratch = Scratch::new();
    let file = scratch.path("kept/real.toml");
    fs::create_dir(scratch.path("kept")).expect("a directory");
    let before = "# mine\r\n[server]   # odd \t spaces\nlisten='127.0.0.1:0'\n\n\n[timeouts]\nterm_grace = \"300ms\" # no newline";
    fs::write(&file, before).expect("the file is written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink("kept/real.toml", scratch.path("config.toml")).expect("a link");
    let first = made(&scratch, "ci", &["--scope", "control"]);
    let second = made(&scratch, "dotted.name", &["--scope", "observe", "--sees", "all"]);
    assert_ne!(first, second);
    let after = fs::read_to_string(&file).expect("it is there");
    let expected = format!(
        "{before}\n\n[tokens.ci]\nhash = \"sha256:{}\"\nscope = \"control\"\nsees = \"own\"\n\
         \n[tokens.\"dotted.name\"]\nhash = \"sha256:{}\"\nscope = \"observe\"\nsees = \"all\"\n",
        digits(&first),
        digits(&second)
    );
    assert_eq!(after, expected);
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o640);
    let link = scratch.path("config.toml");
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(fs::read_dir(scratch.path("kept")).expect("a directory").count(), 1, "no copy is left");
    // A list has nothing secret in it.
    let (exit, listed, _) = token(&scratch, &["list", "--json"]);
    let expected = json!({"tokens": [
        {"name": "ci", "scope": "control", "sees": "own"},
        {"name": "dotted.name", "scope": "observe", "sees": "all"},
    ]});
    assert_eq!((exit, serde_json::from_str::<Value>(&listed).expect("JSON")), (Exit::Code(0), expected));
    let (_, table, _) = token(&scratch, &["list"]);
    assert!(table.contains("ci ") && table.contains("dotted.name"), "{table}");
    for secret in [&first, &second, &digits(&first)] {
        assert!(!table.contains(secret.as_str()) && !listed.contains(secret.as_str()));
    }
}

// contract 1.7: whoever could read the file still can; tokens that are made at once are all kept
#[test]
fn tokens_made_at_once_are_all_kept() {
    let scratch = Scratch::new();
    let file = scratch.path("config.toml");
    fs::write(&file, "").expect("the file is written");
    // Only root can give a file to another group; for all others the group is their own.
    let other = fs::metadata(&file).expect("it is there").gid() + 1;
    let given = std::os::unix::fs::chown(&file, None, Some(other)).is_ok();
    let names = ["a", "b", "c", "d", "e", "f"];
    std::thread::scope(|threads| {
        for name in names {
            let scratch = &scratch;
            threads.spawn(move || made(scratch, name, &["--scope", "observe"]));
        }
    });
    let kept = fs::read_to_string(&file).expect("it is there");
    for name in names {
        assert!(kept.contains(&format!("[tokens.{name}]")), "{name} in {kept}");
    }
    let group = fs::metadata(&file).expect("it is there").gid();
    assert_eq!(group, if given { other } else { other - 1 });
}

// contract 1.7: without a file there is one afterwards, for its owner only
#[test]
fn the_first_token_makes_a_private_file() {
    let scratch = Scratch::new();
    let config = scratch.path("deep/down/config.toml");
    let named = config.to_string_lossy().into_owned();
    let args = ["token", "new", "me", "--scope", "admin", "--json", "--config", &named];
    let (exit, stdout, stderr) = scratch.run(&args);
    assert_eq!(exit, Exit::Code(0), "{stderr}");
    let told: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(
        (&told["name"], &told["scope"], &told["config"]),
        (&json!("me"), &json!("admin"), &json!(named))
    );
    let token = told["token"].as_str().expect("a token");
    let text = fs::read_to_string(&config).expect("it is there");
    assert!(
        text.starts_with("[tokens.me]\n") && text.contains(&digits(token)) && !text.contains(token),
        "{text}"
    );
    assert_eq!(fs::metadata(&config).expect("it is there").permissions().mode() & 0o777, 0o600);
}

// contract 1.7: a token that can never see anything is made, and says so
#[test]
fn a_token_that_sees_nothing_says_so() {
    let scratch = Scratch::new();
    let blind = "It sees no session";
    for (name, args, says) in [
        ("eyes", ["--scope", "observe", "--sees", "own"], true),
        ("all", ["--scope", "observe", "--sees", "all"], false),
        ("ci", ["--scope", "control", "--sees", "own"], false),
    ] {
        let (exit, _, stderr) = token(&scratch, &[&["new", name][..], &args[..]].concat());
        assert_eq!((exit, stderr.contains(blind)), (Exit::Code(0), says), "{name}: {stderr}");
    }
}

// contract 1.7: a name that is taken, a file that is broken or cannot be read: an error, and the file as it was
#[test]
fn a_refused_token_leaves_the_file_alone() {
    let scratch = Scratch::new();
    let file = scratch.path("config.toml");
    made(&scratch, "ci", &["--scope", "control"]);
    let good = fs::read(&file).expect("it is there");
    let broken = b"[tokens.x]\nno_such_key = 1\n".to_vec();
    let no_text = b"# \xff\n".to_vec();
    for (content, name, says) in [
        (&good, "ci", "there is a token ci already"),
        (&broken, "new", "no_such_key"),
        (&no_text, "new", "config.toml"),
    ] {
        fs::write(&file, content).expect("the file is written");
        let inode = fs::metadata(&file).expect("it is there").ino();
        let (exit, stdout, stderr) = token(&scratch, &["new", name, "--scope", "admin"]);
        assert_eq!((exit, &*stdout), (Exit::Code(2), ""), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
        assert_eq!(&fs::read(&file).expect("it is there"), content);
        assert_eq!(fs::metadata(&file).expect("it is there").ino(), inode);
    }
    fs::write(&file, &good).expect("the file is written");
    for args in [&["new", "x"][..], &["new", "a b", "--scope", "admin"], &["new", "x", "--scope", "root"]] {
        let (exit, _, stderr) = token(&scratch, args);
        assert_eq!(exit, Exit::Code(2), "{stderr}");
    }
    assert_eq!(fs::read(&file).expect("it is there"), good);
}

// contract 1.7, contract 6: a new token opens the door after SIGHUP, and one that was taken out does not
#[test]
fn a_new_token_is_known_after_sighup() {
    let scratch = Scratch::new();
    fs::write(scratch.path("config.toml"), "").expect("the file is written");
    let first = made(&scratch, "first", &["--scope", "admin"]);
    let mut command = scratch.command(acpd_e2e::acpd());
    // `serve` writes the scratch's own configuration; this daemon goes by the one that `acpd token` wrote.
    let mut daemon = {
        let mine = fs::read(scratch.path("config.toml")).expect("it is there");
        command.arg("-v");
        let daemon = Scratch::serve_by(&scratch, command, "127.0.0.1:0");
        fs::write(scratch.path("config.toml"), mine).expect("the file is written");
        daemon
    };
    let status = |token: &str| {
        let authorization = format!("Bearer {token}");
        plain(&daemon, "GET", "/v1/agents", &[("Authorization", &authorization)]).status
    };
    daemon.signal(Signal::HUP);
    until("there are tokens", || (status("x") == 401).then_some(()));
    assert_eq!(status(&first), 200);
    let second = made(&scratch, "second", &["--scope", "admin"]);
    assert_eq!(status(&second), 401, "not before it is told");
    daemon.signal(Signal::HUP);
    until("it is known", || (status(&second) == 200).then_some(()));
    let text = fs::read_to_string(scratch.path("config.toml")).expect("it is there");
    let rest = &text[text.find("[tokens.second]").expect("it was added")..];
    fs::write(scratch.path("config.toml"), rest).expect("the file is written");
    daemon.signal(Signal::HUP);
    until("it is gone", || (status(&first) == 401).then_some(()));
    assert_eq!(status(&second), 200);
    let stderr = daemon.stop();
    assert!(!stderr.contains(&first) && !stderr.contains(&second), "{stderr}");
}
