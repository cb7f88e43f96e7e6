//! Whose terminals are whose, and letting go of them.

use super::bench::{Bench, OWNER, STUBBORN, eight_wait, shell};
use acpd_terminal::{TerminalId, TerminalState};
use std::time::Duration;

// contract 2.3, TE-8: a release kills, answers who waits, and makes the id invalid
#[tokio::test]
async fn a_release_while_others_wait() {
    let bench = Bench::brief();
    let (terminal, _feed) = bench.told(STUBBORN, "ready\n").await;
    let waits = eight_wait(&terminal);
    let id = terminal.id().clone();
    let report = bench.terminals.release(OWNER, &id).await.expect("it is there");
    assert_eq!((report.state, report.signal()), (TerminalState::Released, Some("SIGKILL")));
    assert_eq!(bench.alive(), Vec::<u32>::new());
    assert_eq!(waits.join_all().await, vec![report; 8]);

    assert_eq!(terminal.output(None).await.expect_err("released").to_string(), "terminal not found");
    assert_eq!(bench.terminals.get(OWNER, &id).expect_err("released").terminal, id);
    assert_eq!(bench.terminals.release(OWNER, &id).await.expect_err("released").terminal, id);
    bench.nothing_left().await;
}

// TE-8: the id is invalid from the first moment on
#[tokio::test]
async fn a_release_does_not_wait_to_be_one() {
    let bench = Bench::brief();
    let (terminal, _feed) = bench.told(STUBBORN, "ready\n").await;
    let release = bench.terminals.release(OWNER, terminal.id());
    let gave_up = tokio::time::timeout(Duration::ZERO, release).await;
    assert!(gave_up.is_err());
    assert!(bench.terminals.get(OWNER, terminal.id()).is_err());
    assert_eq!(terminal.wait_for_exit().await.signal(), Some("SIGKILL"), "it goes on without who asked");
    bench.nothing_left().await;
}

// TE-8: a finished one is let go of too, with its real end
#[tokio::test]
async fn a_finished_terminal_is_released() {
    let bench = Bench::new();
    let terminal = bench.sh("exit 3").await;
    terminal.wait_for_exit().await;
    let report = bench.terminals.release(OWNER, terminal.id()).await.expect("it is there");
    assert_eq!((report.state, report.exit_code()), (TerminalState::Finished, Some(3)));
    assert!(terminal.output(None).await.is_err());
    bench.nothing_left().await;
}

// contract 2.3, TE-8: another session's terminal does not exist
#[tokio::test]
async fn another_owners_terminal_is_not_found() {
    let bench = Bench::brief();
    let (terminal, _feed) = bench.told(STUBBORN, "ready\n").await;
    let id = terminal.id();
    let stranger = bench.terminals.get("session-2", id).expect_err("it is not theirs");
    let unknown = bench.terminals.get("session-2", &TerminalId::from("nothing")).expect_err("there is none");
    assert_eq!(stranger.to_string(), unknown.to_string());
    assert!(bench.terminals.release("session-2", id).await.is_err());
    bench.terminals.release_all("session-2").await;
    assert!(bench.terminals.all_of("session-2").is_empty());
    assert!(bench.terminals.get(OWNER, id).is_ok() && terminal.report().is_none(), "nothing happened to it");
    bench.nothing_left().await;
}

// TE-11: the end of a session ends its terminals, of whatever kind, and no others
#[tokio::test]
async fn an_owner_lets_go_of_everything() {
    let bench = Bench::brief();
    for script in [STUBBORN, "exit 0", "setsid sleep 1000 & wait", "yes", "exec sleep 1000"] {
        bench.sh(script).await;
    }
    let other = bench.terminals.create("session-2", shell("exec sleep 1000"), None).await.expect("sh starts");
    bench.terminals.release_all(OWNER).await;
    assert!(bench.terminals.all_of(OWNER).is_empty());
    let other = bench.terminals.get("session-2", &other).expect("it is not touched");
    assert_eq!((bench.alive().len(), other.report()), (1, None));
    bench.nothing_left().await;
}

// TE-11: the end of the host ends all, although nobody released anything
#[tokio::test]
async fn the_last_handle_ends_a_command() {
    let bench = Bench::new();
    let (terminal, _feed) = bench.told("setsid sleep 1000 & echo ready; wait", "ready\n").await;
    drop(terminal);
    bench.nothing_left_alone().await;
}
