//! When a hook is told what.
//!
//! Pure: notes, outcomes and the time come in; what is told next, and what is over, goes out. Invariants: of a session one
//! event is told at a time, in order; at most [`AT_ONCE`] at once; at most [`WAITING`] wait. Not here: the telling.

use acpd_eventlog::Note;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

/// Events that a hook is told at once: enough for a receiver that is far away.
const AT_ONCE: usize = 4;
/// Events that wait for one hook; of more, the oldest are dropped. Days of work of a team, and a few MiB at most.
pub(super) const WAITING: usize = 10_000;
/// From a failure to the next try, at first; it doubles from try to try.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3600);
/// An event that is older than this is not tried again.
const OLDEST: Duration = Duration::from_secs(24 * 3600);

/// Nor one that was tried so often, whatever its age: that takes more than a day.
const TRIES: u32 = 40;

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    Told,
    /// There is nothing to tell.
    Moot,
    /// The event had this age.
    Failed {
        age: Duration,
    },
}

/// What has become of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Became {
    Told,
    Moot,
    /// It is tried again.
    Waits,
    /// It was tried for too long.
    Dropped,
}

#[derive(Debug)]
struct Waiting {
    session: String,
    seq: u64,
    tries: u32,
    /// When it is tried again.
    not_before: Option<Instant>,
    is_told: bool,
}

/// What waits for one hook.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    waiting: BTreeMap<u64, Waiting>,
    telling: usize,
    last_number: u64,
    /// Set by a failure, until something was told: one at a time, and not before then.
    careful: Option<Instant>,
}

impl Schedule {
    /// The last note that was taken.
    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a note, later ones behind earlier ones. Gives the one that is dropped for it, if too many wait.
    pub(super) fn take(&mut self, note: Note) -> Option<u64> {
        let Note { number, session, seq } = note;
        self.last_number = self.last_number.max(number);
        let waiting = Waiting { session, seq, tries: 0, not_before: None, is_told: false };
        self.waiting.insert(number, waiting);
        if self.waiting.len() <= WAITING {
            return None;
        }
        let oldest = self.waiting.iter().find(|(_, waiting)| !waiting.is_told).map(|(number, _)| *number);
        oldest.inspect(|number| drop(self.waiting.remove(number)))
    }

    /// The next event that is told now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Note> {
        let at_once = if self.careful.is_some() { 1 } else { AT_ONCE };
        if self.telling >= at_once || self.careful.is_some_and(|at| now < at) {
            return None;
        }
        let number = self.first(|waiting| waiting.not_before.is_none_or(|at| at <= now))?;
        let waiting = self.waiting.get_mut(&number)?;
        waiting.is_told = true;
        self.telling += 1;
        Some(Note { number, session: waiting.session.clone(), seq: waiting.seq })
    }

    /// The first event of a session that `may` be told.
    fn first(&self, may: impl Fn(&Waiting) -> bool) -> Option<u64> {
        let mut passed: HashSet<&str> = HashSet::new();
        let mut waiting = self.waiting.iter();
        let found = waiting.find(|(_, waiting)| {
            let is_first = passed.insert(waiting.session.as_str());
            is_first && !waiting.is_told && may(waiting)
        });
        found.map(|(number, _)| *number)
    }

    /// When there is something to tell again, unless something else happens before.
    pub(super) fn due(&self) -> Option<Instant> {
        let at_once = if self.careful.is_some() { 1 } else { AT_ONCE };
        if self.telling >= at_once {
            return None;
        }
        let mut passed: HashSet<&str> = HashSet::new();
        let firsts = self.waiting.values().filter(|waiting| passed.insert(waiting.session.as_str()));
        let again = firsts.filter(|waiting| !waiting.is_told).filter_map(|waiting| waiting.not_before).min();
        match (self.careful, again) {
            (Some(careful), Some(again)) => Some(careful.max(again)),
            (Some(careful), None) if !self.waiting.is_empty() => Some(careful),
            (_, again) => again,
        }
    }

    /// A try has ended.
    pub(super) fn tried(&mut self, number: u64, tried: Tried, now: Instant) -> Became {
        self.telling = self.telling.saturating_sub(1);
        match tried {
            Tried::Told => self.careful = None,
            Tried::Moot => {}
            Tried::Failed { .. } => self.careful = Some(now + SHORTEST),
        }
        let became = match (tried, self.waiting.get_mut(&number)) {
            (Tried::Told, _) => Became::Told,
            (Tried::Moot, _) => Became::Moot,
            (Tried::Failed { age }, Some(waiting)) if age < OLDEST && waiting.tries < TRIES => {
                let pause = SHORTEST.saturating_mul(1 << waiting.tries.min(12)).min(LONGEST);
                waiting.tries += 1;
                (waiting.is_told, waiting.not_before) = (false, Some(now + pause));
                return Became::Waits;
            }
            (Tried::Failed { .. }, _) => Became::Dropped,
        };
        self.waiting.remove(&number);
        became
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Tried = Tried::Failed { age: Duration::ZERO };

    fn note(number: u64, session: &str) -> Note {
        Note { number, session: session.to_owned(), seq: number * 10 }
    }

    fn with(sessions: &[&str]) -> Schedule {
        let mut schedule = Schedule::default();
        for (number, session) in (1..).zip(sessions) {
            assert_eq!(schedule.take(note(number, session)), None);
        }
        schedule
    }

    fn begun(schedule: &mut Schedule, now: Instant) -> Vec<u64> {
        std::iter::from_fn(|| schedule.next(now)).map(|note| note.number).collect()
    }

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    // contract 7.2: four at once, those of one session one behind the other
    #[test]
    fn sessions_are_told_side_by_side() {
        let (mut schedule, now) = (with(&["a", "a", "b", "c", "d", "e", "a"]), now());
        assert_eq!(begun(&mut schedule, now), [1, 3, 4, 5]);
        assert_eq!(schedule.tried(4, Tried::Told, now), Became::Told);
        assert_eq!(begun(&mut schedule, now), [6]);
        assert_eq!(schedule.tried(1, Tried::Moot, now), Became::Moot);
        assert_eq!(begun(&mut schedule, now), [2]);
        assert_eq!((schedule.len(), schedule.last_number(), schedule.due()), (5, 7, None));
    }

    // contract 7.2: tried again after 1 s, 2 s and so on up to an hour, for 24 hours
    #[test]
    fn what_fails_is_tried_again() {
        let (mut schedule, mut now) = (with(&["a", "a"]), now());
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600] {
            assert_eq!(begun(&mut schedule, now), [1], "the second waits for the first");
            assert_eq!(schedule.tried(1, FAILED, now), Became::Waits);
            let due = schedule.due().expect("it is tried again");
            assert_eq!(due - now, Duration::from_secs(seconds));
            assert_eq!(begun(&mut schedule, due - Duration::from_millis(1)), [0; 0]);
            now = due;
        }
        assert_eq!(begun(&mut schedule, now), [1]);
        assert_eq!(schedule.tried(1, Tried::Failed { age: OLDEST }, now), Became::Dropped);
        let due = schedule.due().expect("the next");
        assert_eq!(begun(&mut schedule, due), [2]);
    }

    // contract 7.2: one event that is refused does not hold up other sessions; a receiver that is gone is not stormed
    #[test]
    fn a_failure_makes_careful() {
        let (mut schedule, now) = (with(&["a", "b", "c", "d", "e"]), now());
        assert_eq!(begun(&mut schedule, now), [1, 2, 3, 4]);
        assert_eq!(schedule.tried(1, FAILED, now), Became::Waits);
        schedule.tried(2, FAILED, now);
        schedule.tried(3, FAILED, now);
        schedule.tried(4, FAILED, now);
        assert_eq!(begun(&mut schedule, now), [0; 0]);
        let later = schedule.due().expect("a second later");
        assert_eq!(later - now, Duration::from_secs(1));
        assert_eq!(begun(&mut schedule, later), [1], "one at a time");
        assert_eq!(schedule.tried(1, Tried::Told, later), Became::Told);
        assert_eq!(begun(&mut schedule, later), [2, 3, 4, 5]);
    }

    // contract 7.2: what waits is bounded, and the oldest goes
    #[test]
    fn the_oldest_is_dropped() {
        let (mut schedule, now) = (Schedule::default(), now());
        schedule.take(note(1, "a"));
        assert_eq!(begun(&mut schedule, now), [1]);
        for number in 2..=WAITING as u64 {
            assert_eq!(schedule.take(note(number, "a")), None);
        }
        assert_eq!(schedule.take(note(20_000, "b")), Some(2), "the first is being told");
        assert_eq!((schedule.len(), schedule.last_number()), (WAITING, 20_000));
    }
}
