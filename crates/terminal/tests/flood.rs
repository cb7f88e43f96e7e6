//! Memory, while a command writes more than there is memory for. In a program of its own, so that nothing else
//! counts. `ACPD_FLOOD_MIB=5120` floods with 5 GiB.

#[path = "support/bench.rs"]
mod bench;

use acpd_terminal::{TerminalEvent, TerminalSettings, TerminalSnapshot};
use bench::{Bench, OWNER, shell};
use tokio::sync::mpsc;

const MIB: u64 = 1024 * 1024;

/// The most memory this process ever had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel reports memory");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("with its peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

// contract 2.3, TE-4: memory is bounded, the command never waits for a reader, and the tail is right
#[tokio::test]
async fn memory_is_bounded_whatever_is_written() {
    let mib: u64 = std::env::var("ACPD_FLOOD_MIB").map_or(512, |mib| mib.parse().expect("a number"));
    let bench = Bench::with(TerminalSettings::default());
    let before = peak();
    let (sender, mut receiver) = mpsc::channel(2);
    // 16 bytes in a line, with a character of three among them.
    let mut spec =
        shell(&format!("yes 'abcdefghijkl\u{20AC}' | head -c {}; printf 'the end\u{1F980}'", mib * MIB));
    spec.output_byte_limit = Some(u64::MAX);
    let id = bench.terminals.create(OWNER, spec, Some(sender)).await.expect("sh starts");
    // The feed has two places and nobody reads it; the output is asked for all the time.
    let terminal = bench.get(&id);
    let mut asked = 0;
    let report = loop {
        let TerminalSnapshot { output, report } =
            terminal.output(Some(50)).await.expect("it is not released");
        assert!(output.text.len() <= 50);
        asked += 1;
        if let Some(report) = report {
            break report;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(report.exit_code(), Some(0));
    assert!(asked > 10, "it answered while it read: {asked}");

    let all = terminal.output(None).await.expect("it is not released").output;
    let ceiling = 10 * 1024 * 1024;
    assert!((ceiling - 3..=ceiling).contains(&all.text.len()) && all.truncated);
    assert!(all.text.ends_with("abcdefghijkl\u{20AC}\nthe end\u{1F980}"));
    let growth = peak() - before;
    eprintln!("{mib} MiB of output, {} MiB of memory, asked {asked} times", growth / MIB);
    assert!(growth < 100 * MIB, "memory grew by {} MiB", growth / MIB);

    let mut counted = 0;
    while let Some(event) = receiver.recv().await {
        match event {
            TerminalEvent::Output { dropped, text, .. } => counted += dropped + text.len() as u64,
            TerminalEvent::Ended { output, .. } => assert_eq!(output, all),
        }
    }
    assert_eq!(counted, mib * MIB + 11);
    bench.nothing_left().await;
}
