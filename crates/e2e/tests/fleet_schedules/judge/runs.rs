//! No session is run twice: its runs, over all its logs, do not overlap.
//!
//! A run is in several logs where the session was taken up: it ended where its own node says so, or else where another one did, the
//! latest counts. Of one whose daemon died the last event counts, since what ended it is written later.

use super::{Log, Recorded, What};
use acpd_record::Cause;

/// A node could not do anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) node: usize,
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// Runs that overlap.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) wrong: Vec<String>,
    /// Those of a node that was stopped meanwhile, and could not end its own (docs/fleet.md, Failover).
    pub(crate) excused: usize,
}

#[derive(Clone, Debug)]
struct Run {
    began: Recorded,
    end_ms: i64,
    /// The node whose log has it for the longest.
    node: usize,
}

/// What overlaps of the runs of one session.
pub(crate) fn judge(logs: &[Log], stops: &[Stop]) -> Verdict {
    let mut runs: Vec<Run> = Vec::new();
    for run in logs.iter().flat_map(runs_of) {
        match runs.iter_mut().find(|other| other.began == run.began) {
            Some(other) if other.end_ms < run.end_ms => *other = run,
            Some(_) => {}
            None => runs.push(run),
        }
    }
    runs.sort_by_key(|run| run.began.at_ms);
    let mut verdict = Verdict::default();
    for (at, later) in runs.iter().enumerate() {
        for earlier in runs[..at].iter().filter(|earlier| earlier.end_ms > later.began.at_ms) {
            let is_excuse = |stop: &Stop| {
                stop.node == earlier.node
                    && stop.from_ms <= earlier.end_ms
                    && stop.to_ms >= earlier.began.at_ms
                    && stop.from_ms <= later.began.at_ms
            };
            if stops.iter().any(is_excuse) {
                verdict.excused += 1;
                continue;
            }
            verdict.wrong.push(format!(
                "a run of node {} from {} (event {}) to {}, and one of node {} from {} (event {}) to {}",
                earlier.node,
                earlier.began.at_ms,
                earlier.began.seq,
                earlier.end_ms,
                later.node,
                later.began.at_ms,
                later.began.seq,
                later.end_ms
            ));
        }
    }
    verdict
}

fn runs_of(log: &Log) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut is_open, mut last_ms) = (false, 0);
    for event in &log.events {
        match event.what {
            What::RunStarted => {
                runs.push(Run { began: event.clone(), end_ms: event.at_ms, node: log.node });
                is_open = true;
            }
            What::Ended(cause) if is_open => {
                let end_ms = if cause == Some(Cause::DaemonLost) { last_ms } else { event.at_ms };
                runs.last_mut().expect("it has begun").end_ms = end_ms;
                is_open = false;
            }
            _ => {}
        }
        last_ms = event.at_ms;
        if is_open && let Some(run) = runs.last_mut() {
            run.end_ms = event.at_ms;
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::{What::Ended, What::Other, What::RunStarted, events};
    use super::*;

    const FENCED: What = Ended(Some(Cause::Fenced));
    const LOST: What = Ended(Some(Cause::DaemonLost));

    fn log(node: usize, of: &[(u64, i64, What)]) -> Log {
        Log { node, id: node.to_string(), of: "s".to_owned(), events: events(of), shown: Vec::new() }
    }

    // design fleet, tests: no session is run twice
    #[test]
    fn runs_that_overlap_are_found() {
        // What the second node has of the run of the first, and a run of its own.
        let second = |begins: i64| {
            log(
                1,
                &[
                    (1, 10, RunStarted),
                    (2, 20, Other),
                    (3, 60, LOST),
                    (4, begins, RunStarted),
                    (5, 90, Other),
                ],
            )
        };
        for (what, first, begins, wrong) in [
            ("it ended before", vec![(1, 10, RunStarted), (2, 20, Other), (3, 50, FENCED)], 70, 0),
            ("it ended too late", vec![(1, 10, RunStarted), (2, 20, Other), (3, 80, FENCED)], 70, 1),
            ("it went on", vec![(1, 10, RunStarted), (2, 20, Other), (3, 80, Other)], 70, 1),
            ("its daemon died", vec![(1, 10, RunStarted), (2, 20, Other), (3, 99, LOST)], 70, 0),
            ("its daemon died too late", vec![(1, 10, RunStarted), (2, 75, Other), (3, 99, LOST)], 70, 1),
            (
                "it began once more",
                vec![(1, 10, RunStarted), (2, 20, Other), (3, 50, FENCED), (4, 75, RunStarted)],
                70,
                1,
            ),
        ] {
            let found = judge(&[log(0, &first), second(begins)], &[]);
            assert_eq!((found.wrong.len(), found.excused), (wrong, 0), "{what}: {found:?}");
        }
        let alone = judge(&[second(70)], &[]);
        assert!(alone.wrong.is_empty(), "{alone:?}");
    }

    // docs/fleet.md, Failover: a daemon that is stopped cannot end its agents in time
    #[test]
    fn a_node_that_was_stopped_is_excused() {
        let first = log(0, &[(1, 10, RunStarted), (2, 80, FENCED)]);
        let second = log(1, &[(1, 10, RunStarted), (2, 60, LOST), (3, 70, RunStarted)]);
        for (node, from_ms, to_ms, excused) in
            [(0, 30, 75, 1), (0, 1, 9, 0), (0, 90, 95, 0), (0, 72, 75, 0), (1, 30, 75, 0)]
        {
            let found = judge(&[first.clone(), second.clone()], &[Stop { node, from_ms, to_ms }]);
            assert_eq!(
                (found.excused, found.wrong.len()),
                (excused, 1 - excused),
                "{node} {from_ms} {found:?}"
            );
        }
    }
}
