//! The writer thread: takes what is queued, commits it in one transaction, then answers the waiting callers.
//!
//! Owned by the log, which joins it. Invariants: it is the only writer of this process; nothing is published before
//! its commit; an error of one session ends the writing of that session and of no other. Reading is not done here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::batch::Batch;
use crate::block::{Block, BlockBuilder};
use crate::cache::Cache;
use crate::checkpoint::WaitingCheckpoints;
use crate::damage::Damage;
use crate::disk::DiskBudget;
use crate::failure::WriteError;
use crate::inspection;
use crate::live::{Live, LiveSessions};
use crate::lock_wait::LockWatch;
use crate::log::NewSession;
use crate::metrics;
use crate::outbox::Subscribers;
use crate::part::{Part, answer, owner_after};
use crate::queue::{Append, Queue, Work};
use crate::reclaiming::Left;
use crate::schema;
use crate::search::WaitingPieces;
use crate::store::{self, RowTime, SessionHead, Standing};
use crate::times::{AnyBehind, Times};

pub(crate) struct Writer {
    connection: Connection,
    budget: DiskBudget,
    /// Why only last words are written now.
    shortage: Option<WriteError>,
    /// What deleted sessions may have left.
    left: Left,
    queue: Arc<Queue>,
    cache: Arc<Cache>,
    live: Arc<LiveSessions>,
    damage: Arc<Damage>,
    times: Times,
    checkpoints: Arc<WaitingCheckpoints>,
    pieces: Arc<WaitingPieces>,
    subscribers: Arc<Subscribers>,
    locks: Arc<LockWatch>,
}

/// What the writer has in common with the log's handle.
pub(crate) struct Parts {
    pub(crate) queue: Arc<Queue>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) live: Arc<LiveSessions>,
    pub(crate) damage: Arc<Damage>,
    pub(crate) behind: AnyBehind,
    pub(crate) checkpoints: Arc<WaitingCheckpoints>,
    pub(crate) pieces: Arc<WaitingPieces>,
    pub(crate) subscribers: Subscribers,
    pub(crate) locks: Arc<LockWatch>,
}

impl Writer {
    pub(crate) fn new(connection: Connection, budget: DiskBudget, parts: Parts) -> Self {
        let Parts { queue, cache, live, damage, behind, checkpoints, pieces, subscribers, locks } = parts;
        Self {
            connection,
            budget,
            shortage: None,
            left: Left::Blocks,
            queue,
            cache,
            live,
            damage,
            times: Times::new(behind),
            checkpoints,
            pieces,
            subscribers: Arc::new(subscribers),
            locks,
        }
    }

    /// Works until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        self.locks.enter(true);
        loop {
            let until_due = self.times.due().map(|due| due.saturating_duration_since(now()));
            // What is done when there is nothing else to do.
            let has_more =
                self.left != Left::Nothing || !self.checkpoints.is_empty() || !self.pieces.is_empty();
            let work = if has_more { self.queue.try_take() } else { self.queue.take(until_due) };
            match work {
                Some(Work::Group(group)) => self.commit_group(group),
                Some(Work::Job(job)) => job(&mut self),
                None if self.write_waiting_checkpoint() || self.write_waiting_piece() => {}
                None if self.queue.is_over() => break,
                None => drop(self.reclaim_piece()),
            }
            if self.times.due().is_some_and(|due| due <= now()) {
                self.write_times();
            }
            self.locks.clear();
            let (entries, bytes) = self.queue.depth();
            metrics::queue(entries, bytes);
        }
        self.write_times();
        if let Err(error) = self.budget.checkpoint(&mut self.connection) {
            tracing::warn!(%error, "the event log was closed without a checkpoint");
            // SQLite would try the same again, and take what room there is.
            drop(schema::leave_as_it_is_at_close(&self.connection));
        }
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

    /// The same for the index.
    pub(crate) fn pieces(&self) -> &WaitingPieces {
        &self.pieces
    }

    /// Tells the rows when their sessions were updated.
    pub(crate) fn write_times(&mut self) {
        let times = self.times.take();
        if times.is_empty() {
            return;
        }
        let written = self.transact(None, |transaction| {
            let mut times = times.iter();
            times
                .try_for_each(|(session, (owner, at))| {
                    store::write_time(transaction, *session, (owner.as_deref(), *at))
                })
                .map(Ok)
        });
        if let Err(error) = written {
            tracing::debug!(%error, "the times of sessions are written later");
            self.times.put_back(times, now());
        }
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

    /// After room was made in the file on a disk that is full.
    pub(crate) fn recover(&mut self) {
        if self.shortage.is_some() {
            let recovered = self.budget.recover(&mut self.connection);
            self.moved(recovered);
        }
    }

    /// One transaction of a job. What `change` refuses is rolled back. With `reserved`, it counts as last words of so many
    /// bytes: it may use the reserve.
    pub(crate) fn transact<T>(
        &mut self,
        reserved: Option<usize>,
        mut change: impl FnMut(&Transaction<'_>) -> rusqlite::Result<Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        let mut attempt = |writer: &mut Self| writer.attempt_job(0, &mut change);
        let result = match reserved {
            Some(bytes) => self.with_reserve(bytes, attempt),
            None => self.check_room().and_then(|()| match attempt(self) {
                // What was written before may fit into the database, and then its room is free again.
                Err(full @ WriteError::DiskFull { .. }) => match self.budget.relieve(&mut self.connection) {
                    Ok(()) => attempt(self),
                    Err(_) => Err(full),
                },
                result => result,
            }),
        };
        self.checkpoint_if_due();
        result
    }

    /// One transaction, tried once, of so many bytes: for what may as well not be written.
    pub(crate) fn transact_once<T>(
        &mut self,
        bytes: usize,
        mut change: impl FnMut(&Transaction<'_>) -> rusqlite::Result<Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        let result = self.attempt_job(bytes as u64, &mut change);
        self.checkpoint_if_due();
        result
    }

    fn attempt_job<T>(
        &mut self,
        bytes: u64,
        change: &mut impl FnMut(&Transaction<'_>) -> rusqlite::Result<Result<T, WriteError>>,
    ) -> Result<T, WriteError> {
        let result = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = change(&transaction)?;
            if result.is_ok() {
                transaction.commit()?;
            }
            Ok(result)
        })();
        self.budget.written(bytes);
        result.unwrap_or_else(|error| Err(self.failed(error)))
    }

    /// Does `attempt`, again and again as long as it finds the disk full and the reserve has something to give.
    fn with_reserve<T>(
        &mut self,
        bytes: usize,
        mut attempt: impl FnMut(&mut Self) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        let (mut result, mut given) = (attempt(self), true);
        if matches!(result, Err(WriteError::DiskFull { .. }))
            && self.budget.relieve(&mut self.connection).is_ok()
        {
            result = attempt(self);
        }
        while matches!(result, Err(WriteError::DiskFull { .. })) && given {
            given = self.budget.release(&self.connection, bytes).unwrap_or_else(|error| {
                tracing::warn!(%error, "the size limit of the event log could not be raised");
                false
            });
            result = attempt(self);
        }
        if let Err(error) = self.budget.apply_limit(&self.connection) {
            tracing::warn!(%error, "the size limit of the event log could not be restored");
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

    /// A session that begins, with its first events.
    pub(crate) fn create(&mut self, mut new: NewSession) -> Result<Arc<Live>, WriteError> {
        let events = std::mem::take(&mut new.events);
        let (count, bytes) = (events.count, events.cost() as u64);
        let blocks = BlockBuilder::whole(1, events.records, count);
        self.check_beginning()?;
        let row = self.transact(None, |transaction| {
            let Some(row) = store::create(transaction, &new)? else {
                return Ok(Err(WriteError::Exists { id: new.id.clone() }));
            };
            let standing = Standing { row, owner: Some(&new.owner), after: 0 };
            store::write(transaction, standing, &blocks, (events.index.as_ref(), RowTime::Now))?;
            Ok(Ok(row))
        })?;
        metrics::appended(count, bytes);
        self.cache.put(row, blocks);
        let owner =
            owner_after(events.index.as_ref()).map_or(Some(new.owner), |owner| owner.map(str::to_owned));
        let live = Arc::new(Live::new(new.id, row, owner, count));
        self.live.insert(Arc::clone(&live));
        Ok(live)
    }

    /// A session goes on here, with these events.
    pub(crate) fn adopted(&mut self, live: Arc<Live>, blocks: Vec<Block>) {
        self.cache.put(live.row, blocks);
        self.live.insert(live);
    }

    /// Nothing begins in the room that is kept for ends.
    pub(crate) fn check_beginning(&mut self) -> Result<(), WriteError> {
        let kept = self.budget.check_reserve(&self.connection);
        kept.map_err(|error| WriteError::from_growing(&error, self.budget.database()))
    }

    /// Whether there is room for what nothing depends on: neither is the disk full, nor is the reserve in use.
    pub(crate) fn check_plenty(&mut self) -> Result<(), WriteError> {
        self.shortage.clone().map_or(Ok(()), Err)?;
        self.check_beginning()
    }

    /// Whether something could be written now. Nothing is.
    pub(crate) fn check(&mut self) -> Result<(), WriteError> {
        let in_place = self.budget.check_place();
        in_place.map_err(|error| WriteError::from_growing(&error, self.budget.database()))?;
        if let Some(source) = self.damage.found() {
            return Err(WriteError::Damaged { source });
        }
        self.check_room()?;
        self.check_beginning()?;
        let rehearsed = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            inspection::rehearse(&transaction)?;
            transaction.rollback()
        })();
        rehearsed.map_err(|error| self.failed(error))?;
        let grown = self.budget.check_growth(&self.connection);
        grown.map_err(|error| WriteError::from_growing(&error, self.budget.database()))
    }

    /// The last words of a session: with the reserve, and even if its appender failed before.
    pub(crate) fn write_last(&mut self, live: &Live, batch: Batch) -> Result<u64, WriteError> {
        let after = live.committed();
        let mut part = Part::new(live, after);
        let bytes = batch.cost();
        part.noted = self.subscribers.noted(after + 1, &batch);
        part.add(batch, None, None);
        part.seal();
        let attempt = |writer: &mut Self, part: &Part<'_>| {
            writer.with_reserve(bytes, |writer| writer.attempt(std::slice::from_ref(part)))
        };
        match self.notes_or_not(&mut part, attempt)? {
            true => {
                self.publish(part);
                Ok(after + 1)
            }
            false => Err(self.refusal(live)),
        }
    }

    /// Why a session does not take what its appender writes.
    fn refusal(&self, live: &Live) -> WriteError {
        let id = live.id.clone();
        match store::session_head(&self.connection, &id) {
            Ok(Some(SessionHead { row, owner: Some(owner), .. }))
                if row == live.row && live.owner().as_deref() != Some(owner.as_str()) =>
            {
                WriteError::TakenOver { id, owner }
            }
            _ => WriteError::Conflict { id },
        }
    }

    fn commit_group(&mut self, group: Vec<Append>) {
        let lives: Vec<Arc<Live>> = group.iter().map(|append| Arc::clone(&append.live)).collect();
        let mut parts: Vec<Part<'_>> = Vec::new();
        let mut part_of = HashMap::new();
        for (append, live) in group.into_iter().zip(&lives) {
            if let Some(error) = live.failure() {
                answer(append.reply, &Err(error));
                continue;
            }
            let at = *part_of.entry(live.row).or_insert_with(|| {
                parts.push(Part::new(live, append.first - 1));
                parts.len() - 1
            });
            parts[at].noted.extend(self.subscribers.noted(append.first, &append.batch));
            parts[at].add(append.batch, append.reply, append.permit);
        }
        parts.iter_mut().for_each(Part::seal);
        if let Err(error) = self.check_room() {
            parts.into_iter().for_each(|part| part.fail(&error));
            return;
        }
        self.commit_parts(parts);
        self.checkpoint_if_due();
    }

    /// All parts together; if that fails, each by itself, so that only those fail that can not be written.
    fn commit_parts(&mut self, parts: Vec<Part<'_>>) {
        let error = match self.attempt(&parts) {
            Ok(written) => {
                for (part, written) in parts.into_iter().zip(written) {
                    self.settle(part, Ok(written));
                }
                return;
            }
            Err(error) => error,
        };
        tracing::warn!(%error, sessions = parts.len(), "a commit failed; writing each session by itself");
        if matches!(error, WriteError::DiskFull { .. })
            && let Err(error) = self.budget.relieve(&mut self.connection)
        {
            tracing::warn!(%error, "the write-ahead file could not be emptied");
        }
        let mut parts = parts.into_iter();
        while let Some(mut part) = parts.next() {
            let written =
                self.notes_or_not(&mut part, |writer, part| writer.attempt(std::slice::from_ref(part)));
            // The log is being closed, and the lock is held for the others too: each would wait as long again.
            let hopeless =
                written.as_ref().err().filter(|error| matches!(error, WriteError::Busy { .. })).cloned();
            self.settle(part, written);
            if let Some(error) = hopeless {
                parts.by_ref().for_each(|part| part.fail(&error));
            }
        }
    }

    fn settle(&mut self, part: Part<'_>, written: Result<bool, WriteError>) {
        match written {
            Ok(true) => self.publish(part),
            Ok(false) => {
                let error = self.refusal(part.live);
                part.fail(&error);
            }
            Err(error) => part.fail(&error),
        }
    }

    /// Writes one part. Its events do not fail for want of room for its notes.
    fn notes_or_not(
        &mut self,
        part: &mut Part<'_>,
        attempt: impl Fn(&mut Self, &Part<'_>) -> Result<Vec<bool>, WriteError>,
    ) -> Result<bool, WriteError> {
        let mut written = attempt(self, part);
        if matches!(written, Err(WriteError::DiskFull { .. })) && !part.noted.is_empty() {
            let lost = std::mem::take(&mut part.noted).len();
            written = attempt(self, part);
            if written.is_ok() {
                tracing::warn!(
                    session = part.live.id,
                    lost,
                    "hooks are not told of events: the disk is full"
                );
                metrics::notes_lost(lost);
            }
        }
        written.map(|written| written.first() == Some(&true))
    }

    /// One transaction for these parts; says for each whether its session stood where the part expected it.
    fn attempt(&mut self, parts: &[Part<'_>]) -> Result<Vec<bool>, WriteError> {
        let began = now();
        let result = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let written = parts
                .iter()
                .map(|part| {
                    let index = (part.index.as_ref(), RowTime::Later);
                    let written = store::write(&transaction, part.standing(), &part.blocks, index)?;
                    if written {
                        self.subscribers.write(&transaction, part.live.row, &part.noted)?;
                    }
                    Ok(written)
                })
                .collect::<rusqlite::Result<Vec<_>>>()?;
            transaction.commit()?;
            Ok(written)
        })();
        for part in parts {
            self.budget.written(part.bytes);
        }
        match &result {
            Ok(written) => {
                metrics::commit_took(began.elapsed());
                let parts = parts.iter().zip(written).filter(|(_, written)| **written).map(|(part, _)| part);
                let parts = parts.inspect(|part| match &part.index {
                    Some(index) if RowTime::Later.is_left(index) => {
                        self.times.behind(part.live.row, (part.owner.clone(), index.updated_ms), began);
                    }
                    Some(_) => self.times.written(part.live.row),
                    None => {}
                });
                let (events, bytes) =
                    parts.fold((0, 0), |(events, bytes), part| (events + part.events(), bytes + part.bytes));
                metrics::appended(events, bytes);
            }
            Err(_) => metrics::commit_failed(),
        }
        result.map_err(|error| self.failed(error))
    }

    fn publish(&mut self, part: Part<'_>) {
        if let Some(owner) = owner_after(part.index.as_ref()) {
            part.live.set_owner(owner);
        }
        if let Some(last) = part.blocks.last().map(Block::last) {
            self.cache.put(part.live.row, part.blocks);
            part.live.publish(last);
        }
        if !part.noted.is_empty() {
            self.subscribers.tell();
        }
        part.replies.into_iter().for_each(|reply| answer(Some(reply), &Ok(())));
    }

    /// While the disk is full, a checkpoint that works is the proof that it no longer is.
    fn check_room(&mut self) -> Result<(), WriteError> {
        if self.shortage.is_some() {
            self.checkpoint();
        }
        self.shortage.clone().map_or(Ok(()), Err)
    }

    fn checkpoint_if_due(&mut self) {
        if self.budget.checkpoint_due(&self.connection) {
            self.checkpoint();
        }
    }

    /// Moves the write-ahead file into the database, if that is possible now.
    pub(crate) fn checkpoint(&mut self) {
        let result = self.budget.checkpoint(&mut self.connection);
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
            tracing::warn!(%error, "a checkpoint of the event log failed");
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
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell: it measures and waits")]
fn now() -> Instant {
    Instant::now()
}
