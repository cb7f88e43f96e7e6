//! The file: where it is, how it is opened, and the steps from one version of its tables to the next.
//!
//! Invariants: a step that was released never changes, a new one is added at the end; opening and migrating happen
//! under a lock file, so that any number of processes may open a fresh directory at the same moment; a file that is
//! not ours, newer or damaged is left as it is. Queries are elsewhere.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::fault::SqliteFault;
use crate::lock_wait::wait_for_lock;
use crate::log::{Durability, Options};
use crate::log_files::beside;
use crate::regular_file::open_regular;

/// `acpd` in ASCII.
const APPLICATION_ID: i32 = 0x6163_7064;

/// Measured: 4 KiB costs a quarter of the throughput, 16 KiB half as much again per single event.
pub(crate) const PAGE_BYTES: u64 = 8192;

/// Keeps the write-ahead file small after a burst.
const WAL_KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// A block's key is `session << SEQ_BITS | first_seq`: one b-tree without a second index, clustered by session.
/// It leaves room for 2^36 events per session and 2^27 sessions; the tables refuse more.
pub(crate) const SEQ_BITS: u32 = 36;

const STEPS: &[&str] = &[
    "
    CREATE TABLE session (
        row INTEGER PRIMARY KEY AUTOINCREMENT CHECK (row < 134217728),
        id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        cwd TEXT NOT NULL,
        owner TEXT,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0,
        last_seq INTEGER NOT NULL DEFAULT 0 CHECK (last_seq < 68719476736)
    );
    CREATE INDEX session_by_time ON session (updated_ms DESC, id);
    CREATE INDEX session_by_agent ON session (agent, updated_ms DESC, id);
    CREATE INDEX session_by_cwd ON session (cwd, updated_ms DESC, id);
    CREATE INDEX session_by_owner ON session (owner) WHERE owner IS NOT NULL;
    -- Apart from the session, whose row is rewritten with every commit.
    CREATE TABLE info (session INTEGER PRIMARY KEY, info BLOB NOT NULL);
    CREATE TABLE block (
        key INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL,
        -- Bytes of the records before they were packed; 0 when they stand as they are.
        unpacked INTEGER NOT NULL DEFAULT 0, records BLOB NOT NULL
    );
    -- Deleted sessions whose blocks are still being removed, a piece at a time.
    CREATE TABLE garbage (session INTEGER PRIMARY KEY);
",
    "
    ALTER TABLE session ADD COLUMN created_by TEXT;
    -- Most sessions have none, and no list asks for those.
    CREATE INDEX session_by_creator ON session (created_by, updated_ms DESC, id) WHERE created_by IS NOT NULL;
",
    "
    -- In the row that every commit rewrites anyway: it changes with each turn.
    ALTER TABLE session ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
",
    "
    -- What hosts computed from the events up to `seq`. Its rows may be deleted at any time: that costs time only.
    CREATE TABLE checkpoint (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL);
",
    "
    -- Sessions that a host is writing in pieces, before they are any. Their numbers are those of rows that are not there.
    CREATE TABLE partial (session INTEGER PRIMARY KEY, owner TEXT NOT NULL, last_seq INTEGER NOT NULL);
",
    "
    -- The words of each turn, once each; neither the text nor the places of words are kept (ADR 0016).
    CREATE VIRTUAL TABLE search USING fts5 (
        words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
    );
    -- A row of `search`, and the event that its turn is known by, as a block's key.
    CREATE TABLE turn (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, at_ms INTEGER NOT NULL);
    -- The event up to which a session is indexed; one that is not here is not indexed at all.
    CREATE TABLE searched (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
",
    "
    -- Events that a subscriber is still to be told of. Numbers are never used twice.
    CREATE TABLE outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        subscriber TEXT NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL
    );
    CREATE INDEX outbox_by_subscriber ON outbox (subscriber, number);
    CREATE INDEX outbox_by_session ON outbox (session);
",
    "
    -- Bytes of its agent's output that a session has handled. In the row that every commit rewrites anyway.
    ALTER TABLE session ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
",
    "
    -- What a session was given and has not begun with, by numbers of its host.
    CREATE TABLE waiting (
        session INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (session, number)
    );
",
];

/// The form of a log, by the version of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Of the file; 0 before the first use.
    pub found: i64,
    /// The newest that is known here; older ones are brought to it when the log is opened.
    pub supported: i64,
}

/// Why the event log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory or a file in it can not be created or used.
    #[error("cannot use {path}: check that it can be created and written")]
    Directory {
        /// What was tried.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A newer acpd wrote the file.
    #[error(
        "{path} has format {found} and this acpd knows formats up to {supported}: \
         use the newer acpd, or another state directory"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format known here.
        supported: i64,
    },
    /// The file is no database, or its content is broken.
    #[error(
        "{path} is damaged ({detail}): restore it from a backup, or move it away to start with an empty log"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// The file is a database of another program.
    #[error(
        "{path} belongs to another program (application id {application_id}): use another state directory"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its application id.
        application_id: i32,
    },
    /// The file system can not share memory between processes, which the log needs.
    #[error(
        "{path} is on a file system without write-ahead logging (mode {mode}): use a local state directory"
    )]
    NoWal {
        /// The file.
        path: PathBuf,
        /// The journal mode that it offers.
        mode: String,
    },
    /// The file exists and can not be opened now.
    #[error("cannot open {path}: check its permissions, the free disk space and other processes that use it")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: SqliteFault,
    },
    /// The threads that the log works on can not be had.
    #[error("cannot start a thread for {path}: check the limit of processes (ulimit -u, TasksMax=)")]
    Thread {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Makes the directory and the file if needed and brings the tables up to date. The connection is the writer's.
pub(crate) fn open_writer(dir: &Path, options: &Options) -> Result<(PathBuf, Connection), OpenError> {
    let path = dir.join("acpd.db");
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Directory { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(at(dir))?;
    let open_lock = dir.join("acpd.db-open");
    let _held = hold_open_lock(&open_lock).map_err(at(&open_lock))?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(_) => {}
        // Not opened again: closing any handle of the file would drop SQLite's locks in this process.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(at(&path)(error)),
    }
    let connection = set_up(&path, options).map_err(|error| error.at(&path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(at(&path))?;
    Ok((path, connection))
}

/// A connection that only reads. Whatever is written when the file is closed, the writer writes, who knows whether
/// there is room.
pub(crate) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    leave_as_it_is_at_close(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// Has something look at a file that is there, without a change to it.
pub(crate) fn look_at(
    path: &Path,
    look: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), OpenError> {
    let looked = || -> Result<(), SetUpError> {
        let connection = open_reader(path)?;
        check_identity(&connection, path)?;
        look(&connection).map_err(SetUpError::from)
    };
    looked().map_err(|error| error.at(path))
}

/// The same without a new file beside it. Without a write-ahead file, the database says all, and is read as one that nothing
/// changes, for which SQLite needs neither locks nor shared memory.
pub(crate) fn glance_at(
    path: &Path,
    look: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), OpenError> {
    if fs::metadata(beside(path, "-wal")).is_ok_and(|found| found.len() > 0) {
        return look_at(path, look);
    }
    let looked = || -> Result<(), SetUpError> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(unchanging(path), flags)?;
        check_identity(&connection, path)?;
        look(&connection).map_err(SetUpError::from)
    };
    looked().map_err(|error| error.at(path))
}

/// As a URI by which SQLite opens a file that nothing changes.
fn unchanging(path: &Path) -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").into_bytes()),
            plain => uri.push(*plain),
        }
    }
    uri.extend(b"?immutable=1");
    std::ffi::OsString::from_vec(uri).into()
}

/// Which form the file has, beside the newest.
pub(crate) fn format(connection: &Connection) -> rusqlite::Result<Format> {
    Ok(Format { found: version(connection)?, supported: STEPS.len() as i64 })
}

/// The last connection that is closed moves what is in the write-ahead file to the database; not this one.
pub(crate) fn leave_as_it_is_at_close(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

fn hold_open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = open_regular(path, options.write(true).create(true).truncate(false).mode(0o600))?;
    file.lock()?;
    Ok(file)
}

enum SetUpError {
    Open(OpenError),
    Sqlite(rusqlite::Error),
}

impl SetUpError {
    fn at(self, path: &Path) -> OpenError {
        let error = match self {
            Self::Open(error) => return error,
            Self::Sqlite(error) => error,
        };
        match error.sqlite_error_code() {
            // A header that says nonsense is a plain error to SQLite (`Unknown`); our own statements cause none.
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
                OpenError::Damaged { path: path.to_owned(), detail: error.to_string() }
            }
            _ => OpenError::Sqlite { path: path.to_owned(), source: error.into() },
        }
    }
}

impl From<rusqlite::Error> for SetUpError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn set_up(path: &Path, options: &Options) -> Result<Connection, SetUpError> {
    let mut connection = connect(path)?;
    check_identity(&connection, path)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    if version(&connection)? == 0 {
        // So that the file can shrink (`reclaiming.rs`); one that has tables cannot be made to here.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(SetUpError::Open(OpenError::NoWal { path: path.to_owned(), mode }));
    }
    let synchronous = match options.durability {
        Durability::Process => "normal",
        Durability::Power => "full",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
    // The writer checkpoints by itself, because it must see whether that worked.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    migrate(&mut connection)?;
    touch(&connection)?;
    Ok(connection)
}

fn check_identity(connection: &Connection, path: &Path) -> Result<(), SetUpError> {
    let application_id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found = version(connection)?;
    let supported = STEPS.len() as i64;
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let path = path.to_owned();
    if application_id != APPLICATION_ID && (application_id != 0 || found != 0 || objects != 0) {
        return Err(SetUpError::Open(OpenError::Foreign { path, application_id }));
    }
    if found > supported {
        return Err(SetUpError::Open(OpenError::Newer { path, found, supported }));
    }
    Ok(())
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    for (version_after, step) in (1_i64..).zip(STEPS) {
        if version(connection)? >= version_after {
            continue;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version_after)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Reads a little of each table, so that gross damage shows now and not in the middle of a session.
fn touch(connection: &Connection) -> rusqlite::Result<()> {
    for table in ["session", "info", "block", "garbage"] {
        connection.query_row(&format!("SELECT max(rowid) FROM {table}"), [], |_| Ok(()))?;
    }
    Ok(())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(wait_for_lock))?;
    Ok(connection)
}

/// Puts the ordinary waiting for locks back after a shorter one was used.
pub(crate) fn wait_patiently(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_handler(Some(wait_for_lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(durability: Durability) -> (tempfile::TempDir, Connection) {
        let dir = tempfile::TempDir::new().unwrap();
        let (_, connection) = open_writer(dir.path(), &Options { durability, ..Options::default() }).unwrap();
        (dir, connection)
    }

    // contract 6: durability "process" survives kill -9, "power" is an fsync per group commit
    #[test]
    fn only_power_asks_the_disk_at_every_commit() {
        for (durability, expected) in [(Durability::Process, 1), (Durability::Power, 2)] {
            let (_dir, connection) = writer(durability);
            let level: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
            assert_eq!(level, expected, "{durability:?}");
        }
    }

    // contract 1: session ids and numbers never mix
    #[test]
    fn keys_can_not_run_into_the_next_session() {
        let (_dir, connection) = writer(Durability::Process);
        let insert = |row: i64, last_seq: i64| {
            connection.execute(
                "INSERT INTO session (row, id, agent, cwd, created_ms, updated_ms, last_seq) \
                 VALUES (?1, 'id' || ?1, '', '', 0, 0, ?2)",
                [row, last_seq],
            )
        };
        insert((1 << (63 - SEQ_BITS)) - 1, (1 << SEQ_BITS) - 1).unwrap();
        insert(1, 1 << SEQ_BITS).unwrap_err();
        let new = crate::NewSession { id: "next".into(), ..crate::NewSession::default() };
        crate::store::create(&connection, &new).unwrap_err();
    }
}
