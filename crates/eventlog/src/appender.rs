//! The one writer of a live session: gives events their numbers and writes them, or hands them to who does.
//!
//! Owned by the session. Invariant: numbers are given in the order of the calls, without holes. After a
//! failure it gives none any more, except to the session's last words.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::failure::WriteError;
use crate::files::{LARGE_BYTES, Queued};
use crate::live::{Committed, Live};
use crate::log::Shared;
use crate::queue::{self, QueuePermit, Reply, answer};
use crate::room::QueueRoom;

/// The writer of one live session. When it is dropped, what it queued is still committed, and then the session's
/// cursors end; the session's row is not changed by that.
///
/// It writes on the caller's thread, and queues for other threads while the disk is slow (a write takes more
/// than 2 ms), for a second behind that, and what is longer than 1 MiB. A runtime with one thread stands still in the
/// first slow write.
pub struct Appender {
    shared: Arc<Shared>,
    live: Arc<Live>,
    next: u64,
    /// Threads of the runtime that it is used on.
    workers: usize,
}

/// What becomes of a batch.
enum Append {
    Committed(RangeInclusive<u64>),
    /// The disk is slow, or something waits to be written in front of it.
    Waits(Batch),
}

impl Appender {
    pub(crate) fn new(shared: Arc<Shared>, live: Arc<Live>) -> Self {
        let next = live.committed() + 1;
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Self { shared, live, next, workers }
    }

    /// The session.
    pub fn id(&self) -> &str {
        &self.live.id
    }

    /// The number of the next event.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// How far the session is committed.
    pub fn committed(&self) -> Committed {
        Committed::new(&self.live)
    }

    /// Queues a batch and returns the numbers of its events (an empty range for a batch of an index update alone).
    /// Waits only for room in the queue. Whether it was committed is known from [`Appender::committed`].
    ///
    /// # Errors
    ///
    /// When an earlier batch could not be committed, with the same error; when an event is too large; when the log is
    /// closed. Nothing is queued then.
    ///
    /// # Cancel safety
    ///
    /// Safe: when dropped while it waits, nothing was queued, no number was given and the batch is lost.
    pub async fn append(&mut self, batch: Batch) -> Result<RangeInclusive<u64>, WriteError> {
        self.queue(batch, None).await
    }

    /// Queues a batch and returns after its commit.
    ///
    /// # Errors
    ///
    /// As [`Appender::append`], and when the commit fails.
    pub async fn append_durable(&mut self, batch: Batch) -> Result<RangeInclusive<u64>, WriteError> {
        let (reply, answer) = oneshot::channel();
        let range = self.queue(batch, Some(reply)).await?;
        answer.await.unwrap_or(Err(WriteError::Closed))?;
        Ok(range)
    }

    /// Commits the session's last words and ends this appender. It works even if an earlier batch could not be
    /// committed (what was queued since is lost then, and the numbers go on after the last committed event), and may
    /// use a reserve that is kept for it when the disk is full. So it should be small.
    ///
    /// # Errors
    ///
    /// When even that can not be written.
    pub async fn append_final(self, batch: Batch) -> Result<RangeInclusive<u64>, WriteError> {
        batch.check_size()?;
        let live = Arc::clone(&self.live);
        let count = batch.count;
        if let Some(files) = self.shared.own_files() {
            // Off the async threads: it is the one append that waits for room.
            let (reply, answer) = oneshot::channel();
            files.backlogs.hand_over((&self.shared, &live), Queued::Last { batch, reply })?;
            answer.await.unwrap_or(Err(WriteError::Closed))?;
            let last = live.committed();
            return Ok(last + 1 - count..=last);
        }
        let bytes = batch.cost();
        let last = self.shared.ask(bytes, move |writer| writer.commit_last(&live, batch)).await??;
        Ok(last + 1 - count..=last)
    }

    /// The queue, for those that wait for room in it before they decide what to append.
    pub fn room(&self) -> QueueRoom {
        QueueRoom::new(Arc::clone(&self.shared), Arc::clone(self.live.progress()))
    }

    /// Queues a batch as [`Appender::append`] does, at once: what was decided cannot wait. The caller has seen that there
    /// is [room](Appender::room), so that the queue grows beyond its bound by one batch of each session at most.
    ///
    /// # Errors
    ///
    /// As [`Appender::append`].
    pub fn append_now(&mut self, batch: Batch) -> Result<RangeInclusive<u64>, WriteError> {
        batch.check_size()?;
        let batch = match self.commit(batch)? {
            Append::Committed(range) => return Ok(range),
            Append::Waits(batch) => batch,
        };
        let permit = self.shared.queue.permit_now(batch.cost());
        self.push(batch, None, permit)
    }

    /// Appends to the session's segment, at once, if there is one and this thread may write now.
    fn commit(&mut self, batch: Batch) -> Result<Append, WriteError> {
        let Some(files) = self.shared.own_files() else { return Ok(Append::Waits(batch)) };
        let write = match batch.cost() < LARGE_BYTES {
            true => files.begin_write(self.workers),
            false => None,
        };
        let Some(write) = write else { return Ok(Append::Waits(batch)) };
        if !self.live.begin_write()? {
            return Ok(Append::Waits(batch));
        }
        let first = self.next;
        let last = self.shared.append_to_segment(files, &self.live, (batch, false), write)?;
        self.next = last + 1;
        Ok(Append::Committed(first..=last))
    }

    async fn queue(&mut self, batch: Batch, reply: Option<Reply>) -> Result<RangeInclusive<u64>, WriteError> {
        batch.check_size()?;
        let batch = match self.commit(batch)? {
            Append::Committed(range) => {
                answer(reply, &Ok(()));
                return Ok(range);
            }
            Append::Waits(batch) => batch,
        };
        let permit = self.shared.queue.permit(batch.cost()).await?;
        self.push(batch, reply, permit)
    }

    fn push(
        &mut self,
        batch: Batch,
        reply: Option<Reply>,
        permit: QueuePermit,
    ) -> Result<RangeInclusive<u64>, WriteError> {
        if let Some(error) = self.live.failure() {
            return Err(error);
        }
        let (first, count, live) = (self.next, batch.count, &self.live);
        match self.shared.own_files() {
            Some(files) => {
                files.backlogs.hand_over((&self.shared, live), Queued::Batch { batch, reply, permit })?;
            }
            None => {
                self.shared.queue.append(queue::Append { live: Arc::clone(live), batch, reply, permit })?;
            }
        }
        self.next += count;
        Ok(first..=first + count - 1)
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("id", &self.live.id)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        if let Some(files) = self.shared.own_files() {
            if !self.live.has_backlog()
                || files.backlogs.hand_over((&self.shared, &self.live), Queued::End).is_err()
            {
                files.end_live(&self.shared.live, &self.live);
            }
            return;
        }
        let live = Arc::clone(&self.live);
        // A closed log has ended all its sessions already.
        drop(self.shared.queue.job(Box::new(move |writer| writer.live().end(&live))));
    }
}
