//! `acpd top`: a table once, or in place on a terminal.

use crate::cli::{done, front_end, json, leave};
use acpd_e2e::{PseudoTerminal, Scratch};
use rustix::process::Signal;

/// What puts the screen back as it was.
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

// contract 6: one plain table without a terminal, and one JSON object
#[test]
fn a_table_is_printed_once() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "hello"]);
    let (mut client, session) = front_end(&scratch);
    client.prompt(&session, "title Some \u{1b}[31mtitle\nask edit x");
    client.until("the question", |message| message.method() == Some("session/request_permission"));
    for more in [&[][..], &["--once"]] {
        let table = done(&scratch, &[&["top"], more].concat());
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].starts_with("acpd ") && lines[0].contains("1 live, 1 waiting"), "{table}");
        assert!(lines[3].contains("waiting") && lines[3].contains("Some \u{fffd}[31mtitle"), "{table}");
        assert!(lines[4].contains("ended: completed") && !table.contains('\u{1b}'), "{table}");
    }
    let top = json(&scratch, &["top"]);
    assert_eq!(
        (&top["sessions"][0]["sessionId"], top["sessions"].as_array().unwrap().len()),
        (&session.into(), 2)
    );
    assert!(top["daemon"]["version"].is_string());
    leave(client);
    daemon.stop();
}

// contract 6: on a terminal it is refreshed in place, fits the window, and leaves the terminal as it was, however it ends
#[test]
fn a_terminal_is_used_and_given_back() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let ways: [(&str, Option<Signal>); 5] = [
        ("q", None),
        ("\u{3}", None),
        ("", Some(Signal::TERM)),
        ("", Some(Signal::HUP)),
        ("", Some(Signal::INT)),
    ];
    for (keys, signal) in ways {
        let mut running = PseudoTerminal::new().start(&scratch, &["top"]);
        running.wait_for("\u{1b}[?1049h");
        running.wait_for("0 live");
        let (client, session) = front_end(&scratch);
        running.wait_for(&session[session.len() - 6..]);
        running.resize(20, 3);
        running.wait_for("…");
        match signal {
            Some(signal) => running.signal(signal),
            None => running.press(keys),
        }
        let (shown, status) = running.end();
        assert!(status.code() == Some(0) && shown.ends_with(LEAVE), "{keys:?} {signal:?}: {shown:?}");
        done(&scratch, &["sessions", "delete", &session]);
        leave(client);
    }
    daemon.stop();
}

// contract 6: Ctrl-Z gives the screen and the keyboard back to the shell, and takes them again
#[test]
fn it_can_be_stopped_and_continued() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut running = PseudoTerminal::new().start(&scratch, &["top"]);
    running.wait_for("0 live");
    running.press("\u{1a}");
    running.wait_for(LEAVE);
    running.wait_until_stopped();
    running.signal(Signal::CONT);
    running.wait_for("\u{1b}[?1049h");
    running.wait_for("0 live");
    running.press("q");
    assert_eq!(running.end().1.code(), Some(0));
    daemon.stop();
}

// contract 6: a daemon that is away is waited for
#[test]
fn a_daemon_that_is_away_is_waited_for() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let mut running = PseudoTerminal::new().start(&scratch, &["top"]);
    running.wait_for("0 live");
    daemon.kill();
    running.wait_for("no daemon answers at");
    let mut daemon = scratch.serve();
    let (client, session) = front_end(&scratch);
    running.wait_for(&session[session.len() - 6..]);
    running.press("q");
    assert_eq!(running.end().1.code(), Some(0));
    leave(client);
    daemon.stop();
}
