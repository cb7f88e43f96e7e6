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
use std::{io, mem};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::damage::Damage;
use crate::fault::SqliteFault;
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
    pub(crate) fn start(database: &Path, damage: Arc<Damage>) -> io::Result<Self> {
        let turns = Arc::new(Semaphore::new(READERS));
        let (jobs, database) = (Arc::<Jobs>::default(), database.into());
        // From here on the threads end with it, also when not all of them can be had.
        let threads = Mutex::default();
        let readers = Self { jobs, turns, threads, damage, database };
        for _ in 0..READERS {
            let jobs = Arc::clone(&readers.jobs);
            let database = Arc::clone(&readers.database);
            let thread = Thread::start("event-log-read", move || {
                // Now, and not when it is first used: by then the file may be removed, or another in its place. Should it fail,
                // the first use tells why.
                jobs.serve(open_all(&database).ok());
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

    /// Does something that blocks on a thread where it may, without the file.
    ///
    /// # Cancel safety
    ///
    /// Safe: it is then done to its end unheard.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| ReadError::Closed)?;
        let (reply, answer) = oneshot::channel();
        self.jobs.push(Box::new(move |_| {
            let _turn = turn;
            // A panic is its caller's.
            drop(reply.send(catch_unwind(AssertUnwindSafe(work))));
        }))?;
        answer.await.map_err(|_| ReadError::Closed)?.or_else(|panic| resume_unwind(panic))
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
        let threads = mem::take(&mut *self.threads.lock());
        for thread in threads {
            thread.ended().await;
        }
    }
}

/// A connection that has opened the file and those that SQLite has beside it, which it leaves to the first read.
fn open_all(database: &Path) -> rusqlite::Result<Connection> {
    let connection = schema::open_reader(database)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.jobs.close();
    }
}

impl Jobs {
    /// Works until it is closed.
    fn serve(&self, mut connection: Option<Connection>) {
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
