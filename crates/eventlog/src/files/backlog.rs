//! What async threads do not write themselves: batches that wait, session by session, for threads that may stand still.
//!
//! Owned by the log over files. Invariants: one thread at a time writes a session, in the order in which its appender handed
//! over; what an appender hands over is behind what it wrote before, and it writes nothing itself until all of it is done; what
//! waits counts against the room of the queue (`queue.rs`), which is bounded. A session that stands still holds up one thread,
//! and all others go to the rest. Not here: who writes (`running_writes.rs`).

use super::running_writes::{BACKLOG_WRITERS, LARGE_BYTES};
use crate::batch::Batch;
use crate::failure::WriteError;
use crate::live::Live;
use crate::log::Shared;
use crate::queue::{QueuePermit, Reply, answer};
use crate::thread::Thread;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What an appender hands over.
#[derive(Debug)]
pub(crate) enum Queued {
    /// A batch like any other.
    Batch { batch: Batch, reply: Option<Reply>, permit: QueuePermit },
    /// Last words, which are written whatever became of what was before.
    Last { batch: Batch, reply: Reply },
    /// The appender is gone.
    End,
}

/// What is done at once of what a session's appender handed over.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// How much of it.
    count: u64,
    batch: Batch,
    is_last: bool,
    ends: bool,
    replies: Vec<Reply>,
    /// Held until it is done.
    permits: Vec<QueuePermit>,
}

impl Group {
    /// The next of what waits: batches as one, as long as they are small together. None: nothing waits.
    pub(crate) fn take(waiting: &mut VecDeque<Queued>) -> Option<Self> {
        let mut group = Self { count: 1, ..Self::default() };
        match waiting.pop_front()? {
            Queued::End => group.ends = true,
            Queued::Last { batch, reply } => {
                (group.batch, group.is_last) = (batch, true);
                group.replies.push(reply);
            }
            Queued::Batch { batch, reply, permit } => {
                group.batch = batch;
                group.hold(reply, permit);
                while let Some(queued) = waiting.pop_front() {
                    match queued {
                        Queued::Batch { batch: next, reply, permit } if group.takes(&next) => {
                            group.batch.join(next);
                            group.hold(reply, permit);
                            group.count += 1;
                        }
                        other => {
                            waiting.push_front(other);
                            break;
                        }
                    }
                }
            }
        }
        Some(group)
    }

    fn takes(&self, next: &Batch) -> bool {
        self.batch.is_history == next.is_history && self.batch.cost() + next.cost() < LARGE_BYTES
    }

    fn hold(&mut self, reply: Option<Reply>, permit: QueuePermit) {
        self.replies.extend(reply);
        self.permits.push(permit);
    }
}

/// The threads that write backlogs, and the sessions that have one.
pub(crate) struct BacklogWriters {
    sessions: Arc<WaitingSessions>,
    threads: Mutex<Vec<Thread>>,
}

/// Sessions that have a backlog which no thread writes now, the one that waits longest first.
#[derive(Default)]
struct WaitingSessions {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    sessions: VecDeque<(Arc<Shared>, Arc<Live>)>,
    closed: bool,
}

impl BacklogWriters {
    /// Starts the threads.
    pub(super) fn start() -> io::Result<Self> {
        // From here on the threads end with it, also when not all of them can be had.
        let writers = Self { sessions: Arc::default(), threads: Mutex::default() };
        for number in 0..BACKLOG_WRITERS {
            let sessions = Arc::clone(&writers.sessions);
            let thread = Thread::start("event-log-files", move || sessions.serve(number))?;
            writers.threads.lock().push(thread);
        }
        Ok(writers)
    }

    /// Hands something over for a session.
    ///
    /// # Errors
    /// [`WriteError::Closed`]; nothing was handed over then.
    pub(crate) fn hand_over(
        &self,
        (shared, live): (&Arc<Shared>, &Arc<Live>),
        queued: Queued,
    ) -> Result<(), WriteError> {
        let mut waiting = self.sessions.waiting.lock();
        // One that has a backlog is still served: that its appender is gone comes behind that.
        if waiting.closed && !(matches!(queued, Queued::End) && live.has_backlog()) {
            return Err(WriteError::Closed);
        }
        if live.hand_over(queued) {
            waiting.sessions.push_back((Arc::clone(shared), Arc::clone(live)));
            drop(waiting);
            self.sessions.arrived.notify_one();
        }
        Ok(())
    }

    /// Refuses everything new; what was handed over is still written.
    fn close(&self) {
        self.sessions.waiting.lock().closed = true;
        self.sessions.arrived.notify_all();
    }

    /// Writes what was handed over, and nothing more.
    pub(crate) async fn end(&self) {
        self.close();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.ended().await;
        }
    }
}

impl Drop for BacklogWriters {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for BacklogWriters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BacklogWriters").finish_non_exhaustive()
    }
}

impl WaitingSessions {
    /// Writes a group of each session in turn, until the log is closed and none is left.
    fn serve(&self, writer: usize) {
        while let Some((shared, live)) = self.take() {
            if shared.write_group(&live, writer) {
                self.waiting.lock().sessions.push_back((shared, live));
                self.arrived.notify_one();
            }
        }
    }

    fn take(&self) -> Option<(Arc<Shared>, Arc<Live>)> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(session) = waiting.sessions.pop_front() {
                return Some(session);
            }
            if waiting.closed {
                return None;
            }
            self.arrived.wait(&mut waiting);
        }
    }
}

impl Shared {
    /// Does the next of what was handed over for a session. True: there is more.
    fn write_group(&self, live: &Arc<Live>, writer: usize) -> bool {
        let Some(group) = live.next_group() else { return false };
        let (files, Group { count, batch, is_last, ends, replies, permits }) = (&self.files, group);
        if ends {
            files.end_live(&self.live, live);
            return !live.settle(count);
        }
        let result = match live.failure().filter(|_| !is_last) {
            Some(error) => Err(error),
            None => {
                let write = files.writes.begin(writer, super::live_segment::now());
                let appended =
                    AssertUnwindSafe(|| self.append_to_segment(files, live, (batch, is_last), write));
                catch_unwind(appended).unwrap_or_else(|_| {
                    tracing::error!(session = live.id, "a session was lost to a panic of its writer");
                    live.fail(WriteError::Closed);
                    Err(WriteError::Closed)
                })
            }
        };
        drop(permits);
        // Before the answers: whoever has one finds nothing in front of what comes next.
        let is_done = live.settle(count);
        let result = result.map(drop);
        replies.into_iter().for_each(|reply| answer(Some(reply), &result));
        !is_done
    }

    /// Waits until what was appended to live sessions before is committed, or cannot be.
    pub(crate) async fn flush_backlogs(&self) {
        for live in self.live.all() {
            live.progress().flushed().await;
        }
    }

    /// Before a session is claimed whose appender may just have gone: waits until what that has left is written.
    pub(crate) async fn until_left(&self, id: &str) {
        if let Some(live) = self.live.get(id) {
            live.left().await;
        }
        if self.files.redo.is_some() {
            // A closed log writes nothing more.
            let _closed = self.ask(0, |_| ()).await;
        }
    }
}

#[cfg(test)]
mod tests;
