//! How soon things happen. In a program of its own, one test after the other, so that nothing else takes the time.

#[path = "support/bench.rs"]
mod bench;
#[path = "support/stopwatch.rs"]
mod stopwatch;

use acpd_terminal::TerminalSettings;
use bench::{Bench, OWNER, STUBBORN, command};
use std::time::Duration;
use stopwatch::{kill_to_answer, now};

const GRACE: Duration = Duration::from_millis(100);

/// What `share` of all are below, in percent.
fn quantile(times: &mut [Duration], share: usize) -> Duration {
    times.sort_unstable();
    times[times.len() * share / 100]
}

// contract 2.3, TE-6, TE-7: who waits is answered within 50 ms of the kill, or of the end of the grace
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_starts_are_prompt() {
    let bench =
        Bench::with(TerminalSettings { graceful_shutdown_timeout: GRACE, ..TerminalSettings::default() });
    for (script, grace) in [("echo ready; exec sleep 1000", Duration::ZERO), (STUBBORN, GRACE)] {
        let mut times = Vec::new();
        for _ in 0..50 {
            let (terminal, _feed) = bench.told(script, "ready\n").await;
            times.push(kill_to_answer(&terminal).await);
            bench.terminals.release(OWNER, terminal.id()).await.expect("it is there");
        }
        assert!(times.iter().all(|time| *time >= grace));
        let median = quantile(&mut times, 50);
        eprintln!("from a kill to the answer: {median:?}");
        assert!(median <= grace + Duration::from_millis(50), "{median:?}");
    }

    // Next to the same command without a keeper, by turns. On a busy machine the keeper's new session waits for a
    // turn of the scheduler, which is no cost of ours, so the better ones count.
    let (mut direct, mut hosted) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let begun = now();
        #[expect(clippy::disallowed_methods, reason = "what a keeper costs is measured against this")]
        let status = std::process::Command::new("true").status().expect("true starts");
        direct.push(begun.elapsed());
        assert!(status.success());

        let begun = now();
        let terminal = bench.create(command("true", &[])).await.expect("true starts");
        assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(0));
        bench.terminals.release(OWNER, terminal.id()).await.expect("it is there");
        hosted.push(begun.elapsed());
    }
    let [direct, hosted] = [&mut direct, &mut hosted].map(|times| quantile(times, 10));
    eprintln!("`true`, the better tenth: {direct:?} by itself, {hosted:?} in a terminal");
    assert!(hosted < direct + Duration::from_millis(5), "{hosted:?} instead of {direct:?}");
    bench.nothing_left().await;
}
