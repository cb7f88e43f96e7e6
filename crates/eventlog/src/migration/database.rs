//! The database of all sessions, as it is read to be migrated: session by session, by their rows' numbers.
//!
//! Damage costs what cannot be read and nothing else: the table of sessions is read without its indexes, and events block by block.

use crate::block::Block;
use crate::old_tables::DATABASE;
use crate::pack;
use crate::query::{self, SessionRow};
use crate::schema::{self, OpenError, SetUpError};
use crate::store;
use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use std::path::Path;
use std::time::Duration;

/// What comes next of a session.
#[derive(Debug)]
pub(super) enum Events {
    /// These events.
    Block(Block),
    /// So many that cannot be read.
    Lost(u64),
}

/// Opens a database that no other process has open, brings it up to date, and keeps it from all others. None: another has it.
pub(super) fn open_alone(path: &Path) -> Result<Option<Connection>, OpenError> {
    match try_alone(path) {
        Ok(connection) => Ok(Some(connection)),
        Err(SetUpError::Sqlite(error)) if is_busy(&error) => Ok(None),
        Err(error) => Err(error.at(path)),
    }
}

fn try_alone(path: &Path) -> Result<Connection, SetUpError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    // Nobody is waited for.
    connection.busy_timeout(Duration::ZERO)?;
    let text = |connection: &Connection, name, value| -> rusqlite::Result<String> {
        connection.pragma_update_and_check(None, name, value, |row| row.get(0))
    };
    // A lock that is had once is kept. Every process that has the database open has one, a host and who only reads, of whatever version.
    text(&connection, "locking_mode", "exclusive")?;
    schema::check_identity(&connection, path, &DATABASE)?;
    // Moves what is in the write-ahead file to the database, which needs all of it for itself.
    if text(&connection, "journal_mode", "delete")? != "delete" {
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        return Err(rusqlite::Error::SqliteFailure(busy, None).into());
    }
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
    schema::migrate(&mut connection, &DATABASE)?;
    Ok(connection)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The numbers of all rows of sessions, the newest first.
pub(super) fn rows(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut select = connection.prepare("SELECT row FROM session NOT INDEXED ORDER BY row DESC")?;
    select.query_map([], |found| found.get(0))?.collect()
}

/// A session by the number of its row.
pub(super) fn session(connection: &Connection, row: i64) -> rusqlite::Result<Option<SessionRow>> {
    let columns = query::COLUMNS;
    connection
        .prepare_cached(&format!(
            "SELECT {columns} FROM session LEFT JOIN info ON info.session = session.row WHERE session.row = ?1"
        ))?
        .query_row([row], query::session_row)
        .optional()
}

/// Bytes of the blocks of a session; of what is damaged, none.
pub(super) fn bytes_of(connection: &Connection, row: i64) -> rusqlite::Result<u64> {
    let mut select = connection
        .prepare_cached("SELECT coalesce(sum(length(records)), 0) FROM block WHERE key >= ?1 AND key < ?2")?;
    match select.query_row(store::keys_of(row), |found| found.get(0)) {
        Err(error) if is_damage(&error) => Ok(0),
        bytes => bytes,
    }
}

/// What comes next of the events of a session, from `next` up to its last one.
pub(super) fn read_events(
    connection: &Connection,
    row: i64,
    next: u64,
    last: u64,
) -> rusqlite::Result<Events> {
    match read_block(connection, row, next, last) {
        Ok(Some(block)) if block.first() == next => return Ok(Events::Block(block)),
        Ok(_) => {}
        Err(error) if is_damage(&error) => {}
        Err(error) => return Err(error),
    }
    let behind = first_readable(next + 1, last, |seq| match first_block(connection, row, seq, last) {
        Err(error) if is_damage(&error) => Ok(None),
        found => found.map(Some),
    })?;
    Ok(Events::Lost(behind.unwrap_or(last + 1) - next))
}

/// The first block from an event on. None: there is none, or it is not what was written.
fn read_block(connection: &Connection, row: i64, next: u64, last: u64) -> rusqlite::Result<Option<Block>> {
    let base = store::key(row, 0);
    connection
        .prepare_cached(
            "SELECT key, last_seq, unpacked, records FROM block WHERE key >= ?1 AND key <= ?2 ORDER BY key LIMIT 1",
        )?
        .query_row([store::key(row, next), store::key(row, last)], |found| {
            let first = found.get::<_, i64>(0)?.wrapping_sub(base).unsigned_abs();
            let records = pack::unpack(found.get(2)?, found.get_ref(3)?.as_blob()?);
            let block = records.and_then(|records| {
                Block::checked(first, found.get(1).ok()?, Bytes::from(records))
            });
            Ok(block.filter(|block| block.last() <= last))
        })
        .optional()
        .map(Option::flatten)
}

/// The first event, from `next` on, of the blocks that can be found, where `find` says what the first block is from an event on, and None
/// where it meets damage. A damaged page hides a range of them: its end is looked for by halves.
fn first_readable<E>(
    next: u64,
    last: u64,
    find: impl Fn(u64) -> Result<Option<Option<u64>>, E>,
) -> Result<Option<u64>, E> {
    let (mut hidden, mut step) = (next, 1);
    let (mut seen, mut found) = loop {
        if hidden > last {
            return Ok(None);
        }
        let at = if step == 1 { next } else { hidden.saturating_add(step).min(last) };
        match find(at)? {
            Some(found) => break (at, found),
            None if at == last => return Ok(None),
            None => (hidden, step) = (at, step * 2),
        }
    };
    while seen - hidden > 1 {
        let middle = hidden + (seen - hidden) / 2;
        match find(middle)? {
            Some(nearer) => (seen, found) = (middle, nearer),
            None => hidden = middle,
        }
    }
    Ok(found)
}

/// The first event of the first block that begins at an event or behind it.
fn first_block(connection: &Connection, row: i64, seq: u64, last: u64) -> rusqlite::Result<Option<u64>> {
    let key: Option<i64> = connection
        .prepare_cached("SELECT min(key) FROM block WHERE key >= ?1 AND key <= ?2")?
        .query_row([store::key(row, seq), store::key(row, last)], |found| found.get(0))?;
    Ok(key.map(|key| key.wrapping_sub(store::key(row, 0)).unsigned_abs()))
}

/// What a session was given and has not begun with.
pub(super) fn waiting(connection: &Connection, row: i64) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let mut select =
        connection.prepare_cached("SELECT number, bytes FROM waiting WHERE session = ?1 ORDER BY number")?;
    select.query_map([row], |found| Ok((found.get(0)?, found.get(1)?)))?.collect()
}

/// What is still to be told of events: names of subscribers, sessions, the events, and where those sessions end.
pub(super) fn notes(connection: &Connection) -> rusqlite::Result<Vec<(String, String, u64, u64)>> {
    let mut select = connection.prepare(
        "SELECT subscriber, id, seq, last_seq FROM outbox JOIN session ON session.row = outbox.session \
         ORDER BY number",
    )?;
    select.query_map([], |found| Ok((found.get(0)?, found.get(1)?, found.get(2)?, found.get(3)?)))?.collect()
}

/// Ids of sessions that have a host, with the host.
pub(super) fn owned(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let mut select = connection
        .prepare("SELECT owner, id FROM session NOT INDEXED WHERE owner IS NOT NULL ORDER BY owner, id")?;
    select.query_map([], |found| Ok((found.get(0)?, found.get(1)?)))?.collect()
}

/// The checkpoint of a session.
pub(super) fn checkpoint(connection: &Connection, row: i64) -> rusqlite::Result<Option<(u64, Vec<u8>)>> {
    let mut select = connection.prepare_cached("SELECT seq, bytes FROM checkpoint WHERE session = ?1")?;
    match select.query_row(params![row], |found| Ok((found.get(0)?, found.get(1)?))).optional() {
        // It is computed again.
        Err(error) if is_damage(&error) => Ok(None),
        found => found,
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 29: what damage hides is as little as can be
    #[test]
    fn the_end_of_what_is_hidden_is_found() {
        for (hidden, last, blocks, expected) in [
            (0..0, 100, &[2, 9][..], Some(2)),
            (0..0, 1, &[], None),
            (0..5, 100, &[2, 9], Some(9)),
            (0..9, 100, &[2, 9], Some(9)),
            (0..10, 100, &[2, 9], None),
            (0..3, 4, &[4], Some(4)),
            (0..101, 100, &[50], None),
            (0..60_000, 1 << 35, &[7, 60_000, 60_001], Some(60_000)),
        ] {
            let find = |seq: u64| -> Result<_, ()> {
                let found = blocks.iter().find(|block| **block >= seq).copied();
                Ok((!hidden.contains(&seq)).then_some(found))
            };
            assert_eq!(first_readable(2, last, find), Ok(expected), "{hidden:?} of {last}");
        }
    }
}
