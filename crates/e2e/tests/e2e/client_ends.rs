//! How a client can leave, and that acpd follows it within a bound (contract 6).

use acpd_e2e::{Exit, PATIENCE, Scratch, acpd, taking_shell_agent, until};
use rustix::process::Signal;
use serde_json::json;
use std::time::Duration;

// FR-3, contract 6: what is open when the client closes its input is answered, whatever it waits for
#[test]
fn everything_open_is_answered_at_the_end_of_input() {
    let scratch = Scratch::new().example("silent", &["--hang-initialize"]).shell(
        "stuck",
        &taking_shell_agent("take; answer '{\"protocolVersion\":1}'; while take; do :; done"),
    );
    let mut client = scratch.stdio("silent");
    let asked = client.request("initialize", &json!({"protocolVersion": 1}));
    // They are behind the answer to that.
    let behind = ["session/new", "session/list", "_any/request"]
        .map(|method| client.request(method, &json!({"cwd": scratch.work(), "mcpServers": []})));
    client.write_line("{");
    client.close_input();
    client.error(&asked);
    for behind in &behind {
        assert!(client.error(behind)["message"].to_string().contains("shutting down"));
    }
    client.expect_good_end();
    assert_eq!(client.received().iter().filter(|m| m.is_answer()).count(), 5);

    let mut client = scratch.stdio("stuck");
    client.initialize();
    let new = client.request("session/new", &json!({"cwd": scratch.work(), "mcpServers": []}));
    let other = client.request("_any/request", &json!({}));
    client.close_input();
    client.error(&new);
    client.error(&other);
    client.expect_good_end();
    assert_eq!(client.received().iter().filter(|m| m.is_answer()).count(), 3);
}

// contract 6: nothing was asked at all
#[test]
fn a_client_that_only_looks_in() {
    let scratch = Scratch::new();
    scratch.stdio("example").finish();
    let mut client = scratch.stdio("example");
    client.initialize();
    client.finish();
}

// SC-5: a client that does not read does not hold up the end
#[test]
fn a_client_that_leaves_without_reading() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.tolerant();
    client.prompt(&session, "begun\nstream 100000000 5000");
    client.until_text("begun");
    client.close_input();
    assert_eq!(client.exit_unread(PATIENCE), Some(Exit::Code(0)));
    scratch.mark().only_left(&[]).expect("nothing is left");
}

// the client's end is also a closed stdout
#[test]
fn a_client_that_closes_its_end_of_stdout() {
    let scratch = Scratch::new();
    let (mut client, session) = scratch.session("example");
    client.tolerant();
    client.prompt(&session, "begun\nstream 100000000 100");
    client.until_text("begun");
    client.close_output();
    assert_eq!(client.exit_unread(PATIENCE), Some(Exit::Code(0)));
    scratch.mark().only_left(&[]).expect("nothing is left");
}

// contract 6: a second signal hurries
#[test]
fn a_second_signal_hurries() {
    let scratch = Scratch::with_default_graces().timeout("stdin_grace", "1m").timeout("term_grace", "1m");
    let (mut client, session) = scratch.session("example");
    client.prompt(&session, "ignore-cancel\nignore-sigterm\nfork setsid\nbegun\nhang");
    client.until_text("begun");
    client.signal(Signal::TERM);
    // Nothing tells when the first one has been taken; signals that come too close together are one.
    let mut hurried = None;
    while hurried.is_none() {
        client.signal(Signal::TERM);
        hurried = client.exit_unread(Duration::from_millis(200));
    }
    assert_eq!(hurried, Some(Exit::Code(0)));
    scratch.mark().only_left(&[]).expect("nothing is left");
}

// contract 6, SU-2: a start that is in progress is given up when the client leaves, beside the ends of what runs
#[test]
fn a_start_in_progress_is_given_up() {
    let scratch = Scratch::with_default_graces().timeout("stdin_grace", "1m");
    // The first process ends when the second has been told to.
    let script = format!(
        "cd '{}'; if [ -e first ]; then echo > second; '{1}' example-agent --hang-initialize; echo > ended; exit; fi
        echo > first; '{1}' example-agent; while [ ! -e ended ]; do sleep 0.02; done",
        scratch.path("").display(),
        acpd().display()
    );
    let scratch = scratch.shell("twice", &["-c".to_owned(), script]);
    let (mut client, session) = scratch.session("twice");
    let forking = client.request("session/fork", &json!({"sessionId": session, "cwd": scratch.work()}));
    until("the second process", || scratch.path("second").exists().then_some(()));
    client.close_input();
    assert!(client.error(&forking)["message"].to_string().contains("shutting down"));
    let (exit, stderr) = client.ended();
    assert_eq!((exit, stderr.as_str()), (Exit::Code(0), ""));
}

// contract 6: nor is what the agent of such a start was asked for waited for
#[test]
fn an_unanswered_fork_does_not_hold_up_the_end() {
    let scratch = Scratch::new();
    // A process of its own is asked for a fork, and does not hear of it.
    let heard = scratch.path("heard");
    let script = format!(
        "tee -a '{}' | sed -u '/session\\/fork/d' | '{}' example-agent",
        heard.display(),
        acpd().display()
    );
    let scratch = scratch.shell("deaf", &["-c".to_owned(), script]);
    let (mut client, session) = scratch.session("deaf");
    let forking = client.request("session/fork", &json!({"sessionId": session, "cwd": scratch.work()}));
    until("the agent is asked", || {
        std::fs::read_to_string(&heard).is_ok_and(|heard| heard.contains("session/fork")).then_some(())
    });
    client.close_input();
    assert!(client.error(&forking)["message"].to_string().contains("shutting down"));
    let (exit, stderr) = client.ended();
    assert_eq!((exit, stderr.as_str()), (Exit::Code(0), ""));
}
