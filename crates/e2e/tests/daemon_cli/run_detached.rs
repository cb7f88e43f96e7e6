//! `acpd run --detach` (contract 7.1): a turn that is started and left.

use crate::cli::{done, fails, front_end, json, leave, run, start};
use acpd_e2e::{Exit, Scratch, run_lines, until};
use serde_json::Value;

/// Follows a session to its end.
fn follow_to_the_end(scratch: &Scratch, id: &str) {
    let (exit, _, err) = start(scratch, &["sessions", "events", id, "--follow"]).end();
    assert_eq!(exit, Exit::Code(0), "{err}");
}

// contract 7.1: --detach starts the turn in the daemon, prints the session's id and leaves; the daemon closes the session
// after the turn
#[test]
fn a_turn_is_started_and_left() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let flags = ["--detach", "--title", "Nightly", "--model", "example-large"];
    let (exit, out, err) = run(&scratch, &[&["run"], &flags[..], &["ask edit Write it\nhello"]].concat());
    assert_eq!(exit, Exit::Code(0), "{err}");
    let id = out.trim_end();
    let short = &id[id.len() - 8..];
    assert!(err.contains(&format!("`acpd sessions events {short} --follow")), "{err}");
    let shown = json(&scratch, &["sessions", "show", id]);
    assert_eq!((&shown["title"], &shown["model"]), (&"Nightly".into(), &"example-large".into()), "{shown}");
    // It waits for an answer, so it lives; then it goes on alone.
    let mut events = start(&scratch, &["sessions", "events", id, "--follow"]);
    while let Some(line) = events.next_line() {
        if line.contains("permission") {
            break;
        }
    }
    done(&scratch, &["sessions", "answer", id, "allow-once"]);
    follow_to_the_end(&scratch, id);
    drop(events);
    let shown = json(&scratch, &["sessions", "show", id]);
    let info = &shown["terminationInfo"];
    assert_eq!((&info["reason"], &info["cause"]), (&"completed".into(), &"client_close".into()), "{shown}");
    // Once more in the same session, for a program: it is resumed, and closed again.
    let lines = run_lines(&done(&scratch, &["run", "-c", "--detach", "--json", "hello"]));
    assert_eq!((lines.len(), &lines[0]["sessionId"]), (2, &id.into()));
    // There is no end of the turn to tell.
    assert_eq!((&lines[1]["sessionId"], lines[1].get("stopReason")), (&id.into(), None));
    follow_to_the_end(&scratch, id);
    daemon.stop();
}

// contract 7.3: it is closed when a turn has ended and no prompt waits: what was accepted has its turn
#[test]
fn a_prompt_in_line_has_its_turn_first() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let id = done(&scratch, &["run", "--detach", "ask edit"]).trim_end().to_owned();
    until("a question", || (json(&scratch, &["sessions", "show", &id])["state"] == "waiting").then_some(()));
    let told = done(&scratch, &["sessions", "prompt", &id, "--no-wait", "mine"]);
    assert!(told.contains("behind 1"), "{told}");
    done(&scratch, &["sessions", "answer", &id, "allow-once"]);
    follow_to_the_end(&scratch, &id);
    let events = done(&scratch, &["sessions", "events", &id, "--json"]);
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let reasons = events.iter().filter(|event| event["kind"] == "turn_ended");
    let reasons: Vec<_> = reasons.map(|event| &event["stopReason"]).collect();
    assert_eq!(reasons, ["end_turn", "end_turn"], "{events:?}");
    let shown = json(&scratch, &["sessions", "show", &id]);
    let end = &shown["terminationInfo"];
    assert_eq!((&end["cause"], &end["initiator"]), (&"client_close".into(), &"acpd run".into()), "{shown}");
    daemon.stop();
}

// contract 7.1: --keep-open; a session that was live before lives on; no daemon: 4
#[test]
fn a_session_may_stay_open_behind_it() {
    let scratch = Scratch::new();
    scratch.config_file();
    let told = fails(&scratch, 4, &["run", "--detach", "hello"]);
    assert!(told.contains("--detach: there is no daemon"), "{told}");
    let mut daemon = scratch.serve();
    let id = done(&scratch, &["run", "--detach", "--keep-open", "hello"]).trim_end().to_owned();
    let (mut client, live) = front_end(&scratch);
    done(&scratch, &["run", "--session", &live, "--detach", "hello"]);
    for session in [&id, &live] {
        let mut events = start(&scratch, &["sessions", "events", session, "--follow", "--json"]);
        while let Some(line) = events.next_line() {
            if line.contains("\"turn_ended\"") {
                break;
            }
        }
        assert_eq!(json(&scratch, &["sessions", "show", session])["ended"], false, "{session}");
    }
    client.turn(&live, "hello");
    for wrong in [["--detach", "--timeout=1s"], ["--detach", "--embedded"], ["--keep-open", "--json"]] {
        fails(&scratch, 2, &[&["run"], &wrong[..], &["hello"]].concat());
    }
    leave(client);
    daemon.stop();
}
