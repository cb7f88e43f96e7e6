//! While no daemon is there: what the agent may do, how it ends, and who may look.

use crate::session::{Session, counted, keeping, of_kind, said, without_holes};
use crate::turns::{all_pieces, in_pieces};
use acpd_e2e::{Deadline, Http, PATIENCE, Scratch, taking_shell_agent, until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;

/// Waits until a process is gone.
pub(crate) fn gone(pid: u64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("not zero");
    let deadline = Deadline::after(PATIENCE);
    while test_kill_process(pid).is_ok() {
        assert!(!deadline.is_over(), "{pid:?} lives on");
        std::thread::yield_now();
    }
}

fn number(value: &serde_json::Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

// contract 7.3: an agent that ends while no daemon is there ends by its own cause, with all that it said
#[test]
fn an_end_in_the_gap_is_recorded() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let prompt = format!("{}\nstderr 3\nexit 3", in_pieces(20));
    let session = Session::begin(&daemon, &scratch, "example", &prompt);
    session.updates(&daemon, 30);
    let pid = session.pid(&daemon);
    daemon.kill();
    gone(pid);

    let mut daemon = scratch.serve();
    let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
    assert_eq!((&ended["cause"], &ended["exitCode"]), (&json!("agent_crash"), &json!(3)), "{ended}");
    assert_eq!(ended["stderr"]["totalLines"], 3, "{ended}");
    let events = session.events(&daemon);
    without_holes(&events);
    assert_eq!(said(&events), all_pieces(20));
    assert_eq!(std::fs::read_dir(scratch.state().join("keepers")).expect("it is there").count(), 0);
    daemon.stop();
}

/// The record of an agent in a turn without end that is gone before the next daemon comes, and how many were given up.
fn lost_while_it_hangs(keep: &str) -> (serde_json::Value, u64) {
    let scratch = keeping(keep);
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "hang");
    session.event(&daemon, "prompt");
    let pid = session.pid(&daemon);
    daemon.kill();
    gone(pid);

    let mut daemon = scratch.serve();
    let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
    let expired = counted(&daemon, "acpd_agents_expired_total{agent=\"example\"}");
    assert_eq!(counted(&daemon, "acpd_agents_taken_over_total{agent=\"example\"}"), 0);
    daemon.stop();
    (ended, expired)
}

// contract 7.2: an agent waits as long as it is kept, and ends then
#[test]
fn an_agent_ends_when_its_time_is_over() {
    let (ended, expired) = lost_while_it_hangs("300ms");
    assert_eq!(expired, 1);
    assert_eq!(
        (&ended["cause"], &ended["terminatedBy"]),
        (&json!("daemon_lost"), &json!("daemon")),
        "{ended}"
    );
    assert!(ended["escalation"].is_array(), "{ended}");
}

// contract 7.2: "0s" is the first version: agents end with their daemon
#[test]
fn nothing_is_kept_where_nothing_is_to_be() {
    let (ended, expired) = lost_while_it_hangs("0s");
    assert_eq!((&ended["cause"], expired), (&json!("daemon_lost"), 0));
}

// contract 7.2: an agent that waits is taken over also by a daemon whose own agents do not, and ends with that one: how long it waits
// is what the last daemon said
#[test]
fn the_last_daemon_says_how_long_an_agent_waits() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "hang");
    session.event(&daemon, "prompt");
    let pid = session.pid(&daemon);
    daemon.kill();

    let scratch = scratch.keep("0s");
    let mut daemon = scratch.serve();
    assert_eq!(session.pid(&daemon), pid);
    let other = Session::begin(&daemon, &scratch, "example", "hang");
    other.event(&daemon, "prompt");
    daemon.kill();
    gone(pid);
    let mut daemon = scratch.serve();
    for session in [session, other] {
        assert_eq!(session.event(&daemon, "ended")["terminationInfo"]["cause"], "daemon_lost");
    }
    daemon.stop();
}

// contract 7.2: an agent goes on whose entry is not in the configuration any more, as it does over a reload
#[test]
fn an_agent_goes_on_without_its_entry() {
    let scratch = keeping("60s").example("renamed", &[]);
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "renamed", "ask edit");
    let asked = session.event(&daemon, "permission_requested");
    let pid = session.pid(&daemon);
    daemon.kill();

    let scratch = scratch.bare().example("other", &[]);
    let mut daemon = scratch.serve();
    assert_eq!(session.pid(&daemon), pid);
    assert_eq!(session.answer(&daemon, &asked["seq"], "allow-once").status, 204);
    assert_eq!(session.event(&daemon, "turn_ended")["stopReason"], "end_turn");
    daemon.stop();
}

// contract 7.3: others look and change nothing; they name what they see
#[test]
fn others_leave_a_detached_session_alone() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "ask edit");
    session.event(&daemon, "permission_requested");
    let pid = session.pid(&daemon);
    let (events, last) = (session.events(&daemon).len(), session.info(&daemon)["updatedAt"].clone());
    daemon.kill();
    for _ in 0..3 {
        let listed = list(&scratch);
        assert_eq!(
            (&listed["sessionId"], &listed["state"]),
            (&json!(session.id), &json!("waiting")),
            "{listed}"
        );
    }
    let since = list(&scratch)["detachedSince"].as_str().expect("a time").to_owned();
    assert!(since.as_str() >= last.as_str().expect("a time"), "{since} {last}");
    let table = scratch.run(&["sessions", "list", "--state-dir", &scratch.state().display().to_string()]).1;
    assert!(table.contains("waiting, detached"), "{table}");
    // No other process begins a second agent for it.
    let mut client = scratch.stdio("example");
    client.initialize();
    let params = json!({"sessionId": session.id, "cwd": scratch.work(), "mcpServers": []});
    let loaded = client.call("session/load", &params)["_meta"]["sandboxagent.dev"].clone();
    let reason = loaded["reason"].as_str().expect("a reason");
    assert_eq!(loaded["resumable"], false, "{loaded}");
    assert!(reason.contains("waits for the next `acpd serve`") && reason.contains(" s more"), "{reason}");
    client.close_input();
    client.read_to_end();
    // An embedded host recovers what is dead, and this is not.
    scratch.run(&["run", "--embedded", "--agent", "example", "hello"]);
    let mut daemon = scratch.serve();
    assert_eq!(session.pid(&daemon), pid);
    let now = session.events(&daemon);
    assert_eq!(now.len(), events + 1, "{now:?}");
    assert_eq!(of_kind(&now, "reattached").len(), 1);
    assert!(number(&of_kind(&now, "reattached")[0]["gapMs"]) > 0);
    daemon.stop();
}

fn list(scratch: &Scratch) -> serde_json::Value {
    let state = scratch.state().display().to_string();
    let (_, out, _) = scratch.run(&["sessions", "list", "--json", "--state-dir", &state]);
    let listed: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    listed["sessions"][0].clone()
}

// contract 7.3: without a daemon `sessions terminate` stops an agent through its keeper, and no other one
#[test]
fn a_detached_session_is_terminated_without_a_daemon() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let sessions = [(); 2].map(|()| Session::begin(&daemon, &scratch, "example", "hang"));
    let [(first, pid), (other, other_pid)] = sessions.map(|session| {
        session.event(&daemon, "prompt");
        let pid = session.pid(&daemon);
        (session, pid)
    });
    daemon.kill();
    let state = scratch.state().display().to_string();
    let (exit, out, err) = scratch.run(&["sessions", "terminate", &first.id, "--state-dir", &state]);
    assert_eq!(exit, acpd_e2e::Exit::Code(0), "{out}{err}");
    gone(pid);

    let mut daemon = scratch.serve();
    let ended = first.event(&daemon, "ended")["terminationInfo"].clone();
    assert_eq!(
        (&ended["cause"], &ended["initiator"]),
        (&json!("client_terminate"), &json!("command line")),
        "{ended}"
    );
    assert_eq!(other.pid(&daemon), other_pid, "the other one goes on");
    assert_eq!(of_kind(&other.events(&daemon), "reattached").len(), 1);
    daemon.stop();
}

// contract 7.2: a keeper that was killed while no daemon was there is not waited for, and leaves nothing
#[test]
fn a_killed_keeper_is_not_waited_for() {
    let scratch = keeping("60s");
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, &scratch, "example", "hang");
    session.event(&daemon, "prompt");
    let pid = session.pid(&daemon);
    daemon.kill();
    let keepers = scratch.mark().running("acpd keeper");
    assert_eq!(keepers.len(), 1, "{keepers:?}");
    let keeper = i32::try_from(keepers[0].pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(keeper, Signal::KILL).expect("it lives");
    gone(pid);

    let mut daemon = scratch.serve();
    let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
    assert_eq!(ended["cause"], "daemon_lost", "{ended}");
    assert_eq!(std::fs::read_dir(scratch.state().join("keepers")).expect("it is there").count(), 0);
    daemon.stop();
}

// contract 7.2: what a keeper left of an end that was recorded before does not stay
#[test]
fn the_word_of_a_recorded_end_is_removed() {
    let scratch = keeping("60s");
    let keepers = scratch.state().join("keepers");
    std::fs::create_dir_all(&keepers).expect("made");
    std::fs::write(keepers.join("01a20b50-f616-73fa-a3f7-1df796db0b71.1.end"), "").expect("written");
    let mut daemon = scratch.serve();
    assert_eq!(std::fs::read_dir(&keepers).expect("it is there").count(), 0);
    daemon.stop();
}

// contract 7.2: what was not begun ends with its daemon: a start, a session that is being created, and a process kept ready
#[test]
fn what_was_not_begun_ends_with_its_daemon() {
    let scratch = keeping("60s").example("spare", &[]).config("spare = 1");
    let [hangs, silent] = ["hangs", "silent"].map(|name| scratch.path(name));
    let touch = |path: &std::path::Path| format!("touch '{}'; sleep 1000", path.display());
    let asked = format!("take; answer '{{\"protocolVersion\":1}}'; take; {}", touch(&silent));
    let scratch = scratch.shell("hangs", &taking_shell_agent(&touch(&hangs)));
    let scratch = scratch.shell("silent", &taking_shell_agent(&asked));
    let mut daemon = scratch.serve();
    let connections = ["hangs", "silent"].map(|agent| {
        let body = json!({"agent": agent, "cwd": scratch.work()}).to_string();
        let mut http = Http::on(daemon.connect());
        http.send("POST", "/v1/sessions", &[("Content-Type", "application/json")], &body);
        http
    });
    until("all are there", || {
        let is_ready = !scratch.mark().running("example-agent").is_empty();
        (is_ready && hangs.exists() && silent.exists()).then_some(())
    });
    daemon.kill();
    scratch.mark().only_left(&[]).expect("nothing waits");
    drop(connections);
    let keepers = std::fs::read_dir(scratch.state().join("keepers"));
    assert_eq!(keepers.into_iter().flatten().count(), 0);
    let mut daemon = scratch.serve();
    daemon.stop();
}
