//! Room on the disk: the write-ahead file is checkpointed here, and a reserve is kept for last words.
//!
//! Owned by the writer thread. When a checkpoint finds no room, nothing but last words may be written until one
//! succeeds again: otherwise the write-ahead file would take the room that those need. The reserve is a file of
//! incompressible bytes that is emptied when a last word finds the disk full, and filled again when there is room.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use crate::schema::{self, PAGE_BYTES};

/// About a hundred last words of a few KiB each.
const RESERVE_BYTES: usize = 4 * 1024 * 1024;

/// Pages in the write-ahead file after which it is checkpointed: 16 MiB.
const CHECKPOINT_PAGES: u64 = 16 * 1024 * 1024 / PAGE_BYTES;

/// Pages in the write-ahead file after which the writer waits a little for readers to let go of it: 64 MiB.
const PATIENCE_PAGES: u64 = 4 * CHECKPOINT_PAGES;

/// How long it then waits for readers; another process may hold one for ever.
const READER_WAIT: Duration = Duration::from_millis(50);

/// Pages that a commit touches beside those of its records.
const PAGES_PER_COMMIT: u64 = 4;

#[derive(Debug)]
pub(crate) struct Room {
    database: PathBuf,
    /// Which file that was when it was opened; none if even that could not be told.
    file: Option<FileId>,
    /// `max_page_count`, if there is a limit.
    max_pages: Option<u64>,
    /// Pages written since the last checkpoint, about.
    pages: u64,
    /// Pages after which the next checkpoint is due.
    threshold: u64,
    reserve_missing: bool,
}

impl Room {
    pub(crate) fn new(
        connection: &Connection,
        database: PathBuf,
        max_bytes: Option<u64>,
    ) -> rusqlite::Result<Self> {
        let max_pages = max_bytes.map(|bytes| (bytes / PAGE_BYTES).max(1));
        let file = file_id(&database).ok();
        let mut room =
            Self { database, file, max_pages, pages: 0, threshold: CHECKPOINT_PAGES, reserve_missing: true };
        room.apply_limit(connection)?;
        room.fill_reserve();
        Ok(room)
    }

    /// Fails when the log is not where it was: what is written then goes to a file that nobody finds again.
    pub(crate) fn check_place(&self) -> io::Result<()> {
        match file_id(&self.database) {
            Ok(found) if self.file.is_none_or(|file| file == found) => Ok(()),
            Ok(_) => Err(io::Error::other("another file is in its place")),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    /// Counts a commit of so many bytes of records.
    pub(crate) fn written(&mut self, bytes: u64) {
        self.pages += bytes / PAGE_BYTES + PAGES_PER_COMMIT;
    }

    pub(crate) fn checkpoint_due(&self) -> bool {
        self.pages >= self.threshold
    }

    /// Moves committed pages into the database file. An error says that this was not possible, for now.
    pub(crate) fn checkpoint(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        let logged = run_checkpoint(connection, "PASSIVE")?;
        if logged >= PATIENCE_PAGES {
            restart(connection)?;
        }
        self.pages = 0;
        if self.reserve_missing {
            self.fill_reserve();
        }
        Ok(())
    }

    /// After a commit found no room: empties the write-ahead file if the database file can take it. From then on
    /// checkpoints come early enough to find out about the next shortage while the write-ahead file has room left.
    pub(crate) fn relieve(&mut self, connection: &mut Connection) -> rusqlite::Result<()> {
        self.threshold = (self.pages / 2).clamp(16, self.threshold);
        restart(connection)?;
        self.pages = 0;
        Ok(())
    }

    /// Makes room for so many bytes of last words: beyond the limit, and from the reserve.
    pub(crate) fn release(&mut self, connection: &Connection, bytes: usize) -> rusqlite::Result<()> {
        if self.max_pages.is_some() {
            let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            let room = bytes as u64 / PAGE_BYTES + 16;
            set_max_pages(connection, pages + room)?;
        }
        self.reserve_missing = true;
        match OpenOptions::new().write(true).truncate(true).open(self.reserve()) {
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the disk reserve could not be released"),
        }
        Ok(())
    }

    /// The ordinary limit again, after [`Room::release`].
    pub(crate) fn apply_limit(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.max_pages.map_or(Ok(()), |pages| set_max_pages(connection, pages))
    }

    fn reserve(&self) -> PathBuf {
        self.database.with_file_name("acpd.reserve")
    }

    fn fill_reserve(&mut self) {
        let path = self.reserve();
        if fs::metadata(&path).is_ok_and(|found| found.len() == RESERVE_BYTES as u64) {
            self.reserve_missing = false;
            return;
        }
        match write_reserve(&path) {
            Ok(()) => self.reserve_missing = false,
            Err(error) => {
                tracing::warn!(%error, "no room for the disk reserve");
                drop(fs::remove_file(&path));
            }
        }
    }
}

/// Device and number of a file.
type FileId = (u64, u64);

fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Whether a file as large as the log's can not grow here, which SQLite's codes do not always tell.
pub(crate) fn is_full(database: &Path) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let grown = try_to_grow(database);
    grown.is_err_and(|error| matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull))
}

/// Whether a file as large as the log's could grow here; tried with another, which is gone afterwards.
pub(crate) fn try_to_grow(database: &Path) -> io::Result<()> {
    let end = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
    let offset = end(database).max(end(&database.with_extension("db-wal")));
    let path = database.with_extension(format!("probe-{}", std::process::id()));
    let probe = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path);
    let result = probe.and_then(|file| file.write_all_at(&[0; PAGE_BYTES as usize], offset));
    drop(fs::remove_file(&path));
    result
}

fn set_max_pages(connection: &Connection, pages: u64) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
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

/// Bytes that no file system compresses away.
fn write_reserve(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(RESERVE_BYTES);
    while bytes.len() < RESERVE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    file.write_all(&bytes)
}
