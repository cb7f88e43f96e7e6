//! How commands end by themselves, and who is told.

use super::SOON;
use super::bench::{Bench, Gate, eight_wait, shell, snapshot, text};
use acpd_supervisor::ExitStatus;
use acpd_terminal::{TerminalReport, TerminalState};
use std::io::Write;
use std::time::Duration;
use tokio::time::Instant;

// contract 2.3, TE-2: a code or a signal, as the operating system says
#[tokio::test]
async fn ends_are_the_real_ones() {
    let bench = Bench::new();
    for (script, code, signal) in [
        ("exit 0", Some(0), None),
        ("exit 3", Some(3), None),
        ("exit 143", Some(143), None),
        ("kill -KILL $$", None, Some("SIGKILL")),
        ("kill -SEGV $$", None, Some("SIGSEGV")),
    ] {
        let terminal = bench.sh(script).await;
        let report = terminal.wait_for_exit().await;
        assert_eq!((report.exit_code(), report.signal()), (code, signal), "{script}");
        assert_eq!(report.state, TerminalState::Finished);
        assert_eq!(snapshot(&terminal).await.report, Some(report));
    }
    bench.nothing_left().await;
}

// TE-2: no exit status before the exit
#[tokio::test]
async fn a_running_command_has_output_and_no_end() {
    let bench = Bench::new();
    let gate = Gate::new();
    let script = format!("echo before; cat <{}; exit 5", gate.path().display());
    let (terminal, _feed) = bench.told(&script, "before\n").await;
    let running = snapshot(&terminal).await;
    assert_eq!((running.output.text.as_str(), running.report), ("before\n", None));
    gate.pass(b"after\n").await;
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(5));
    assert_eq!(text(&terminal).await, "before\nafter\n");
    bench.nothing_left().await;
}

// contract 2.3, TE-6: any number of waits, before and after the end, each answered
#[tokio::test]
async fn everybody_who_waits_is_answered() {
    let bench = Bench::new();
    let gate = Gate::new();
    let terminal = bench.sh(&format!("cat <{}; exit 9", gate.path().display())).await;
    let waits = eight_wait(&terminal);
    gate.pass(b"").await;
    let expected = TerminalReport { state: TerminalState::Finished, status: ExitStatus::Code(9) };
    assert_eq!(waits.join_all().await, vec![expected.clone(); 8]);
    assert_eq!(terminal.wait_for_exit().await, expected);
    bench.nothing_left().await;
}

// TE-6: giving up a wait leaves the command
#[tokio::test]
async fn a_wait_that_is_given_up_changes_nothing() {
    let bench = Bench::new();
    let gate = Gate::new();
    let terminal = bench.sh(&format!("cat <{}; exit 9", gate.path().display())).await;
    let gave_up = tokio::time::timeout(Duration::from_millis(20), terminal.wait_for_exit()).await;
    assert!(gave_up.is_err());
    gate.pass(b"").await;
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(9));
    bench.nothing_left().await;
}

// contract 2.3, TE-9: a grandchild that holds the pipe delays the answer by the bound and no more
#[tokio::test]
async fn a_grandchild_with_the_pipe_does_not_keep_anybody_waiting() {
    let bench = Bench::new();
    for script in
        ["sleep 1000 & echo done; exit 4", "setsid sleep 1000 & (setsid sleep 1001 &); echo done; exit 4"]
    {
        let begun = Instant::now();
        let terminal = bench.sh(script).await;
        assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(4));
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        assert_eq!(text(&terminal).await, "done\n");
        assert_eq!(bench.alive(), Vec::<u32>::new(), "what was left is gone");
    }
    bench.nothing_left().await;
}

// TE-5, TE-9: somebody out of our reach holds the pipe; what comes within the bound counts, and then it is over
#[tokio::test]
async fn who_holds_the_pipe_from_outside_is_heard_and_not_waited_for() {
    let bench = Bench::new();
    let gate = Gate::new();
    let script = format!("echo $$; cat <{}; exit 4", gate.path().display());
    for _ in 0..20 {
        let (terminal, feed) = bench.told(&script, "\n").await;
        let pipe = format!("/proc/{}/fd/1", feed.text.trim());
        let mut pipe = std::fs::OpenOptions::new().write(true).open(pipe).expect("the command's stdout");
        let mut alive = Instant::now();
        gate.pass(b"").await;
        while !bench.alive().is_empty() {
            alive = Instant::now();
            tokio::task::yield_now().await;
        }
        let gone = Instant::now();
        let written = pipe.write_all(b"late");
        let was_in_time = alive.elapsed() < Duration::from_millis(100);
        assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(4));
        let took = gone.elapsed();
        // Of the bound, a quarter of a second, too much is over when a busy machine sees that late that the command is gone.
        if was_in_time {
            written.expect("somebody reads");
            assert!((Duration::from_millis(100)..SOON).contains(&took), "{took:?}");
            assert_eq!(text(&terminal).await, feed.text + "late");
            return bench.nothing_left().await;
        }
    }
    panic!("each time too late");
}

// TE-5: the last words of what a command started, such as the other end of bash's `> >(...)`
#[tokio::test]
async fn what_a_command_started_may_finish_its_words() {
    let bench = Bench::new();
    let terminal = bench.sh("(sleep 0.05; echo last) & echo first; exit 2").await;
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(2));
    assert_eq!(text(&terminal).await, "first\nlast\n");
    bench.nothing_left().await;
}

// TE-5: once a wait has returned, the last bytes are there
#[tokio::test]
async fn the_last_bytes_are_there_when_the_wait_returns() {
    let bench = Bench::new();
    for round in 0..30 {
        let end = if round % 2 == 0 { "exit 1" } else { "kill -KILL $$" };
        let terminal = bench.sh(&format!("head -c 60000 /dev/zero; printf last; {end}")).await;
        terminal.wait_for_exit().await;
        let shown = snapshot(&terminal).await;
        assert!(shown.report.is_some());
        assert_eq!(shown.output.text.len(), 60_004);
        assert!(shown.output.text.ends_with("last"));
        bench.terminals.release(super::bench::OWNER, terminal.id()).await.expect("it is there");
    }
    bench.nothing_left().await;
}

// contract 2.3: a command that closes its output and runs on has not ended
#[tokio::test]
async fn an_end_of_output_is_no_end() {
    let bench = Bench::new();
    let gate = Gate::new();
    let script = format!("exec >&- 2>&-; cat <{}; exit 6", gate.path().display());
    let terminal = bench.create(shell(&script)).await.expect("sh starts");
    let gave_up = tokio::time::timeout(Duration::from_millis(50), terminal.wait_for_exit()).await;
    assert!(gave_up.is_err(), "{gave_up:?}");
    gate.pass(b"").await;
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(6));
    bench.nothing_left().await;
}
