//! What a program gets as its streams, and what may still write to them after its exit.

#[path = "support/programs.rs"]
mod programs;

use acpd_supervisor::{ExitStatus, Leftovers, ProgramSpec, Rung, Streams, WindowSize};
use programs::{Bench, read_all, read_until, shell};
use std::io;
use std::time::Duration;
use tokio::time::Instant;

const SIZE: WindowSize = WindowSize { cols: 100, rows: 30 };

fn with(streams: Streams, script: &str) -> ProgramSpec {
    ProgramSpec { streams, ..shell(script) }
}

// TE-5: one pipe for both, so that the order stays
#[tokio::test]
async fn merged_output_keeps_its_order() {
    let bench = Bench::new();
    let script = "i=0; while [ $i -lt 200 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let mut process = bench.start(with(Streams::Merged, script)).await.expect("sh starts");
    let expected: String = (0..200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(read_all(&mut process).await, expected);
    assert!(process.handle.exited().await.stderr.is_empty());
    bench.nothing_left().await;
}

// TE-1: who reads gets the end at once and does not hang
#[tokio::test]
async fn a_merged_programs_stdin_is_empty() {
    let bench = Bench::new();
    let script = "cat; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l";
    let mut process = bench.start(with(Streams::Merged, script)).await.expect("sh starts");
    assert!(process.stdin.is_closed());
    assert_eq!(process.stdin.write_all(b"x").await.map_err(|e| e.kind()), Err(io::ErrorKind::BrokenPipe));
    assert_eq!(read_all(&mut process).await, "/dev/null\n4\n", "and the listing's own descriptor");
    bench.nothing_left().await;
}

// contract 3.2: without a stdin to close there is nothing to wait for before SIGTERM
#[tokio::test]
async fn stopping_a_merged_program_begins_with_sigterm() {
    let bench = Bench::new();
    let spec = with(Streams::Merged, "trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done");
    let mut process = bench.start(spec).await.expect("sh starts");
    read_until(&mut process, "ready").await;
    process.handle.stop();
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Code(6));
    assert_eq!(report.rungs, [Rung::StdinClosed, Rung::Terminated]);
    bench.nothing_left().await;
}

#[tokio::test]
async fn a_pseudo_terminal_is_the_programs_own() {
    let bench = Bench::new();
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size && echo through >/dev/tty;
        cut -d' ' -f5,6 /proc/$$/stat; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done";
    let mut process = bench.start(with(Streams::Pty(SIZE), script)).await.expect("sh starts");
    let pid = process.handle.pid();
    let said = read_until(&mut process, "ready\r\n").await;
    assert_eq!(said, format!("30 100\r\nthrough\r\n{pid} {pid}\r\nready\r\n"));
    process.stdout.resize(WindowSize { cols: 81, rows: 24 }).expect("it is a terminal");
    assert_eq!(read_all(&mut process).await, "24 81\r\n", "SIGWINCH came, and the end");
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(3));
    bench.nothing_left().await;
}

// SU-1: also what left the terminal's session
#[tokio::test]
async fn descendants_do_not_escape_from_a_pseudo_terminal() {
    let bench = Bench::new();
    let script = "trap '' HUP; setsid sleep 1000 & (setsid sleep 1001 &); echo ready; exit 4";
    let mut process = bench.start(with(Streams::Pty(SIZE), script)).await.expect("sh starts");
    assert_eq!(read_all(&mut process).await, "ready\r\n");
    let report = process.handle.exited().await;
    assert_eq!((&report.status, report.leaked), (&ExitStatus::Code(4), 2));
    bench.nothing_left().await;
}

#[tokio::test]
async fn a_pipe_has_no_size() {
    let bench = Bench::new();
    let process = bench.start(with(Streams::Merged, "exit 0")).await.expect("sh starts");
    assert_eq!(process.stdout.resize(SIZE).map_err(|e| e.kind()), Err(io::ErrorKind::Unsupported));
    process.handle.exited().await;
    bench.nothing_left().await;
}

/// As commands have it.
fn lingering(after_exit: Duration) -> Leftovers {
    Leftovers { after_exit, rest_of_grace: false }
}

/// Leaves a child that takes a moment for its last words, as `make > >(tee log)` does in bash.
const LAST_WORDS: &str = "(sleep 0.1; echo last) & exit 2";

// TE-5: last words of what the program started
#[tokio::test]
async fn leftovers_may_finish_while_they_linger() {
    let bench = Bench::new();
    let mut spec = with(Streams::Merged, LAST_WORDS);
    spec.leftovers = lingering(Duration::from_secs(600));
    let mut process = bench.start(spec).await.expect("sh starts");
    assert_eq!(read_all(&mut process).await, "last\n");
    let report = process.handle.exited().await;
    assert_eq!((&report.status, report.leaked), (&ExitStatus::Code(2), 0));
    bench.nothing_left().await;
}

// TE-9
#[tokio::test]
async fn who_lingers_too_long_is_killed() {
    let bench = Bench::new();
    let mut spec = with(Streams::Merged, "setsid sleep 1000 & exit 2");
    spec.leftovers = lingering(Duration::from_millis(50));
    let begun = Instant::now();
    let process = bench.start(spec).await.expect("sh starts");
    let report = process.handle.exited().await;
    assert_eq!((&report.status, report.leaked), (&ExitStatus::Code(2), 1));
    assert!(begun.elapsed() >= Duration::from_millis(50), "it was given its time");
    bench.nothing_left().await;
}

// contract 3.2: a stop request does not wait for leftovers
#[tokio::test]
async fn nobody_lingers_after_a_stop_request() {
    let bench = Bench::new();
    for before in [true, false] {
        let script = if before {
            "trap 'exit 2' TERM; sleep 1000 & echo ready; while :; do sleep 0.01; done"
        } else {
            "sleep 1000 & echo ready"
        };
        let mut spec = with(Streams::Merged, script);
        spec.leftovers = lingering(Duration::from_secs(600));
        let mut process = bench.start(spec).await.expect("sh starts");
        read_until(&mut process, "ready").await;
        process.handle.stop();
        process.handle.exited().await;
    }
    bench.nothing_left().await;
}
