//! What a feed is told.

use super::bench::{Bench, Gate, OWNER, shell, text, upon_sigterm};
use acpd_supervisor::ExitStatus;
use acpd_terminal::{
    FeedPace, TerminalEvent, TerminalOutput, TerminalReport, TerminalSettings, TerminalState,
};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Everything that is told up to the end: texts with what was dropped before them, and the end.
async fn everything(receiver: &mut mpsc::Receiver<TerminalEvent>) -> (Vec<(u64, String)>, TerminalEvent) {
    let mut pieces = Vec::new();
    loop {
        match receiver.recv().await.expect("the end is told before the channel closes") {
            TerminalEvent::Output { dropped, text, .. } => pieces.push((dropped, text)),
            end @ TerminalEvent::Ended { .. } => return (pieces, end),
        }
    }
}

// TE-10: the feed is told all output, then the end with the final output, then nothing
#[tokio::test]
async fn a_feed_is_told_everything_and_the_end() {
    let bench = Bench::new();
    let (sender, mut receiver) = mpsc::channel(4);
    let mut spec = shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 3");
    spec.output_byte_limit = Some(5);
    let id = bench.terminals.create(OWNER, spec, Some(sender)).await.expect("sh starts");
    let (pieces, end) = everything(&mut receiver).await;
    let told: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(told, (0..3000).map(|i| format!("line {i}\n")).collect::<String>());
    assert!(pieces.iter().all(|(dropped, _)| *dropped == 0));
    assert!(pieces.len() < 300, "pieces are gathered: {}", pieces.len());
    let report = TerminalReport { state: TerminalState::Finished, status: ExitStatus::Code(3) };
    let output = TerminalOutput { text: "2999\n".into(), truncated: true };
    assert_eq!(end, TerminalEvent::Ended { terminal: id, report, output });
    assert_eq!(receiver.recv().await, None);
    bench.nothing_left().await;
}

// TE-4: a reader that stalls does not hold up the command; it misses the middle, and is told how much
#[tokio::test]
async fn a_stalled_reader_misses_the_middle() {
    let bench = Bench::new();
    let (sender, mut receiver) = mpsc::channel(1);
    let spec = shell("printf first; head -c 20000000 /dev/zero; printf last");
    let id = bench.terminals.create(OWNER, spec, Some(sender)).await.expect("sh starts");
    assert_eq!(bench.get(&id).wait_for_exit().await.exit_code(), Some(0));
    let (pieces, _end) = everything(&mut receiver).await;
    assert!(pieces[0].1.starts_with("first") && pieces[0].0 == 0);
    let told: u64 = pieces.iter().map(|(_, text)| text.len() as u64).sum();
    let dropped: u64 = pieces.iter().map(|(dropped, _)| dropped).sum();
    assert_eq!(told + dropped, 20_000_009);
    assert!(told <= 5 * 64 * 1024, "one waited in the channel, the rest is what is held: {told}");
    assert!(pieces.last().expect("there is one").1.ends_with("last"));
    bench.nothing_left().await;
}

// TE-10: an answer that tells of the end comes behind the last output, for a second at most
#[tokio::test]
async fn an_end_is_told_behind_what_the_feed_is_told() {
    let bench = Bench::new();
    let (sender, mut receiver) = mpsc::channel(1);
    let begun = Instant::now();
    let id = bench.terminals.create(OWNER, shell("echo hi"), Some(sender)).await.expect("sh starts");
    let terminal = bench.get(&id);
    // The first event has the one place there is, so the end has none until that is read.
    let early = tokio::time::timeout(Duration::from_millis(500), terminal.wait_for_exit()).await.ok();
    let is_early = early.is_some() || terminal.report().is_some();
    // On a busy machine the second may be over by now.
    assert!(!is_early || begun.elapsed() >= Duration::from_secs(1), "{early:?}");
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(0), "a reader that stalls is not waited for");
    everything(&mut receiver).await;

    let (sender, mut receiver) = mpsc::channel(2);
    let id = bench.terminals.create(OWNER, shell("echo hi"), Some(sender)).await.expect("sh starts");
    assert_eq!(bench.get(&id).wait_for_exit().await.exit_code(), Some(0));
    let told = [receiver.try_recv(), receiver.try_recv()];
    assert!(matches!(told, [Ok(TerminalEvent::Output { .. }), Ok(TerminalEvent::Ended { .. })]), "{told:?}");
    bench.nothing_left().await;
}

// TE-4: a flood is told at a bounded rate, although the reader keeps up
#[tokio::test]
async fn a_flood_does_not_fill_the_log() {
    let bench = Bench::with(TerminalSettings {
        feed: FeedPace { burst: 100_000, ..FeedPace::default() },
        ..TerminalSettings::default()
    });
    let (sender, mut receiver) = mpsc::channel(4);
    let spec = shell("head -c 100000000 /dev/zero");
    bench.terminals.create(OWNER, spec, Some(sender)).await.expect("sh starts");
    let (pieces, _end) = everything(&mut receiver).await;
    let told: u64 = pieces.iter().map(|(_, text)| text.len() as u64).sum();
    let dropped: u64 = pieces.iter().map(|(dropped, _)| dropped).sum();
    assert_eq!(told + dropped, 100_000_000);
    assert!(dropped > 90_000_000, "{dropped}");
    bench.nothing_left().await;
}

// TE-4: nor does one that goes away
#[tokio::test]
async fn a_reader_that_goes_away_changes_nothing() {
    let bench = Bench::new();
    let gate = Gate::new();
    let script = format!("echo ready; cat <{}; head -c 1000000 /dev/zero; exit 3", gate.path().display());
    let (terminal, feed) = bench.told(&script, "ready\n").await;
    drop(feed);
    gate.pass(b"on\n").await;
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(3));
    assert_eq!(text(&terminal).await.len(), "ready\non\n".len() + 1_000_000);
    bench.nothing_left().await;
}

// contract 2.3, TE-10: the final output is told after a release too, whenever it is read
#[tokio::test]
async fn a_release_tells_the_final_output() {
    let bench = Bench::new();
    let (sender, mut receiver) = mpsc::channel(1);
    let spec = shell(&upon_sigterm("echo bye; exit 7"));
    let id = bench.terminals.create(OWNER, spec, Some(sender)).await.expect("sh starts");
    while bench.get(&id).output(None).await.expect("it is not released").output.text.is_empty() {
        tokio::task::yield_now().await;
    }
    bench.terminals.release(OWNER, &id).await.expect("it is there, and does not wait for its feed");
    let (pieces, end) = everything(&mut receiver).await;
    assert_eq!(pieces.iter().map(|(_, text)| text.as_str()).collect::<String>(), "ready\nbye\n");
    let TerminalEvent::Ended { report, output, .. } = end else { panic!("not an end") };
    assert_eq!((report.state, report.exit_code()), (TerminalState::Released, Some(7)));
    assert_eq!(output.text, "ready\nbye\n");
    bench.nothing_left().await;
}

// TE-11: a reader that stalls for ever does not keep the host from ending
#[tokio::test]
async fn a_stalled_reader_does_not_hold_up_a_shutdown() {
    let bench = Bench::new();
    let (sender, receiver) = mpsc::channel(1);
    let id = bench.terminals.create(OWNER, shell("yes"), Some(sender)).await.expect("sh starts");
    while receiver.is_empty() {
        tokio::task::yield_now().await;
    }
    bench.terminals.release(OWNER, &id).await.expect("it is there");
    bench.nothing_left().await;
    drop(receiver);
}

// TE-10: terminals may share a feed; none keeps another from being told
#[tokio::test]
async fn terminals_share_a_feed() {
    let bench = Bench::new();
    let (sender, mut receiver) = mpsc::channel(1);
    let mut running = std::collections::BTreeMap::new();
    for i in 0..6 {
        let script = if i == 0 { "exec yes".to_owned() } else { format!("printf {i}; exit {i}") };
        let id =
            bench.terminals.create(OWNER, shell(&script), Some(sender.clone())).await.expect("sh starts");
        running.insert(id, (i, String::new()));
    }
    let mut ended = 0;
    while ended < 5 {
        match receiver.recv().await.expect("we hold a sender") {
            TerminalEvent::Output { terminal, text, .. } => {
                running.get_mut(&terminal).expect("it is ours").1.push_str(&text);
            }
            TerminalEvent::Ended { terminal, report, .. } => {
                let (i, told) = &running[&terminal];
                assert_eq!((report.exit_code(), told.as_str()), (Some(*i), i.to_string().as_str()));
                ended += 1;
            }
        }
    }
    drop(receiver);
    bench.nothing_left().await;
}

// TE-10: little output is told soon
#[tokio::test]
async fn a_prompt_is_told_although_the_command_goes_on() {
    let bench = Bench::new();
    let (terminal, feed) = bench.told("printf 'continue? '; exec sleep 1000", "continue? ").await;
    assert_eq!(feed.text, "continue? ");
    let gave_up = tokio::time::timeout(Duration::from_millis(1), terminal.wait_for_exit()).await;
    assert!(gave_up.is_err());
    bench.nothing_left().await;
}
