//! Several acpd on one state directory: a session is live in one of them, and its history is one.

use crate::dice::{Dice, number_from, seeds};
use crate::drive::Driver;
use crate::interleavings::{AGENTS, in_order, saw_what_is_stored, scratch, step};
use acpd_e2e::{Exit, PATIENCE, Scratch};
use rustix::process::Signal;
use serde_json::json;

const CASES: usize = 6;

fn start(scratch: &Scratch, dice: &mut Dice, pids: &mut Vec<u64>) -> Driver {
    let client = scratch.stdio(dice.pick(&AGENTS));
    pids.push(client.pid().into());
    let mut driver = Driver::new(client, scratch);
    driver.send("session/new", None);
    driver.wait_for_all_but_prompts();
    driver
}

/// Every error that names a process names one of ours.
fn names_known_processes(driver: &Driver, pids: &[u64]) {
    let errors = driver.client.received().iter().filter_map(|message| message.json.get("error"));
    for error in errors.filter(|error| error["data"]["pid"].is_number()) {
        let pid = error["data"]["pid"].as_u64().expect("a process id");
        assert!(pids.contains(&pid), "{error} names none of {pids:?}");
    }
}

fn play(seed: u64) {
    let mut dice = Dice::new(seed);
    let scratch = scratch();
    let (mut gone, mut pids) = (Vec::new(), Vec::new());
    let mut drivers: Vec<Driver> =
        (0..2 + dice.below(2)).map(|_| start(&scratch, &mut dice, &mut pids)).collect();
    for _ in 0..30 + dice.below(90) {
        let sessions: Vec<String> = drivers.iter().chain(&gone).flat_map(Driver::sessions).collect();
        let who = dice.below(drivers.len());
        if dice.once_in(30) {
            let new = start(&scratch, &mut dice, &mut pids);
            let mut old = std::mem::replace(&mut drivers[who], new);
            if dice.once_in(2) {
                old.client.signal(Signal::KILL);
            }
            old.client.close_input();
            old.client.read_to_end();
            gone.push(old);
        } else {
            step(&mut drivers[who], &mut dice, &sessions);
        }
    }
    for mut driver in drivers {
        driver.client.close_input();
        driver.client.read_to_end();
        driver.answered(true);
        gone.push(driver);
    }
    // Whatever the last ones left to others to find.
    let mut last = start(&scratch, &mut dice, &mut pids);
    last.client.finish();
    gone.push(last);
    let sessions = in_order(&scratch);
    for driver in &gone {
        driver.answered(false);
        names_known_processes(driver, &pids);
        saw_what_is_stored(driver, &sessions, Driver::judge_cut);
    }
}

// contract 6, TM-4, SE-13, UP-1
#[test]
fn whatever_several_processes_do() {
    for seed in seeds(number_from("ACPD_CHAOS_CASES", CASES)) {
        eprintln!("ACPD_SEED={seed}");
        play(seed);
    }
}

// contract 6: a session that is live in another process cannot be taken up, and the error names that process; once that
// is dead, whoever comes next finds the session lost, and goes on with it
#[test]
fn a_session_is_live_in_one_process() {
    let scratch = Scratch::new();
    let (mut owner, session) = scratch.session("example");
    assert_eq!(owner.turn(&session, "hello"), "end_turn");
    let (mut second, mut third) = (scratch.stdio("example"), scratch.stdio("example"));
    let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    for other in [&mut second, &mut third] {
        other.initialize();
        for method in ["session/resume", "session/prompt", "session/close", "_sandboxagent/session/terminate"]
        {
            let mut params = params.clone();
            params["prompt"] = json!([]);
            let error = other.refused(method, &params);
            assert_eq!(error["data"]["pid"], owner.pid(), "{method}: {error}");
        }
    }
    owner.signal(Signal::KILL);
    owner.read_to_end();
    second.call("session/resume", &params);
    assert_eq!(second.turn(&session, "again"), "end_turn");
    let error = third.refused("session/resume", &params);
    assert_eq!(error["data"]["pid"], second.pid(), "{error}");
    second.close_input();
    second.read_to_end();
    assert_eq!(second.exit_unread(PATIENCE), Some(Exit::Code(0)));
    third.call("session/load", &params);
    third.finish();
    owner.ended();
    assert_eq!(in_order(&scratch)[&session].causes(), ["daemon_lost", "daemon_shutdown", "daemon_shutdown"]);
}

// contract 1.3: a list in one process says what a session in another is doing, and so does its status
#[test]
fn what_a_session_does_is_known_in_other_processes() {
    let scratch = Scratch::new();
    let (mut owner, session) = scratch.session("example");
    let mut other = scratch.stdio("example");
    other.initialize();
    let mut state = || {
        let listed = other.call("session/list", &json!({}));
        let status = other.call("session/status", &json!({"sessionId": session}));
        let state = |holder: &serde_json::Value| holder["_meta"]["sandboxagent.dev"]["state"].clone();
        assert_eq!(state(&listed["sessions"][0]), state(&status), "{listed}");
        state(&status)
    };
    assert_eq!(state(), "idle");
    let slow = owner.prompt(&session, "begun\nhang");
    owner.until_text("begun");
    assert_eq!(state(), "running");
    owner.notify("session/cancel", &json!({"sessionId": session}));
    assert_eq!(owner.result(&slow)["stopReason"], "cancelled");
    assert_eq!(state(), "idle");
    let asking = owner.prompt(&session, "ask edit\nbegun\nhang");
    let is_asked = |message: &acpd_e2e::Message| message.method() == Some("session/request_permission");
    let asked = owner.until("the question", is_asked);
    assert_eq!(state(), "waiting");
    let result = json!({"outcome": {"outcome": "selected", "optionId": "allow-once"}});
    owner.write_line(json!({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}).to_string());
    owner.until_text("begun");
    assert_eq!(state(), "running");
    owner.call("session/close", &json!({"sessionId": session}));
    owner.result(&asking);
    assert_eq!(state(), "ended");
    // A next run begins without what the last one was doing, also when that was cut off.
    let params = json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []});
    owner.call("session/resume", &params);
    owner.prompt(&session, "afresh\nhang");
    owner.until_text("afresh");
    owner.signal(Signal::KILL);
    owner.read_to_end();
    let mut next = scratch.stdio("example");
    next.initialize();
    next.call("session/resume", &params);
    assert_eq!(state(), "idle");
    next.close_input();
    next.read_to_end();
    assert_eq!(next.exit_unread(PATIENCE), Some(Exit::Code(0)));
    other.finish();
    owner.ended();
}
