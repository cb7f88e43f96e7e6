//! Room on the disk: when the write-ahead file is moved into the database, and what happens when that does not fit.
//!
//! Owned by the writer thread. The write-ahead file is moved while there is room for what it adds to the database: one
//! that fills the disk could never be moved. When that finds no room, only what must be is written until it
//! succeeds again: otherwise the write-ahead file would take the room that sessions need.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, ffi};

use crate::log_files::OpenLog;
use crate::reserve::{Reserve, free_bytes};
use crate::schema::{self, PAGE_BYTES};

/// Pages in the write-ahead file after which it is checkpointed: 16 MiB.
const CHECKPOINT_PAGES: u64 = 16 * 1024 * 1024 / PAGE_BYTES;

/// Pages in the write-ahead file after which the writer waits a little for readers to release it: 64 MiB.
const PATIENCE_PAGES: u64 = 4 * CHECKPOINT_PAGES;

/// How long it then waits for readers; another process may hold one for ever.
const READER_WAIT: Duration = Duration::from_millis(50);

/// Pages that a commit touches beside those of its records.
const PAGES_PER_COMMIT: u64 = 4;

/// Pages after which it is looked again whether what was written still fits into the database.
const LOOK_PAGES: u64 = 64;

/// The write-ahead file is moved while so much more than it needs is free: two large commits.
const EARLY_BYTES: u64 = 8 * 1024 * 1024;

/// Free pages in the database that are room enough though the disk has none.
const ENOUGH_PAGES: u64 = 128;

#[derive(Debug)]
pub(crate) struct DiskBudget {
    database: PathBuf,
    _open: OpenLog,
    /// Pages written since the last checkpoint, about.
    pages: u64,
    /// Pages after which it is looked how full the disk is.
    look_at: u64,
    reserve: Arc<Mutex<Reserve>>,
}

/// What a checkpoint needs, and what there is, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Space {
    /// By how much the database file grows.
    needed: u64,
    free: u64,
}

impl Space {
    fn is_enough(self) -> bool {
        self.free >= self.needed
    }

    /// It is enough now, and soon may not be.
    fn is_getting_tight(self) -> bool {
        self.free < self.needed + EARLY_BYTES
    }
}

impl DiskBudget {
    pub(crate) fn new(database: PathBuf) -> Self {
        let open = OpenLog::register(&database);
        let reserve = Arc::new(Mutex::new(Reserve::beside(&database)));
        reserve.lock().fill();
        Self { database, _open: open, pages: 0, look_at: LOOK_PAGES, reserve }
    }

    /// Fails when something of the reserve was given and cannot be had back: what is free then is what it gave, for the
    /// ends of sessions and for a start, and nothing may begin in it.
    pub(crate) fn check_reserve(&mut self, connection: &Connection) -> io::Result<()> {
        let is_owed = self.reserve.lock().is_owed();
        match is_owed && !self.has_room_inside(connection)? {
            false => Ok(()),
            true => Err(io::Error::new(io::ErrorKind::StorageFull, "the reserve of the log is not whole")),
        }
    }

    /// Deleted sessions may have left enough room in the files.
    fn has_room_inside(&self, connection: &Connection) -> io::Result<bool> {
        let free: u64 = connection
            .pragma_query_value(None, "freelist_count", |row| row.get(0))
            .map_err(io::Error::other)?;
        let logged = length(&self.write_ahead());
        Ok(free >= ENOUGH_PAGES && logged >= (self.pages + ENOUGH_PAGES) * PAGE_BYTES)
    }

    /// The reserve, for others that write beside the database.
    pub(crate) fn reserve(&self) -> Arc<Mutex<Reserve>> {
        Arc::clone(&self.reserve)
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    /// Counts a commit of so many bytes of records.
    pub(crate) fn written(&mut self, bytes: u64) {
        self.pages += bytes / PAGE_BYTES + PAGES_PER_COMMIT;
    }

    pub(crate) fn checkpoint_due(&mut self, connection: &Connection) -> bool {
        if self.pages < self.look_at.min(CHECKPOINT_PAGES) {
            return false;
        }
        self.look_at = self.pages + LOOK_PAGES;
        self.pages >= CHECKPOINT_PAGES || self.space(connection).is_some_and(Space::is_getting_tight)
    }

    /// Moves committed pages into the database file. An error says that this was not possible, for now.
    pub(crate) fn checkpoint(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        self.check_space(connection)?;
        let logged = run_checkpoint(connection, "PASSIVE")?;
        if logged >= PATIENCE_PAGES {
            restart(connection)?;
        }
        self.moved();
        self.reserve.lock().fill();
        Ok(())
    }

    /// After pages at the end of the file were given back: waits a little for readers, since the file stays as long as one of
    /// them sees it so.
    pub(crate) fn shorten(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        self.check_space(connection)?;
        restart(connection)?;
        self.moved();
        Ok(())
    }

    fn moved(&mut self) {
        self.pages = 0;
        self.look_at = LOOK_PAGES;
    }

    /// A checkpoint that runs out of room on its way has taken what there was, to no use.
    fn check_space(&self, connection: &Connection) -> rusqlite::Result<()> {
        match self.space(connection) {
            Some(space) if !space.is_enough() => {
                let full = ffi::Error::new(ffi::SQLITE_FULL);
                Err(rusqlite::Error::SqliteFailure(full, Some("database or disk is full".to_owned())))
            }
            _ => Ok(()),
        }
    }

    /// Nothing when it cannot be told.
    fn space(&self, connection: &Connection) -> Option<Space> {
        let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).ok()?;
        let needed = (pages * PAGE_BYTES).saturating_sub(length(&self.database));
        Some(Space { needed, free: free_bytes(&self.database)? })
    }

    fn write_ahead(&self) -> PathBuf {
        self.database.with_extension("db-wal")
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Whether a file as large as the log's can not grow here, which SQLite's codes do not always tell.
pub(crate) fn is_full(database: &Path) -> bool {
    try_to_grow(database).is_err_and(|error| means_full(&error))
}

/// Whether an error says that there is no room.
pub(crate) fn means_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}

/// Whether a file as large as the log's could grow here; tried with another, which is gone afterwards.
fn try_to_grow(database: &Path) -> io::Result<()> {
    let offset = length(database).max(length(&database.with_extension("db-wal")));
    let path = database.with_extension(format!("probe-{}", std::process::id()));
    let probe = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let result = probe.and_then(|file| file.write_all_at(&[0; PAGE_BYTES as usize], offset));
    drop(fs::remove_file(&path));
    result
}

/// A checkpoint that waits a little for readers, after which the write-ahead file begins anew.
fn restart(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(READER_WAIT)?;
    let result = run_checkpoint(connection, "RESTART").map(drop);
    schema::wait_patiently(connection)?;
    result
}

/// The pages that were in the write-ahead file.
fn run_checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<u64> {
    let logged: i64 =
        connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(1))?;
    Ok(logged.max(0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: a write-ahead file is moved while the database has room for it, and not tried when it has none
    #[test]
    fn what_fits_is_known_before_it_is_tried() {
        const MIB: u64 = 1 << 20;
        for (needed, free, enough, tight) in [
            (0, 0, true, true),
            (0, 9 * MIB, true, false),
            (MIB, MIB, true, true),
            (MIB, MIB - 1, false, true),
            (16 * MIB, 23 * MIB, true, true),
            (16 * MIB, 24 * MIB, true, false),
        ] {
            let space = Space { needed, free };
            assert_eq!((space.is_enough(), space.is_getting_tight()), (enough, tight), "{space:?}");
        }
    }
}
