//! Starts that fail, and several at once: whoever serves in the end has every agent that waits.

use crate::gap::gone;
use crate::session::{Session, keeping};
use acpd_e2e::{Daemon, Exit, Http, Scratch, acpd, until};
use serde_json::json;
use std::net::TcpListener;
use std::process::Stdio;

/// A daemon that was killed while a session's agent waits for an answer: the session, its question, and the agent.
fn waiting(scratch: &Scratch) -> (Session, serde_json::Value, u64) {
    let mut daemon = scratch.serve();
    let session = Session::begin(&daemon, scratch, "example", "ask edit");
    let asked = session.event(&daemon, "permission_requested")["seq"].clone();
    let pid = session.pid(&daemon);
    daemon.kill();
    (session, asked, pid)
}

/// The session goes on in this daemon: the same agent gets its answer, and the turn ends.
fn goes_on(daemon: &Daemon, (session, asked, pid): &(Session, serde_json::Value, u64)) {
    assert_eq!(session.pid(daemon), *pid);
    assert_eq!(session.answer(daemon, asked, "allow-once").status, 204);
    assert_eq!(session.event(daemon, "turn_ended")["stopReason"], "end_turn");
}

/// The arguments of `acpd serve` on this address.
fn serve_on(scratch: &Scratch, listen: &str) -> Vec<String> {
    let (state, config) =
        (scratch.state().display().to_string(), scratch.config_file().display().to_string());
    ["serve", "--listen", listen, "--state-dir", &state, "--config", &config].map(str::to_owned).into()
}

fn fails(scratch: &Scratch, args: &[String]) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (exit, out, err) = scratch.run(&args);
    assert!(exit == Exit::Code(1) && out.is_empty(), "{exit:?} {out}{err}");
    err
}

// contract 7.2: a start that finds its port taken, or cannot say where it listens, leaves agents as a crash would
#[test]
fn a_start_that_fails_leaves_agents_to_the_next_one() {
    let scratch = keeping("60s");
    let left = waiting(&scratch);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let err = fails(&scratch, &serve_on(&scratch, &address));
    assert!(err.contains("cannot listen on") && !err.contains("taken over"), "{err}");

    let mut command = scratch.command(acpd());
    command.args(serve_on(&scratch, "127.0.0.1:0")).stdin(Stdio::null()).stderr(Stdio::null());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let status = command.stdout(full).status().expect("acpd starts");
    assert_eq!(status.code(), Some(1), "nobody is told where it listens");

    let mut daemon = scratch.serve();
    goes_on(&daemon, &left);
    daemon.stop();
}

// contract 7.2: of several daemons that start at once, one serves and has every agent; the others say so and change nothing
#[test]
fn of_several_starts_one_has_everything() {
    let scratch = keeping("60s");
    for starts in [2, 4] {
        let left = waiting(&scratch);
        let args = serve_on(&scratch, "127.0.0.1:0");
        let all: Vec<_> = (0..starts)
            .map(|_| scratch.start(&args.iter().map(String::as_str).collect::<Vec<_>>()))
            .collect();
        let (mut served, mut refused) = (Vec::new(), 0);
        for mut one in all {
            match one.next_line() {
                Some(line) => served.push((one, line)),
                None => {
                    let (exit, _, err) = one.end();
                    assert!(
                        exit == Exit::Code(1) && err.contains("serves this state directory already"),
                        "{err}"
                    );
                    refused += 1;
                }
            }
        }
        assert_eq!((served.len(), refused), (1, starts - 1));
        let (winner, line) = served.remove(0);
        let address = line.split("://").nth(1).expect("an address").parse().expect("an address");
        let post = |path: String, body: serde_json::Value| {
            let json = ("Content-Type", "application/json");
            Http::on(acpd_e2e::connect(address)).request("POST", &path, &[json], &body.to_string())
        };
        let (session, asked, pid) = &left;
        let info = Http::on(acpd_e2e::connect(address)).request("GET", &session.path(""), &[], "").json();
        assert_eq!(info["metadata"]["agentPid"], *pid, "{info}");
        let outcome = json!({"outcome": "selected", "optionId": "allow-once"});
        assert_eq!(post(session.path("/answer"), json!({"question": asked, "outcome": outcome})).status, 204);
        assert_eq!(post(session.path("/terminate"), json!({})).status, 204);
        winner.signal(rustix::process::Signal::TERM);
        assert_eq!(winner.end().0, Exit::Code(0));
    }
}

/// Takes the files of all hosts away: as after a version of acpd whose start has failed behind the adoption.
fn forget_hosts(scratch: &Scratch) {
    let hosts = std::fs::read_dir(scratch.state().join("hosts")).expect("it is there");
    hosts.flatten().for_each(|host| std::fs::remove_file(host.path()).expect("removed"));
}

// contract 6, contract 7.2: an agent whose last host has left no file is adopted by the next daemon
#[test]
fn an_agent_of_a_host_without_a_file_is_adopted() {
    let scratch = keeping("60s");
    let left = waiting(&scratch);
    forget_hosts(&scratch);
    let mut daemon = scratch.serve();
    goes_on(&daemon, &left);
    daemon.stop();
}

// contract 6: a session whose agent has ended, of a host that left no file, can be terminated, resumed and deleted
#[test]
fn an_ended_agent_of_a_host_without_a_file_leaves_a_session_that_can_be_used() {
    let scratch = keeping("300ms");
    let (first, _, pid) = waiting(&scratch);
    gone(pid);
    forget_hosts(&scratch);
    let state = scratch.state().display().to_string();
    let (exit, out, err) = scratch.run(&["sessions", "terminate", &first.id, "--state-dir", &state]);
    assert_eq!(exit, Exit::Code(0), "{out}{err}");

    let (second, _, pid) = waiting(&scratch);
    gone(pid);
    forget_hosts(&scratch);
    let mut daemon = scratch.serve();
    assert_eq!(second.event(&daemon, "ended")["terminationInfo"]["cause"], "daemon_lost");
    let resumed = crate::session::post(&daemon, &second.path("/resume"), &json!({}));
    assert_eq!(resumed.status, 200, "{}", resumed.json());
    for session in [first, second] {
        let deleted = Http::on(daemon.connect()).request("DELETE", &session.path(""), &[], "");
        assert_eq!(deleted.status, 204);
    }
    until("nothing is left of the ends", || {
        let left = std::fs::read_dir(scratch.state().join("keepers")).expect("it is there").flatten();
        left.into_iter().all(|file| !file.path().to_string_lossy().ends_with(".end")).then_some(())
    });
    daemon.stop();
}
