//! The schedule of sealing: a session a while after its release, and what earlier processes left after that.
//!
//! Pure: the time comes in. Invariants: a session is due only up to an event of which all notes for hooks are written; what
//! finds no place here is in the index, from which it comes again; nothing is tried again at once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Sessions that can wait here. One more is left to the index.
const SESSIONS: usize = 4096;
/// The pause after the disk was found full.
pub(super) const FULL_PAUSE: Duration = Duration::from_secs(300);
/// The pause between two readings of the index for what other processes have left.
const BACKLOG_PAUSE: Duration = Duration::from_secs(3600);

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SealTask {
    /// To seal a session.
    Session {
        /// The session.
        id: String,
        /// The event up to which its notes are written. None: the notes say it.
        noted: Option<u64>,
    },
    /// To read from the index which sessions are not sealed.
    Backlog,
}

/// A session that is to be sealed.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    noted: Option<u64>,
}

/// The state of reading the index.
#[derive(Clone, Copy, Debug)]
enum Backlog {
    /// To be read on then.
    Due(Instant),
    /// Read to its end; to be read again behind this, as soon as there is something else to do.
    ReadUntil(Instant),
}

/// The sessions that are to be sealed, and when.
#[derive(Debug)]
pub(super) struct SealSchedule {
    /// The time that a session is left alone.
    rest: Duration,
    sessions: BTreeMap<String, Waiting>,
    /// The same by when they are due: each row that is written looks for the first.
    in_order: BTreeSet<(Instant, String)>,
    backlog: Backlog,
    /// Nothing is due before.
    paused_until: Option<Instant>,
}

impl SealSchedule {
    /// A schedule of a log that is opened now. A session is left alone for `rest` after its release, and so is the index after the
    /// opening: a process that ends soon reads it in vain.
    pub(super) fn new(rest: Duration, now: Instant) -> Self {
        let backlog = Backlog::Due(now + rest);
        Self { rest, sessions: BTreeMap::new(), in_order: BTreeSet::new(), backlog, paused_until: None }
    }

    /// Segments of a session are closed, and its notes are written up to an event, if that is known. One that is released is
    /// left alone anew.
    pub(super) fn put(&mut self, id: &str, noted: Option<u64>, is_released: bool, now: Instant) {
        let due = now + self.rest;
        if let Some(waiting) = self.sessions.get_mut(id) {
            waiting.noted = noted;
            if is_released {
                let before = std::mem::replace(&mut waiting.due, due);
                self.in_order.remove(&(before, id.to_owned()));
                self.in_order.insert((due, id.to_owned()));
            }
        } else if self.sessions.len() < SESSIONS {
            self.add(id.to_owned(), Waiting { due, noted });
        } else {
            let before = self.backlog.due_at();
            self.backlog = Backlog::Due(before.map_or(due, |before| before.min(due)));
        }
    }

    /// The index has these sessions as not sealed. None: it has no more.
    pub(super) fn put_backlog(&mut self, found: Vec<String>, now: Instant) {
        self.backlog = match found.is_empty() {
            true => Backlog::ReadUntil(now + BACKLOG_PAUSE),
            // Behind these.
            false => Backlog::Due(now),
        };
        for id in found {
            self.add(id, Waiting { due: now, noted: None });
        }
    }

    /// The disk was found full when a task was tried.
    pub(super) fn pause(&mut self, task: SealTask, now: Instant) {
        let until = now + FULL_PAUSE;
        self.paused_until = Some(until);
        if let SealTask::Session { id, noted } = task {
            self.add(id, Waiting { due: until, noted });
        }
    }

    /// Has a session wait, unless it does.
    fn add(&mut self, id: String, waiting: Waiting) {
        if let Entry::Vacant(place) = self.sessions.entry(id) {
            self.in_order.insert((waiting.due, place.key().clone()));
            place.insert(waiting);
        }
    }

    /// The time that a session is left alone.
    pub(super) fn rest(&self) -> Duration {
        self.rest
    }

    /// The time at which the next task is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let first = self.in_order.first().map(|(due, _)| *due);
        let due = first.into_iter().chain(self.backlog.due_at()).min()?;
        Some(self.paused_until.map_or(due, |until| until.max(due)))
    }

    /// The next task, if one is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<SealTask> {
        if self.due_at().is_none_or(|due| due > now) {
            return None;
        }
        self.paused_until = None;
        if let Backlog::ReadUntil(until) = self.backlog
            && until <= now
        {
            self.backlog = Backlog::Due(now);
        }
        match self.in_order.first() {
            Some((due, _)) if *due <= now => {
                let (_, id) = self.in_order.pop_first()?;
                let noted = self.sessions.remove(&id).and_then(|waiting| waiting.noted);
                Some(SealTask::Session { id, noted })
            }
            _ => Some(SealTask::Backlog),
        }
    }
}

impl Backlog {
    fn due_at(self) -> Option<Instant> {
        match self {
            Self::Due(due) => Some(due),
            Self::ReadUntil(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Duration = Duration::from_secs(60);

    /// What happens at a second.
    enum Step {
        Released(&'static str, u64),
        Live(&'static str, u64),
        Full(&'static str),
        Indexed(&'static [&'static str]),
    }

    use Step::{Full, Indexed, Live, Released};

    /// The tasks that are taken at each second up to the last, with the session or `-` for the index.
    fn run(steps: &[(u64, Step)], last: u64) -> Vec<(u64, String, Option<u64>)> {
        #[expect(clippy::disallowed_methods, reason = "any moment does")]
        let begin = Instant::now();
        let at = |second: u64| begin + Duration::from_secs(second);
        let mut schedule = SealSchedule::new(REST, begin);
        let mut taken = Vec::new();
        for second in 0..=last {
            let now = at(second);
            for (_, step) in steps.iter().filter(|(at, _)| *at == second) {
                match step {
                    Released(id, noted) => schedule.put(id, Some(*noted), true, now),
                    Live(id, noted) => schedule.put(id, Some(*noted), false, now),
                    Full(id) => {
                        let id = (*id).to_owned();
                        schedule.pause(SealTask::Session { id, noted: Some(1) }, now);
                    }
                    Indexed(ids) => {
                        schedule.put_backlog(ids.iter().map(|id| (*id).to_owned()).collect(), now);
                    }
                }
            }
            while let Some(task) = schedule.take(now) {
                match task {
                    SealTask::Session { id, noted } => taken.push((second, id, noted)),
                    SealTask::Backlog => {
                        taken.push((second, "-".to_owned(), None));
                        // Unless the table says what it has.
                        schedule.put_backlog(Vec::new(), now);
                    }
                }
            }
            assert!(schedule.due_at().is_none_or(|due| due > now), "what is due was taken");
        }
        taken
    }

    // issue 29: a session is sealed a minute after its last release, what others left after the start, nothing in a hot loop
    #[test]
    fn each_is_due_once_and_in_time() {
        let read = |second| (second, "-".to_owned(), None);
        let sealed = |second, id: &str, noted| (second, id.to_owned(), Some(noted));
        let left = |second, id: &str| (second, id.to_owned(), None);
        for (case, steps, last, expected) in [
            ("nothing but the look of a start", vec![], 9000, vec![read(60)]),
            ("a release", vec![(5, Released("a", 7))], 100, vec![read(60), sealed(65, "a", 7)]),
            (
                "released again meanwhile",
                vec![(5, Released("a", 7)), (30, Live("a", 8)), (40, Released("a", 9))],
                200,
                vec![read(60), sealed(100, "a", 9)],
            ),
            (
                "a live session that writes on",
                vec![(5, Live("a", 7)), (30, Live("a", 8)), (64, Live("a", 9)), (70, Live("a", 10))],
                140,
                vec![read(60), sealed(65, "a", 9), sealed(130, "a", 10)],
            ),
            (
                "the one that waits longest first",
                vec![(5, Released("b", 1)), (6, Released("a", 2))],
                100,
                vec![read(60), sealed(65, "b", 1), sealed(66, "a", 2)],
            ),
            (
                "what others left, and one of these that is released here",
                vec![(1, Indexed(&["x", "y"])), (1, Released("y", 3))],
                100,
                vec![left(1, "x"), read(1), sealed(61, "y", 3)],
            ),
            (
                "a full disk keeps everything back, and is tried again",
                vec![(70, Full("a")), (80, Released("b", 2))],
                500,
                vec![read(60), sealed(370, "b", 2), sealed(370, "a", 1)],
            ),
            (
                "what others leave later comes with the next release",
                vec![(3000, Released("a", 1)), (4000, Released("b", 2))],
                9000,
                vec![read(60), sealed(3060, "a", 1), sealed(4060, "b", 2), read(4060)],
            ),
        ] {
            assert_eq!(run(&steps, last), expected, "{case}");
        }
    }

    // issue 29: what waits is bounded; the index has the rest
    #[test]
    fn what_finds_no_place_comes_from_the_index() {
        #[expect(clippy::disallowed_methods, reason = "any moment does")]
        let now = Instant::now();
        let mut schedule = SealSchedule::new(REST, now);
        schedule.put_backlog(Vec::new(), now);
        (0..SESSIONS).for_each(|at| schedule.put(&at.to_string(), Some(1), true, now));
        let later = now + Duration::from_secs(1);
        schedule.put("one more", Some(1), true, later);
        let mut taken = 0;
        while let Some(task) = schedule.take(later + REST) {
            taken += 1;
            if task == SealTask::Backlog {
                schedule.put_backlog(Vec::new(), later);
                break;
            }
        }
        assert_eq!((taken, schedule.due_at()), (SESSIONS + 1, None));
    }
}
