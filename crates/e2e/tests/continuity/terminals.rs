//! Commands of an agent's terminals outlive the daemon as the agent does.

use crate::gap::gone;
use crate::session::{Session, keeping, of_kind, said, without_holes};
use acpd_e2e::{Daemon, Deadline};
use serde_json::{Value, json};
use std::time::Duration;

/// What terminals wrote, as the log has it.
fn written(events: &[Value]) -> String {
    of_kind(events, "terminal").iter().filter_map(|event| event["output"].as_str()).collect()
}

/// The ends of terminals.
fn ends(events: &[Value]) -> Vec<&Value> {
    of_kind(events, "terminal").into_iter().filter(|event| event["exitStatus"].is_object()).collect()
}

fn written_until(session: &Session, daemon: &Daemon, text: &str) -> String {
    loop {
        let written = written(&session.events(daemon));
        if written.contains(text) {
            return written;
        }
        let last = session.events(daemon).len() as u64;
        session.event_after(daemon, last.saturating_sub(1), "terminal");
    }
}

// contract 7.3: a command goes on, the agent that waits for it gets its output and its real end
#[test]
fn a_command_outlives_its_daemon() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let script = "echo begun $$; until [ -e go ]; do sleep 0.01; done; echo over; exit 3";
    let session = Session::begin(&daemon, &scratch, "example", &format!("run sh -c '{script}'"));
    let begun = written_until(&session, &daemon, "\n");
    let pid: u64 = begun.trim().strip_prefix("begun ").expect("its number").parse().expect("a number");
    daemon.kill();

    let mut daemon = scratch.serve();
    std::fs::write(scratch.work().join("go"), "").expect("written");
    let ended = session.event(&daemon, "turn_ended");
    assert_eq!(ended["stopReason"], "end_turn", "{ended}");
    let events = session.events(&daemon);
    without_holes(&events);
    assert_eq!(written(&events), format!("begun {pid}\nover\n"));
    let ends = ends(&events);
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((&ends[0]["state"], &ends[0]["exitStatus"]["exitCode"]), (&json!("finished"), &json!(3)));
    let answer = said(&events);
    assert!(answer.contains('3') && answer.contains(&format!("begun {pid}\nover\n")), "{answer}");
    session.close(&daemon);
    daemon.stop();
}

// contract 7.3: SIGKILL ten times, and each word of a command is in the log once
#[test]
fn each_word_of_a_command_is_recorded_once() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let script = "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); sleep 0.01; done";
    let session = Session::begin(&daemon, &scratch, "example", &format!("run sh -c '{script}'"));
    written_until(&session, &daemon, "7");
    for kill in 0..10 {
        let moment = Deadline::after(Duration::from_micros((kill * 7919) % 120_000));
        while !moment.is_over() {
            std::thread::yield_now();
        }
        daemon.kill();
        daemon = scratch.serve();
    }
    session.event(&daemon, "turn_ended");
    // What a command said, and its end, may come behind the turn.
    acpd_e2e::until("the end of the command", || ends(&session.events(&daemon)).first().map(|_| ()));
    let events = session.events(&daemon);
    let all: String = (0..300).map(|number| format!("{number}\n")).collect();
    assert_eq!(written(&events), all);
    assert_eq!(ends(&events).len(), 1);
    daemon.stop();
}

// contract 7.3: a command is never started twice, and each request for one is answered
#[test]
fn no_command_is_started_twice() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let prompt: Vec<_> = (0..60).map(|number| format!("run sh -c 'echo {number} >> ran'")).collect();
    let session = Session::begin(&daemon, &scratch, "example", &prompt.join("\n"));
    for kill in 0..10 {
        let moment = Deadline::after(Duration::from_micros((kill * 4177) % 30_000));
        while !moment.is_over() {
            std::thread::yield_now();
        }
        daemon.kill();
        daemon = scratch.serve();
    }
    session.event(&daemon, "turn_ended");
    let ran = std::fs::read_to_string(scratch.work().join("ran")).expect("some ran");
    let mut ran: Vec<usize> = ran.lines().map(|line| line.parse().expect("a number")).collect();
    // One that is being ended may do something yet.
    ran.sort_unstable();
    assert!(ran.windows(2).all(|two| two[0] < two[1]), "once each: {ran:?}");
    let interrupted = said(&session.events(&daemon)).matches("acpd was restarted").count();
    assert!(ran.len() + interrupted >= 60, "{} ran, {interrupted} were interrupted", ran.len());
    session.close(&daemon);
    daemon.stop();
    let left: Vec<_> = std::fs::read_dir(scratch.state().join("keepers")).expect("it is there").collect();
    assert!(left.is_empty(), "no keeper and no end is left: {left:?}");
}

// contract 7.3: a session that ends takes its commands along, also those that were taken over
#[test]
fn commands_end_with_their_session() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "run sh -c 'echo $$; exec sleep 600'");
    let pid = written_until(&session, &daemon, "\n").trim().parse().expect("a number");
    daemon.kill();
    let mut daemon = scratch.serve();
    session.close(&daemon);
    gone(pid);
    assert_eq!(ends(&session.events(&daemon)).len(), 1);
    daemon.stop();
}
