//! Not ready, and ready again: a full disk, played by a limit on the size of files that goes away.
//!
//! Nothing can be written to a file then: a daemon with smaller files than the limit has room, and begins sessions.

use crate::journal::serve;
use acpd_e2e::{Scratch, limit_files, until, until_counted};
use serde_json::{Value, json};

/// Has another process write the log of a daemon, which may write to no file.
const PIPED: &str =
    r#"mkfifo "$LOG.pipe"; (env -i cat "$LOG.pipe" </dev/null >"$LOG" 2>/dev/null &); LOG="$LOG.pipe";"#;

// contract 6: a scrape shows whether sessions can begin, without any other request
#[test]
fn readiness_is_measured() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    until_counted(daemon.address(), "acpd_ready", 1);
    limit_files(daemon.pid(), Some(0));
    until_counted(daemon.address(), "acpd_ready", 0);
    limit_files(daemon.pid(), None);
    until_counted(daemon.address(), "acpd_ready", 1);
    daemon.stop();
}

// contract 6: a failure is told also right behind an answer that all is well
#[test]
fn a_failure_right_behind_a_good_answer_is_told() {
    let scratch = Scratch::new().example("stateless", &["--no-state"]);
    let (mut daemon, journal) = serve(&scratch, PIPED, "--log-format json", &[]);
    let mut client = daemon.over_websocket(&scratch, "/acp?agent=stateless");
    client.tolerant();
    client.initialize();
    daemon.until_ready();
    limit_files(daemon.pid(), Some(0));
    client.refused("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    journal.wait_for(&("WARN", "not ready", json!({"reason": null})));
    limit_files(daemon.pid(), None);
    journal.wait_for(&("WARN", "ready again", json!({"after_s": null})));
    drop(client);
    daemon.stop();
}

// contract 6: an operator is told when nothing can be recorded, for which sessions, and when that is over; nothing has to ask
#[test]
fn a_full_disk_is_told_and_its_end_too() {
    // An agent that writes no files of its own: the limit is for acpd.
    let scratch = Scratch::new().example("stateless", &["--no-state"]);
    let (mut daemon, journal) = serve(&scratch, PIPED, "--log-format json", &[]);
    let mut client = daemon.over_websocket(&scratch, "/acp?agent=stateless");
    client.tolerant();
    client.initialize();
    let session = client.new_session();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    limit_files(daemon.pid(), Some(0));
    let asked = client.prompt(&session, "hello");
    client.error(&asked);
    let reason = until("the reason", || {
        let lines = journal.lines();
        let mut reasons =
            lines.iter().filter(|line| line["message"] == "not ready").map(|line| &line["reason"]);
        reasons.find(|reason| !is_slow(reason)).cloned()
    });
    assert!(reason.as_str().expect("text").contains("event log"), "{reason}");
    journal.wait_for(&(
        "ERROR",
        "the session cannot be recorded, ending it",
        json!({"session": session, "run": 1}),
    ));
    client.refused("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    journal.wait_for(&("WARN", "session not created", json!({"agent": "stateless", "error": null})));

    limit_files(daemon.pid(), None);
    journal.wait_for(&("WARN", "ready again", json!({"after_s": null})));
    daemon.until_ready();
    drop(client);
    daemon.stop();
    let lines = journal.lines();
    assert_eq!(readiness_in(&lines), [("not ready", &reason), ("ready again", &Value::Null)], "{lines:#?}");
}

/// Lists the lines on the readiness of a daemon, with the reason. That its log is too slow to say so is told on a busy machine, too: that is
/// left out, and what was told before it may be told again.
fn readiness_in(lines: &[Value]) -> Vec<(&str, &Value)> {
    let (mut told, mut was_slow) = (Vec::new(), false);
    for line in lines {
        let (message, reason) = (line["message"].as_str().unwrap_or_default(), &line["reason"]);
        match message {
            "not ready" if is_slow(reason) => was_slow = true,
            "not ready" | "ready again" => {
                if !(was_slow && told.last() == Some(&(message, reason))) {
                    told.push((message, reason));
                }
                was_slow = false;
            }
            _ => {}
        }
    }
    told
}

/// True if a log that did not answer is why a daemon is not ready.
fn is_slow(reason: &Value) -> bool {
    reason.as_str().expect("text").contains("did not answer within")
}
