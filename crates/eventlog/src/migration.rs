//! From the one database of all sessions, in which earlier versions kept them, to files of each.
//!
//! Whoever wants to open the log has it migrated first, as a whole, by who has the database alone. All that the log has is made aside, in
//! `migrating/`; then the marker takes the name of the database, and what was made moves to its place (`placing.rs`). Invariants: the
//! sessions are in the database until that one moment, and in files from then on, wherever a process dies; of what is aside nothing
//! counts that is not as the database has it; the database stays under another name. Whoever has it open keeps it from being
//! migrated, and is not waited for.

mod copying;
mod database;
mod holder;
mod placing;

#[cfg(test)]
mod tests;

pub(crate) use placing::finish;
pub use placing::{DIRECTORIES, OLD_DATABASES};

use crate::disk;
use crate::fault::SqliteFault;
use crate::format_marker::DatabaseFile;
use crate::log_files::beside;
use crate::named::Named;
use crate::old_tables::DATABASE;
use crate::reserve::free_bytes;
use crate::schema::{self, OpenError};
use crate::session_files::SessionFileError;
use copying::Copying;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Room that is left beside what is copied, in bytes.
const BESIDE_BYTES: u64 = 16 * 1024 * 1024;

/// How long a database stays that was read as a whole.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// What was migrated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// How many sessions there are.
    pub sessions: u64,
    /// Bytes of those that were copied now.
    pub bytes: u64,
    /// Events that could not be read, session by session. All others are there.
    pub lost: Vec<LostEvents>,
}

/// Events of a session that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostEvents {
    /// The session.
    pub session: String,
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
}

/// How far a migration is, in bytes of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is copied.
    pub done: u64,
    /// What there is to copy.
    pub all: u64,
}

/// Why a state directory was not migrated. The database is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotMigrated {
    /// A process has the database open.
    #[error(
        "the sessions are in the database of an earlier acpd, which another process{} uses: end it and try again",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    InUse {
        /// That process, where the operating system tells.
        pid: Option<u32>,
    },
    /// The disk has not the room for a copy.
    #[error(
        "the database of an earlier acpd is to be copied, for which {needed} bytes must be free, and the disk has {free}: \
         make room and try again"
    )]
    NoRoom {
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// There are session files beside the database already.
    #[error("session files are beside the database of an earlier acpd: move one of the two away")]
    Occupied,
    /// It could not be read, or the copy not be written.
    #[error("the sessions of an earlier acpd could not be moved to files: {detail}")]
    Failed {
        /// What went wrong.
        detail: String,
    },
}

/// Migrates a state directory. `Ok(None)`: it has no database of sessions. Blocks for as long as that takes, and tells `progress` how
/// far it is after each piece of about 1 MiB. Whoever opens the log meanwhile, or migrates it, waits.
///
/// # Errors
/// When somebody uses the database, and when it cannot be read or copied.
pub fn migrate(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Option<Migrated>, NotMigrated> {
    migrate_alone(dir, progress).map_err(|error| match error {
        MigrationError::Refused(why) => why,
        error => {
            if error.means_full() {
                // Others need the room.
                copying::discard(dir);
            }
            NotMigrated::Failed { detail: error.detail() }
        }
    })
}

/// Whether somebody migrates a state directory, or has died at that.
pub fn is_begun(dir: &Path) -> bool {
    DIRECTORIES.iter().any(|name| dir.join(name).exists())
}

/// Removes the database of a migrated state directory that is kept under another name, if that is 30 days ago at `now`, or at once
/// without `now`. One that could not be read as a whole stays in any case. Returns its bytes if it was removed.
///
/// # Errors
/// When it cannot be removed.
pub fn remove_kept(dir: &Path, now: Option<SystemTime>) -> io::Result<Option<u64>> {
    use std::os::unix::fs::MetadataExt;
    let kept = kept_in(dir);
    if !is_done(dir) || placing::is_left(dir) {
        return Ok(None);
    }
    let found = match fs::symlink_metadata(&kept) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.named(&kept)?,
    };
    // It had another name until then.
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(found.ctime().unsigned_abs());
    let is_old = |now: SystemTime| now.duration_since(since).is_ok_and(|age| age > KEPT_FOR);
    if !now.is_none_or(is_old) {
        return Ok(None);
    }
    fs::remove_file(&kept).named(&kept)?;
    Ok(Some(found.len()))
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum MigrationError {
    #[error("the database could not be read, or its copy not be written")]
    Sqlite(#[from] SqliteFault),
    #[error("the state directory could not be written")]
    Io(#[from] io::Error),
    #[error("a session could not be copied")]
    Session(#[from] SessionFileError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Refused(#[from] NotMigrated),
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error.into())
    }
}

impl MigrationError {
    fn means_full(&self) -> bool {
        match self {
            Self::Sqlite(fault) => fault.code() == Some(rusqlite::ErrorCode::DiskFull),
            Self::Io(error) | Self::Session(SessionFileError::Io(error)) => disk::means_full(error),
            Self::Session(_) | Self::Open(_) | Self::Refused(_) => false,
        }
    }

    /// With its causes.
    fn detail(&self) -> String {
        let mut detail = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            detail.push_str(": ");
            detail.push_str(&cause.to_string());
            source = cause.source();
        }
        detail
    }
}

/// Whether a directory has no database by now, but the marker of session files.
pub(crate) fn is_done(dir: &Path) -> bool {
    matches!(DatabaseFile::find(dir), Ok(DatabaseFile::Marker { .. }))
}

fn kept_in(dir: &Path) -> PathBuf {
    dir.join(OLD_DATABASES[0])
}

fn has_database(dir: &Path) -> io::Result<bool> {
    Ok(matches!(DatabaseFile::find(dir)?, DatabaseFile::Database))
}

fn migrate_alone(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Option<Migrated>, MigrationError> {
    if !has_database(dir)? {
        finish(dir)?;
        return Ok(None);
    }
    if is_begun(dir) {
        tracing::info!("the migration of the database goes on, behind another process if one is at it");
    }
    let path = dir.join(DATABASE.file);
    // Who opens the log waits for this, whatever its version.
    let lock = beside(&path, "-open");
    let held = schema::hold_open_lock(&lock);
    let _held = held.map_err(|source| OpenError::Directory { path: lock, source })?;
    placing::finish_held(dir)?;
    if !has_database(dir)? {
        return Ok(None);
    }
    let database = database::open_alone(&path)?;
    let database = database.ok_or_else(|| NotMigrated::InUse { pid: holder::holder(&path) })?;
    if copying::is_occupied(dir)? {
        return Err(NotMigrated::Occupied.into());
    }
    let mut copying = Copying::begin(dir)?;
    copying.drop_changed(&database)?;
    let missing = copying.missing(&database)?;
    if let Some(why) = refusal(missing.bytes, free_bytes(dir)) {
        return Err(why.into());
    }
    let mut migrated = Migrated { bytes: missing.bytes, ..Migrated::default() };
    let mut told = Progress { done: 0, all: missing.bytes };
    for (row, bytes) in missing.rows {
        if let Some(session) = database::session(&database, row)? {
            migrated.lost.extend(copying.copy(&database, row, &session, &mut || progress(told))?);
        }
        told.done += bytes;
        progress(told);
    }
    migrated.sessions = copying.end(&database)?;
    placing::commit(dir, migrated.lost.is_empty())?;
    // Before others may open it under its new name.
    drop(database);
    placing::finish_held(dir)?;
    Ok(Some(migrated))
}

/// Why so many bytes are not copied, where so many are free.
fn refusal(bytes: u64, free: Option<u64>) -> Option<NotMigrated> {
    let needed = bytes.saturating_add(BESIDE_BYTES);
    free.filter(|free| *free < needed).map(|free| NotMigrated::NoRoom { needed, free })
}
