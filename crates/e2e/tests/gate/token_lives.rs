//! The life of a token while a daemon runs: made, used, made anew, expired, revoked (contract 7.1, 7.2, 7.3).

use crate::door::{ask, bearer, entry, plain};
use acpd_e2e::{Daemon, Exit, Scratch, WebSocket, until};
use serde_json::{Value, json};

/// A world whose configuration names its state directory, so that `acpd token` finds the daemon by it.
fn world(rest: &str) -> Scratch {
    let scratch = Scratch::new();
    let state = scratch.state();
    scratch.config(&format!("[storage]\npath = {state:?}\n# who may come\n{rest}"))
}

fn token(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let config = scratch.path("config.toml").to_string_lossy().into_owned();
    scratch.run(&[&["token"], args, &["--config", &config]].concat())
}

/// The secret that a command prints, which the running daemon knows then.
fn made(scratch: &Scratch, args: &[&str]) -> String {
    let (exit, out, err) = token(scratch, args);
    assert!(exit == Exit::Code(0) && err.contains("The running daemon knows it."), "{err}");
    out.trim().to_owned()
}

fn with(daemon: &Daemon, token: &str, path: &str) -> acpd_e2e::Answer {
    plain(daemon, "GET", path, &[("Authorization", &format!("Bearer {token}"))])
}

fn listed(scratch: &Scratch) -> Value {
    let (exit, out, err) = token(scratch, &["list", "--json"]);
    assert_eq!(exit, Exit::Code(0), "{err}");
    serde_json::from_str(&out).expect("JSON")
}

// contract 7.1: a running daemon knows each change at once; the file keeps its comments; what is open under an old secret ends
#[test]
fn a_change_is_in_force_at_once() {
    let scratch = world("");
    let mut daemon = scratch.serve();
    let first = made(&scratch, &["new", "ci", "--scope", "admin", "--expires", "30d"]);
    let other = made(&scratch, &["new", "other", "--scope", "observe"]);
    let authorization = format!("Bearer {first}");
    let mut socket =
        WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &authorization)]).expect("a socket");
    let expires = listed(&scratch)["tokens"][0]["expires"].clone();
    assert!(expires.is_string(), "{expires}");
    let second = made(&scratch, &["rotate", "ci"]);
    assert_ne!(first, second);
    assert_eq!(socket.until_close().0, 1008, "what the old one has open ends");
    let statuses = [&first, &second, &other].map(|token| with(&daemon, token, "/v1/sessions").status);
    assert_eq!(statuses, [401, 200, 200]);
    assert_eq!(listed(&scratch)["tokens"][0]["expires"], expires, "as the old one");
    let third = made(&scratch, &["rotate", "ci", "--expires", "never"]);
    assert_eq!(listed(&scratch)["tokens"][0].get("expires"), None);
    let (exit, out, err) = token(&scratch, &["revoke", "other"]);
    assert!(exit == Exit::Code(0) && out.is_empty() && err.contains("The running daemon knows it."), "{err}");
    assert_eq!([&third, &other].map(|token| with(&daemon, token, "/v1/sessions").status), [200, 401]);
    let text = std::fs::read_to_string(scratch.path("config.toml")).expect("it is there");
    assert!(text.contains("# who may come\n") && !text.contains("[tokens.other]"), "{text}");
    assert!(![first, second, third].iter().any(|token| text.contains(token)), "{text}");
    daemon.stop();
}

// contract 7.1: wrong use says what is right, and changes nothing
#[test]
fn a_refused_change_leaves_the_file_alone() {
    let inline = format!("tokens = {{ ci = {{ hash = \"sha256:{}\" }} }}\n", "0".repeat(64));
    let headed = format!("[tokens.old]\nhash = \"sha256:{}\"\nexpires = \"2020-01-01\"\n", "0".repeat(64));
    let scratch = Scratch::new();
    let file = scratch.path("config.toml");
    for (text, args, code, says) in [
        (&headed, &["revoke", "ci"][..], 2, "there is no token ci in"),
        (&headed, &["rotate", "ci"], 2, "known: old"),
        (&headed, &["rotate", "old"], 2, "has expired, and so would the new one"),
        (
            &headed,
            &["rotate", "old", "--expires", "2020-01-01"],
            2,
            "--expires: 2020-01-01T00:00:00Z is past",
        ),
        (&headed, &["new", "x", "--scope", "admin", "--expires", "soon"], 2, "2027-01-01"),
        (&headed, &["new", "old", "--scope", "admin"], 2, "`acpd token rotate old` makes it anew"),
        (&inline, &["revoke", "ci"], 1, "change it by hand"),
    ] {
        std::fs::write(&file, text).expect("the file is written");
        let (exit, out, err) = token(&scratch, args);
        assert!(exit == Exit::Code(code) && out.is_empty() && err.contains(says), "{args:?}: {err}");
        assert_eq!(&std::fs::read_to_string(&file).expect("it is there"), text);
    }
    std::fs::write(&file, "[tokens.x]\nhash = \"sha256:0\"\nexpires = \"2027-02-30\"\n").expect("written");
    let (exit, _, err) = token(&scratch, &["list"]);
    assert!(exit == Exit::Code(2) && err.contains("config.toml:"), "{err}");
    // Without a daemon it is said how one comes to know.
    std::fs::write(&file, &headed).expect("the file is written");
    let (exit, out, err) = token(&scratch, &["rotate", "old", "--expires", "2d"]);
    assert!(
        exit == Exit::Code(0) && out.starts_with("acpd_") && err.contains("after `acpd reload`"),
        "{err}"
    );
}

// contract 7.2: a token past its time is refused with a reason of its own, and what it has open ends
#[test]
fn a_token_expires() {
    let scratch = world(&format!(
        "{}\n{}",
        entry("past", "expires = \"2020-01-01\""),
        entry("future", "scope = \"admin\"\nexpires = \"2099-01-01T00:00:00+01:00\"")
    ));
    let mut daemon = scratch.serve();
    let refused = ask(&daemon, "past", "GET", "/v1/sessions");
    let told = refused.json();
    assert_eq!((refused.status, &told["type"]), (401, &json!("urn:sandbox-agent:error:token_expired")));
    assert!(told["detail"].as_str().is_some_and(|detail| detail.contains("expired at 2020-01-01")), "{told}");
    assert_eq!(ask(&daemon, "future", "GET", "/v1/sessions").status, 200);
    let tokens = ask(&daemon, "future", "GET", "/v1/tokens").json()["tokens"].clone();
    assert_eq!(
        (&tokens[0]["name"], &tokens[0]["expires"], &tokens[0]["expired"]),
        (&json!("future"), &json!("2098-12-31T23:00:00.000Z"), &json!(false))
    );
    assert_eq!((&tokens[1]["expired"], tokens[1].get("lastUsed")), (&json!(true), None));
    // Its time is moved while something is open under it.
    let mut socket = WebSocket::open(daemon.connect(), "/acp", &[("Authorization", &bearer("future"))])
        .expect("it is good");
    let file = scratch.path("config.toml");
    let text = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, text.replace("2099-01-01", "2020-01-01")).expect("the file is written");
    assert_eq!(ask(&daemon, "future", "POST", "/v1/reload").status, 200);
    assert_eq!(socket.until_close().0, 1008, "it is over");
    assert_eq!(ask(&daemon, "future", "GET", "/v1/sessions").problem(), "token_expired");
    daemon.stop();
}

// contract 7.3: GET /v1/tokens has no secrets, needs admin, and knows the last use, over a restart and not over a rotation
#[test]
fn the_last_use_is_known() {
    let scratch = world(&[entry("all", "scope = \"admin\""), entry("some", "sees = \"all\"")].join("\n"));
    let mut daemon = scratch.serve();
    assert_eq!(ask(&daemon, "some", "GET", "/v1/tokens").status, 403);
    let answer = ask(&daemon, "all", "GET", "/v1/tokens");
    let text = String::from_utf8(answer.body.clone()).expect("text");
    assert!(!text.contains("sha256") && !text.contains(&bearer("all")), "{text}");
    let used = answer.json()["tokens"][1]["lastUsed"].clone();
    assert_eq!(answer.json()["tokens"][1]["sees"], "all");
    assert!(used.is_string(), "{text}");
    daemon.stop();
    let mut daemon = scratch.serve();
    assert_eq!(listed(&scratch)["tokens"][1]["lastUsed"], used);
    let (_, table, _) = token(&scratch, &["list"]);
    assert!(table.contains("LAST USED") && table.contains(" ago"), "{table}");
    made(&scratch, &["rotate", "some"]);
    assert_eq!(listed(&scratch)["tokens"][1].get("lastUsed"), None);
    daemon.stop();
}

// contract 7.3: GET /v1/stats has what is there now and steps of 10 s, for admin
#[test]
fn the_last_hour_is_told_in_steps() {
    let scratch =
        world(&[entry("all", "scope = \"admin\""), entry("some", "scope = \"control\"")].join("\n"));
    let mut daemon = scratch.serve();
    assert_eq!(ask(&daemon, "some", "GET", "/v1/stats").status, 403);
    let mut client = crate::door::client(&daemon, &scratch, "some");
    let session = client.new_session();
    assert_eq!(client.turn(&session, "echo hello"), "end_turn");
    let stats = ask(&daemon, "all", "GET", "/v1/stats").json();
    let now = &stats["now"];
    assert_eq!(
        (&stats["stepMs"], &now["sessions"], &now["agentProcesses"]),
        (&json!(10_000), &json!(1), &json!(1))
    );
    assert!(now["memoryBytes"].as_u64() > Some(1 << 20) && now["openFiles"].as_u64() > Some(3), "{stats}");
    let step = until("a step", || {
        let stats = ask(&daemon, "all", "GET", "/v1/stats").json();
        stats["steps"].get(0).cloned()
    });
    assert_eq!((&step["turns"], &step["turnsEnded"], &step["runs"]), (&json!(1), &json!(1), &json!(1)));
    assert!(step["events"].as_u64() > Some(2) && step["eventBytes"].as_u64() > Some(10), "{step}");
    assert!(step["requests"].as_u64() > Some(0) && step["at"].is_string(), "{step}");
    daemon.stop();
}
