//! The one writer of a live session: gives events their numbers and hands them to the writer thread.
//!
//! Owned by the session. Invariant: numbers are given in the order of the calls, without holes. After a
//! failure it gives none any more, except to the session's last words.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::batch::Batch;
use crate::failure::WriteError;
use crate::live::{Committed, Live};
use crate::log::Shared;
use crate::queue::{Append, QueuePermit, Reply};
use crate::room::QueueRoom;

/// The writer of one live session. When it is dropped, what it queued is still committed, and then the session's
/// cursors end; the session's row is not changed by that.
pub struct Appender {
    shared: Arc<Shared>,
    live: Arc<Live>,
    next: u64,
}

impl Appender {
    pub(crate) fn new(shared: Arc<Shared>, live: Arc<Live>) -> Self {
        let next = live.committed() + 1;
        Self { shared, live, next }
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
        let bytes = batch.cost();
        let first = self.shared.ask(bytes, move |writer| writer.write_last(&live, batch)).await??;
        Ok(first..=first + count - 1)
    }

    /// The queue, for those that wait for room in it before they decide what to append.
    pub fn room(&self) -> QueueRoom {
        QueueRoom::new(Arc::clone(&self.shared))
    }

    /// Queues a batch as [`Appender::append`] does, at once: what was decided cannot wait. The caller has seen that there
    /// is [room](Appender::room), so that the queue grows beyond its bound by one batch of each session at most.
    ///
    /// # Errors
    ///
    /// As [`Appender::append`].
    pub fn append_now(&mut self, batch: Batch) -> Result<RangeInclusive<u64>, WriteError> {
        batch.check_size()?;
        let permit = self.shared.queue.permit_now(batch.cost());
        self.push(batch, None, permit)
    }

    async fn queue(&mut self, batch: Batch, reply: Option<Reply>) -> Result<RangeInclusive<u64>, WriteError> {
        batch.check_size()?;
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
        let (first, count) = (self.next, batch.count);
        self.shared.queue.append(Append { live: Arc::clone(&self.live), first, batch, reply, permit })?;
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
        let live = Arc::clone(&self.live);
        // A closed log has ended all its sessions already.
        drop(self.shared.queue.job(Box::new(move |writer| writer.live().end(&live))));
    }
}
