//! Checkpoints: of a session at most one, what its host computed from its events up to one of them. Opaque here.
//!
//! Disposable: they are written when the writer has nothing else to do, and what cannot be written is dropped. Invariant: one
//! that is stored stands for events that are committed. Not here: SQLite's own checkpoints, see `disk.rs`.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OptionalExtension, params};

use crate::log::EventLog;
use crate::query::QueryError;
use crate::writer::Writer;

/// What may wait to be written, in bytes; more is dropped. Enough for the ends of many sessions at a shutdown.
const WAITING_BYTES: usize = 16 * 1024 * 1024;

/// What a session was at one of its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last event that it stands for.
    pub seq: u64,
    /// What its host computed, opaque here.
    pub bytes: Vec<u8>,
}

/// Checkpoints that wait for the writer, each with its session.
#[derive(Debug, Default)]
pub(crate) struct WaitingCheckpoints(Mutex<VecDeque<(String, Checkpoint)>>);

impl WaitingCheckpoints {
    /// False when there is no room.
    fn put(&self, id: &str, checkpoint: Checkpoint) -> bool {
        let mut waiting = self.waiting();
        let held: usize = waiting.iter().map(|(_, waiting)| waiting.bytes.len()).sum();
        let fits = held + checkpoint.bytes.len() <= WAITING_BYTES;
        if fits {
            waiting.push_back((id.to_owned(), checkpoint));
        }
        fits
    }

    pub(crate) fn take(&self) -> Option<(String, Checkpoint)> {
        self.waiting().pop_front()
    }

    /// A session has another id.
    pub(crate) fn rename(&self, id: &str, new: &str) {
        self.waiting().iter_mut().filter(|(of, _)| of == id).for_each(|(of, _)| new.clone_into(of));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(String, Checkpoint)>> {
        self.0.lock()
    }
}

impl EventLog {
    /// Keeps a checkpoint in place of the one before, when the writer has nothing else to do. One that stands for events that
    /// are not committed then is dropped, and one that cannot be written: a log without it tells the same.
    pub fn keep_checkpoint(&self, id: &str, checkpoint: Checkpoint) {
        if self.shared.checkpoints.put(id, checkpoint) {
            // Wakes the writer up. One that is closing looks by itself.
            let _closed = self.shared.queue.job(Box::new(|_| {}));
        } else {
            tracing::debug!(session = id, "a checkpoint was dropped: too many wait to be written");
        }
    }

    /// The checkpoint of a session, unless it stands for more than the events up to `last`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn checkpoint(&self, id: &str, last: u64) -> Result<Option<Checkpoint>, QueryError> {
        let id = id.to_owned();
        Ok(self.shared.readers.read(move |connection| find(connection, &id, last)).await?)
    }
}

impl Writer {
    /// Writes one of the checkpoints that wait, if any does. Tried once, and not at all where room is short: nothing depends on it.
    pub(crate) fn write_waiting_checkpoint(&mut self) -> bool {
        if self.checkpoints().is_empty() {
            return false;
        }
        let Some((rows, (id, checkpoint))) = self.take_with_rows(|writer| writer.checkpoints().take()) else {
            return false;
        };
        let bytes = checkpoint.bytes.len();
        match self.write_with_rows(&rows, bytes, |transaction| put(transaction, &id, &checkpoint)) {
            Ok(true) => {}
            Ok(false) => {
                tracing::debug!(session = id, "a checkpoint was dropped: its events are not in the log");
            }
            Err(error) => tracing::debug!(session = id, %error, "a checkpoint was dropped"),
        }
        true
    }
}

/// False when the session is gone, or has not all those events.
fn put(connection: &Connection, id: &str, checkpoint: &Checkpoint) -> rusqlite::Result<bool> {
    let put = connection
        .prepare_cached(
            "INSERT OR REPLACE INTO checkpoint (session, seq, bytes) \
             SELECT row, ?2, ?3 FROM session WHERE id = ?1 AND last_seq >= ?2",
        )?
        .execute(params![id, checkpoint.seq, checkpoint.bytes])?;
    Ok(put != 0)
}

fn find(connection: &Connection, id: &str, last: u64) -> rusqlite::Result<Option<Checkpoint>> {
    connection
        .prepare_cached(
            "SELECT seq, checkpoint.bytes FROM session JOIN checkpoint ON checkpoint.session = session.row \
             WHERE id = ?1 AND seq <= ?2",
        )?
        .query_row(params![id, last], |row| Ok(Checkpoint { seq: row.get(0)?, bytes: row.get(1)? }))
        .optional()
}

/// With its session.
pub(crate) fn delete(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM checkpoint WHERE session = ?1", [session]).map(drop)
}
