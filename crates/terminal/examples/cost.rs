//! What it costs to run `true` in a terminal, and how soon a kill is answered, next to doing the same directly. Run
//! with `--release`.
//!
//! `cargo run --release -p acpd-terminal --example cost -- [--json] target/release/acpd keeper`: the keeper is the
//! given command, since its start is the largest part and depends on the size of its binary. With `--json` it prints
//! one line for each thing measured, with every sample in milliseconds; `cargo xtask bench` reads that.

#[path = "../tests/support/stopwatch.rs"]
mod stopwatch;

use acpd_supervisor::{KeeperCommand, Supervisor, TaskScope};
use acpd_terminal::{TerminalEvent, TerminalSettings, TerminalSpec, Terminals};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;
use stopwatch::{kill_to_answer, now};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

/// Runs of `true`, and of a keeper by itself.
const RUNS: usize = 300;
/// Kills of each kind.
const KILLS: usize = 50;
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(100);
const OWNER: &str = "owner";
/// What a command says that may be killed now.
const READY: &str = "ready\n";
/// What is killed: a command that ends by SIGTERM, and one that ignores it.
const KILLED: [(&str, &str); 2] = [
    ("kill by SIGTERM", "echo ready; exec sleep 1000"),
    ("kill by SIGKILL", "trap '' TERM; echo ready; exec sleep 1000"),
];

#[tokio::main]
async fn main() {
    let mut args = std::env::args_os().skip(1).peekable();
    let json = args.next_if(|arg| arg == "--json").is_some();
    let program = args.next().expect("the keeper's command is the first argument").into();
    let keeper = KeeperCommand { program, args: args.collect() };
    let scope = TaskScope::default();
    let supervisor = Supervisor::new(keeper.clone(), "cost", scope.clone());
    let settings = TerminalSettings { graceful_shutdown_timeout: GRACE, ..TerminalSettings::default() };
    let terminals = Terminals::new(supervisor, scope.clone(), std::env::vars_os(), settings);

    show(json, "true", runs(&terminals, &keeper).await);
    for (what, script) in KILLED {
        show(json, what, kills(&terminals, script).await);
    }
    drop(terminals);
    scope.finished().await;
}

/// The samples of one thing, each way in which it was done. By turns, so that a slow moment meets all of them.
type Series<const WAYS: usize> = [(&'static str, Vec<Duration>); WAYS];

async fn runs(terminals: &Terminals, keeper: &KeeperCommand) -> Series<5> {
    let names = ["direct", "keeper alone", "create", "create and wait", "terminal"];
    let mut series = names.map(|name| (name, Vec::with_capacity(RUNS)));
    for _ in 0..RUNS {
        series[0].1.push(run_directly("true".as_ref(), &[]));
        // A keeper without a socket as its stdin gives up at once: all that is left is its start and end.
        series[1].1.push(run_directly(keeper.program.as_os_str(), &keeper.args));
        let begun = now();
        let spec = TerminalSpec::new("true", std::env::temp_dir());
        let id = terminals.create(OWNER, spec, None).await.expect("true starts");
        series[2].1.push(begun.elapsed());
        let report = terminals.get(OWNER, &id).expect("it is there").wait_for_exit().await;
        series[3].1.push(begun.elapsed());
        terminals.release(OWNER, &id).await.expect("it is there");
        series[4].1.push(begun.elapsed());
        assert_eq!(report.exit_code(), Some(0), "otherwise it was not `true` that was measured");
    }
    series
}

#[expect(clippy::disallowed_methods, reason = "what a keeper costs is measured against this")]
fn run_directly(program: &std::ffi::OsStr, args: &[std::ffi::OsString]) -> Duration {
    let begun = now();
    let _status = std::process::Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("it starts");
    begun.elapsed()
}

/// From a kill to the answer of somebody who waited already.
async fn kills(terminals: &Terminals, script: &str) -> Series<2> {
    let (mut direct, mut hosted) = (Vec::with_capacity(KILLS), Vec::with_capacity(KILLS));
    for _ in 0..KILLS {
        direct.push(kill_directly(script).await);
        hosted.push(kill_in_terminal(terminals, script).await);
    }
    [("direct", direct), ("terminal", hosted)]
}

async fn kill_directly(script: &str) -> Duration {
    #[expect(clippy::disallowed_methods, reason = "what a terminal costs is measured against this")]
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("sh starts");
    let mut said = [0; READY.len()];
    child.stdout.take().expect("it is a pipe").read_exact(&mut said).await.expect("it is ready");
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it was not waited for");
    let asked = now();
    kill_process(pid, Signal::TERM).expect("it is there");
    if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
        child.kill().await.expect("it is there");
    }
    asked.elapsed()
}

async fn kill_in_terminal(terminals: &Terminals, script: &str) -> Duration {
    let mut spec = TerminalSpec::new("sh", std::env::temp_dir());
    spec.args = vec!["-c".into(), script.into()];
    // One piece of output is all that is waited for; the rest may be dropped.
    let (feed, mut told) = mpsc::channel(1);
    let id = terminals.create(OWNER, spec, Some(feed)).await.expect("sh starts");
    match told.recv().await {
        Some(TerminalEvent::Output { text, .. }) if text == READY => {}
        other => panic!("it should say that it is ready, not {other:?}"),
    }
    let terminal = terminals.get(OWNER, &id).expect("it is there");
    let took = kill_to_answer(&terminal).await;
    terminals.release(OWNER, &id).await.expect("it is there");
    took
}

#[expect(clippy::print_stdout, reason = "the report is the purpose of this program")]
fn show<const WAYS: usize>(json: bool, what: &str, series: Series<WAYS>) {
    if json {
        let millis = |times: Vec<Duration>| times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        let all: serde_json::Map<String, serde_json::Value> =
            series.into_iter().map(|(name, times)| (name.to_owned(), millis(times))).collect();
        println!("{}", serde_json::json!({"what": what, "ms": all}));
        return;
    }
    for (name, mut times) in series {
        times.sort_unstable();
        let (median, most) = (times[times.len() / 2], times[times.len() * 95 / 100]);
        println!("{:45} median {median:9.2?}   95 % {most:9.2?}", format!("{what}, {name}"));
    }
}
