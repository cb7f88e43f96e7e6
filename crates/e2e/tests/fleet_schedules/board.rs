//! What the threads of one schedule tell one another: its time, when which node was down, what was asked and shown, what went wrong.

use acpd_e2e::{Stopwatch, unix_ms};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// When a node was killed or stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Down {
    pub(crate) node: usize,
    pub(crate) is_stopped: bool,
    from: Duration,
    to: Option<Duration>,
    pub(crate) from_ms: i64,
    pub(crate) to_ms: Option<i64>,
}

/// Events of sessions as they were shown; of one number there may be several, since a session that was taken up goes on from what was in the
/// archive.
pub(crate) type Shown = BTreeMap<(String, u64), BTreeSet<String>>;

#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) down: Vec<Down>,
    pub(crate) shown: Shown,
    /// Answers by request, and by what they were.
    pub(crate) answers: BTreeMap<(&'static str, String), usize>,
    /// Requests at a node that was down itself.
    pub(crate) exempt: usize,
    pub(crate) slowest: Duration,
    pub(crate) looks: usize,
    pub(crate) violations: Vec<String>,
    pub(crate) journal: Vec<String>,
    is_over: bool,
}

#[derive(Debug)]
pub(crate) struct Board {
    clock: Stopwatch,
    told: Mutex<Told>,
    over: Condvar,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self { clock: Stopwatch::start(), told: Mutex::default(), over: Condvar::new() }
    }

    /// The time since its begin.
    pub(crate) fn now(&self) -> Duration {
        self.clock.passed()
    }

    pub(crate) fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("nobody panics there")
    }

    /// Lets time pass, up to the end of the schedule; whether it goes on.
    pub(crate) fn pause(&self, lasts: Duration) -> bool {
        let goes_on = |told: &mut Told| !told.is_over;
        let waited = self.over.wait_timeout_while(self.told(), lasts, goes_on);
        !waited.expect("nobody panics there").0.is_over
    }

    pub(crate) fn end(&self) {
        self.told().is_over = true;
        self.over.notify_all();
    }

    pub(crate) fn wrong(&self, what: String) {
        let at = self.now().as_secs_f64();
        self.told().violations.push(format!("at {at:.2} s: {what}"));
    }

    pub(crate) fn done(&self, what: &str) {
        let at = self.now().as_secs_f64();
        self.told().journal.push(format!("  {at:6.2} s: {what}\n"));
    }

    /// A node is killed or stopped from now on.
    pub(crate) fn goes_down(&self, node: usize, is_stopped: bool) {
        let (from, from_ms) = (self.now(), unix_ms());
        self.told().down.push(Down { node, is_stopped, from, to: None, from_ms, to_ms: None });
    }

    /// It is there again.
    pub(crate) fn is_up(&self, node: usize) {
        let (to, to_ms) = (self.now(), unix_ms());
        let mut told = self.told();
        let down = told.down.iter_mut().rev().find(|down| down.node == node).expect("it went down");
        (down.to, down.to_ms) = (Some(to), Some(to_ms));
    }

    /// Whether a node was down at some time in between.
    pub(crate) fn was_down(&self, node: usize, from: Duration, to: Duration) -> bool {
        let told = self.told();
        let mut downs = told.down.iter().filter(|down| down.node == node);
        downs.any(|down| down.from <= to && down.to.is_none_or(|up| from <= up))
    }
}
