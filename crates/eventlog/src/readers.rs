//! Connections that only read, used off the async threads.
//!
//! Owned by the log. Each use is one short read transaction, so that no reader of ours keeps the write-ahead file
//! from being reused. At most [`READERS`] read at once, the others wait; a few connections are kept open.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

use crate::schema;

/// More would only compete for the same disk; whoever is over it waits.
const READERS: usize = 8;

/// Why a read did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the file could not be read")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the event log is closed")]
    Closed,
}

pub(crate) struct Readers {
    pool: Arc<Pool>,
    turns: Arc<Semaphore>,
}

struct Pool {
    database: PathBuf,
    /// Nothing after the log was closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub(crate) fn new(database: PathBuf) -> Self {
        let pool = Arc::new(Pool { database, idle: Mutex::new(Some(Vec::new())) });
        Self { pool, turns: Arc::new(Semaphore::new(READERS)) }
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
        let pool = Arc::clone(&self.pool);
        let task = spawn_blocking(move || {
            let _turn = turn;
            let connection = match pool.take() {
                Some(Some(connection)) => connection,
                Some(None) => schema::open_reader(&pool.database)?,
                None => return Err(ReadError::Closed),
            };
            let result = query(&connection)?;
            pool.put_back(connection);
            Ok(result)
        });
        match task.await.map_err(JoinError::try_into_panic) {
            Ok(result) => result,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(ReadError::Closed),
        }
    }

    /// Closes the connections, those in use when they are put back.
    pub(crate) fn close(&self) {
        self.turns.close();
        let idle = self.pool.idle.lock().expect("nothing panics under this lock").take();
        drop(idle);
    }
}

impl Pool {
    fn take(&self) -> Option<Option<Connection>> {
        self.idle.lock().expect("nothing panics under this lock").as_mut().map(Vec::pop)
    }

    fn put_back(&self, connection: Connection) {
        if let Some(idle) = self.idle.lock().expect("nothing panics under this lock").as_mut() {
            idle.push(connection);
        }
    }
}
