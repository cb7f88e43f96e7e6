//! The writer thread: writes the index of sessions and the notes for subscribers, and, where commits survive the loss of power, what all
//! sessions append, in groups.
//!
//! Owned by the log, which joins it. Invariants: it is the only writer of the index in this process; nothing is published before
//! its commit; an error of one session ends the writing of that session and of no other. Reading is not done here.

use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::cache::Cache;
use crate::checkpoint::WaitingCheckpoints;
use crate::damage::Damage;
use crate::disk::DiskBudget;
use crate::failure::WriteError;
use crate::files::Beside;
use crate::live::LiveSessions;
use crate::lock_wait;
use crate::metrics;
use crate::outbox::Subscribers;
use crate::queue::{Queue, Work};
use crate::reclaiming::Left;
use crate::schema;
use crate::search::WaitingPieces;

pub(crate) struct Writer {
    connection: Connection,
    budget: DiskBudget,
    /// Why only what must be is written now.
    shortage: Option<WriteError>,
    /// What deleted sessions may have left.
    left: Left,
    queue: Arc<Queue>,
    cache: Arc<Cache>,
    live: Arc<LiveSessions>,
    damage: Arc<Damage>,
    checkpoints: Arc<WaitingCheckpoints>,
    pieces: Arc<WaitingPieces>,
    subscribers: Arc<Subscribers>,
    /// What it writes.
    pub(crate) beside: Beside,
}

/// What the writer has in common with the log's handle.
pub(crate) struct Parts {
    pub(crate) queue: Arc<Queue>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) live: Arc<LiveSessions>,
    pub(crate) damage: Arc<Damage>,
    pub(crate) checkpoints: Arc<WaitingCheckpoints>,
    pub(crate) pieces: Arc<WaitingPieces>,
    pub(crate) subscribers: Arc<Subscribers>,
    pub(crate) beside: Beside,
}

impl Writer {
    pub(crate) fn new(connection: Connection, budget: DiskBudget, parts: Parts) -> Self {
        let Parts { queue, cache, live, damage, checkpoints, pieces, subscribers, beside } = parts;
        Self {
            connection,
            budget,
            shortage: None,
            left: Left::Turns,
            queue,
            cache,
            live,
            damage,
            checkpoints,
            pieces,
            subscribers,
            beside,
        }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        lock_wait::wait_shortly();
        loop {
            let until_due = self.rows_due().map(|due| due.saturating_duration_since(now()));
            // What is done when there is nothing else to do.
            let has_more = self.left != Left::Nothing
                || !self.checkpoints.is_empty()
                || !self.pieces.is_empty()
                || self.is_catching_up();
            let work = if has_more { self.queue.try_take() } else { self.queue.take(until_due) };
            match work {
                Some(Work::Group(group)) => self.commit_group(group),
                Some(Work::Job(job)) => job(&mut self),
                None if self.write_waiting_checkpoint() || self.write_waiting_piece() => {}
                None if self.queue.is_over() => break,
                None if self.catch_up_piece() => {}
                None => drop(self.reclaim_piece()),
            }
            if self.rows_due().is_some_and(|due| due <= now()) {
                self.write_rows();
            }
            let (entries, bytes) = self.queue.depth();
            metrics::queue(entries, bytes);
        }
        self.write_rows();
        self.beside.end();
        if let Err(error) = self.budget.checkpoint(&mut self.connection) {
            tracing::warn!(%error, "the index of sessions was closed without a checkpoint");
            // SQLite would try the same again, and take what room there is.
            drop(schema::leave_as_it_is_at_close(&self.connection));
        }
    }

    /// The newest events.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The live sessions of this process.
    pub(crate) fn live(&self) -> &LiveSessions {
        &self.live
    }

    /// Those that are told of events.
    pub(crate) fn subscribers(&mut self) -> &mut Arc<Subscribers> {
        &mut self.subscribers
    }

    /// What waits until there is nothing else to do.
    pub(crate) fn checkpoints(&self) -> &WaitingCheckpoints {
        &self.checkpoints
    }

    /// The same for the words of turns.
    pub(crate) fn pieces(&self) -> &WaitingPieces {
        &self.pieces
    }

    /// What deleted sessions may have left.
    pub(crate) fn left(&self) -> Left {
        self.left
    }

    /// The same from now on; it is given back when nothing else is to be done.
    pub(crate) fn expect(&mut self, left: Left) {
        self.left = left;
    }

    /// What the database says of itself.
    pub(crate) fn pragma<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<T, WriteError> {
        let value = self.connection.pragma_query_value(None, name, |row| row.get(0));
        value.map_err(|error| self.failed(error))
    }

    /// One transaction, tried once, of so many bytes: a session needs none.
    pub(crate) fn transact<T>(
        &mut self,
        bytes: usize,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, WriteError> {
        let result = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })();
        self.budget.written(bytes as u64);
        let result = result.map_err(|error| self.failed(error));
        if self.budget.checkpoint_due(&self.connection) {
            self.checkpoint();
        }
        result
    }

    fn failed(&self, error: rusqlite::Error) -> WriteError {
        let error = WriteError::from_sqlite(error, self.budget.database());
        if let WriteError::Damaged { source } = &error {
            self.damage.see(source);
        }
        error
    }

    /// Whether there is room for what nothing depends on: neither is the disk full, nor is the reserve in use.
    pub(crate) fn check_plenty(&mut self) -> Result<(), WriteError> {
        self.shortage.clone().map_or(Ok(()), Err)?;
        let kept = self.budget.check_reserve(&self.connection);
        kept.map_err(|error| WriteError::from_growing(&error, self.budget.database()))
    }

    /// Moves the write-ahead file into the database, if that is possible now.
    pub(crate) fn checkpoint(&mut self) {
        let result = self.budget.checkpoint(&mut self.connection);
        self.moved(result);
    }

    /// The same while there was no room for it.
    pub(crate) fn recover(&mut self) {
        if self.shortage.is_some() {
            self.checkpoint();
        }
    }

    /// The same once the file can be shorter than it is.
    pub(crate) fn shorten(&mut self) {
        let result = self.budget.shorten(&mut self.connection);
        self.moved(result);
    }

    /// The write-ahead file was moved into the database, or not.
    fn moved(&mut self, result: rusqlite::Result<()>) {
        let Err(error) = result else {
            self.shortage = None;
            return;
        };
        let error = self.failed(error);
        if self.shortage.is_none() {
            tracing::warn!(%error, "a checkpoint of the index of sessions failed");
        }
        self.shortage = matches!(error, WriteError::DiskFull { .. }).then_some(error);
    }
}

impl Drop for Writer {
    /// However the thread ends, no caller waits for it in vain.
    fn drop(&mut self) {
        self.queue.abandon();
        self.pieces.abandon();
        self.live.end_all();
        self.beside.stop();
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell: it measures and waits")]
fn now() -> Instant {
    Instant::now()
}
