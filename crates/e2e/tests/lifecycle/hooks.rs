//! Hooks (contract 7.2): told at least once, signed, tried again, and holding up nothing.

use crate::receiver::Receiver;
use acpd_e2e::{Client, Daemon, Exit, Http, Scratch, acpd, connect, until, until_counted};
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

const KEY: &str = "a key of the tests";

/// A hook of the configuration.
fn hook(on: &[&str], rest: &str) -> String {
    format!("[[hooks]]\non = {on:?}\n{rest}\n")
}

fn to(receiver: &Receiver, on: &[&str], rest: &str) -> String {
    hook(on, &format!("url = {:?}\n{rest}", receiver.url("/told?by=acpd")))
}

fn serve(scratch: &Scratch) -> Daemon {
    let mut command = scratch.command(acpd());
    command.env("ACPD_HOOK_SECRET", KEY);
    scratch.serve_by(command, "127.0.0.1:0")
}

fn session(daemon: &Daemon, scratch: &Scratch) -> (Client, String) {
    let mut client = daemon.over_websocket(scratch, "/acp");
    client.initialize();
    let session = client.new_session();
    (client, session)
}

fn counted(daemon: &Daemon, outcome: &str, count: u64) {
    until_counted(daemon.address(), &format!("acpd_hook_deliveries_total{{outcome={outcome:?}}}"), count);
}

fn none_waits(daemon: &Daemon) {
    until_counted(daemon.address(), "acpd_hook_deliveries_waiting", 0);
}

// contract 7.2: a server that fails, redirects and closes is told again, under the same id, signed each time
#[test]
fn a_turn_is_told_until_it_is_taken() {
    let (receiver, scratch) = (Receiver::new(), Scratch::new());
    let scratch = scratch.config(&to(&receiver, &["turn_ended"], "secret_env = \"ACPD_HOOK_SECRET\""));
    let mut daemon = serve(&scratch);
    let (mut client, session) = session(&daemon, &scratch);
    assert_eq!(client.turn(&session, "secret words"), "end_turn");
    let first = receiver.next();
    assert_eq!(first.first, "POST /told?by=acpd HTTP/1.1");
    let (told, delivery) = (first.json(), first.delivery());
    let expected = json!({"type": "turn_ended", "turn": 1, "stopReason": "end_turn",
        "session": {"id": session, "agent": "example", "cwd": scratch.work()}, "seq": told["seq"], "at": told["at"]});
    assert_eq!(told, expected, "and nothing of what was said");
    assert!(first.is_signed(KEY.as_bytes()) && !first.is_signed(b"another"));
    // The session goes on while the hook is tried.
    assert_eq!(client.turn(&session, "env ACPD_HOOK_SECRET"), "end_turn");
    assert!(!client.received().iter().any(|message| message.raw.contains(KEY)), "agents do not inherit it");
    first.answer("500 Internal Server Error");
    let again = |answer: &str| {
        let received = receiver.next();
        assert_eq!((received.delivery(), received.json()), (delivery.clone(), told.clone()));
        assert!(received.is_signed(KEY.as_bytes()));
        match answer {
            "" => drop(received),
            answer => received.answer(answer),
        }
    };
    again(&format!("302 Found\r\nLocation: {}", receiver.url("/elsewhere")));
    again("");
    again("204 No Content");
    // In order: the second turn behind the first.
    let second = receiver.next();
    assert_eq!(second.json()["turn"], 2);
    assert_ne!(second.delivery(), delivery);
    second.answer("200 OK");
    counted(&daemon, "delivered", 2);
    counted(&daemon, "failed", 3);
    none_waits(&daemon);
    drop(client);
    daemon.stop();
}

// contract 7.2: a daemon that is killed between the turn and its delivery tells it after its restart, under the same id
#[test]
fn what_was_not_told_is_told_after_a_kill() {
    let (receiver, scratch) = (Receiver::new(), Scratch::new().keep("0s"));
    let scratch = scratch.config(&to(&receiver, &["turn_ended", "run_ended"], ""));
    let mut daemon = serve(&scratch);
    let (mut client, session) = session(&daemon, &scratch);
    client.turn(&session, "hello");
    let first = receiver.next();
    assert!(!first.has("X-Acpd-Signature"));
    let (told, delivery) = (first.json(), first.delivery());
    daemon.kill();
    drop((first, client));
    let mut daemon = serve(&scratch);
    let again = receiver.next();
    assert_eq!((again.delivery(), again.json()), (delivery, told));
    assert!(receiver.is_silent(), "of one session, one behind the other");
    again.answer("200 OK");
    let lost = receiver.next();
    let is = lost.json();
    assert_eq!(
        (&is["type"], &is["cause"], &is["session"]["id"]),
        (&json!("run_ended"), &json!("daemon_lost"), &json!(session))
    );
    lost.answer("200 OK");
    counted(&daemon, "delivered", 2);
    none_waits(&daemon);
    daemon.stop();
    // What was told is not told again.
    let mut daemon = serve(&scratch);
    none_waits(&daemon);
    assert!(receiver.is_silent());
    daemon.stop();
}

// contract 7.2: what hooks are told of questions and stalls; what was said only with content = true
#[test]
fn content_is_told_where_it_is_wanted() {
    let (plain, full, scratch) = (Receiver::new(), Receiver::new(), Scratch::new().timeout("stall", "300ms"));
    let on = ["question", "turn_ended", "stalled", "run_ended"];
    let scratch = scratch.config(&to(&plain, &on, "")).config(&to(&full, &on, "content = true"));
    let mut daemon = serve(&scratch);
    let (mut client, session) = session(&daemon, &scratch);
    let asked = client.prompt(&session, "some words\nask edit Secret title");
    let next = |receiver: &Receiver| -> Value {
        // A slow machine may have it stall on the way.
        loop {
            let received = receiver.next();
            let json = received.json();
            received.answer("200 OK");
            if json["type"] != "stalled" {
                return json;
            }
        }
    };
    let options = json!([{"optionId": "allow-once", "name": "Allow once", "kind": "allow_once"}]);
    let is = next(&plain);
    assert_eq!(
        (&is["type"], &is["topic"], &is["kind"]),
        (&json!("question"), &json!("permission"), &json!("edit"))
    );
    assert_eq!((&is["question"], &is["options"][0]), (&is["seq"], &options[0]));
    assert!(!is.to_string().contains("Secret title"), "{is}");
    assert_eq!(next(&full)["title"], "Secret title");
    let question = client.until("a question", |it| it.method() == Some("session/request_permission"));
    let answer = json!({"jsonrpc": "2.0", "id": question.json["id"],
        "result": {"outcome": {"outcome": "selected", "optionId": "allow-once"}}});
    client.write_line(answer.to_string());
    client.result(&asked);
    let is = next(&plain);
    assert_eq!((&is["type"], is.get("prompt"), is.get("answer")), (&json!("turn_ended"), None, None));
    let is = next(&full);
    assert_eq!(is["prompt"], "some words\nask edit Secret title");
    assert!(is["answer"].as_str().expect("words").starts_with("some words"), "{is}");
    let asked = client.prompt(&session, "hang");
    let stalled = plain.next();
    let is = stalled.json();
    assert_eq!((&is["type"], &is["turn"]), (&json!("stalled"), &json!(2)));
    stalled.answer("200 OK");
    client.notify("session/cancel", &json!({"sessionId": session}));
    client.result(&asked);
    assert_eq!(next(&plain)["stopReason"], "cancelled");
    client.call("session/close", &json!({"sessionId": session}));
    let is = next(&plain);
    assert_eq!(
        (&is["type"], &is["cause"], &is["turnActive"]),
        (&json!("run_ended"), &json!("client_close"), &json!(false))
    );
    drop(client);
    daemon.stop();
}

// contract 7.2: 10 s for each; a command gets the body on stdin and leaves nothing; a hook that hangs holds up no other
#[test]
fn what_hangs_is_left() {
    let (sluggish, brisk, scratch) = (Receiver::new(), Receiver::new(), Scratch::new());
    let [body, environment, begun] = ["body", "environment", "begun"].map(|name| scratch.path(name));
    let script = format!(
        "cat > {}; env > {}; sleep 4321 & : > {}; exec sleep 4321",
        body.display(),
        environment.display(),
        begun.display()
    );
    let scratch = scratch
        .config(&to(&sluggish, &["turn_ended"], ""))
        .config(&to(&brisk, &["turn_ended"], ""))
        .config(&hook(&["turn_ended"], &format!("command = [\"sh\", \"-c\", {script:?}]")));
    let mut daemon = serve(&scratch);
    let (mut client, session) = session(&daemon, &scratch);
    client.turn(&session, "hello");
    brisk.next().answer("200 OK");
    let hanging = sluggish.next();
    until("the command runs", || begun.exists().then_some(()));
    let told: Value = serde_json::from_slice(&fs::read(&body).expect("it was told")).expect("JSON");
    assert_eq!(told["type"], "turn_ended");
    let environment = fs::read_to_string(&environment).expect("it has one");
    assert!(environment.contains("HOME=") && !environment.contains("ACPD_HOOK_SECRET"), "{environment}");
    // Both are left after ten seconds, and nothing of the command lives.
    hanging.until_left();
    counted(&daemon, "failed", 2);
    until("nothing of it is left", || {
        let running = scratch.mark().running("sleep");
        // It may have been started again.
        running.is_empty().then_some(())
    });
    drop(client);
    daemon.stop();
}

// contract 7.2: a reload takes new hooks, which begin with what happens from then on
#[test]
fn a_reload_takes_new_hooks() {
    let (receiver, scratch) = (Receiver::new(), Scratch::new());
    let mut daemon = serve(&scratch);
    let (mut client, session) = session(&daemon, &scratch);
    client.turn(&session, "before");
    let reload = |config: &str| {
        fs::write(scratch.path("config.toml"), config).expect("the configuration is written");
        Http::on(connect(daemon.address())).request("POST", "/v1/reload", &[], "")
    };
    let refused = reload(&to(&receiver, &["turn_ended"], "secret_env = \"ACPD_NO_SUCH\""));
    assert_eq!(refused.status, 422);
    assert!(refused.json()["detail"].as_str().expect("words").contains("ACPD_NO_SUCH is not set"));
    assert_eq!(reload(&to(&receiver, &["turn_ended"], "")).status, 200);
    client.turn(&session, "after");
    let told = receiver.next();
    assert_eq!(told.json()["turn"], 2);
    // Taken out while it is being told: it is not told any more.
    assert_eq!(reload("").status, 200);
    told.until_left();
    none_waits(&daemon);
    client.turn(&session, "hello");
    drop(client);
    daemon.stop();
    assert!(receiver.is_silent());
}

/// Overwrites all of a database but its first page, while a daemon has it open, which reads it anew behind that.
fn damage(file: &Path) {
    let other = rusqlite::Connection::open(file).expect("it is a database");
    let number = |pragma: &str| -> i64 { other.query_row(pragma, [], |row| row.get(0)).expect("a number") };
    assert_eq!(number("PRAGMA wal_checkpoint(TRUNCATE)"), 0, "nobody is busy with it");
    let (page, version) = (number("PRAGMA page_size") as u64, number("PRAGMA user_version"));
    let opened = OpenOptions::new().write(true).open(file).expect("it is there");
    let rest = opened.metadata().expect("it is open").len() - page;
    opened.write_all_at(&vec![7; rest as usize], page).expect("it can be written");
    other.execute_batch(&format!("PRAGMA user_version = {version}")).expect("the first page is whole");
}

// contract 7.1: a list for hooks that is damaged while a daemon has it open is told once, as what it is, and sessions go on
#[test]
fn a_list_that_is_damaged_while_it_is_open_is_told_once() {
    let (receiver, scratch) = (Receiver::new(), Scratch::new());
    let scratch = scratch.config(&to(&receiver, &["turn_ended"], ""));
    scratch.exempt_logs("the list for hooks is damaged");
    let mut daemon = serve(&scratch);
    let (mut client, session) = session(&daemon, &scratch);
    client.turn(&session, "hello");
    receiver.next().answer("200 OK");
    none_waits(&daemon);
    damage(&scratch.state().join("hooks.db"));
    for _ in 0..3 {
        assert_eq!(client.turn(&session, "hello"), "end_turn");
    }
    drop(client);
    let told = daemon.stop();
    let says =
        |line: &&str| line.contains("ERROR") && line.contains("(hooks.db) is damaged, and sessions go on");
    let said: Vec<&str> = told.lines().filter(says).collect();
    assert!(said.len() == 1 && said[0].contains("move it away"), "{told}");
}

// contract 7.2: https, or http on loopback; what is wrong is told with its place, and nothing is started
#[test]
fn a_hook_that_cannot_be_is_refused() {
    let good = "url = \"https://example.org/\"";
    for (config, place, words) in [
        (hook(&["turn_ended"], "url = \"http://example.org/x\""), "4:7", "\"url\" in [hooks]: must be https"),
        (hook(&["turn_ends"], good), "3:7", "\"on\" in [hooks]: \"turn_ends\" is unknown"),
        (hook(&[], good), "2:1", "must name something"),
        (hook(&["stalled"], ""), "2:1", "either \"url\" or \"command\""),
        (hook(&["stalled"], &format!("{good}\ncommand = [\"x\"]")), "2:1", "either \"url\" or \"command\""),
        (hook(&["stalled"], &format!("{good}\nsecret_env = \"KEY\"")), "5:14", "must begin with \"ACPD_\""),
        (hook(&["stalled"], &format!("{good}\nsecret = \"x\"")), "5:1", "unknown key \"secret\" in [hooks]"),
        ([hook(&["stalled"], good), hook(&["question"], good)].concat(), "", "lead to the same place"),
        (
            hook(&["stalled"], &format!("{good}\nsecret_env = \"ACPD_NO_SUCH\"")),
            "",
            "ACPD_NO_SUCH is not set",
        ),
    ] {
        let scratch = Scratch::new().config(&config);
        let (state, file) = (scratch.state(), scratch.path("config.toml"));
        fs::write(&file, format!("# hooks\n{config}")).expect("the configuration is written");
        let places = [state.to_str(), file.to_str()].map(|path| path.expect("scratch paths are text"));
        let (exit, out, err) = scratch.run(&[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--state-dir",
            places[0],
            "--config",
            places[1],
        ]);
        assert_eq!((exit, &*out), (Exit::Code(2), ""), "{config}: {err}");
        assert!(err.contains(place) && err.contains(words), "{config}: {err}");
    }
}
