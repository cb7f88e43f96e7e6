//! Start and end, over and over: nothing may be left, however it ends.
//!
//! Each test is one way to end; together they make `ACPD_CYCLES` cycles (default 100). The full count of the project
//! is a command:
//!
//! ```text
//! ACPD_CYCLES=1000 cargo test -p acpd-e2e --test e2e leftovers
//! ```

use acpd_e2e::{Client, Exit, Scratch, zombie_children};
use rustix::process::Signal;
use serde_json::json;

/// Ways to end that share the cycles.
const WAYS: u32 = 9;

fn cycles(end: impl Fn(&Scratch, &mut Client, &str)) {
    let all = std::env::var("ACPD_CYCLES").map_or(100, |n| n.parse().expect("ACPD_CYCLES is a number"));
    // One state directory for all of them, as users have.
    let scratch = Scratch::new();
    for _ in 0..u32::div_ceil(all, WAYS) {
        let (mut client, session) = scratch.session("example");
        end(&scratch, &mut client, &session);
        scratch.mark().only_left(&[]).expect("no process is left");
    }
}

/// Prompts, and waits until the agent has said `text`.
fn until_said(client: &mut Client, session: &str, prompt: &str, text: &str) {
    client.prompt(session, prompt);
    client.until_text(text);
}

/// Makes the agent fork, and looks that the child lives.
fn has_forked(scratch: &Scratch, client: &mut Client, session: &str, directive: &str) {
    let asked = client.prompt(session, directive);
    client.result(&asked);
    let said = client.text_since(&asked, session);
    let pid: u32 = said.strip_prefix("forked ").expect("it forks").parse().expect("a process id");
    // By its id: its command line may not be readable this soon after its start.
    assert!(scratch.mark().processes().iter().any(|process| process.pid == pid));
}

/// SIGKILL for acpd; nothing of it is left.
fn killed(client: &mut Client) {
    client.signal(Signal::KILL);
    assert_eq!(client.ended().0, Exit::Signal(9));
}

// SU-1, SC-6
#[test]
fn after_the_client_left() {
    cycles(|_, client, session| {
        assert_eq!(client.turn(session, "hello"), "end_turn");
        client.finish();
    });
}

// SU-1, PR-4
#[test]
fn after_a_cancel() {
    cycles(|_, client, session| {
        let asked = client.prompt(session, "hello\nhang");
        client.until_text("hello");
        client.notify("session/cancel", &json!({"sessionId": session}));
        assert_eq!(client.result(&asked), json!({"stopReason": "cancelled"}));
        client.finish();
    });
}

// SU-1, SU-6
#[test]
fn after_a_crash() {
    cycles(|_, client, session| {
        let asked = client.prompt(session, "crash");
        client.error(&asked);
        client.is_alone();
        client.finish();
    });
}

// SU-1, SU-6
// quirk launcher-killed (agents that are launchers): what runs below the process that was killed ends with it
#[test]
fn after_the_agent_was_killed() {
    cycles(|_, client, session| {
        let asked = client.prompt(session, "fork\nfork setsid\nsignal KILL");
        client.error(&asked);
        client.is_alone();
        client.finish();
    });
}

// SU-2
// quirk stop-ignored (agents with signal handlers of their own): it is killed after its graces, with everything below
// it
#[test]
fn of_an_agent_that_ignores_sigterm() {
    cycles(|_, client, session| {
        until_said(client, session, "ignore-sigterm\nignore-cancel\nready\nhang", "ready");
        client.finish();
    });
}

// SU-1
#[test]
fn of_an_agent_that_forks() {
    cycles(|scratch, client, session| {
        has_forked(scratch, client, session, "fork");
        client.finish();
    });
}

// SU-1: also not one in a session of its own
// quirk tools-in-own-session (most agents): they are found wherever they went, and end with the agent
#[test]
fn of_an_agent_that_forks_with_setsid() {
    cycles(|scratch, client, session| {
        has_forked(scratch, client, session, "fork setsid");
        client.finish();
    });
}

// SU-3
#[test]
fn after_acpd_was_killed() {
    cycles(|_, client, session| {
        assert_eq!(client.turn(session, "hello"), "end_turn");
        killed(client);
    });
}

// SU-3, SU-2
// quirk stop-ignored
#[test]
fn after_acpd_was_killed_with_a_stubborn_agent() {
    cycles(|_, client, session| {
        let stubborn = "fork\nfork setsid\nignore-sigterm\nignore-cancel\nready\nhang";
        until_said(client, session, stubborn, "ready");
        killed(client);
    });
}

/// A session whose agent goes by SIGKILL only and leaves children, with the graces that users have.
fn stubborn_with_default_graces(scratch: &Scratch) -> Client {
    let (mut client, session) = scratch.session("example");
    let stubborn = "fork\nfork setsid\nignore-sigterm\nignore-cancel\nready\nhang";
    until_said(&mut client, &session, stubborn, "ready");
    client
}

// SU-2: with the graces that users have, too
#[test]
fn with_the_default_graces() {
    let scratch = Scratch::with_default_graces();
    stubborn_with_default_graces(&scratch).finish();
}

// SU-3: with the graces that users have, too
#[test]
fn after_acpd_was_killed_with_the_default_graces() {
    let scratch = Scratch::with_default_graces();
    let mut client = stubborn_with_default_graces(&scratch);
    client.signal(Signal::KILL);
    assert_eq!(client.ended().0, Exit::Signal(9));
}

// SU-1: no zombies while acpd lives on
#[test]
fn no_zombies_while_it_lives() {
    let scratch = Scratch::new();
    let (mut client, mut session) = scratch.session("example");
    for prompt in ["crash", "fork\nfork setsid\nexit 1", "signal KILL", "exit 0"] {
        let asked = client.prompt(&session, prompt);
        client.error(&asked);
        client.is_alone();
        assert_eq!(zombie_children(client.pid()), [0; 0]);
        session = client.new_session();
    }
    client.finish();
}
