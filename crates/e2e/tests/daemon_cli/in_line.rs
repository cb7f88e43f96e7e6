//! Prompts in sessions that other clients prompt too (contract 7.1): what is shown of them, what stops them, and which agent
//! process has them.

use crate::cli::{args, done, run, start, state};
use acpd_e2e::{Exit, PseudoTerminal, Scratch, Started, Stopwatch, acpd, until};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// A session in which the turn of another client waits for an answer.
fn busy(scratch: &Scratch) -> String {
    let prompt = ["run", "--detach", "--keep-open", "ask edit Write it\nthe other answer"];
    let id = done(scratch, &prompt).trim_end().to_owned();
    until("a question", || (state(scratch, &id) == "waiting").then_some(()));
    id
}

/// Starts `acpd` with what it says on stderr among the lines of stdout, and waits until its prompt waits in line.
fn in_line(scratch: &Scratch, words: &[&str]) -> Started {
    let mut command = scratch.command("/bin/sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(acpd());
    command.args(args(scratch, words).iter().map(AsRef::<str>::as_ref));
    let mut started = scratch.start_command(command);
    while let Some(line) = started.next_line() {
        if line.contains("the prompt waits in line, behind 1") {
            return started;
        }
    }
    panic!("{words:?} does not wait: {:?}", started.end());
}

/// The events of a session of a kind.
fn events(scratch: &Scratch, id: &str, kind: &str) -> Vec<Value> {
    let all = done(scratch, &["sessions", "events", id, "--json"]);
    let all = all.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    all.filter(|event| event["kind"] == kind).collect()
}

/// Answers the other turn's question, which none but its client was to answer, and waits for its end.
fn let_go_on(scratch: &Scratch, id: &str) {
    done(scratch, &["sessions", "answer", id, "allow-once"]);
    let mut following = start(scratch, &["sessions", "events", id, "--follow", "--json"]);
    while let Some(line) = following.next_line() {
        if line.contains("\"kind\":\"turn_ended\"") {
            assert!(line.contains("end_turn"), "{line}");
            return;
        }
    }
}

// contract 7.1: a prompt in line shows its own turn, in every format; what is asked in the turn before is not its to answer
#[test]
fn a_prompt_in_line_shows_its_own_turn() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    for (words, exact) in [
        (vec!["run", "--format", "quiet", "--session", "ID", "mine"], Some("mine\n")),
        (vec!["sessions", "prompt", "ID", "mine"], None),
        (vec!["sessions", "prompt", "--json", "ID", "mine"], None),
    ] {
        let id = busy(&scratch);
        let words: Vec<&str> = words.into_iter().map(|word| if word == "ID" { &id } else { word }).collect();
        let waiting = in_line(&scratch, &words);
        let_go_on(&scratch, &id);
        let (exit, out, _) = waiting.end();
        assert_eq!(exit, Exit::Code(0), "{words:?}: {out}");
        assert!(out.contains("mine") && !out.contains("the other answer"), "{words:?}: {out}");
        assert!(exact.is_none_or(|exact| out == exact), "{words:?}: {out}");
        let prompts = events(&scratch, &id, "prompt");
        assert_eq!(prompts.len(), 2, "{prompts:?}");
        let updates = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mine = prompts[1]["seq"].as_u64().expect("a number");
        for update in updates.filter(|line| line["type"] == "update") {
            assert!(update["seq"].as_u64().is_some_and(|seq| seq > mine), "{update}");
        }
        done(&scratch, &["sessions", "close", &id]);
    }
    daemon.stop();
}

// contract 7.1, PR-9: --timeout and Ctrl-C take back the own prompt where it waits, and leave the turn of another client alone
#[test]
fn what_waits_in_line_is_taken_back() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let id = busy(&scratch);
    let (exit, out, err) = run(&scratch, &["run", "--timeout", "300ms", "--session", &id, "mine"]);
    assert_eq!((exit, out.as_str()), (Exit::Code(3), ""), "{err}");
    assert!(err.contains("taking the prompt back"), "{err}");
    assert!(err.contains("taken back before its turn began"), "{err}");
    let waiting = in_line(&scratch, &["sessions", "prompt", &id, "mine"]);
    let since = Stopwatch::start();
    waiting.signal(Signal::INT);
    let (exit, out, _) = waiting.end();
    assert_eq!(exit, Exit::Code(130), "{out}");
    // No event is to come, and none is waited for: that would take 10 s.
    assert!(since.passed() < Duration::from_secs(10), "{:?}", since.passed());
    let mut attached = PseudoTerminal::new().start(&scratch, &["attach", &id]);
    attached.wait_for("Ctrl-D leaves");
    let_go_on(&scratch, &id);
    assert_eq!(events(&scratch, &id, "prompt").len(), 1);
    assert_eq!(events(&scratch, &id, "cancel_requested").len(), 0);
    attached.press("\u{4}");
    attached.end();
    daemon.stop();
}

// contract 1, contract 7.1: a live session is prompted and attached to in its own process; none is started for that
#[test]
fn a_live_session_starts_no_second_process() {
    let scratch = Scratch::new();
    let starts = scratch.path("starts");
    let script = format!("echo started >> '{}'; exec '{}' example-agent", starts.display(), acpd().display());
    let scratch = scratch.agent("slow", "/bin/sh", &["-c".to_owned(), script]);
    let mut daemon = scratch.serve();
    let started = || std::fs::read_to_string(&starts).map_or(0, |text| text.lines().count());
    let prompt = ["run", "--agent", "slow", "--detach", "--keep-open", "hello"];
    let id = done(&scratch, &prompt).trim_end().to_owned();
    let told = done(&scratch, &["sessions", "prompt", &id, "one"]);
    assert!(told.contains("one"), "{told}");
    done(&scratch, &["run", "--session", &id, "two"]);
    done(&scratch, &["run", "--detach", "--session", &id, "three"]);
    let mut attached = PseudoTerminal::new().start(&scratch, &["attach", &id]);
    attached.wait_for("Ctrl-D leaves");
    attached.press("four\n");
    attached.wait_for("✓ end_turn");
    attached.press("\u{4}");
    attached.end();
    assert_eq!((started(), events(&scratch, &id, "prompt").len()), (1, 5));
    // One that has ended is taken up by one process.
    done(&scratch, &["sessions", "close", &id]);
    done(&scratch, &["run", "--session", &id, "five"]);
    assert_eq!(started(), 2);
    daemon.stop();
}

// contract 7.1: who attaches sees the history before what it is asked
#[test]
fn a_question_stands_behind_the_history() {
    let scratch = Scratch::new();
    let mut daemon = scratch.serve();
    let id = busy(&scratch);
    let mut attached = PseudoTerminal::new().start(&scratch, &["attach", &id]);
    attached.wait_for("Allow once");
    attached.press("\u{4}");
    let (shown, _) = attached.end();
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(at("command line: ask edit") < at("Allow once"), "{shown}");
    daemon.stop();
}
