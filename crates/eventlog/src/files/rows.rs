//! Rows of sessions that the index does not have yet.
//!
//! An append tells nobody but this, at the price of a flag; the writer's thread writes what has come together later, and at once what
//! a search needs. Until that is committed, lists are told from here, and what a kill loses of it is read again from the heads of
//! sessions that are claimed. Invariants: of each session at most one change waits; a session's segment is never waited for under
//! the lock of this, which other sessions need.

use super::IndexRow;
use crate::live::Live;
use crate::outbox::NamedNote;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the index may be behind with sessions that begin no more events, and hooks with what they are told.
const SOON: Duration = Duration::from_millis(50);
/// Sessions of which something waits, and bytes of that, from which on it is written at once: some milliseconds of work.
const MOST_SESSIONS: usize = 256;
const MOST_BYTES: usize = 1024 * 1024;
/// Bytes of a note in memory, about.
const NOTE_BYTES: usize = 64;
/// How long it is not tried again after it failed.
const AGAIN: Duration = Duration::from_secs(1);

/// What the index is to say of a session.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) id: String,
    /// What it says now is of another session, which is gone.
    pub(crate) replaces: bool,
    /// The id that the session had.
    pub(crate) from: Option<String>,
    /// None: there is no such session.
    pub(crate) row: Option<IndexRow>,
    pub(crate) notes: Vec<NamedNote>,
}

#[derive(Debug)]
pub(crate) struct UnwrittenRows {
    /// How long the index may be behind with live sessions.
    lag: Duration,
    unwritten: Mutex<Unwritten>,
}

#[derive(Debug, Default)]
struct Unwritten {
    waiting: BTreeMap<String, Waiting>,
    /// Bytes of what waits beside the sessions, about.
    bytes: usize,
    /// What is being written.
    writing: BTreeMap<String, Waiting>,
    due: Option<Instant>,
    /// It failed, and is not tried again before.
    again: Option<Instant>,
}

#[derive(Clone, Debug, Default)]
struct Waiting {
    replaces: bool,
    from: Option<String>,
    row: RowOf,
    notes: Vec<NamedNote>,
}

/// Where the row of a session comes from.
#[derive(Clone, Debug, Default)]
enum RowOf {
    /// Its segment says it.
    Live(Arc<Live>),
    Known(Box<IndexRow>),
    #[default]
    Gone,
}

impl UnwrittenRows {
    /// None yet.
    pub(crate) fn new(lag: Duration) -> Self {
        Self { lag, unwritten: Mutex::default() }
    }

    /// A live session has changed, with so many notes. True when the writer is to look sooner than it knows.
    pub(crate) fn put_live(&self, live: &Arc<Live>, (notes, is_last): (usize, bool), now: Instant) -> bool {
        let is_soon = notes > 0 || is_last;
        if live.set_behind(true) && !is_soon {
            return false;
        }
        let mut unwritten = self.unwritten.lock();
        unwritten.waiting.entry(live.id.clone()).or_default().replace(RowOf::Live(Arc::clone(live)));
        unwritten.bytes += notes * NOTE_BYTES;
        unwritten.make_due(if is_soon { SOON.min(self.lag) } else { self.lag }, now)
    }

    /// A session that is not live here stands so from now on. The same answer.
    pub(crate) fn put(&self, row: IndexRow, notes: Vec<NamedNote>, now: Instant) -> bool {
        let mut unwritten = self.unwritten.lock();
        unwritten.bytes += row.session.info.len() + notes.len() * NOTE_BYTES;
        let waiting = unwritten.waiting.entry(row.session.id.clone()).or_default();
        if !matches!(&waiting.row, RowOf::Live(live) if !live.reach().1) {
            waiting.replace(RowOf::Known(Box::new(row)));
        }
        waiting.notes.extend(notes);
        unwritten.make_due(SOON, now)
    }

    /// A session is gone. The same answer.
    pub(crate) fn remove(&self, id: &str, now: Instant) -> bool {
        let mut unwritten = self.unwritten.lock();
        unwritten.waiting.insert(id.to_owned(), Waiting { replaces: true, ..Waiting::default() });
        unwritten.make_due(SOON, now)
    }

    /// A session that is not live has another id, and is so from now on; what else waits under its id is told at the same moment
    /// (`tell`). The same answer.
    pub(crate) fn rename(&self, id: &str, row: IndexRow, now: Instant, tell: impl FnOnce()) -> bool {
        let mut unwritten = self.unwritten.lock();
        tell();
        let mut before = unwritten.waiting.remove(id).unwrap_or_default();
        if before.replaces {
            unwritten.waiting.insert(id.to_owned(), Waiting { replaces: true, ..Waiting::default() });
        } else {
            before.from.get_or_insert_with(|| id.to_owned());
        }
        before.replace(RowOf::Known(Box::new(row.clone())));
        before.replaces = unwritten.waiting.get(&row.session.id).is_some_and(|other| other.replaces);
        unwritten.waiting.insert(row.session.id, before);
        unwritten.make_due(SOON, now)
    }

    /// When the index is to be written.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.unwritten.lock().due
    }

    /// Whether there is something that the index does not say, or is just being told.
    pub(crate) fn is_behind(&self) -> bool {
        let unwritten = self.unwritten.lock();
        unwritten.due.is_some() || !unwritten.writing.is_empty()
    }

    /// True if a session has changed since what was taken of it.
    pub(crate) fn waits(&self, id: &str) -> bool {
        self.unwritten.lock().waiting.contains_key(id)
    }

    /// Whether the index has another session under this id, or will have.
    pub(crate) fn is_replaced(&self, id: &str) -> bool {
        let unwritten = self.unwritten.lock();
        let mut all = unwritten.writing.iter().chain(&unwritten.waiting);
        all.any(|(of, waiting)| {
            waiting.from.as_deref() == Some(id) || of == id && (waiting.replaces || waiting.from.is_some())
        })
    }

    /// What waits, for the index; it counts as unwritten until [`written`](Self::written). With what else is taken at the same moment
    /// (`also`): under the ids that the index has once all this is written. None, and nothing is taken, if that is nothing.
    pub(crate) fn take_with<T>(&self, also: impl FnOnce() -> Option<T>) -> Option<(Vec<Change>, T)> {
        let (mut taken, also) = {
            let mut unwritten = self.unwritten.lock();
            let also = also()?;
            (unwritten.due, unwritten.bytes) = (None, 0);
            unwritten.writing = std::mem::take(&mut unwritten.waiting);
            (unwritten.writing.clone(), also)
        };
        let mut changes = Vec::with_capacity(taken.len());
        for (id, waiting) in &mut taken {
            if let RowOf::Live(live) = &waiting.row {
                // Before its row is read: what comes behind that waits anew.
                live.set_behind(false);
            }
            let row = waiting.row.read();
            if let RowOf::Live(live) = &waiting.row {
                // Behind it: the row says up to which event they are all.
                waiting.notes.extend(live.take_notes());
            }
            changes.push(Change {
                id: id.clone(),
                replaces: waiting.replaces,
                from: waiting.from.clone(),
                row,
                notes: waiting.notes.clone(),
            });
        }
        self.unwritten.lock().writing = taken;
        Some((changes, also))
    }

    /// What was taken is in the index, or not: then it waits again, unless there is something newer.
    pub(crate) fn written(&self, is_written: bool, now: Instant) {
        let mut unwritten = self.unwritten.lock();
        let taken = std::mem::take(&mut unwritten.writing);
        if is_written || taken.is_empty() {
            unwritten.again = None;
            return;
        }
        for (id, mut before) in taken {
            let Some(waiting) = unwritten.waiting.get_mut(&id) else {
                unwritten.waiting.insert(id, before);
                continue;
            };
            if !matches!(waiting.row, RowOf::Gone) {
                before.notes.append(&mut waiting.notes);
                waiting.notes = before.notes;
            }
            waiting.replaces |= before.replaces;
            waiting.from = before.from.or(waiting.from.take());
        }
        (unwritten.due, unwritten.again) = (Some(now + AGAIN), Some(now + AGAIN));
    }

    /// What the index does not say: rows, and None for sessions that are gone.
    pub(crate) fn unwritten(&self) -> BTreeMap<String, Option<IndexRow>> {
        let mut rows = BTreeMap::new();
        {
            let unwritten = self.unwritten.lock();
            for (id, waiting) in unwritten.writing.iter().chain(&unwritten.waiting) {
                if let Some(from) = &waiting.from {
                    rows.entry(from.clone()).or_insert(RowOf::Gone);
                }
                rows.insert(id.clone(), waiting.row.clone());
            }
        }
        rows.into_iter().map(|(id, row)| (id, row.read())).collect()
    }
}

impl Unwritten {
    /// Something waits that may wait for so long. True when that is sooner than before.
    fn make_due(&mut self, lag: Duration, now: Instant) -> bool {
        let is_full = self.waiting.len() >= MOST_SESSIONS || self.bytes >= MOST_BYTES;
        let at = now + if is_full { Duration::ZERO } else { lag };
        let at = self.again.map_or(at, |again| again.max(at));
        let is_sooner = self.due.is_none_or(|due| at < due);
        if is_sooner {
            self.due = Some(at);
        }
        is_sooner
    }
}

impl Waiting {
    fn replace(&mut self, row: RowOf) {
        if let RowOf::Live(live) = std::mem::replace(&mut self.row, row) {
            self.notes.extend(live.take_notes());
        }
    }
}

impl RowOf {
    fn read(&self) -> Option<IndexRow> {
        match self {
            Self::Live(live) => live.row(),
            Self::Known(row) => Some((**row).clone()),
            Self::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests;
