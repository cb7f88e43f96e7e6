//! Commands whose time is over.

use super::bench::{Bench, Gate, STUBBORN, command, shell, text, upon_sigterm};
use acpd_supervisor::{ExitStatus, StartError};
use acpd_terminal::{RunOutcome, TerminalOutput, TerminalSettings, TerminalState};
use std::collections::HashMap;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_secs(600);

/// Runs a script until its time is over. On a busy machine it may not have come to its last line by then: it has twice the time then.
async fn run_out_of_time(bench: &Bench, script: &str, said: &str) -> RunOutcome {
    let mut time = SHORT;
    loop {
        let outcome = bench.terminals.run_with_timeout(shell(script), time).await.expect("sh starts");
        let RunOutcome::TimedOut(_, output) = &outcome else { return outcome };
        if output.text.starts_with(said) || time > LONG {
            return outcome;
        }
        time *= 2;
    }
}

fn output(text: &str) -> TerminalOutput {
    TerminalOutput { text: text.into(), truncated: false }
}

// contract 2.3: run a command with a timeout, which it does not need
#[tokio::test]
async fn a_command_finishes_in_time() {
    let bench = Bench::new();
    for (script, status) in [
        ("echo out; exit 3", ExitStatus::Code(3)),
        ("echo out; kill -TERM $$", ExitStatus::Signal("SIGTERM".into())),
    ] {
        let outcome = bench.terminals.run_with_timeout(shell(script), LONG).await.expect("sh starts");
        assert_eq!(outcome, RunOutcome::Finished(status, output("out\n")));
    }
    bench.nothing_left().await;
}

// contract 2.3: killed, the final output kept, and the exit status that the kill really produced
#[tokio::test]
async fn a_commands_time_is_over() {
    let (bench, brief) = (Bench::new(), Bench::brief());
    for (bench, script, status, text) in [
        (&bench, "echo out; exec sleep 1000".to_owned(), ExitStatus::Signal("SIGTERM".into()), "out\n"),
        (&bench, upon_sigterm("echo bye; exit 7"), ExitStatus::Code(7), "ready\nbye\n"),
        (&bench, upon_sigterm("exit 0"), ExitStatus::Code(0), "ready\n"),
        (&brief, STUBBORN.to_owned(), ExitStatus::Signal("SIGKILL".into()), "ready\n"),
    ] {
        let said = text.lines().next().expect("it says something");
        let outcome = run_out_of_time(bench, &script, said).await;
        assert_eq!(outcome, RunOutcome::TimedOut(status, output(text)), "{script}");
        assert_eq!(bench.alive(), Vec::<u32>::new());
    }
    brief.nothing_left().await;
    bench.nothing_left().await;
}

#[tokio::test]
async fn a_command_that_does_not_start_is_no_outcome() {
    let bench = Bench::new();
    let outcome = bench.terminals.run_with_timeout(command("no-such-command", &[]), LONG).await;
    assert!(matches!(outcome, Err(StartError::NotFound { .. })), "{outcome:?}");
    bench.nothing_left().await;
}

// TE-11: nobody is left who wants the command
#[tokio::test]
async fn a_run_that_is_dropped_is_killed() {
    let bench = Bench::new();
    let gate = Gate::new();
    let script = format!("cat <{}; exec sleep 1000", gate.path().display());
    let mut run = Box::pin(bench.terminals.run_with_timeout(shell(&script), LONG));
    tokio::select! {
        outcome = &mut run => panic!("it ended: {outcome:?}"),
        () = gate.pass(b"") => {}
    }
    drop(run);
    bench.nothing_left_alone().await;
}

// contract 2.3: timeouts by the base name of the command are consulted
#[tokio::test]
async fn a_commands_name_has_its_own_time() {
    let bench = Bench::with(TerminalSettings {
        command_timeouts: HashMap::from([("sleep".into(), Some(SHORT)), ("printf".into(), Some(LONG))]),
        ..TerminalSettings::default()
    });
    let sleep = std::env::split_paths(&std::env::var_os("PATH").expect("PATH is set"))
        .map(|dir| dir.join("sleep"))
        .find(|path| path.exists())
        .expect("sleep is installed");
    for name in ["sleep", sleep.to_str().expect("text")] {
        let terminal = bench.create(command(name, &["1000"])).await.expect("sleep starts");
        let report = terminal.wait_for_exit().await;
        assert_eq!((report.state, report.signal()), (TerminalState::TimedOut, Some("SIGTERM")), "{name}");
    }
    let terminal = bench.create(command("printf", &["in time"])).await.expect("printf starts");
    assert_eq!(terminal.wait_for_exit().await.state, TerminalState::Finished);
    // A line goes by its first word.
    for (line, state) in
        [("A=1 sleep 1000; true", TerminalState::TimedOut), ("printf x | cat", TerminalState::Finished)]
    {
        let terminal = bench.create(command(line, &[])).await.expect("sh starts");
        assert_eq!(terminal.wait_for_exit().await.state, state, "{line}");
    }
    // Not by what its arguments say.
    let terminal = bench.sh("sleep 1000").await;
    let gave_up = tokio::time::timeout(SHORT * 2, terminal.wait_for_exit()).await;
    assert!(gave_up.is_err(), "{gave_up:?}");
    bench.nothing_left().await;
}

// contract 2.3: the default time, which a name may lift
#[tokio::test]
async fn the_default_time_is_for_all_others() {
    let bench = Bench::with(TerminalSettings {
        default_execution_timeout: Some(SHORT),
        command_timeouts: HashMap::from([("sleep".into(), None)]),
        ..TerminalSettings::default()
    });
    let without = bench.create(command("sleep", &["1000"])).await.expect("sleep starts");
    let terminal = bench.sh("echo out; exec sleep 1000").await;
    let report = terminal.wait_for_exit().await;
    assert_eq!((report.state, report.signal()), (TerminalState::TimedOut, Some("SIGTERM")));
    // It may not have come to say something.
    assert!("out\n".starts_with(&text(&terminal).await), "the id stays valid");
    assert_eq!(without.report(), None, "the one that was started before still runs");
    bench.nothing_left().await;
}
