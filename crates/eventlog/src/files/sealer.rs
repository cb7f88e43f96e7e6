//! Seals sessions in the background, on a thread of the lowest priority.
//!
//! A session is sealed a while after its release, once its notes for hooks are written; closed segments of one that is live
//! here as well. What other processes have left comes from the index, one process at a time. Invariants: nothing waits for
//! this but the end of the log, and that for one piece of work; nothing wakes up while nothing is due. Which sessions are due
//! is decided in `seal_schedule.rs`, how one is sealed in `session_files/sealing.rs`.

mod backlog;

use super::live_segment::now;
use super::seal_schedule::{SealSchedule, SealTask};
use super::{Files, IndexRow, NO_HOST, signed};
use crate::disk::means_full;
use crate::failure::WriteError;
use crate::live::LiveSessions;
use crate::metrics;
use crate::queue::Queue;
use crate::reserve::free_bytes;
use crate::session_files::{LastSegment, SealControl, Sealing, SessionDir, SessionFileError};
use backlog::Backlog;
use parking_lot::{Condvar, Mutex};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Bytes that stay free on the disk beside a seal that is being written.
const FREE_BESIDE: u64 = 16 * 1024 * 1024;

/// The sessions that are to be sealed, for those who know of one and for the thread that seals them.
#[derive(Debug)]
pub(crate) struct SealQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    schedule: SealSchedule,
    is_stopped: bool,
}

impl SealQueue {
    /// A queue in which a session rests for so long.
    pub(super) fn new(rest: Duration) -> Self {
        let state = State { schedule: SealSchedule::new(rest, now()), is_stopped: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Segments of a session are closed, and its notes are written up to an event, if that is known.
    fn put(&self, id: &str, noted: Option<u64>, is_released: bool) {
        self.change(|schedule| schedule.put(id, noted, is_released, now()));
    }

    /// Has the thread end, as soon as it has done the piece of work that it is at.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Changes the schedule; the thread learns of it only if it would sleep for too long.
    fn change(&self, change: impl FnOnce(&mut SealSchedule)) {
        let mut state = self.state.lock();
        let before = state.schedule.due_at();
        change(&mut state.schedule);
        let is_earlier = match (before, state.schedule.due_at()) {
            (Some(before), Some(due)) => due < before,
            (before, due) => before.is_none() && due.is_some(),
        };
        if is_earlier {
            self.changed.notify_all();
        }
    }

    /// The next task, once one is due. None: the thread is to end.
    fn take(&self) -> Option<SealTask> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            if let Some(task) = state.schedule.take(now()) {
                return Some(task);
            }
            match state.schedule.due_at() {
                Some(due) => drop(self.changed.wait_until(&mut state, due)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// The time that a session is left alone.
    fn rest(&self) -> Duration {
        self.state.lock().schedule.rest()
    }

    /// Whether a task is due.
    fn has_due(&self) -> bool {
        self.state.lock().schedule.due_at().is_some_and(|due| due <= now())
    }

    /// Waits until then, or until the thread is to end.
    fn rest_until(&self, end: Instant) {
        let mut state = self.state.lock();
        while !state.is_stopped && now() < end {
            self.changed.wait_until(&mut state, end);
        }
    }
}

impl Files {
    /// Has a session sealed in its time, of which the index has this row and all notes are written that this process makes.
    pub(crate) fn seal_later(&self, row: &IndexRow) {
        if row.unsealed {
            // What another host has not noted, only the notes say.
            let is_own = self.hosts.lock().contains_key(&row.claimed_by);
            let session = &row.session;
            self.seals.put(&session.id, is_own.then_some(session.last_seq), session.owner.is_none());
        }
    }
}

/// The work of the thread.
pub(crate) struct Sealer {
    files: Arc<Files>,
    live: Arc<LiveSessions>,
    queue: Arc<Queue>,
    backlog: RefCell<Backlog>,
    /// Sessions that cannot be sealed, which is logged once.
    failed: RefCell<HashSet<String>>,
}

/// The outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// There is not enough room on the disk.
    Full,
}

impl Sealer {
    /// Seals sessions of `files`, of which those are live here. `index` and `hooks` are the databases beside them.
    pub(crate) fn new(
        files: Arc<Files>,
        live: Arc<LiveSessions>,
        queue: Arc<Queue>,
        (index, hooks): (PathBuf, PathBuf),
    ) -> Self {
        let backlog = RefCell::new(Backlog::new(&files.state, index, hooks));
        Self { files, live, queue, backlog, failed: RefCell::default() }
    }

    /// Works until the queue is stopped.
    pub(crate) fn run(self) {
        let seals = &self.files.seals;
        while let Some(task) = seals.take() {
            let began = now();
            if self.work(&task) == Outcome::Full {
                seals.change(|schedule| schedule.pause(task, now()));
            }
            if !seals.has_due() {
                self.backlog.borrow_mut().close();
            }
            // As long as that took: half of the disk's time is for others.
            let end = now();
            seals.rest_until(end + (end - began));
        }
    }

    fn work(&self, task: &SealTask) -> Outcome {
        match task {
            SealTask::Session { id, noted } => self.seal_session(id, *noted),
            SealTask::Backlog => {
                // What was released since is its own process's to seal, if that lives.
                let found = self.backlog.borrow_mut().read(ms_before(self.files.seals.rest()));
                let found = found.unwrap_or_else(|error| {
                    tracing::debug!(error = &*error, "sessions of other processes are sealed later");
                    Vec::new()
                });
                self.files.seals.change(|schedule| schedule.put_backlog(found, now()));
                Outcome::Done
            }
        }
    }

    fn seal_session(&self, id: &str, noted: Option<u64>) -> Outcome {
        if self.failed.borrow().contains(id) {
            return Outcome::Done;
        }
        match self.try_to_seal(id, noted) {
            Ok(outcome) => outcome,
            Err(SessionFileError::Io(error)) if means_full(&error) => Outcome::Full,
            // It was removed meanwhile, or has another id.
            Err(error) if error.is_gone() => Outcome::Done,
            Err(error) => {
                self.failed.borrow_mut().insert(id.to_owned());
                let error: &dyn std::error::Error = &error;
                tracing::warn!(session = id, error, "session is not compressed");
                Outcome::Done
            }
        }
    }

    fn try_to_seal(&self, id: &str, noted: Option<u64>) -> Result<Outcome, SessionFileError> {
        let Some(directory) = self.files.anybody.find(id)? else { return Ok(Outcome::Done) };
        if !self.has_room(&directory)? {
            return Ok(Outcome::Full);
        }
        let control = Control { sealer: self, id, noted, failure: Cell::default() };
        let sealing = directory.seal(NO_HOST, &control)?;
        if let Some(error) = control.failure.take() {
            tracing::debug!(session = id, error = &*error, "session is compressed later");
        }
        match sealing {
            Sealing::Sealed { before, after, .. } => {
                self.files.count(signed(after) - signed(before));
                metrics::sealed(before, after);
                tracing::debug!(session = id, before, after, "session compressed");
            }
            Sealing::Nothing => {}
            Sealing::Busy | Sealing::Stopped => return Ok(Outcome::Done),
        }
        if let Err(error) = self.note_bytes(id) {
            tracing::debug!(session = id, %error, "the index has the size that the session had");
        }
        Ok(Outcome::Done)
    }

    /// Whether a seal finds room beside what it replaces, without what is kept for the ends of sessions.
    fn has_room(&self, directory: &SessionDir) -> Result<bool, SessionFileError> {
        if self.files.reserve.lock().is_owed() {
            return Ok(false);
        }
        let needed = directory.bytes()? + FREE_BESIDE;
        Ok(free_bytes(&self.files.state).is_none_or(|free| free >= needed))
    }

    /// Has the index say what the files of a session take now.
    fn note_bytes(&self, id: &str) -> Result<(), WriteError> {
        let files = &self.files;
        // None begins or goes between the look and the word of it.
        let _owning = files.owning.lock();
        let is_first = match self.live.get(id) {
            Some(live) => {
                if let Some(segment) = &live.segment {
                    segment.count_closed().map_err(|error| files.failed(error))?;
                }
                files.rows.put_live(&live, (0, false), now())
            }
            None => match files.find(id)? {
                Some(found) => files.rows.put(found.row(), Vec::new(), now()),
                None => false,
            },
        };
        if is_first {
            // One that is closing looks by itself.
            drop(self.queue.job(Box::new(|_| {})));
        }
        Ok(())
    }
}

/// What is asked about a session while it is being sealed.
struct Control<'a> {
    sealer: &'a Sealer,
    id: &'a str,
    noted: Option<u64>,
    /// Why it could not be found out.
    failure: Cell<Option<Box<dyn std::error::Error>>>,
}

impl SealControl for Control<'_> {
    fn allows(&self, last: &LastSegment, upto: u64) -> bool {
        let host = &last.facts.host;
        if !last.standing.released && !self.sealer.files.hosts.lock().contains_key(host) {
            // Its owner, another process, knows its size.
            return false;
        }
        match self.noted {
            Some(noted) => upto <= noted,
            None => {
                let is_noted = self.sealer.backlog.borrow_mut().is_noted(self.id, host, upto);
                is_noted.unwrap_or_else(|error| {
                    self.failure.set(Some(error));
                    false
                })
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.sealer.files.seals.is_stopped()
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell: what the index says is by the time of day")]
fn ms_before(rest: Duration) -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.saturating_sub(rest).as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
