//! A process that is kept ready (`spare = 1`, contract 1): sessions begin without waiting for a start, and nothing of it
//! is left.
//!
//! The agent of these tests waits at a gate before it answers anything, and the test opens the gate for one start at a
//! time: what is answered while the gate is shut did not wait for a start.

use crate::asking::{close, entry, take_part};
use acpd_e2e::{Client, Deadline, Gate, PATIENCE, Scratch, taking_shell_agent};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// The sessions of this agent answer a prompt with the agent's process id; `before` runs before anything is read, and
/// `after` once `initialize` was answered.
fn slow(scratch: Scratch, before: &str, after: &str) -> Scratch {
    let starts = scratch.path("starts").display().to_string();
    let body = format!(
        "echo $$ >>'{starts}'; {before}\n\
         take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{\"sessionCapabilities\":{{\"resume\":{{}}}}}}}}'\n\
         {after}\n\
         while take; do case $line in\n\
         *'\"session/new\"'*) answer '{{\"sessionId\":\"shell-1\"}}';;\n\
         *'\"session/resume\"'*) answer '{{}}';;\n\
         *) update $$; answer '{{\"stopReason\":\"end_turn\"}}';;\n\
         esac; done"
    );
    scratch.shell("slow", &taking_shell_agent(&body)).config("spare = 1")
}

/// An agent behind a gate.
fn gated() -> (Scratch, Gate) {
    let scratch = Scratch::new();
    let gate = Gate::new(scratch.path("gate"));
    let after = format!("echo $$ >>'{}'", scratch.path("initialized").display());
    (slow(scratch, &gate.line(), &after), gate)
}

/// The process ids in a file, in order.
fn pids(scratch: &Scratch, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(scratch.path(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// All starts so far.
fn starts(scratch: &Scratch) -> Vec<String> {
    pids(scratch, "starts")
}

/// Waits until a file has that many.
fn until(scratch: &Scratch, file: &str, count: usize) -> Vec<String> {
    let deadline = Deadline::after(PATIENCE);
    loop {
        let pids = pids(scratch, file);
        if pids.len() >= count {
            return pids;
        }
        assert!(!deadline.is_over(), "{count} were expected in {file}: {pids:?}");
        std::thread::yield_now();
    }
}

fn until_starts(scratch: &Scratch, count: usize) -> Vec<String> {
    until(scratch, "starts", count)
}

/// The process id that a session runs on.
fn process_of(client: &mut Client, session: &str) -> String {
    let asked = client.prompt(session, "who");
    client.result(&asked);
    client.text_since(&asked, session)
}

fn kill(pid: &str) {
    let pid = Pid::from_raw(pid.parse().expect("a process id")).expect("a process id");
    kill_process(pid, Signal::KILL).expect("it lives");
}

/// Initialized, with the spare that comes after at the gate.
fn initialized(scratch: &Scratch, gate: &Gate) -> Client {
    let mut client = scratch.stdio("slow");
    let asked = client.request("initialize", &json!({"protocolVersion": 1}));
    gate.let_one_through();
    client.result(&asked);
    client
}

// contract 1: `session/new` does not wait for a start, nor does what takes a session up
#[test]
fn sessions_begin_on_the_process_that_is_ready() {
    let (scratch, gate) = gated();
    let mut client = initialized(&scratch, &gate);
    // The process of `initialize` serves the first session.
    let first = client.new_session();
    gate.let_one_through();
    let second = client.new_session();
    let pids = until_starts(&scratch, 3);
    assert_eq!(process_of(&mut client, &first), pids[0]);
    assert_eq!(process_of(&mut client, &second), pids[1]);
    // It works elsewhere than where it was started: a session's directory is in its parameters.
    assert_eq!(entry(&mut client, &second)["cwd"], json!(scratch.work()));
    close(&mut client, &first);
    gate.let_one_through();
    take_part(&mut client, &scratch, "session/resume", &first);
    assert_eq!(process_of(&mut client, &first), pids[2]);
    assert_eq!(until_starts(&scratch, 4).len(), 4);
    // One stands at the gate now, and ends there.
    client.finish();
    assert_eq!(starts(&scratch).len(), 4);
}

// contract 1, SU-6: one that died while it waited is not given away; another takes its place
#[test]
fn a_dead_spare_is_replaced() {
    let (scratch, gate) = gated();
    let mut client = initialized(&scratch, &gate);
    gate.let_one_through();
    let first = client.new_session();
    kill(&until(&scratch, "initialized", 2)[1]);
    gate.let_one_through();
    let second = client.new_session();
    let pids = until_starts(&scratch, 4);
    assert_eq!(
        (process_of(&mut client, &first), process_of(&mut client, &second)),
        (pids[0].clone(), pids[2].clone())
    );
    client.finish();
}

// contract 1: whoever comes while one is being started waits for that one, and gets its failure
#[test]
fn a_start_in_progress_is_waited_for() {
    let (scratch, gate) = gated();
    let mut client = initialized(&scratch, &gate);
    let _first = client.new_session();
    until_starts(&scratch, 2);
    let params = json!({"cwd": scratch.work(), "mcpServers": []});
    let asked = client.request("session/new", &params);
    // Whoever comes third starts one of its own.
    let third = client.request("session/new", &params);
    let pids = until_starts(&scratch, 3);
    // Both stand at the gate; each needs its own line.
    kill(&pids[1]);
    let error = client.error(&asked);
    assert_eq!(error["data"]["terminationInfo"]["signal"], "SIGKILL", "{error}");
    gate.let_one_through();
    let session = client.result(&third)["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(process_of(&mut client, &session), pids[2]);
    // One that did not start is tried again when somebody asks, and given to whoever asks.
    assert_eq!(starts(&scratch).len(), 3);
    let asked = client.request("session/new", &params);
    gate.let_one_through();
    let session = client.result(&asked)["sessionId"].as_str().expect("an id").to_owned();
    let pids = until_starts(&scratch, 5);
    assert_eq!(process_of(&mut client, &session), pids[3]);
    client.finish();
}

// SU-6: what keeps dying is not started for ever; whoever asks starts one of its own then
#[test]
fn a_crash_loop_ends() {
    let scratch = slow(Scratch::new(), "", "exit 3");
    let mut client = scratch.stdio("slow");
    client.initialize();
    // The one that answered, the spare, and the three that replaced it.
    until_starts(&scratch, 5);
    let params = json!({"cwd": scratch.work(), "mcpServers": []});
    for asked in 1..=5 {
        let error = client.refused("session/new", &params);
        assert_eq!(error["data"]["terminationInfo"]["exitCode"], 3, "{error}");
        assert!(starts(&scratch).len() <= 5 + asked, "{:?}", starts(&scratch));
    }
    client.is_alone();
    client.finish();
}

// SU-5, SU-6: one that does not start says so to whoever asks, and is not tried behind anybody's back
#[test]
fn a_spare_that_does_not_start_is_told() {
    let scratch = slow(Scratch::new(), "echo why >&2; exit 4", "");
    let mut client = scratch.stdio("slow");
    for asked in 1..=3 {
        let error = client.refused("initialize", &json!({"protocolVersion": 1}));
        let info = &error["data"]["terminationInfo"];
        assert_eq!((&info["exitCode"], &info["stderr"]["head"]), (&json!(4), &json!("why")), "{error}");
        // The start that was under way when the first asked counts too.
        assert!(starts(&scratch).len() <= asked + 1, "{:?}", starts(&scratch));
    }
    client.finish();
}

// contract 3.2: a spare that ignores everything ends with acpd, beside the sessions and within the same bound, which acpd watches
#[test]
fn a_stubborn_spare_ends_with_acpd() {
    // What is ignored here is ignored by what it becomes.
    let scratch = slow(Scratch::new(), "trap '' TERM INT HUP", "exec tail -f /dev/null");
    let mut client = scratch.stdio("slow");
    client.initialize();
    until_starts(&scratch, 2);
    client.close_input();
    let (exit, stderr) = client.ended();
    assert_eq!((exit, stderr.contains("did not end in time")), (acpd_e2e::Exit::Code(0), false), "{stderr}");
}

// contract 1: one prompt needs one process
#[test]
fn a_single_prompt_starts_one() {
    let scratch = slow(Scratch::new(), "", "");
    let (config, state) = (scratch.config_file(), scratch.state());
    let places = ["--config", config.to_str().expect("text"), "--state-dir", state.to_str().expect("text")];
    let (exit, _, stderr) = scratch.run(&[&["run", "--agent", "slow"][..], &places, &["hello"]].concat());
    assert_eq!((exit, starts(&scratch).len()), (acpd_e2e::Exit::Code(0), 1), "{stderr}");
}
