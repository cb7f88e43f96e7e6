//! Commands that are killed.

use super::SOON;
use super::bench::{BRIEF, Bench, OWNER, STUBBORN, eight_wait, snapshot, text, upon_sigterm};
use acpd_terminal::TerminalState;
use std::time::Duration;
use tokio::time::Instant;

// contract 2.3, TE-7: SIGTERM, and the id stays valid for everything
#[tokio::test]
async fn a_killed_terminal_can_still_be_asked() {
    let bench = Bench::new();
    let (terminal, _feed) = bench.told("echo ready; exec sleep 1000", "ready\n").await;
    let report = terminal.kill().await;
    assert_eq!(
        (report.state, report.exit_code(), report.signal()),
        (TerminalState::Killed, None, Some("SIGTERM"))
    );
    assert_eq!(terminal.wait_for_exit().await, report);
    let shown = snapshot(&terminal).await;
    assert_eq!((shown.output.text.as_str(), shown.report), ("ready\n", Some(report)));
    bench.nothing_left().await;
}

// TE-7: a command that handles SIGTERM ends as it likes, and says its last words
#[tokio::test]
async fn a_command_may_act_on_sigterm() {
    let bench = Bench::new();
    let (terminal, _feed) = bench.told(&upon_sigterm("echo bye; exit 5"), "ready\n").await;
    // A second request does not hurry it.
    let (report, again) = tokio::join!(terminal.kill(), terminal.kill());
    assert_eq!((report.state, report.exit_code()), (TerminalState::Killed, Some(5)));
    assert_eq!(again, report);
    assert_eq!(text(&terminal).await, "ready\nbye\n");
    bench.nothing_left().await;
}

// contract 2.3, TE-7: SIGKILL after the grace
#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let bench = Bench::brief();
    let (terminal, _feed) = bench.told(STUBBORN, "ready\n").await;
    let asked = Instant::now();
    let report = terminal.kill().await;
    assert_eq!((report.state, report.signal()), (TerminalState::Killed, Some("SIGKILL")));
    let took = asked.elapsed();
    assert!((BRIEF..SOON).contains(&took), "{took:?}");
    bench.nothing_left().await;
}

// TE-7: the whole group ends, and what left it
#[tokio::test]
async fn nothing_of_a_killed_command_lives() {
    let bench = Bench::new();
    let script =
        "sleep 999 & setsid sleep 1000 & (setsid sh -c 'sleep 1001 & sleep 1002' &) ; echo ready; wait";
    let (terminal, _feed) = bench.told(script, "ready\n").await;
    terminal.kill().await;
    assert_eq!(bench.alive(), Vec::<u32>::new());
    bench.nothing_left().await;
}

// contract 2.3, TE-7: on a command that has ended, it succeeds and changes nothing
#[tokio::test]
async fn killing_what_has_ended_changes_nothing() {
    let bench = Bench::new();
    let terminal = bench.sh("echo done; exit 3").await;
    let report = terminal.wait_for_exit().await;
    let before = snapshot(&terminal).await;
    for _ in 0..2 {
        assert_eq!(terminal.kill().await, report);
    }
    assert_eq!((report.state, report.exit_code()), (TerminalState::Finished, Some(3)));
    assert_eq!(snapshot(&terminal).await, before);
    bench.nothing_left().await;
}

// contract 2.3, TE-6: everybody who waits is answered by a kill
#[tokio::test]
async fn a_kill_answers_everybody_who_waits() {
    let bench = Bench::brief();
    let (terminal, _feed) = bench.told(STUBBORN, "ready\n").await;
    let waits = eight_wait(&terminal);
    let report = terminal.kill().await;
    assert_eq!(waits.join_all().await, vec![report; 8]);
    bench.nothing_left().await;
}

// TE-7: the command is killed also when who asked for it goes away
#[tokio::test]
async fn a_kill_that_nobody_waits_for_is_a_kill() {
    let bench = Bench::brief();
    let (terminal, _feed) = bench.told(STUBBORN, "ready\n").await;
    let gave_up = tokio::time::timeout(Duration::ZERO, terminal.kill()).await;
    assert!(gave_up.is_err());
    assert_eq!(terminal.wait_for_exit().await.signal(), Some("SIGKILL"));
    bench.nothing_left().await;
}

// TE-7: a command that floods is killed like any other
#[tokio::test]
async fn a_flood_does_not_delay_a_kill() {
    let bench = Bench::new();
    let (terminal, _feed) = bench.told("echo ready; exec yes", "ready\n").await;
    let asked = Instant::now();
    assert_eq!(terminal.kill().await.signal(), Some("SIGTERM"));
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    bench.nothing_left().await;
}

// contract 2.3: the timeout pattern of agents
#[tokio::test]
async fn the_agents_own_timeout_works() {
    let bench = Bench::new();
    let script = format!("sleep 1000 & {}", upon_sigterm("echo cleaning; exit 7"));
    let (terminal, _feed) = bench.told(&script, "ready\n").await;
    tokio::select! {
        report = terminal.wait_for_exit() => panic!("it ended: {report:?}"),
        () = tokio::time::sleep(Duration::from_millis(50)) => {} // tidy: allow sleep, the agent's own timer
    }
    terminal.kill().await;
    let shown = snapshot(&terminal).await;
    assert_eq!(shown.output.text, "ready\ncleaning\n");
    assert_eq!(shown.report.expect("it has ended").exit_code(), Some(7));
    bench.terminals.release(OWNER, terminal.id()).await.expect("it is there");
    assert_eq!(bench.alive(), Vec::<u32>::new());
    bench.nothing_left().await;
}
