//! What it costs to run `true` in a terminal, next to running it directly. Run with `--release`.
//!
//! `cargo run --release -p acpd-terminal --example cost -- target/release/acpd keeper`: the keeper is the given
//! command, since its start is the largest part and depends on the size of its binary.

use acpd_supervisor::{KeeperCommand, Supervisor, TaskScope};
use acpd_terminal::{TerminalSettings, TerminalSpec, Terminals};
use std::time::{Duration, Instant};

const ROUNDS: usize = 300;

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "measuring time is the purpose")]
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "what a keeper costs is measured against this")]
fn direct(program: &std::path::Path) -> Duration {
    let begun = now();
    // A keeper without a socket as its stdin gives up at once: all that is left is its start and end.
    let _status = std::process::Command::new(program)
        .args(std::env::args().skip(2).filter(|_| program != "true"))
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("it starts");
    begun.elapsed()
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the report is the purpose of this program")]
async fn main() {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().expect("the keeper's command is the first argument").into();
    let keeper = KeeperCommand { program, args: args.collect() };
    let scope = TaskScope::default();
    let supervisor = Supervisor::new(keeper.clone(), "cost", scope.clone());
    let terminals =
        Terminals::new(supervisor, scope.clone(), std::env::vars_os(), TerminalSettings::default());
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(direct("true".as_ref()));
        times[1].push(direct(&keeper.program));
        let begun = now();
        let spec = TerminalSpec::new("true", std::env::temp_dir());
        let id = terminals.create("owner", spec, None).await.expect("true starts");
        times[2].push(begun.elapsed());
        terminals.get("owner", &id).expect("it is there").wait_for_exit().await;
        times[3].push(begun.elapsed());
        terminals.release("owner", &id).await.expect("it is there");
        times[4].push(begun.elapsed());
    }
    drop(terminals);
    scope.finished().await;
    let names = [
        "`true` directly",
        "the keeper's own start and end",
        "create",
        "create, wait",
        "create, wait, release",
    ];
    for (name, times) in names.iter().zip(&mut times) {
        times.sort_unstable();
        let (median, most) = (times[ROUNDS / 2], times[ROUNDS * 95 / 100]);
        println!("{name:32} median {median:9.2?}   95 % {most:9.2?}");
    }
}
