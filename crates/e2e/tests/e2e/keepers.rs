//! What the keeper is for: agents that are stopped, kill it, or lose it (architecture 4).

use acpd_e2e::{Client, Marked, Scratch, shell_agent, suspend};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn send(signal: Signal, to: &Marked) {
    let pid = i32::try_from(to.pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("it lives");
}

fn ended(client: &mut Client) -> Value {
    let end = client.until("the end", |m| m.method() == Some("_sandboxagent/session/ended"));
    end.json["params"]["data"].clone()
}

// SU-1, SU-3: a keeper that is killed takes its agent and everything below with it, and the session is told
#[test]
fn the_death_of_a_keeper_ends_the_session() {
    let scratch = Scratch::new();
    for prompt in ["hello", "fork\nfork setsid\nignore-sigterm"] {
        let (mut client, session) = scratch.session("example");
        assert_eq!(client.turn(&session, prompt), "end_turn");
        let keepers = scratch.mark().running("acpd keeper");
        assert_eq!(keepers.len(), 1);
        send(Signal::KILL, &keepers[0]);
        let end = ended(&mut client);
        assert_eq!(end["reason"], "error", "{end}");
        client.is_alone();
        let next = client.new_session();
        assert_eq!(client.turn(&next, "hello"), "end_turn");
        client.finish();
    }
}

// SU-1: also when it is the agent that kills it
#[test]
fn an_agent_that_kills_its_keeper() {
    let scratch = Scratch::new().shell(
        "patricide",
        &shell_agent("take; setsid sleep 1000 & kill -9 $PPID; while :; do sleep 100; done"),
    );
    let (mut client, session) = scratch.session("patricide");
    let asked = client.prompt(&session, "go");
    client.error(&asked);
    client.is_alone();
    client.finish();
}

// SU-8, contract 1.2: an agent that was killed has not closed its pipes and kept running, however late its end is told
#[test]
fn an_end_that_is_told_late_is_no_broken_connection() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    let asked = client.prompt(&session, "begun\nhang");
    client.until_text("begun");
    let keeper = scratch.mark().running("acpd keeper").remove(0);
    suspend(keeper.pid);
    send(Signal::KILL, &scratch.mark().running("example-agent")[0]);
    // As long as an agent gets that has closed a pipe.
    let elsewhere = Scratch::new();
    let (mut other, closing) = elsewhere.session("example");
    let closed = other.prompt(&closing, "close-stdout\nhang");
    assert_eq!(other.error(&closed)["data"]["terminationInfo"]["cause"], "protocol_error");
    other.finish();
    send(Signal::CONT, &keeper);
    let info = client.error(&asked)["data"]["terminationInfo"].clone();
    assert_eq!((&info["cause"], &info["signal"]), (&"agent_crash".into(), &"SIGKILL".into()), "{info}");
    client.finish();
}

// SU-2: an agent that is stopped is woken to be ended
#[test]
fn an_agent_that_is_stopped() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    send(Signal::STOP, &scratch.mark().running("example-agent")[0]);
    client.finish();
}
