//! The copy of a database in files, aside: which sessions are copied, and are still as they were.
//!
//! Owned by one process at a time, which has the lock of who opens the log. Each session has the number of its row in the
//! database in the index of the copy, too, in which it is noted once it is on the disk. Invariant: a session that is noted is copied whole.

use super::{MigrationError, database, placing};
use crate::log_files::beside;
use crate::named::Named;
use crate::notes::{self, SessionNotes};
use crate::options::Durability;
use crate::query::SessionRow;
use crate::schema::{self, OpenError};
use crate::session_files::fail_point::{FailPoint, reach};
use crate::session_files::{ClaimsFile, SealedCopy, layout, make_directory};
use crate::store;
use database::Events;
use rusqlite::{Connection, params};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of sessions that are noted together, once they are on the disk.
const GROUP_BYTES: u64 = 64 * 1024 * 1024;
/// What a session takes beside its blocks, in bytes: its directory, and the end of its file.
const ROUNDING_BYTES: u64 = 8 * 1024;

/// A database that is being copied.
pub(super) struct Copying {
    root: PathBuf,
    sessions: PathBuf,
    index: Connection,
    /// Bytes of sessions that are copied and not noted.
    unnoted: u64,
}

/// What is still to be copied.
pub(super) struct Missing {
    /// Numbers of rows, each with the bytes that it takes.
    pub(super) rows: Vec<(i64, u64)>,
    /// Bytes of all.
    pub(super) bytes: u64,
}

impl Copying {
    /// Begins, or goes on.
    pub(super) fn begin(dir: &Path) -> Result<Self, MigrationError> {
        let root = placing::copy_in(dir);
        placing::take_back(dir)?;
        make_directory(&root).named(&root)?;
        let index = match open_index(&root) {
            Err(OpenError::Damaged { .. } | OpenError::Foreign { .. } | OpenError::Newer { .. }) => {
                fs::remove_dir_all(&root).named(&root)?;
                open_index(&root)?
            }
            index => index?,
        };
        let sessions = layout::sessions(&root);
        make_directory(&sessions).named(&sessions)?;
        index.execute_batch("BEGIN IMMEDIATE")?;
        Ok(Self { root, sessions, index, unnoted: 0 })
    }

    /// Forgets what is not as the database has it by now.
    pub(super) fn drop_changed(&mut self, database: &Connection) -> Result<(), MigrationError> {
        let mut changed = false;
        for row in database::rows(&self.index)? {
            let copied = database::session(&self.index, row)?;
            // What waits of a session that a host has is not in its row.
            let is_same = copied.as_ref().is_some_and(|copied| copied.owner.is_none())
                && copied == database::session(database, row)?;
            if !is_same {
                self.forget_row(row)?;
                changed = true;
            }
        }
        if changed { self.note() } else { Ok(()) }
    }

    /// What is not copied as the database has it.
    pub(super) fn missing(&self, database: &Connection) -> Result<Missing, MigrationError> {
        let mut missing = Missing { rows: Vec::new(), bytes: 0 };
        for row in database::rows(database)? {
            let copied = database::session(&self.index, row)?;
            if copied.is_some() && copied == database::session(database, row)? {
                continue;
            }
            let bytes = database::bytes_of(database, row)? + ROUNDING_BYTES;
            missing.bytes += bytes;
            missing.rows.push((row, bytes));
        }
        Ok(missing)
    }

    /// Copies a session in place of what is there of it, and returns which of its events cannot be read. It `is_at` it after each block.
    pub(super) fn copy(
        &mut self,
        database: &Connection,
        row: i64,
        session: &SessionRow,
        is_at: &mut dyn FnMut(),
    ) -> Result<Vec<super::LostEvents>, MigrationError> {
        self.forget(row, &session.id)?;
        let path = self.path(&session.id);
        let begun = SealedCopy::begin(&path).named(&path)?;
        let (mut copy, mut lost, mut next) = (begun, Vec::new(), 1);
        while next <= session.last_seq {
            match database::read_events(database, row, next, session.last_seq)? {
                Events::Block(block) => {
                    copy.add(&block).named(&path)?;
                    next = block.last() + 1;
                    is_at();
                }
                Events::Lost(events) => {
                    copy.add_lost(events).named(&path)?;
                    let last = next + events - 1;
                    lost.push(super::LostEvents { session: session.id.clone(), first: next, last });
                    next = last + 1;
                }
            }
        }
        let finished = copy.finish(session, database::waiting(database, row)?);
        let (segment, bytes) = finished.named(&path)?;
        reach(FailPoint::Copied)?;
        self.put(row, session, (segment, bytes))?;
        if let Some((seq, bytes)) = database::checkpoint(database, row)? {
            let put = "INSERT OR REPLACE INTO checkpoint (session, seq, bytes) VALUES (?1, ?2, ?3)";
            self.index.prepare_cached(put)?.execute(params![row, seq, bytes])?;
        }
        self.unnoted += bytes;
        if self.unnoted > GROUP_BYTES {
            self.note()?;
        }
        Ok(lost)
    }

    fn put(
        &self,
        row: i64,
        session: &SessionRow,
        (segment, bytes): (u32, u64),
    ) -> Result<(), MigrationError> {
        let SessionRow { id, agent, cwd, owner, created_by, created_ms, updated_ms, .. } = session;
        let SessionRow { ended, last_seq, state, position, info, .. } = session;
        self.index
            .prepare_cached(
                "INSERT INTO session (row, id, agent, cwd, owner, created_by, created_ms, updated_ms, \
                   ended, last_seq, state, position, segment, bytes) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(params![
                row, id, agent, cwd, owner, created_by, created_ms, updated_ms, ended, last_seq, state,
                position, segment, bytes
            ])?;
        Ok(store::put_info(&self.index, row, info)?)
    }

    /// Takes away what was copied of a session, and of another that had its id. First it is noted no more: one that is noted is whole.
    pub(super) fn forget(&mut self, row: i64, id: &str) -> Result<(), MigrationError> {
        let noted: Vec<i64> = {
            let mut select =
                self.index.prepare_cached("SELECT row FROM session WHERE row = ?1 OR id = ?2")?;
            select.query_map(params![row, id], |found| found.get(0))?.collect::<rusqlite::Result<_>>()?
        };
        for row in &noted {
            self.forget_row(*row)?;
        }
        if !noted.is_empty() {
            self.note()?;
        }
        Ok(remove_directory(&self.path(id))?)
    }

    fn forget_row(&self, row: i64) -> rusqlite::Result<()> {
        for row_of in ["session WHERE row", "info WHERE session", "checkpoint WHERE session"] {
            self.index.prepare_cached(&format!("DELETE FROM {row_of} = ?1"))?.execute([row])?;
        }
        Ok(())
    }

    /// Has all that was copied on the disk, and notes it.
    fn note(&mut self) -> Result<(), MigrationError> {
        sync(&self.root)?;
        self.index.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
        self.unnoted = 0;
        Ok(reach(FailPoint::Noted)?)
    }

    /// Copies what is in no session's files, has nothing else there, and has all of it on the disk. Returns how many sessions there are.
    pub(super) fn end(self, database: &Connection) -> Result<u64, MigrationError> {
        self.index.execute_batch("COMMIT")?;
        let ids: Vec<String> = {
            let mut select = self.index.prepare("SELECT id FROM session")?;
            select.query_map([], |found| found.get(0))?.collect::<rusqlite::Result<_>>()?
        };
        self.remove_strangers(&ids)?;
        write_notes(&self.root, database)?;
        write_claims(&self.root, database)?;
        let Self { root, index, .. } = self;
        // Moves what is in its write-ahead file to it: it comes to its place alone.
        index.close().map_err(|(_, error)| error)?;
        for name in placing::COPIES {
            if beside(&root.join(name), "-wal").exists() {
                return Err(io::Error::other("the index of the copy is in use").into());
            }
        }
        sync(&root)?;
        reach(FailPoint::Prepared)?;
        Ok(ids.len() as u64)
    }

    /// Removes directories of no session: of one that was deleted, or that has another id by now. Fails if one is missing.
    fn remove_strangers(&self, ids: &[String]) -> io::Result<()> {
        let mut known: HashSet<PathBuf> = ids.iter().map(|id| self.path(id)).collect();
        for spread in fs::read_dir(&self.sessions).named(&self.sessions)? {
            let spread = spread.named(&self.sessions)?.path();
            for entry in fs::read_dir(&spread).named(&spread)? {
                let path = entry.named(&spread)?.path();
                if !known.remove(&path) {
                    fs::remove_dir_all(&path).named(&path)?;
                }
            }
        }
        match known.is_empty() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "a session's copy is not where it was")),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        layout::session(&self.sessions, id)
    }
}

/// Whether session files are in a state directory already.
pub(super) fn is_occupied(dir: &Path) -> io::Result<bool> {
    let sessions = layout::sessions(dir);
    match fs::read_dir(&sessions) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        entries => {
            let mut names = entries.named(&sessions)?.map(|entry| entry.map(|entry| entry.file_name()));
            let is_session = |name: &std::ffi::OsString| !name.as_encoded_bytes().starts_with(b".");
            names.try_fold(false, |any, name| Ok(any || is_session(&name?)))
        }
    }
}

/// Removes what was copied, where the database is the log still.
pub(super) fn discard(dir: &Path) {
    if let Err(error) = placing::take_back(dir).and_then(|()| remove_directory(&placing::copy_in(dir))) {
        tracing::warn!(%error, "the copy of the database cannot be removed");
    }
}

fn open_index(root: &Path) -> Result<Connection, OpenError> {
    // So that on the disk what is noted is as old as what it is noted of, or older.
    schema::open_index(root, Durability::Power).map(|(_, index)| index)
}

/// Events that subscribers are still to be told of.
fn write_notes(root: &Path, database: &Connection) -> Result<(), MigrationError> {
    let (path, mut hooks) = notes::open(root, Durability::Process)?;
    hooks.execute_batch("DELETE FROM note; DELETE FROM noted")?;
    let noted = database::notes(database)?.into_iter().map(|(subscriber, session, seq, upto)| {
        // In their order, each for itself.
        SessionNotes { session, upto, notes: vec![(subscriber, seq)] }
    });
    notes::write(&mut hooks, &noted.collect::<Vec<_>>())?;
    tracing::debug!(?path, "notes of events are copied");
    Ok(hooks.close().map_err(|(_, error)| error)?)
}

/// Which sessions each host has, all of which are dead.
fn write_claims(root: &Path, database: &Connection) -> Result<(), MigrationError> {
    remove_directory(&root.join("claims"))?;
    let owned = database::owned(database)?;
    for of_host in owned.chunk_by(|(one, _), (other, _)| one == other) {
        let mut claims = ClaimsFile::begin(root, &of_host[0].0).named(&root.join("claims"))?;
        for (_, id) in of_host {
            claims.add(id).named(&root.join("claims"))?;
        }
    }
    Ok(())
}

/// Removes a directory with all that is in it, if it is there.
pub(super) fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.named(path)),
        _ => Ok(()),
    }
}

/// Has all that was written on the file system of a directory on the disk: thousands of files one by one would take a thousand times as
/// long.
fn sync(root: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(File::open(root).named(root)?).map_err(|error| io::Error::from(error).named(root))?;
    #[cfg(not(target_os = "linux"))]
    {
        let _root = root;
        rustix::fs::sync();
    }
    Ok(())
}
