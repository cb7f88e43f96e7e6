//! No daemon comes: what is said of agents that wait, and what becomes of sessions whose agents have ended meanwhile.

use crate::gap::gone;
use crate::session::{Session, keeping, of_kind, said, without_holes};
use crate::turns::{all_pieces, in_pieces};
use acpd_e2e::{Daemon, Exit, Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// What `acpd` says on this state directory, with its exit code.
fn acpd(scratch: &Scratch, words: &[&str]) -> (i32, String) {
    let state = scratch.state().display().to_string();
    let config = scratch.path("config.toml").display().to_string();
    let subcommands = if words[0] == "sessions" { 2 } else { 1 };
    let place = ["--state-dir", &state, "--config", &config];
    let args = [&words[..subcommands], &place, &words[subcommands..]].concat();
    let (exit, out, err) = scratch.run(&args);
    let Exit::Code(code) = exit else { panic!("{words:?}: {exit:?} {err}") };
    (code, out + &err)
}

fn done(scratch: &Scratch, words: &[&str]) -> String {
    let (code, told) = acpd(scratch, words);
    assert_eq!(code, 0, "{words:?}: {told}");
    told
}

fn events(scratch: &Scratch, session: &Session) -> Vec<Value> {
    let told = done(scratch, &["sessions", "events", &session.id, "--json"]);
    told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The names of what keepers have left.
fn left(scratch: &Scratch) -> Vec<String> {
    let files = std::fs::read_dir(scratch.state().join("keepers")).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().into_string().ok()).collect()
}

/// A session whose daemon is killed, and whose agent has ended since.
fn ended_meanwhile(scratch: &Scratch, prompt: &str, begun: impl FnOnce(&Daemon, &Session)) -> Session {
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, scratch, "example", prompt);
    begun(&daemon, &session);
    let pid = session.pid(&daemon);
    daemon.kill();
    gone(pid);
    until("the word of its end", || {
        let left = left(scratch);
        (left.len() == 1 && left[0].ends_with(".end")).then_some(())
    });
    session
}

fn in_a_turn(daemon: &Daemon, session: &Session) {
    session.event(daemon, "prompt");
}

fn kill_keeper(scratch: &Scratch) {
    let keepers = scratch.mark().running("acpd keeper");
    assert_eq!(keepers.len(), 1, "{keepers:?}");
    let keeper = i32::try_from(keepers[0].pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(keeper, Signal::KILL).expect("it lives");
}

// contract 7.3: a session whose agent was given up is shown as it will be recorded, and goes on as any that has ended
#[test]
fn a_session_that_was_given_up_goes_on_without_a_daemon() {
    let scratch = keeping("300ms");
    let session = ended_meanwhile(&scratch, "hang", in_a_turn);
    let before = left(&scratch);
    assert!(done(&scratch, &["sessions", "list"]).contains("ended: error"));
    let shown = done(&scratch, &["sessions", "show", &session.id]);
    assert!(shown.contains("no daemon came back in time") && !shown.contains("running for"), "{shown}");
    assert_eq!(left(&scratch), before, "a look changes nothing");

    let told = done(&scratch, &["run", "--session", &session.id, "hello"]);
    assert!(told.contains("hello"), "{told}");
    let events = events(&scratch, &session);
    without_holes(&events);
    let end = &of_kind(&events, "ended")[0]["terminationInfo"];
    assert_eq!((&end["cause"], &end["terminatedBy"]), (&json!("daemon_lost"), &json!("daemon")), "{end}");
    assert!(end["escalation"].is_array(), "{end}");
    assert_eq!(of_kind(&events, "run_started").len(), 2, "{events:?}");
    assert_eq!(left(&scratch), Vec::<String>::new());
}

// contract 7.3: what an agent said until its own end is recorded without a daemon, too; closing finds it ended
#[test]
fn an_end_in_the_gap_is_recorded_without_a_daemon() {
    let scratch = keeping("60s");
    let prompt = format!("{}\nexit 3", in_pieces(20));
    let session = ended_meanwhile(&scratch, &prompt, |daemon, session| session.updates(daemon, 30));
    assert!(done(&scratch, &["sessions", "show", &session.id]).contains("exit code   3"));
    let told = done(&scratch, &["sessions", "close", &session.id]);
    assert!(told.contains("had ended already"), "{told}");
    let events = events(&scratch, &session);
    without_holes(&events);
    assert_eq!(said(&events), all_pieces(20));
    let end = &of_kind(&events, "ended")[0]["terminationInfo"];
    assert_eq!((&end["cause"], &end["exitCode"]), (&json!("agent_crash"), &json!(3)), "{end}");
    assert_eq!(left(&scratch), Vec::<String>::new());
}

// contract 7.1: sessions prune removes what ended while no daemon was there
#[test]
fn what_was_given_up_is_pruned() {
    let scratch = keeping("300ms");
    ended_meanwhile(&scratch, "hang", in_a_turn);
    let told = done(&scratch, &["sessions", "prune", "--keep-bytes", "0"]);
    assert!(told.contains("removed 1 session"), "{told}");
    assert!(done(&scratch, &["sessions", "list"]).contains("no sessions"));
}

// contract 7.3: a session whose keeper was killed is not waited for
#[test]
fn a_killed_keeper_leaves_an_ended_session() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "hang");
    in_a_turn(&daemon, &session);
    let pid = session.pid(&daemon);
    until("it listens", || (left(&scratch).len() == 1).then_some(()));
    daemon.kill();
    kill_keeper(&scratch);
    gone(pid);
    assert_eq!(left(&scratch).len(), 1, "its name is there");
    assert!(done(&scratch, &["sessions", "list"]).contains("ended: error"));
    assert!(done(&scratch, &["run", "--session", &session.id, "hello"]).contains("hello"));
    assert_eq!(left(&scratch), Vec::<String>::new());
}

// contract 7.2: a keeper that is killed beside its daemon is no daemon that was lost, and its name does not stay
#[test]
fn a_keeper_that_is_killed_beside_its_daemon_is_named() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "hang");
    in_a_turn(&daemon, &session);
    until("it listens", || (left(&scratch).len() == 1).then_some(()));
    kill_keeper(&scratch);
    let end = session.event(&daemon, "ended")["terminationInfo"].clone();
    let message = end["message"].as_str().expect("a message");
    assert!(end["cause"] == "agent_crash" && message.contains("its keeper was lost"), "{end}");
    daemon.stop();
    let mut daemon = scratch.serve();
    assert_eq!(left(&scratch), Vec::<String>::new());
    daemon.stop();
}

// contract 7.3: how many wait, and for how long, is told by all that look
#[test]
fn those_that_wait_are_counted() {
    // Nine minutes for some time.
    let scratch = keeping("595s");
    let mut daemon = scratch.serve();
    let sessions = [(); 2].map(|()| Session::begin(&daemon, &scratch, "example", "hang"));
    sessions.iter().for_each(|session| in_a_turn(&daemon, session));
    daemon.kill();
    let words = "2 sessions wait for the next `acpd serve`, the first for 9m more";
    assert!(done(&scratch, &["sessions", "list"]).contains(words));
    let shown = done(&scratch, &["sessions", "show", &sessions[0].id]);
    let is_detached = |line: &str| line.starts_with("detached ") && line.contains(" for ");
    assert!(shown.lines().any(is_detached) && shown.contains("waits 9m more"), "{shown}");
    let (code, told) = acpd(&scratch, &["status"]);
    assert!(code == 4 && told.contains(words), "{told}");
    let (code, told) = acpd(&scratch, &["status", "--json"]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert!(code == 4 && told["waiting"] == 2 && told["waitingUntil"].is_string(), "{told}");
    let (code, told) = acpd(&scratch, &["doctor"]);
    assert!(code == 1 && told.contains(words) && told.contains("-> acpd serve"), "{told}");
    scratch.serve().stop();
}

// contract 7.2: one of several sessions of a process cannot be ended without a daemon, and it is said why
#[test]
fn one_of_several_sessions_of_a_process_waits() {
    let scratch = keeping("60s").example("shared", &[]).config("share_process = true");
    let mut daemon = scratch.serve();
    let sessions = [(); 2].map(|()| Session::begin(&daemon, &scratch, "shared", "hang"));
    sessions.iter().for_each(|session| in_a_turn(&daemon, session));
    daemon.kill();
    let (code, told) = acpd(&scratch, &["sessions", "terminate", &sessions[0].id]);
    assert!(code == 1 && told.contains("share_process in [agents.shared]"), "{told}");
    scratch.serve().stop();
}
