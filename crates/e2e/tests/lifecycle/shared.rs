//! Sessions on one process: ending one leaves the others working, and the last one takes the process along.

use crate::asking::{TERMINATE, close, entry, meta, of, take_part, until_ended};
use crate::tapped::{heard, tapped, times_heard};
use acpd_e2e::{Client, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn sharing(args: &[&str]) -> Scratch {
    Scratch::new().example("shared", args).config("share_process = true")
}

/// The only agent process.
fn agent(scratch: &Scratch) -> u32 {
    let agents = scratch.mark().running("example-agent");
    assert_eq!(agents.len(), 1, "{agents:?}");
    agents[0].pid
}

fn initialized(scratch: &Scratch, agent: &str) -> Client {
    let mut client = scratch.stdio(agent);
    client.initialize();
    client
}

// contract 1.1, contract 3.1, SU-9: rule 1, the others go on, in the middle of their turns
#[test]
fn ending_one_leaves_the_others_working() {
    for method in [TERMINATE, "session/close", "session/delete"] {
        for args in [&[][..], &["--without", "close"][..], &["--legacy-stop"][..]] {
            let scratch = sharing(args);
            let mut client = initialized(&scratch, "shared");
            let [first, second, third] = [(); 3].map(|()| client.new_session());
            let pid = agent(&scratch);
            let slow = client.prompt(&second, "begun\nsleep 300\ndone");
            client.until_text("begun");
            let running = client.prompt(&first, "here\nhang");
            client.until_text("here");
            client.call(method, &of(&first));
            client.call(method, &of(&third));
            assert_eq!(client.result(&running), json!({"stopReason": "cancelled"}));
            assert_eq!(client.result(&slow)["stopReason"], "end_turn");
            assert_eq!(client.turn(&second, "hello"), "end_turn");
            assert_eq!(agent(&scratch), pid);
            // The last one takes the process along.
            client.call(method, &of(&second));
            client.is_alone();
            client.finish();
            assert_eq!(client.ends().len(), 3);
        }
    }
}

// contract 1.1: rule 1, by the agent's own close if it has one, else by a cancel, for that session only
#[test]
fn the_agent_is_told_in_the_words_it_knows() {
    for (args, expected) in [
        ("", &["session/cancel", "session/close"][..]),
        ("--legacy-stop", &["session/cancel", "session/stop"]),
        ("--without close", &["session/cancel"]),
    ] {
        let scratch = tapped(Scratch::new(), "shared", "", args).config("share_process = true");
        let mut client = initialized(&scratch, "shared");
        let (first, second) = (client.new_session(), client.new_session());
        client.prompt(&first, "here\nhang");
        client.until_text("here");
        client.call(TERMINATE, &of(&first));
        // In order with whatever else was sent.
        assert_eq!(client.turn(&second, "hello"), "end_turn");
        let heard = heard(&scratch, "shared");
        let prompt = heard.iter().position(|method| method == "session/prompt").expect("it was prompted");
        let between = &heard[prompt + 1..heard.len() - 1];
        assert_eq!(between, expected, "{args}");
        client.finish();
    }
}

// contract 1.1, PR-6: an agent that ignores the cancel is still told to close the session that it keeps
#[test]
fn an_ignored_cancel_does_not_spare_the_close() {
    let scratch = tapped(Scratch::new(), "shared", "", "").config("share_process = true");
    let mut client = initialized(&scratch, "shared");
    let (first, second) = (client.new_session(), client.new_session());
    client.prompt(&first, "ignore-cancel\nhere\nhang");
    client.until_text("here");
    client.call(TERMINATE, &of(&first));
    assert_eq!(client.turn(&second, "hello"), "end_turn");
    assert_eq!(times_heard(&scratch, "shared", "session/close"), 1);
    client.finish();
}

// contract 1.1: an agent that does not answer its own close holds nobody up
#[test]
fn an_unanswered_close_is_bounded() {
    let scratch = tapped(Scratch::new(), "shared", "/session\\/close/d", "").config("share_process = true");
    let mut client = initialized(&scratch, "shared");
    let (first, second) = (client.new_session(), client.new_session());
    let result = client.call(TERMINATE, &of(&first));
    assert_eq!(result, json!({"terminated": true, "reason": "terminated", "terminatedBy": "daemon"}));
    assert_eq!(times_heard(&scratch, "shared", "session/close"), 1);
    assert_eq!(client.turn(&second, "hello"), "end_turn");
    client.finish();
}

// SU-6, SU-9: the death of the process ends all of its sessions, each with the record; a load starts another
#[test]
fn the_death_of_the_process_ends_all_its_sessions() {
    let scratch = sharing(&[]);
    let mut client = initialized(&scratch, "shared");
    let sessions = [(); 3].map(|()| client.new_session());
    let asked = [client.prompt(&sessions[0], "one\nhang"), client.prompt(&sessions[1], "two\nhang")];
    client.until_text("two");
    let pid = agent(&scratch);
    let process = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    for asked in &asked {
        let error = client.error(asked);
        assert_eq!(error["data"]["terminationInfo"]["signal"], "SIGKILL", "{error}");
    }
    for (session, active) in sessions.iter().zip([true, true, false]) {
        let data = until_ended(&mut client, session, 1);
        assert_eq!((&data["reason"], &data["signal"]), (&json!("error"), &json!("SIGKILL")));
        let entry = entry(&mut client, session);
        assert_eq!(meta(&entry)["ended"], true);
        assert_eq!(meta(&entry)["terminationInfo"]["turnActive"], active);
    }
    client.is_alone();
    for session in &sessions {
        take_part(&mut client, &scratch, "session/load", session);
        assert_eq!(client.turn(session, "hello"), "end_turn");
    }
    assert_ne!(agent(&scratch), pid);
    client.finish();
}

// SU-9: a session that is closed and taken up again finds the same process
#[test]
fn a_session_comes_back_to_the_process() {
    let scratch = sharing(&[]);
    let mut client = initialized(&scratch, "shared");
    let (first, second) = (client.new_session(), client.new_session());
    let pid = agent(&scratch);
    assert_eq!(client.turn(&first, "before"), "end_turn");
    close(&mut client, &first);
    let (_, replayed) = take_part(&mut client, &scratch, "session/load", &first);
    assert_eq!(replayed.len(), 2, "{replayed:?}");
    for session in [&first, &second] {
        assert_eq!(client.turn(session, "after"), "end_turn");
    }
    assert_eq!(agent(&scratch), pid);
    client.finish();
}
