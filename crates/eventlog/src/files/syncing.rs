//! Has the disk take what sessions have written, a while behind them, on a thread of its own.
//!
//! A commit survives the death of every process without that; it is for the loss of power, which so costs no more than the
//! last moments of a session. An append tells of itself at the price of a flag. What was closed by a claim goes at once, so
//! that nothing is on the disk long before what it follows. Invariants: one file at a time; a session of which something
//! could not be synced ends, as nobody knows what of it is there; nothing wakes up while nothing has changed.

use super::Files;
use super::live_segment::now;
use crate::failure::WriteError;
use crate::live::Live;
use crate::metrics;
use crate::session_files::SessionDir;
use crate::session_files::layout::Part;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sessions that have ended and keep their files open until they are synced; with more of them that is done at once.
const ENDED: usize = 64;

/// What syncs a file.
pub(crate) type SyncFile = Arc<dyn Fn(&File) -> io::Result<()> + Send + Sync>;

/// The sessions that have changed since they were synced.
pub(crate) struct UnsyncedFiles {
    state: Mutex<State>,
    changed: Condvar,
    every: Duration,
    sync: SyncFile,
}

#[derive(Debug, Default)]
struct State {
    unsynced: Vec<Unsynced>,
    due: Option<Instant>,
    /// How many of them have ended.
    ended: usize,
    has_failed: bool,
    is_stopped: bool,
}

#[derive(Debug)]
enum Unsynced {
    Live(Arc<Live>),
    /// One that nobody has.
    Directory(String, SessionDir),
}

impl fmt::Debug for UnsyncedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnsyncedFiles").field(&self.state).finish()
    }
}

impl UnsyncedFiles {
    /// Sessions are synced so long behind a change of theirs.
    pub(super) fn new(every: Duration, sync: SyncFile) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), every, sync }
    }

    /// A live session has changed; `is_urgent`: it has a new segment.
    pub(super) fn put_live(&self, live: &Arc<Live>, is_urgent: bool) {
        let is_known = live.set_unsynced(true);
        if is_known && !is_urgent {
            return;
        }
        let mut state = self.state.lock();
        if !is_known {
            state.unsynced.push(Unsynced::Live(Arc::clone(live)));
        }
        self.make_due(&mut state, if is_urgent { Duration::ZERO } else { self.every });
    }

    /// A session that nobody has was changed.
    pub(super) fn put_directory(&self, id: &str, directory: SessionDir) {
        let mut state = self.state.lock();
        state.unsynced.push(Unsynced::Directory(id.to_owned(), directory));
        state.ended += 1;
        let in_time = if state.ended > ENDED { Duration::ZERO } else { self.every };
        self.make_due(&mut state, in_time);
    }

    /// A live session is not live any more.
    pub(crate) fn ended(&self, live: &Live) {
        if live.is_unsynced() {
            let mut state = self.state.lock();
            state.ended += 1;
            if state.ended > ENDED {
                self.make_due(&mut state, Duration::ZERO);
            }
        }
    }

    fn make_due(&self, state: &mut State, in_time: Duration) {
        let due = now() + in_time;
        if state.due.is_none_or(|before| due < before) {
            state.due = Some(due);
            self.changed.notify_all();
        }
    }

    /// Has the thread end, as soon as the disk has taken the file that it is at.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Syncs a file that shows whether the disk takes anything, if it has failed to.
    pub(super) fn check(&self, file: &File) -> io::Result<()> {
        if self.state.lock().has_failed {
            (self.sync)(file)?;
            self.state.lock().has_failed = false;
        }
        Ok(())
    }

    /// What is to be synced, once it is due. None: the thread is to end.
    fn take(&self) -> Option<Vec<Unsynced>> {
        let mut state = self.state.lock();
        loop {
            match state.due {
                _ if state.is_stopped => return None,
                Some(due) if due <= now() => break,
                Some(due) => drop(self.changed.wait_until(&mut state, due)),
                None => self.changed.wait(&mut state),
            }
        }
        (state.due, state.ended) = (None, 0);
        Some(std::mem::take(&mut state.unsynced))
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }
}

impl Files {
    /// Syncs what changes, until that is stopped.
    pub(crate) fn sync_changes(&self) {
        while let Some(changes) = self.unsynced.take() {
            for change in changes {
                if self.unsynced.is_stopped() {
                    return;
                }
                if let Err(error) = self.sync_change(&change) {
                    self.sync_failed(&change, error);
                }
            }
        }
    }

    fn sync_change(&self, change: &Unsynced) -> io::Result<()> {
        let sync = &self.unsynced.sync;
        match change {
            Unsynced::Live(live) => {
                // Before: what is written behind that is synced the next time.
                live.set_unsynced(false);
                let Some(segment) = &live.segment else { return Ok(()) };
                let files = segment.take_unsynced();
                match files {
                    Ok(files) => files.iter().try_for_each(|file| sync(file)),
                    Err(error) => {
                        tracing::debug!(session = live.id, %error, "session is synced later");
                        self.unsynced.put_live(live, false);
                        Ok(())
                    }
                }
            }
            Unsynced::Directory(id, directory) => {
                let parts = directory.parts().unwrap_or_default();
                let logs = parts.iter().filter_map(|part| match part {
                    Part::Log(number) => directory.log(*number).transpose(),
                    // It was synced before it had its name.
                    Part::Seal(..) => None,
                });
                let mut logs = logs.filter_map(|log| {
                    log.inspect_err(|error| tracing::debug!(session = id, %error, "session is not synced"))
                        .ok()
                });
                logs.try_for_each(|log| sync(&log))
            }
        }
    }

    fn sync_failed(&self, change: &Unsynced, error: io::Error) {
        metrics::sync_failed();
        self.unsynced.state.lock().has_failed = true;
        // Not one that the disk is doubted for, which is tried for this.
        let error = WriteError::from_files(&error);
        let id = match change {
            Unsynced::Live(live) => &live.id,
            Unsynced::Directory(id, _) => id,
        };
        tracing::error!(session = id, %error, "the disk has not taken what a session has written");
        if let Unsynced::Live(live) = change
            && live.failure().is_none()
        {
            live.fail(error);
        }
    }
}

#[cfg(test)]
mod tests;
