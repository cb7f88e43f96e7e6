//! What waits for the writer thread: batches and jobs, in order, bounded.
//!
//! The bound counts bytes, and each entry has a price of its own, so it bounds the number too. Policy when it is
//! full: a new entry waits for a permit, first come first served. The permit is held until the commit.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::batch::Batch;
use crate::failure::WriteError;
use crate::live::Live;
use crate::writer::Writer;

/// Room for all that waits: deep enough that the writer always finds a full group, small beside the rest of a host.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// The price of an entry beside its bytes; bounds the queue to about 65,000 entries.
const ENTRY_BYTES: usize = 512;

/// A group is closed when it has so many bytes: enough to make the commit's own cost vanish, little enough that
/// no writer waits long for it.
const GROUP_BYTES: usize = 4 * 1024 * 1024;

/// Room in the queue, held until the commit. None for what found none.
pub(crate) type QueuePermit = Option<OwnedSemaphorePermit>;
pub(crate) type Reply = oneshot::Sender<Result<(), WriteError>>;

/// Answers a caller, if one waits.
pub(crate) fn answer(reply: Option<Reply>, result: &Result<(), WriteError>) {
    // A caller that no longer waits does not need the answer.
    reply.map(|reply| reply.send(result.clone()).ok());
}

pub(crate) type Job = Box<dyn FnOnce(&mut Writer) + Send>;

/// A batch of a session.
pub(crate) struct Append {
    pub(crate) live: Arc<Live>,
    pub(crate) batch: Batch,
    pub(crate) reply: Option<Reply>,
    pub(crate) permit: QueuePermit,
}

/// What the writer does next.
pub(crate) enum Work {
    /// Batches to commit together.
    Group(Vec<Append>),
    /// Something else, in its place among the batches.
    Job(Job),
}

enum Entry {
    Append(Append),
    Job(Job),
}

#[derive(Default)]
struct Waiting {
    entries: VecDeque<Entry>,
    closed: bool,
}

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    permits: Arc<Semaphore>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            arrived: Condvar::new(),
            permits: Arc::new(Semaphore::new(QUEUE_BYTES)),
        }
    }

    /// Waits for room.
    pub(crate) async fn permit(&self, bytes: usize) -> Result<QueuePermit, WriteError> {
        let permit = Arc::clone(&self.permits).acquire_many_owned(price_of(bytes)).await;
        permit.map(Some).map_err(|_| WriteError::Closed)
    }

    /// Takes as much of the room as there is, for an entry that does not wait.
    pub(crate) fn permit_now(&self, bytes: usize) -> QueuePermit {
        let price = price_of(bytes).min(self.permits.available_permits().try_into().unwrap_or(u32::MAX));
        Arc::clone(&self.permits).try_acquire_many_owned(price).ok()
    }

    /// Whether an entry finds room now.
    pub(crate) fn has_room(&self) -> bool {
        self.permits.available_permits() >= ENTRY_BYTES || self.permits.is_closed()
    }

    /// Waits until an entry finds room, behind all that wait already; or until the queue is closed.
    pub(crate) async fn room(&self) {
        // Closed is as good: the entry is refused then.
        let _closed = self.permits.acquire_many(ENTRY_BYTES as u32).await.is_err();
    }

    pub(crate) fn append(&self, append: Append) -> Result<(), WriteError> {
        self.push(Entry::Append(append))
    }

    /// Without a wait for room: for what carries no bytes and comes once per caller.
    pub(crate) fn job(&self, job: Job) -> Result<(), WriteError> {
        self.push(Entry::Job(job))
    }

    /// Refuses everything new; what is queued is still done.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.waiting().closed = true;
        self.arrived.notify_all();
    }

    /// The next work, waiting for it, at most so long. Nothing after that, or once the queue is closed and empty.
    pub(crate) fn take(&self, at_most: Option<Duration>) -> Option<Work> {
        let is_idle = |waiting: &mut Waiting| waiting.entries.is_empty() && !waiting.closed;
        let mut waiting = self.waiting();
        match at_most {
            Some(at_most) => drop(self.arrived.wait_while_for(&mut waiting, is_idle, at_most)),
            None => self.arrived.wait_while(&mut waiting, is_idle),
        }
        waiting.take()
    }

    /// Whether the queue is closed and empty.
    pub(crate) fn is_over(&self) -> bool {
        let waiting = self.waiting();
        waiting.closed && waiting.entries.is_empty()
    }

    /// The next work, if there is any now.
    pub(crate) fn try_take(&self) -> Option<Work> {
        self.waiting().take()
    }

    /// How many entries wait, and how many bytes are charged for what waits and for what is being written.
    pub(crate) fn depth(&self) -> (usize, usize) {
        (self.waiting().entries.len(), QUEUE_BYTES - self.permits.available_permits())
    }

    /// Closes and drops what is queued; those who wait for a reply learn that there will be none.
    pub(crate) fn abandon(&self) {
        self.close();
        let entries = std::mem::take(&mut self.waiting().entries);
        drop(entries);
    }

    fn push(&self, entry: Entry) -> Result<(), WriteError> {
        let was_empty = {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(WriteError::Closed);
            }
            waiting.entries.push_back(entry);
            waiting.entries.len() == 1
        };
        if was_empty {
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}

/// What an entry takes of the room. One larger than the whole queue gets all of it.
fn price_of(bytes: usize) -> u32 {
    bytes.saturating_add(ENTRY_BYTES).min(QUEUE_BYTES) as u32
}

impl Waiting {
    fn take(&mut self) -> Option<Work> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while bytes < GROUP_BYTES {
            match self.entries.pop_front() {
                Some(Entry::Append(append)) => {
                    bytes += append.batch.cost();
                    group.push(append);
                }
                Some(Entry::Job(job)) if group.is_empty() => return Some(Work::Job(job)),
                Some(job @ Entry::Job(_)) => {
                    self.entries.push_front(job);
                    break;
                }
                None => break,
            }
        }
        (!group.is_empty()).then_some(Work::Group(group))
    }
}
