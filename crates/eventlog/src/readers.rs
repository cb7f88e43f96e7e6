//! Threads that read the file, each with a connection of its own that only reads.
//!
//! Owned by the log. They are there from the moment it is opened, so that a read never needs a thread when none can be
//! had any more. Each use is one short read transaction, so that no reader of ours keeps the write-ahead file from
//! being reused. As many read at once as there are threads, the others wait.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem};

use rusqlite::{Connection, InterruptHandle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::damage::Damage;
use crate::fault::SqliteFault;
use crate::inspection;
use crate::lock_wait::LockWatch;
use crate::schema;
use crate::thread::Thread;

/// More would only compete for the same disk; a read over the limit waits.
const READERS: usize = 4;

/// Why a read did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the file could not be read")]
    Sqlite(#[source] Arc<SqliteFault>),
    #[error("the event log is closed")]
    Closed,
}

/// What a thread does with its connection, which it opens if there is none, and drops when it was of no use.
type Job = Box<dyn FnOnce(&mut Option<Connection>) + Send>;

pub(crate) struct Readers {
    jobs: Arc<Jobs>,
    /// One for each thread; each job among [`Jobs`] holds one.
    turns: Arc<Semaphore>,
    threads: Mutex<Vec<Thread>>,
    damage: Arc<Damage>,
    database: Arc<Path>,
    /// The file was looked through, or is being.
    inspected: AtomicBool,
    /// Stops that.
    inspecting: Arc<Mutex<Option<InterruptHandle>>>,
}

/// What waits for a thread; bounded by the turns.
#[derive(Default)]
struct Jobs {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Readers {
    /// Starts the threads.
    pub(crate) fn start(database: &Path, damage: Arc<Damage>, locks: &Arc<LockWatch>) -> io::Result<Self> {
        let turns = Arc::new(Semaphore::new(READERS));
        let (jobs, database) = (Arc::<Jobs>::default(), database.into());
        // From here on the threads end with it, also when not all of them can be had.
        let threads = Mutex::default();
        let (inspected, inspecting) = (AtomicBool::new(false), Arc::default());
        let readers = Self { jobs, turns, threads, damage, database, inspected, inspecting };
        for _ in 0..READERS {
            let (jobs, locks) = (Arc::clone(&readers.jobs), Arc::clone(locks));
            let thread = Thread::start("event-log-read", move || {
                locks.enter(false);
                jobs.serve();
            })?;
            readers.threads.lock().push(thread);
        }
        Ok(readers)
    }

    /// Runs `query` on a thread where it may block.
    ///
    /// # Cancel safety
    ///
    /// Safe: the query then runs to its end unheard.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ReadError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| ReadError::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.begin(turn, query, |result| drop(reply.send(result)))?;
        match answer.await.map_err(|_| ReadError::Closed)? {
            Ok(result) => result.map_err(ReadError::Sqlite),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Has a thread look through the file, if none has yet and one is idle; what it finds is told to the damage.
    pub(crate) fn inspect_once(&self) {
        if self.inspected.load(Ordering::Relaxed) {
            return;
        }
        let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else { return };
        if self.inspected.swap(true, Ordering::Relaxed) {
            return;
        }
        let (running, turns) = (Arc::clone(&self.inspecting), Arc::clone(&self.turns));
        let look = move |connection: &Connection| {
            *running.lock() = Some(connection.get_interrupt_handle());
            // An end of the log that came before could not interrupt this.
            let result = if turns.is_closed() { Ok(()) } else { inspection::look_through(connection) };
            *running.lock() = None;
            result
        };
        // What it met was seen already, and a log that is closed needs no look.
        drop(self.begin(turn, look, drop));
    }

    fn begin<T: 'static>(
        &self,
        turn: OwnedSemaphorePermit,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        reply: impl FnOnce(std::thread::Result<Result<T, Arc<SqliteFault>>>) + Send + 'static,
    ) -> Result<(), ReadError> {
        let (database, damage) = (Arc::clone(&self.database), Arc::clone(&self.damage));
        self.jobs.push(Box::new(move |idle| {
            let _turn = turn;
            // A panic is its caller's; a connection that has failed is not used again.
            let result = catch_unwind(AssertUnwindSafe(|| {
                let connection = match idle.take() {
                    Some(connection) => connection,
                    None => schema::open_reader(&database)?,
                };
                let result = query(&connection)?;
                *idle = Some(connection);
                Ok(result)
            }));
            reply(result.map(|read| read.map_err(|error: rusqlite::Error| damage.seen(error))));
        }))
    }

    /// Closes the connections when what was begun is done.
    pub(crate) async fn close(&self) {
        self.turns.close();
        self.jobs.close();
        if let Some(running) = &*self.inspecting.lock() {
            running.interrupt();
        }
        let threads = mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.ended().await;
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs.close();
    }
}

impl Jobs {
    /// Works until it is closed.
    fn serve(&self) {
        let mut connection = None;
        while let Some(job) = self.take() {
            job(&mut connection);
        }
    }

    fn take(&self) -> Option<Job> {
        let mut waiting = self.waiting();
        loop {
            if let Some(job) = waiting.jobs.pop_front() {
                return Some(job);
            }
            if waiting.closed {
                return None;
            }
            self.arrived.wait(&mut waiting);
        }
    }

    fn push(&self, job: Job) -> Result<(), ReadError> {
        {
            let mut waiting = self.waiting();
            if waiting.closed {
                return Err(ReadError::Closed);
            }
            waiting.jobs.push_back(job);
        }
        self.arrived.notify_one();
        Ok(())
    }

    fn close(&self) {
        self.waiting().closed = true;
        self.arrived.notify_all();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
}
