//! Commands on a pseudo-terminal.

use super::bench::{Bench, OWNER, command, shell, text};
use acpd_supervisor::WindowSize;
use acpd_terminal::{ResizeError, TerminalSpec, TerminalState};

fn pty(script: &str) -> TerminalSpec {
    TerminalSpec { pty: Some(WindowSize { cols: 100, rows: 30 }), ..shell(script) }
}

// contract 2.3: a command that wants a terminal has one, of the size that was asked for
#[tokio::test]
async fn a_pseudo_terminal_has_a_size() {
    let bench = Bench::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size; echo wide >&2; exit 4";
    let terminal = bench.create(pty(script)).await.expect("sh starts");
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(4));
    assert_eq!(text(&terminal).await, "30 100\r\nwide\r\n");
    bench.nothing_left().await;
}

#[tokio::test]
async fn a_window_is_resized() {
    let bench = Bench::new();
    let script = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done";
    let (terminal, feed) = bench.told_by(pty(script), "\n").await;
    assert_eq!(feed.text, "ready\r\n");
    terminal.resize(WindowSize { cols: 81, rows: 24 }).await.expect("it has a window");
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(0));
    assert_eq!(text(&terminal).await, "ready\r\n24 81\r\n");
    bench.nothing_left().await;
}

#[tokio::test]
async fn what_has_no_window_is_not_resized() {
    let bench = Bench::new();
    let terminal = bench.create(command("true", &[])).await.expect("true starts");
    let size = WindowSize { cols: 81, rows: 24 };
    assert!(matches!(terminal.resize(size).await, Err(ResizeError::NoWindow)));
    bench.terminals.release(OWNER, terminal.id()).await.expect("it is there");
    assert!(matches!(terminal.resize(size).await, Err(ResizeError::NotFound(_))));
    bench.nothing_left().await;
}

// TE-7: an interactive shell with jobs in groups of their own
#[tokio::test]
async fn nothing_of_a_killed_pseudo_terminal_lives() {
    let bench = Bench::brief();
    let script = "set -m; sleep 1000 & sleep 1001 & trap '' HUP TERM; echo ready; wait; wait";
    let (terminal, _feed) = bench.told_by(pty(script), "ready").await;
    let report = terminal.kill().await;
    assert_eq!((report.state, report.signal()), (TerminalState::Killed, Some("SIGKILL")));
    assert_eq!(bench.alive(), Vec::<u32>::new());
    bench.nothing_left().await;
}
