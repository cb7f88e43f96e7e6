//! Looks at a log for those who do not open it: what it has, what of it is damaged, which form it has. Nothing is repaired here, and
//! nothing is written.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, ffi};

use crate::format_marker::FILES_FORMAT;
use crate::log_files::beside;
use crate::notes::NOTES;
use crate::old_tables::DATABASE;
use crate::schema::{self, Format, OpenError, SetUpError, Tables};
use crate::session_files::{Examination, SessionFileError};
use crate::state_form::{Contents, LogForm};

/// Larger files are not read as a whole, in bytes: their events are found damaged when they are read.
const WHOLE_BYTES: u64 = 256 * 1024 * 1024;

/// What a look through a log has found.
#[derive(Debug)]
pub struct Examined {
    /// Its sessions.
    pub sessions: u64,
    /// Bytes of the files that its sessions are in.
    pub bytes: u64,
    /// The directories of sessions that cannot be read as a whole, and why.
    pub damaged: Vec<(PathBuf, SessionFileError)>,
    /// Why the index of session files cannot be used, which is made anew at the next start.
    pub index: Option<OpenError>,
    /// Why the notes for hooks cannot be used, without which the log does not open.
    pub notes: Option<OpenError>,
}

/// Looks through the log of a directory, while others may use it. `None` where there is none.
///
/// # Errors
/// What opening it would say.
pub fn examine(dir: &Path) -> Result<Option<Examined>, OpenError> {
    match Contents::find(dir)?.form() {
        None => Ok(None),
        Some(LogForm::Database) => {
            let path = dir.join(DATABASE.file);
            look_at(&path, &DATABASE, schema::version)?;
            Err(OpenError::Unmigrated { path })
        }
        Some(LogForm::Files) => examine_files(dir).map(Some),
    }
}

fn examine_files(dir: &Path) -> Result<Examined, OpenError> {
    let found = Examination::of(dir, WHOLE_BYTES);
    let Examination { sessions, bytes, damaged } =
        found.map_err(|source| OpenError::Directory { path: dir.to_owned(), source })?;
    let look = |tables: &Tables| {
        let path = dir.join(tables.file);
        let look = || look_at(&path, tables, |connection| check(connection, tables));
        path.exists().then(look)?.err()
    };
    let (index, notes) = (look(&schema::INDEX), look(&NOTES));
    Ok(Examined { sessions, bytes, damaged, index, notes })
}

/// The form of the log of a directory, while others may use it. None where there is none. Nothing is written, nor is what
/// a daemon that was killed has left put in order.
///
/// # Errors
/// When it could not be opened for its form, its header or the notes for hooks.
pub fn format_of(dir: &Path) -> Result<Option<Format>, OpenError> {
    let found = match Contents::find(dir)?.form() {
        None => return Ok(None),
        Some(LogForm::Files) => {
            let notes = dir.join(NOTES.file);
            if notes.exists() {
                look_at(&notes, &NOTES, |notes| schema::touch(notes, &NOTES))?;
            }
            FILES_FORMAT
        }
        Some(LogForm::Database) => look_at(&dir.join(DATABASE.file), &DATABASE, schema::version)?,
    };
    Ok(Some(Format { found, supported: FILES_FORMAT }))
}

/// Whether a directory has a log.
///
/// # Errors
/// When it cannot be looked at, and when a newer acpd has made it.
pub fn has_log(dir: &Path) -> Result<bool, OpenError> {
    Ok(Contents::find(dir)?.form().is_some())
}

/// Has something look at a database, of which nothing is written, nor is a new file made beside it. One that nobody has open, and of which
/// nothing is in a write-ahead file, is read as one that nothing changes, for which SQLite needs neither locks nor shared memory.
fn look_at<T>(
    path: &Path,
    tables: &Tables,
    look: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> Result<T, OpenError> {
    let looked = || -> Result<T, SetUpError> {
        let is_logged = std::fs::metadata(beside(path, "-wal")).is_ok_and(|found| found.len() > 0);
        let connection = if is_logged || beside(path, "-shm").exists() {
            schema::open_reader(path)?
        } else {
            let reads = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(unchanging(path), reads | OpenFlags::SQLITE_OPEN_NO_MUTEX)?
        };
        schema::check_identity(&connection, path, tables)?;
        Ok(look(&connection)?)
    };
    looked().map_err(|error| error.at(path))
}

/// As a URI by which SQLite opens a file that nothing changes.
fn unchanging(path: &Path) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").into_bytes()),
            plain => uri.push(*plain),
        }
    }
    uri.extend(b"?immutable=1");
    OsString::from_vec(uri).into()
}

fn check(connection: &Connection, tables: &Tables) -> rusqlite::Result<()> {
    for table in tables.present(connection)? {
        let found: String =
            connection.query_row(&format!("PRAGMA quick_check({table})"), [], |row| row.get(0))?;
        if found != "ok" {
            tracing::warn!(table, found, "part of the event log is not readable");
            let malformed = ffi::Error::new(ffi::SQLITE_CORRUPT);
            let message = "database disk image is malformed".to_owned();
            return Err(rusqlite::Error::SqliteFailure(malformed, Some(message)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventLog, ListQuery, NewSession, Options};
    use std::fs;

    // contract 7.1: the form of a log is told beside the one who writes, before and after it is closed, and nothing is written
    #[tokio::test]
    async fn the_form_of_a_log_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        // What a URI would take for something else.
        let dir = scratch.path().join("a?b#c%20d");
        fs::create_dir(&dir).unwrap();
        let names = || {
            let entries = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
            let files = entries.filter(|path| path.is_file());
            let mut files: Vec<_> = files.map(|path| (fs::read(&path).unwrap(), path)).collect();
            files.sort();
            files
        };
        assert_eq!((format_of(&dir).unwrap(), names()), (None, vec![]));
        let log = EventLog::open(&dir, Options::default()).unwrap();
        let format = format_of(&dir).unwrap().expect("there is one");
        assert!(format.found == format.supported && format.found == FILES_FORMAT, "{format:?}");
        log.close().await;
        let closed = names();
        assert_eq!((format_of(&dir).unwrap(), names()), (Some(format), closed));
    }

    // contract 7.1: so is that of a database, which is to be migrated, also while somebody writes it
    #[test]
    fn the_form_of_a_database_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("a?b#c%20d");
        fs::create_dir(&dir).unwrap();
        let file = dir.join("acpd.db");
        let database = Connection::open(&file).unwrap();
        database.pragma_update(None, "journal_mode", "wal").unwrap();
        database.pragma_update(None, "application_id", DATABASE.application_id).unwrap();
        let set = |version: i64| database.pragma_update(None, "user_version", version).unwrap();
        for version in [1, FILES_FORMAT - 1] {
            set(version);
            let told = format_of(&dir).unwrap();
            assert_eq!(told, Some(Format { found: version, supported: FILES_FORMAT }), "in its log");
            assert!(matches!(examine(&dir), Err(OpenError::Unmigrated { path }) if path == file));
        }
        set(FILES_FORMAT + 1);
        assert!(matches!(format_of(&dir), Err(OpenError::Newer { .. })), "also before it is in the file");
        drop(database);
        let before = fs::read(&file).unwrap();
        assert!(matches!(format_of(&dir), Err(OpenError::Newer { .. })));
        assert!(matches!(examine(&dir), Err(OpenError::Newer { .. })));
        assert_eq!(fs::read(&file).unwrap(), before);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is made beside it");
        fs::write(&file, "no database, but longer than the header of one ".repeat(9)).unwrap();
        assert!(matches!(format_of(&dir), Err(OpenError::Damaged { .. })));
        assert!(matches!(examine(&dir), Err(OpenError::Damaged { .. })));
    }

    // contract 7.1: session files are looked through; a database beside them that is damaged is told, and an index is made anew
    #[tokio::test]
    async fn session_files_are_looked_through() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(examine(dir.path()), Ok(None)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is made");
        let log = EventLog::open(dir.path(), Options::default()).unwrap();
        let mut events = crate::Batch::new();
        events.push(1, 1, &[7; 300]);
        let new = NewSession { id: "a".into(), owner: "host".into(), events, ..NewSession::default() };
        drop(log.create(new).await.unwrap());
        log.close().await;
        let found = || examine(dir.path()).unwrap().expect("there is a log");
        let whole = found();
        assert_eq!(whole.sessions, 1);
        assert!(whole.bytes > 300 && whole.damaged.is_empty(), "{whole:?}");
        assert!(whole.index.is_none() && whole.notes.is_none(), "{whole:?}");
        let damage = |name| {
            let path = dir.path().join(name);
            let mut bytes = fs::read(&path).unwrap();
            bytes[100..].fill(7);
            fs::write(path, bytes).unwrap();
        };
        damage("index-1.db");
        let damaged = found();
        assert!(matches!(damaged.index, Some(OpenError::Damaged { .. })) && damaged.notes.is_none());
        assert_eq!((damaged.sessions, damaged.damaged.len()), (1, 0));
        let log = EventLog::open(dir.path(), Options::default()).unwrap();
        assert_eq!(log.list(ListQuery::default()).await.unwrap().len(), 1);
        log.close().await;
        assert!(found().index.is_none());
        damage("hooks.db");
        assert!(matches!(found().notes, Some(OpenError::Damaged { .. })));
        assert!(matches!(format_of(dir.path()), Err(OpenError::Damaged { .. })), "as it does not open");
    }
}
