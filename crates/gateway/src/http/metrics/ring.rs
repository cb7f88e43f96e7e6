//! The last hour of a daemon, in steps: what was there at the end of each, and what happened in it.
//!
//! Pure: the time and the figures come in. Bounded: the oldest step goes when an hour is kept.

use std::collections::VecDeque;

/// How long a step is, in milliseconds.
pub(crate) const STEP_MS: u64 = 10_000;
/// Steps that are kept: an hour.
const STEPS: usize = 360;

/// What is there at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) sessions: u64,
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    pub(crate) agent_processes: u64,
    pub(crate) viewers: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) open_files: u64,
    pub(crate) queue_bytes: u64,
}

/// What happened, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) turns: u64,
    pub(crate) turns_ended: u64,
    pub(crate) runs: u64,
    pub(crate) events: u64,
    pub(crate) event_bytes: u64,
    pub(crate) requests: u64,
    pub(crate) commits: u64,
    pub(crate) commit_us: u64,
}

impl Counts {
    /// What came since `before`.
    fn since(self, before: Self) -> Self {
        Self {
            turns: self.turns.saturating_sub(before.turns),
            turns_ended: self.turns_ended.saturating_sub(before.turns_ended),
            runs: self.runs.saturating_sub(before.runs),
            events: self.events.saturating_sub(before.events),
            event_bytes: self.event_bytes.saturating_sub(before.event_bytes),
            requests: self.requests.saturating_sub(before.requests),
            commits: self.commits.saturating_sub(before.commits),
            commit_us: self.commit_us.saturating_sub(before.commit_us),
        }
    }
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its end, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    pub(crate) levels: Levels,
    /// In the step.
    pub(crate) counts: Counts,
}

/// The steps, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    steps: VecDeque<Step>,
    /// At the end of the last step, since the process began.
    totals: Counts,
}

impl Ring {
    /// A step ends; `totals` count from the beginning of the process.
    pub(crate) fn add(&mut self, at_ms: i64, levels: Levels, totals: Counts) {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(Step { at_ms, levels, counts: totals.since(self.totals) });
        self.totals = totals;
    }

    /// All that are kept.
    pub(crate) fn steps(&self) -> Vec<Step> {
        self.steps.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: an hour in steps of 10 s; counts are of a step, levels of its end
    #[test]
    fn an_hour_is_kept() {
        let mut ring = Ring::default();
        let totals = |turns| Counts { turns, ..Counts::default() };
        for (at, total) in [(1, 3), (2, 3), (3, 10), (4, 9)] {
            ring.add(at, Levels { sessions: 7, ..Levels::default() }, totals(total));
        }
        let turns: Vec<u64> = ring.steps().iter().map(|step| step.counts.turns).collect();
        assert_eq!(turns, [3, 0, 7, 0]);
        assert!(ring.steps().iter().all(|step| step.levels.sessions == 7));
        for at in 5..1_000 {
            ring.add(at, Levels::default(), totals(9));
        }
        let steps = ring.steps();
        assert_eq!((steps.len(), steps[0].at_ms, steps[359].at_ms), (360, 640, 999));
        assert_eq!(STEP_MS * 360, 3_600_000);
    }
}
