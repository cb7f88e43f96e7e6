//! Why something could not be written, and how SQLite's codes are told apart.
//!
//! The error is cloneable, because it answers every waiting write and every later one.
//! It is not about reading (`QueryError`, `CursorError`) and not about opening (`OpenError`).

use std::io;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{ErrorCode, ffi};

use crate::disk;
use crate::fault::SqliteFault;
use crate::part::LogPart;
use crate::session_files::SessionFileError;

/// Why something could not be written.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The disk, the quota, the file size limit or `max_bytes` is exhausted.
    #[error("no room left for the event log, free disk space")]
    DiskFull {
        /// What SQLite said.
        #[source]
        source: Arc<SqliteFault>,
    },
    /// Another process kept a database locked for longer than is waited for.
    #[error("{} stayed locked by another process", source.part())]
    Busy {
        /// What SQLite said.
        #[source]
        source: Arc<SqliteFault>,
    },
    /// A file is not what it was: part of it can neither be read nor written.
    #[error("{}", source.of_damage())]
    Damaged {
        /// What SQLite said.
        #[source]
        source: Arc<SqliteFault>,
    },
    /// The file could not be written.
    #[error("{} could not be written", source.part())]
    Io {
        /// What SQLite said.
        #[source]
        source: Arc<SqliteFault>,
    },
    /// The session is not as this writer left it: another process wrote to it, ended it or deleted it.
    #[error("session {id} was changed by another process")]
    Conflict {
        /// The session.
        id: String,
    },
    /// Another host has the session now: what this one still wrote is not in the log.
    #[error("session {id} was taken over by host {owner}")]
    TakenOver {
        /// The session.
        id: String,
        /// The host that has it.
        owner: String,
    },
    /// The session has ended.
    #[error("session {id} has ended")]
    Ended {
        /// The session.
        id: String,
    },
    /// A session of this id exists.
    #[error("session {id} exists already")]
    Exists {
        /// The session.
        id: String,
    },
    /// There is no such session.
    #[error("there is no session {id} in the event log")]
    Unknown {
        /// The session.
        id: String,
    },
    /// The session is live.
    #[error("session {id} is live in host {owner}")]
    Live {
        /// The session.
        id: String,
        /// The host that has it.
        owner: String,
    },
    /// An event of the batch is larger than a row can be; nothing of the batch was appended.
    #[error("an event of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// The size of its payload.
        bytes: usize,
        /// The largest payload.
        limit: usize,
    },
    /// The log was shut down.
    #[error("the event log is closed")]
    Closed,
}

impl WriteError {
    /// The log's file could not grow.
    pub(crate) fn from_growing(error: &io::Error, database: &Path) -> Self {
        let code = match disk::means_full(error) || disk::is_full(database) {
            true => ffi::SQLITE_FULL,
            false => ffi::SQLITE_IOERR,
        };
        Self::from_sqlite(
            rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(error.to_string())),
            database,
        )
    }

    /// Files of a session could not be written, or read.
    pub(crate) fn from_files(error: &io::Error) -> Self {
        let code = if disk::means_full(error) { ffi::SQLITE_FULL } else { ffi::SQLITE_IOERR };
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(error.to_string()));
        let source = Arc::new(source.into());
        if disk::means_full(error) { Self::DiskFull { source } } else { Self::Io { source } }
    }

    /// Files of a session are not what was written.
    pub(crate) fn from_damage(error: &SessionFileError) -> Self {
        let damage = ffi::Error::new(ffi::SQLITE_CORRUPT);
        let source = rusqlite::Error::SqliteFailure(damage, Some(error.to_string()));
        Self::Damaged { source: Arc::new(source.into()) }
    }

    pub(crate) fn from_sqlite(error: rusqlite::Error, database: &Path) -> Self {
        let source = Arc::new(SqliteFault::new(error, LogPart::of_file(database)));
        match source.code() {
            _ if source.is_damage() => Self::Damaged { source },
            Some(ErrorCode::DiskFull) => Self::DiskFull { source },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { source },
            // SQLite distinguishes only ENOSPC; a quota and a file size limit look like a broken disk to it.
            Some(ErrorCode::SystemIoFailure) if disk::is_full(database) => Self::DiskFull { source },
            _ => Self::Io { source },
        }
    }
}
