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
use crate::log_files::beside;
use crate::named::Named;
use crate::notes::NOTES;
use crate::old_tables::DATABASE;
use crate::options::Durability;
use crate::part::LogPart;
use crate::regular_file::open_regular;

/// Pages of a database beside session files that a connection keeps in memory, in KiB. What lists and appends touch is less.
const INDEX_CACHE_KIB: i64 = 256;

/// Measured: 4 KiB costs a quarter of the throughput, 16 KiB half as much again per single event.
pub(crate) const PAGE_BYTES: u64 = 8192;

/// Keeps the write-ahead file small after a burst.
const WAL_KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// The key of an event is `session << SEQ_BITS | seq`: one b-tree without a second index, clustered by session.
/// It leaves room for 2^36 events per session and 2^27 sessions; the tables refuse more.
pub(crate) const SEQ_BITS: u32 = 36;

/// A database of ours: what its file is known by, and how its tables come about.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The file's name in the state directory.
    pub(crate) file: &'static str,
    /// What tells it from the databases of others.
    pub(crate) application_id: i32,
    /// From each version to the next.
    pub(crate) steps: &'static [&'static str],
    /// Those that show gross damage when the file is opened.
    pub(crate) touched: &'static [&'static str],
}

impl Tables {
    /// Returns those of `touched` that a database has: none while it is being made.
    pub(crate) fn present(&self, connection: &Connection) -> rusqlite::Result<&'static [&'static str]> {
        Ok(if version(connection)? == 0 { &[] } else { self.touched })
    }
}

/// The names of databases in a state directory: of earlier versions, of the index of session files, and of what hooks are still to be
/// told.
pub const DATABASES: [&str; 3] = [DATABASE.file, INDEX.file, NOTES.file];

/// What those are known by.
pub(crate) const APPLICATIONS: [i32; 3] =
    [DATABASE.application_id, INDEX.application_id, NOTES.application_id];

/// The index of a log over session files. It may be deleted at any time; one of a later version has another name.
pub(crate) const INDEX: Tables = Tables {
    file: "index-1.db",
    // `acpi` in ASCII.
    application_id: 0x6163_7069,
    steps: &[
        "
    CREATE TABLE session (
        row INTEGER PRIMARY KEY AUTOINCREMENT CHECK (row < 134217728),
        id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, cwd TEXT NOT NULL, owner TEXT, created_by TEXT,
        created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0,
        last_seq INTEGER NOT NULL DEFAULT 0 CHECK (last_seq < 68719476736),
        state INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL DEFAULT 0,
        -- Of the files that this was read from: the last segment, and the bytes of all.
        segment INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX session_by_time ON session (updated_ms DESC, id);
    CREATE INDEX session_by_agent ON session (agent, updated_ms DESC, id);
    CREATE INDEX session_by_cwd ON session (cwd, updated_ms DESC, id);
    CREATE INDEX session_by_creator ON session (created_by, updated_ms DESC, id) WHERE created_by IS NOT NULL;
    CREATE TABLE info (session INTEGER PRIMARY KEY, info BLOB NOT NULL);
    CREATE TABLE checkpoint (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL);
    CREATE VIRTUAL TABLE search USING fts5 (
        words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
    );
    -- A row of `search`, and the event that its turn is known by: the row of its session, and the number.
    CREATE TABLE turn (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, at_ms INTEGER NOT NULL);
    CREATE TABLE searched (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    -- Deleted sessions whose turns are still being removed, a piece at a time.
    CREATE TABLE garbage (session INTEGER PRIMARY KEY);
",
        "
    -- Segments of it are closed and may be worth a seal.
    ALTER TABLE session ADD COLUMN unsealed INTEGER NOT NULL DEFAULT 1;
    CREATE INDEX session_unsealed ON session (updated_ms, id) WHERE owner IS NULL AND unsealed = 1;
",
    ],
    touched: &["session", "info", "turn"],
};

/// The form of a log: that of session files, or of the database of an earlier version by its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Of the log; 0 before the first use.
    pub found: i64,
    /// The newest that is known here. What has an older one is migrated first.
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
        "{path} is damaged ({detail}){extent}: {remedy}",
        extent = LogPart::of_file(path).extent_of_damage(), remedy = LogPart::of_file(path).remedy()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// An earlier version has all sessions in a database, which is to be migrated first.
    #[error("{path} has the sessions of an earlier acpd, which are to be moved to files: run acpd migrate")]
    Unmigrated {
        /// The database.
        path: PathBuf,
    },
    /// A part of a database is there, and not the database itself.
    #[error(
        "{path} is a part of {database}, which is missing: put {database} back, or move {path} away to start with an empty log"
    )]
    Orphaned {
        /// The part.
        path: PathBuf,
        /// The database.
        database: PathBuf,
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

/// Opens the index of session files, which is made if needed; one that cannot be used is set aside, and made anew from those. The
/// connection is the writer's.
pub(crate) fn open_index(dir: &Path, durability: Durability) -> Result<(PathBuf, Connection), OpenError> {
    match open_database(dir, &INDEX, durability) {
        Err(error) if is_index_useless(&error) => {
            // What a person would do about the damage is done here.
            let error = match error {
                OpenError::Damaged { detail, .. } => detail,
                other => other.to_string(),
            };
            tracing::warn!(error, "the index of sessions cannot be used; it is made anew");
            set_index_aside(dir).map_err(|source| OpenError::Directory { path: dir.to_owned(), source })?;
            open_database(dir, &INDEX, durability)
        }
        opened => opened,
    }
}

/// Whether an index stays as it cannot be used: also one of which only some files are left, and one that another process keeps locked
/// for longer than is waited for.
fn is_index_useless(error: &OpenError) -> bool {
    match error {
        OpenError::Damaged { .. } | OpenError::Foreign { .. } => true,
        OpenError::Sqlite { source, .. } => matches!(
            source.code(),
            Some(
                ErrorCode::SystemIoFailure
                    | ErrorCode::CannotOpen
                    | ErrorCode::DatabaseBusy
                    | ErrorCode::DatabaseLocked
            )
        ),
        _ => false,
    }
}

fn set_index_aside(dir: &Path) -> io::Result<()> {
    let path = dir.join(INDEX.file);
    let lock = beside(&path, "-open");
    let _held = hold_open_lock(&lock).named(&lock)?;
    let is_gone = |path: &Path, done: io::Result<()>| match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.named(path)),
        _ => Ok(()),
    };
    is_gone(&path, fs::rename(&path, beside(&path, ".damaged")))?;
    let parts = ["-wal", "-shm"].map(|ending| beside(&path, ending));
    parts.iter().try_for_each(|part| is_gone(part, fs::remove_file(part)))
}

/// Makes the directory and a database if needed and brings its tables up to date.
pub(crate) fn open_database(
    dir: &Path,
    tables: &Tables,
    durability: Durability,
) -> Result<(PathBuf, Connection), OpenError> {
    let path = dir.join(tables.file);
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Directory { path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(at(dir))?;
    let open_lock = beside(&path, "-open");
    let _held = hold_open_lock(&open_lock).map_err(at(&open_lock))?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(_) => {}
        // Not opened again: closing any handle of the file would drop SQLite's locks in this process.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(at(&path)(error)),
    }
    let connection = set_up(&path, tables, durability).map_err(|error| error.at(&path))?;
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

/// The last connection that is closed moves what is in the write-ahead file to the database; not this one.
pub(crate) fn leave_as_it_is_at_close(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Holds the lock under which a database is made, and whatever takes its name.
pub(crate) fn hold_open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = open_regular(path, options.write(true).create(true).truncate(false).mode(0o600))?;
    file.lock()?;
    Ok(file)
}

/// Why a connection is not to be used.
pub(crate) enum SetUpError {
    Open(OpenError),
    Sqlite(rusqlite::Error),
}

impl SetUpError {
    /// The same of the file at a path.
    pub(crate) fn at(self, path: &Path) -> OpenError {
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

fn set_up(path: &Path, tables: &Tables, durability: Durability) -> Result<Connection, SetUpError> {
    let mut connection = connect(path)?;
    check_identity(&connection, path, tables)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    if version(&connection)? == 0 {
        // So that the file can shrink (`reclaiming.rs`); one that has tables cannot be made to here.
        connection.pragma_update(None, "auto_vacuum", "incremental")?;
    }
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(SetUpError::Open(OpenError::NoWal { path: path.to_owned(), mode }));
    }
    let synchronous = match durability {
        Durability::Process => "normal",
        Durability::Power => "full",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES)?;
    // The writer checkpoints by itself, because it must see whether that worked.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    migrate(&mut connection, tables)?;
    touch(&connection, tables)?;
    Ok(connection)
}

/// Fails if a database is another program's, or of a newer acpd.
pub(crate) fn check_identity(
    connection: &Connection,
    path: &Path,
    tables: &Tables,
) -> Result<(), SetUpError> {
    let application_id: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found = version(connection)?;
    let supported = tables.steps.len() as i64;
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let path = path.to_owned();
    if application_id != tables.application_id && (application_id != 0 || found != 0 || objects != 0) {
        return Err(SetUpError::Open(OpenError::Foreign { path, application_id }));
    }
    if found > supported {
        return Err(SetUpError::Open(OpenError::Newer { path, found, supported }));
    }
    Ok(())
}

/// Which form a database has; 0 before its tables are made.
pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings a database to the newest form of its tables.
pub(crate) fn migrate(connection: &mut Connection, tables: &Tables) -> rusqlite::Result<()> {
    for (version_after, step) in (1_i64..).zip(tables.steps) {
        if version(connection)? >= version_after {
            continue;
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "application_id", tables.application_id)?;
        transaction.pragma_update(None, "user_version", version_after)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Reads a little of each table, so that gross damage shows now and not in the middle of a session.
pub(crate) fn touch(connection: &Connection, tables: &Tables) -> rusqlite::Result<()> {
    for table in tables.present(connection)? {
        connection.query_row(&format!("SELECT max(rowid) FROM {table}"), [], |_| Ok(()))?;
    }
    Ok(())
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(wait_for_lock))?;
    // There are several, and 2 MiB for each would be the most that a daemon with many sessions has.
    connection.pragma_update(None, "cache_size", -INDEX_CACHE_KIB)?;
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
        let (_, connection) = open_index(dir.path(), durability).unwrap();
        (dir, connection)
    }

    // contract 6: with durability "power" the index asks the disk at every commit, too
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
        let next =
            "INSERT INTO session (id, agent, cwd, created_ms, updated_ms) VALUES ('next', '', '', 0, 0)";
        connection.execute(next, []).unwrap_err();
    }
}
