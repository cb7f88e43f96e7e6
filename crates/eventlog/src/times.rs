//! When live sessions were updated last, as far as their rows do not say it yet.
//!
//! Three indexes of the table are in the order of that time, and a page of each would be written with every commit: more
//! than half of what a small commit costs. So the rows learn it together, a moment later, and before a list is read. A row
//! whose owner or end changes learns it at once. A process that is killed loses no more than the last moment of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::live::Owner;

/// How long rows may be behind.
const BEHIND: Duration = Duration::from_millis(50);
/// How long it is not tried again after it failed.
const AGAIN: Duration = Duration::from_secs(1);

/// Whether any row is behind, for those that read lists.
pub(crate) type AnyBehind = Arc<AtomicBool>;

/// When a session was updated, in milliseconds since 1970, and by which host: another's row is not told.
pub(crate) type Update = (Owner, i64);

/// Times that the rows do not have yet, by session.
#[derive(Debug, Default)]
pub(crate) struct Times {
    unwritten: HashMap<i64, Update>,
    due: Option<Instant>,
    any: AnyBehind,
}

impl Times {
    pub(crate) fn new(any: AnyBehind) -> Self {
        Self { any, ..Self::default() }
    }

    /// A session was updated, and its row does not say so.
    pub(crate) fn behind(&mut self, session: i64, update: Update, now: Instant) {
        self.unwritten.insert(session, update);
        self.due.get_or_insert(now + BEHIND);
        self.any.store(true, Ordering::Release);
    }

    /// The row of a session says all.
    pub(crate) fn written(&mut self, session: i64) {
        self.unwritten.remove(&session);
    }

    /// When the rows are to be told.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what is to be written.
    pub(crate) fn take(&mut self) -> HashMap<i64, Update> {
        self.due = None;
        self.any.store(false, Ordering::Release);
        std::mem::take(&mut self.unwritten)
    }

    /// It could not be written.
    pub(crate) fn put_back(&mut self, times: HashMap<i64, Update>, now: Instant) {
        for (session, update) in times {
            self.unwritten.entry(session).or_insert(update);
        }
        self.due = Some(now + AGAIN);
        self.any.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_behind_for_a_moment() {
        let any = AnyBehind::default();
        let mut times = Times::new(Arc::clone(&any));
        #[expect(clippy::disallowed_methods, reason = "any moment will do")]
        let now = Instant::now();
        assert_eq!((times.due(), any.load(Ordering::Acquire)), (None, false));
        times.behind(1, (None, 10), now);
        times.behind(2, (None, 20), now + BEHIND / 2);
        times.behind(1, (None, 30), now + BEHIND / 2);
        assert_eq!((times.due(), any.load(Ordering::Acquire)), (Some(now + BEHIND), true));
        times.written(2);
        let taken = times.take();
        assert_eq!((&taken, times.due()), (&HashMap::from([(1, (None, 30))]), None));
        assert!(!any.load(Ordering::Acquire));
        // What came meanwhile is newer.
        times.behind(1, (None, 40), now);
        times.put_back(taken, now);
        assert_eq!(times.due(), Some(now + AGAIN));
        assert_eq!(times.take(), HashMap::from([(1, (None, 40))]));
    }
}
