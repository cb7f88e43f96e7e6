//! Ends, signals, children and standard streams.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

use crate::peer::Peer;

fn pid_of(peer: &Peer) -> Pid {
    Pid::from_child(&peer.child)
}

fn lines(text: &str, count: usize) -> String {
    (1..=count).map(|number| format!("{text} {number}\n")).collect()
}

/// Process group and session as `/proc` gives them. The system calls cannot tell: for a leader
/// outside this pid namespace they return 0, which is not a process id.
fn group_and_session(pid: Pid) -> (String, String) {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.expect("the process lives");
    let mut fields = stat.rsplit(')').next().expect("one part").split_ascii_whitespace().skip(2);
    let mut field = || fields.next().expect("a field").to_owned();
    (field(), field())
}

// contract 4
#[test]
fn crash_says_a_lot_and_exits_with_1() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "please crash now");
    assert_eq!(peer.line(), None, "no answer");
    let (status, stderr) = peer.end();
    assert_eq!(status.code(), Some(1));
    assert_eq!(stderr, lines("crash line", 250));
}

// contract 4
#[test]
fn exit_and_signal_end_it_in_the_turn() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "before\nexit 7");
    assert_eq!(peer.message()["params"]["update"]["content"]["text"], "before");
    assert_eq!(peer.line(), None, "no answer");
    assert_eq!(peer.end().0.code(), Some(7));

    for (name, number) in [("KILL", 9), ("SIGTERM", 15), ("segv", 11), ("PIPE", 13)] {
        let mut peer = Peer::start(&[]);
        let session = peer.new_session();
        peer.begin(&session, &format!("signal {name}"));
        assert_eq!(peer.line(), None, "no answer");
        assert_eq!(peer.end().0.signal(), Some(number), "{name}");
    }
}

// contract 4, SU-2
#[test]
fn the_end_of_input_ends_it_with_0_also_in_a_turn() {
    for text in ["hello", "hang"] {
        let mut peer = Peer::start(&[]);
        let session = peer.new_session();
        peer.begin(&session, text);
        peer.close_stdin();
        assert_eq!(peer.end().0.code(), Some(0), "{text}");
    }
}

// contract 4
#[test]
fn ignore_sigterm_ignores_it_and_the_end_of_input() {
    let peer = Peer::start(&[]);
    kill_process(pid_of(&peer), Signal::TERM).expect("it lives");
    assert_eq!(peer.end().0.signal(), Some(15), "without the directive");

    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.play(&session, "ignore-sigterm");
    kill_process(pid_of(&peer), Signal::TERM).expect("it lives");
    peer.ping();
    let prompt = peer.begin(&session, "sleep 200\nstill here");
    peer.close_stdin();
    let played = peer.until_answer(prompt);
    assert_eq!((played.text().as_str(), played.stop_reason()), ("still here", "end_turn"));
    kill_process(pid_of(&peer), Signal::KILL).expect("it lives");
    assert_eq!(peer.end().0.signal(), Some(9));
}

// contract 4
#[test]
fn fork_leaves_a_child_behind_that_holds_the_pipes() {
    for (text, own_session) in [("fork", false), ("fork setsid", true)] {
        let mut peer = Peer::start(&[]);
        let session = peer.new_session();
        let text = peer.play(&session, text).text();
        let pid = text.strip_prefix("forked ").and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        let pid = pid.expect("a pid is reported");
        let (group, session) = group_and_session(pid);
        let (agent_group, agent_session) = group_and_session(pid_of(&peer));
        assert_eq!((group != agent_group, session != agent_session), (own_session, own_session));
        peer.close_stdin();
        assert_eq!(peer.child.wait().expect("the agent is ours").code(), Some(0));
        test_kill_process(pid).expect("the child outlives the agent");
        kill_process(pid, Signal::KILL).expect("it lives");
        assert_eq!(peer.line(), None, "the pipe ends with the child");
    }
}

// contract 4
#[test]
fn stderr_and_flood_stderr_write_what_they_say() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.play(&session, "stderr 3\nflood-stderr 200000");
    peer.close_stdin();
    assert_eq!(peer.end().1, lines("stderr line", 3) + &"x".repeat(200_000));
}

// contract 4, SU-8
#[test]
fn close_stdout_ends_the_output_and_not_the_agent() {
    let mut peer = Peer::start(&[]);
    let session = peer.new_session();
    peer.begin(&session, "close-stdout\nhello\nhang");
    assert_eq!(peer.line(), None);
    kill_process(pid_of(&peer), Signal::USR1).expect("it lives on");
    assert_eq!(peer.end().0.signal(), Some(10));
}

// contract 4, IN-6
#[test]
fn start_up_switches() {
    let peer = Peer::spawn(&["--exit-before-initialize", "5"]);
    let (status, stderr) = peer.end();
    assert_eq!((status.code(), stderr.as_str()), (Some(5), "example agent: exit before initialize\n"));

    let mut peer = Peer::spawn(&["--hang-initialize"]);
    peer.request("initialize", json!({"protocolVersion": 1}));
    peer.close_stdin();
    assert_eq!(peer.line(), None, "no answer");
    assert_eq!(peer.end().0.code(), Some(0));

    let mut peer = Peer::spawn(&["--no-state", "--banner"]);
    for _ in 0..2 {
        let line = peer.line().expect("a banner");
        assert!(serde_json::from_slice::<serde_json::Value>(&line).is_err());
    }
    assert_eq!(peer.initialize()["protocolVersion"], 1);
}

// contract 4
#[test]
fn help_is_there_and_bad_arguments_exit_with_2() {
    let mut peer = Peer::spawn(&["--help"]);
    let mut help = String::new();
    while let Some(line) = peer.line() {
        help.push_str(&String::from_utf8_lossy(&line));
    }
    assert_eq!(peer.end().0.code(), Some(0));
    for word in ["--without", "--legacy-stop", "stream N [BYTES]", "run-timeout", "close-stdout", "badutf8"] {
        assert!(help.contains(word), "{word}");
    }
    let (status, stderr) = Peer::spawn(&["--nonsense"]).end();
    assert_eq!(status.code(), Some(2));
    assert!(stderr.contains("--nonsense"), "{stderr}");
}
