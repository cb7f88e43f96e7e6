//! The writes that run, and whether an append may be one more of them on the thread that decides it.
//!
//! An async thread that writes stands still for as long as the disk does. So one of them at least does not write, and none
//! does while the disk is slow: the threads of the backlogs do then (`backlog.rs`). A runtime with one thread, as that of
//! `acpd stdio`, cannot avoid the first slow write: until that returns nothing else happens there, not even a cancel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A write that takes longer is slow: a hundred times what one takes.
const SLOW: Duration = Duration::from_millis(2);

/// No async thread writes for so long behind a slow write.
const AVOIDED: Duration = Duration::from_secs(1);

/// An async thread writes no batch of so many bytes: to pack it takes milliseconds.
pub(crate) const LARGE_BYTES: usize = 1024 * 1024;

/// So many async threads write at once at most, of however many.
const INLINE: usize = 6;

/// Threads that write backlogs. One that stands still leaves the other to all other sessions.
pub(super) const BACKLOG_WRITERS: usize = 2;

/// How busy the disk is.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Async threads that write.
    inline: usize,
    /// How long the oldest of all writes runs.
    oldest: Option<Duration>,
    /// How long ago the last slow write ended.
    since_slow: Option<Duration>,
}

/// Whether one more of so many async threads may write.
fn may_write_inline(load: Load, workers: usize) -> bool {
    load.inline < most_inline(workers)
        && load.oldest.is_none_or(|running| running <= SLOW)
        && load.since_slow.is_none_or(|past| past >= AVOIDED)
}

/// How many of so many async threads may write at once.
fn most_inline(workers: usize) -> usize {
    workers.saturating_sub(1).clamp(1, INLINE)
}

/// The writes of all sessions that run, each in a place of its own.
#[derive(Debug)]
pub(crate) struct RunningWrites {
    /// Times are microseconds since a second before this log was opened, so that none is 0.
    base: Instant,
    /// When each began; 0: none runs there. Those of async threads come first.
    began: [AtomicU64; INLINE + BACKLOG_WRITERS],
    /// When the last slow write ended; 0: none has.
    slow: AtomicU64,
}

/// A write that runs until this is dropped.
pub(crate) struct RunningWrite<'a> {
    writes: &'a RunningWrites,
    place: usize,
    began: Instant,
}

impl RunningWrites {
    pub(super) fn new(now: Instant) -> Self {
        Self { base: now, began: Default::default(), slow: AtomicU64::new(0) }
    }

    /// Begins a write on one of so many async threads. None: it must not write now.
    pub(crate) fn begin_inline(&self, workers: usize, now: Instant) -> Option<RunningWrite<'_>> {
        if !may_write_inline(self.load(now), workers) {
            return None;
        }
        let at = self.time(now);
        // Each place is taken by one, so that no more than may begin do.
        let is_taken =
            |place: &AtomicU64| place.compare_exchange(0, at, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let place = self.began[..most_inline(workers)].iter().position(is_taken)?;
        Some(RunningWrite { writes: self, place, began: now })
    }

    /// Begins a write on a thread of the backlogs.
    pub(super) fn begin(&self, writer: usize, now: Instant) -> RunningWrite<'_> {
        let place = INLINE + writer;
        self.began[place].store(self.time(now), Ordering::Release);
        RunningWrite { writes: self, place, began: now }
    }

    /// Has no async thread write from now on, or any.
    #[cfg(test)]
    pub(super) fn be_slow(&self, is_slow: bool) {
        self.slow.store(if is_slow { u64::MAX } else { 0 }, Ordering::Release);
    }

    fn load(&self, now: Instant) -> Load {
        let now = self.time(now);
        let since = |at: u64| (at > 0).then(|| Duration::from_micros(now.saturating_sub(at)));
        let running = |place: &AtomicU64| since(place.load(Ordering::Acquire));
        Load {
            inline: self.began[..INLINE].iter().filter_map(running).count(),
            oldest: self.began.iter().filter_map(running).max(),
            since_slow: since(self.slow.load(Ordering::Acquire)),
        }
    }

    fn time(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.base) + Duration::from_secs(1);
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    }
}

impl RunningWrite<'_> {
    /// It has ended; how long it took.
    pub(crate) fn end(self, now: Instant) -> Duration {
        let took = now.saturating_duration_since(self.began);
        if took > SLOW {
            // Before its place is free.
            self.writes.slow.store(self.writes.time(now), Ordering::Release);
        }
        took
    }
}

impl Drop for RunningWrite<'_> {
    fn drop(&mut self) {
        self.writes.began[self.place].store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    // design session-files 5: at most one thread less than there are writes, and none while a write is slow or was a moment ago
    #[test]
    fn who_may_write_follows_from_what_runs() {
        let idle = Load::default();
        let running = |inline: usize, oldest: Duration| Load { inline, oldest: Some(oldest), ..idle };
        let past = |since: Duration| Load { since_slow: Some(since), ..idle };
        for (load, workers, may) in [
            (idle, 0, true),
            (idle, 1, true),
            (idle, 2, true),
            (running(1, MS), 1, false),
            (running(1, MS), 2, false),
            (running(1, MS), 3, true),
            (running(2, MS), 3, false),
            (running(5, MS), 64, true),
            (running(6, MS), 64, false),
            // It is slow while it still runs, wherever.
            (running(1, SLOW), 3, true),
            (running(1, SLOW + MS), 3, false),
            (running(1, SLOW + MS), 64, false),
            (running(0, SLOW + MS), 2, false),
            (running(0, MS), 2, true),
            (past(Duration::ZERO), 2, false),
            (past(AVOIDED - MS), 64, false),
            (past(AVOIDED), 2, true),
            (Load { since_slow: Some(AVOIDED), ..running(1, MS) }, 2, false),
        ] {
            assert_eq!(may_write_inline(load, workers), may, "{load:?} of {workers}");
        }
    }

    // design session-files 5: a slow write is known while it runs, and for a second behind it
    #[test]
    fn a_slow_write_sends_others_away_until_a_second_behind_it() {
        let opened = super::super::live_segment::now();
        let writes = RunningWrites::new(opened);
        let may = |at: Duration| writes.begin_inline(3, opened + at).is_some();
        let first = writes.begin_inline(3, opened).expect("nothing runs");
        assert!(may(SLOW) && !may(SLOW + MS));
        // Another took the second place meanwhile.
        let second = writes.begin_inline(3, opened + MS).expect("a place is left");
        assert!(!may(MS), "one thread is kept free");
        assert_eq!(second.end(opened + 2 * MS), MS);
        assert_eq!(first.end(opened + 10 * MS), 10 * MS);
        assert!(!may(11 * MS) && !may(10 * MS + AVOIDED - MS));
        assert!(may(10 * MS + AVOIDED));
        // A write of a backlog counts as well, and takes no place of an async thread.
        let queued = writes.begin(1, opened + 2 * AVOIDED);
        assert!(may(2 * AVOIDED) && !may(2 * AVOIDED + SLOW + MS));
        drop(queued);
        assert!(may(2 * AVOIDED + SLOW + MS), "a panic leaves no place taken");
    }
}
