//! Looks for damage where no request has met it yet: what every session needs, at each check, and the whole index of
//! sessions once. Nothing is repaired here, and nothing is written.

use std::path::Path;

use rusqlite::{Connection, ffi};

use crate::log::NewSession;
use crate::query::{self, ListQuery};
use crate::schema::{self, Format, OpenError};
use crate::store;

/// Larger files are not read as a whole: their events are found damaged when they are read.
const WHOLE_PAGES: u64 = 256 * 1024 * 1024 / schema::PAGE_BYTES;

/// The newest sessions, of which a list begins.
const NEWEST: u32 = 32;

/// Looks through the log of a directory, while others may use it. False where there is none.
///
/// # Errors
/// What opening it would say, and damage where nothing but reading finds it.
pub fn examine(dir: &Path) -> Result<bool, OpenError> {
    let path = dir.join("acpd.db");
    if !path.exists() {
        return Ok(false);
    }
    schema::look_at(&path, look_through).map(|()| true)
}

/// The form of the log of a directory, while others may use it. None where there is none. Nothing is written, nor is what
/// a daemon that was killed has left put in order.
///
/// # Errors
/// When it could not be opened for its form or its header.
pub fn format_of(dir: &Path) -> Result<Option<Format>, OpenError> {
    let path = dir.join("acpd.db");
    if !path.exists() {
        return Ok(None);
    }
    let mut format = None;
    schema::glance_at(&path, |connection| schema::format(connection).map(|found| format = Some(found)))?;
    Ok(format)
}

/// What a session that begins would do, and a list that is read, in a transaction that is not committed: the file's
/// limits show here, and damage where the next session goes.
pub(crate) fn rehearse(connection: &Connection) -> rusqlite::Result<()> {
    let new = NewSession {
        // No session has that id.
        id: String::new(),
        created_ms: i64::MAX,
        info: vec![0; 65536],
        ..NewSession::default()
    };
    if let Some(row) = store::create(connection, &new)? {
        let standing = store::Standing { row, owner: Some(&new.owner), after: 0 };
        store::write(connection, standing, &[], (None, store::RowTime::Now))?;
    }
    query::list(connection, ListQuery { limit: Some(NEWEST), ..ListQuery::default() }).map(drop)
}

/// Reads the index of sessions as a whole, and the events too unless there are too many. Damage is an error.
pub(crate) fn look_through(connection: &Connection) -> rusqlite::Result<()> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let tables: &[&str] =
        if pages > WHOLE_PAGES { &["session", "info"] } else { &["session", "info", "garbage", "block"] };
    for table in tables {
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
    use crate::{EventLog, Options};

    // contract 7.1: the form of a log is told beside the one who writes, before and after it is closed, and nothing is written
    #[tokio::test]
    async fn the_form_of_a_log_is_told() {
        let scratch = tempfile::tempdir().unwrap();
        // What a URI would take for something else.
        let dir = scratch.path().join("a?b#c%20d");
        std::fs::create_dir(&dir).unwrap();
        let names = || {
            let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = entries.map(|path| (std::fs::read(&path).unwrap(), path)).collect();
            files.sort();
            files
        };
        assert_eq!((format_of(&dir).unwrap(), names()), (None, vec![]));
        let log = EventLog::open(&dir, Options::default()).unwrap();
        let format = format_of(&dir).unwrap().expect("there is one");
        assert!(format.found == format.supported && format.found > 0, "{format:?}");
        log.close().await;
        let closed = names();
        assert_eq!((format_of(&dir).unwrap(), names()), (Some(format), closed));
        let file = dir.join("acpd.db");
        let newer = Connection::open(&file).unwrap();
        newer.pragma_update(None, "user_version", format.supported + 1).unwrap();
        assert!(matches!(format_of(&dir), Err(OpenError::Newer { .. })), "also before it is in the file");
        drop(newer);
        assert!(matches!(format_of(&dir), Err(OpenError::Newer { .. })));
        std::fs::write(&file, "no database, but longer than the header of one ".repeat(9)).unwrap();
        assert!(matches!(format_of(&dir), Err(OpenError::Damaged { .. })));
    }

    // contract 7.1: a quick look finds no log, a whole one, one that is none and a damaged one, and changes nothing
    #[tokio::test]
    async fn a_log_is_looked_through() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("acpd.db");
        assert!(matches!(examine(dir.path()), Ok(false)) && !file.exists());
        let log = EventLog::open(dir.path(), Options::default()).unwrap();
        assert!(matches!(examine(dir.path()), Ok(true)), "beside the one who writes");
        log.close().await;
        let whole = std::fs::read(&file).unwrap();
        assert!(matches!(examine(dir.path()), Ok(true)));
        assert_eq!(std::fs::read(&file).unwrap(), whole);
        std::fs::write(&file, "no database, but longer than the header of one ".repeat(9)).unwrap();
        assert!(matches!(examine(dir.path()), Err(OpenError::Damaged { .. })));
        let page = usize::try_from(schema::PAGE_BYTES).unwrap();
        let mut broken = whole;
        broken[page..].fill(7);
        std::fs::write(&file, broken).unwrap();
        assert!(matches!(examine(dir.path()), Err(OpenError::Damaged { .. })));
    }
}
