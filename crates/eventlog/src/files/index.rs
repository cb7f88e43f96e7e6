//! The rows of sessions in the index, which anybody may delete: it says again what the files say.

use super::rows::Change;
use crate::query::SessionRow;
use crate::session_files::FoundSession;
use crate::{checkpoint, search, store};
use rusqlite::{Connection, OptionalExtension, params};

/// Turns of deleted sessions that are removed in one transaction.
const REMOVED_AT_ONCE: i64 = 32;

/// What the index says of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexRow {
    pub(crate) session: SessionRow,
    /// Its last segment: a row of an earlier one does not replace that of a later one.
    pub(crate) segment: u32,
    /// Bytes of its files.
    pub(crate) bytes: u64,
    /// Segments of it are closed and may be worth a seal.
    pub(crate) unsealed: bool,
    /// The host that claimed the segment.
    pub(crate) claimed_by: String,
}

impl From<FoundSession> for IndexRow {
    fn from(FoundSession { last, bytes, unsealed }: FoundSession) -> Self {
        Self {
            segment: last.header.number,
            bytes,
            unsealed,
            claimed_by: last.facts.host.clone(),
            session: last.into(),
        }
    }
}

/// Has the index say what changed.
pub(crate) fn write(connection: &Connection, changes: &[Change]) -> rusqlite::Result<()> {
    // First: another session may have the id by now that one had.
    for Change { id, from, .. } in changes {
        if let Some(from) = from {
            rename(connection, from, id)?;
        }
    }
    for Change { id, replaces, row, .. } in changes {
        if *replaces || row.is_none() {
            remove(connection, id)?;
        }
        if let Some(row) = row {
            put(connection, row)?;
        }
    }
    Ok(())
}

/// Writes a row, unless a newer one is there.
pub(super) fn put(connection: &Connection, row: &IndexRow) -> rusqlite::Result<()> {
    let IndexRow { session, segment, bytes, unsealed, .. } = row;
    let SessionRow { id, agent, cwd, owner, created_by, created_ms, updated_ms, .. } = session;
    let SessionRow { ended, last_seq, state, position, info, .. } = session;
    let values = params![
        id, agent, cwd, owner, created_by, created_ms, updated_ms, ended, last_seq, state, position, segment,
        bytes, unsealed
    ];
    let known = row_of(connection, id)?;
    // No upsert: one takes a number for the row that it does not insert.
    let written = match known {
        None => connection
            .prepare_cached(
                "INSERT INTO session (id, agent, cwd, owner, created_by, created_ms, updated_ms, ended, \
                   last_seq, state, position, segment, bytes, unsealed) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            )?
            .execute(values)?,
        Some(_) => connection
            .prepare_cached(
                "UPDATE session SET agent = ?2, cwd = ?3, owner = ?4, created_by = ?5, created_ms = ?6, \
                   updated_ms = ?7, ended = ?8, last_seq = ?9, state = ?10, position = ?11, segment = ?12, \
                   bytes = ?13, unsealed = ?14 \
                 WHERE id = ?1 AND (?12, ?9) >= (segment, last_seq)",
            )?
            .execute(values)?,
    };
    match written {
        0 => Ok(()),
        _ => store::put_info(connection, known.unwrap_or_else(|| connection.last_insert_rowid()), info),
    }
}

/// Takes the row of a session away, with what the index has of it, but for its turns.
fn remove(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    let Some(row) = row_of(connection, id)? else { return Ok(()) };
    connection.prepare_cached("DELETE FROM session WHERE row = ?1")?.execute([row])?;
    connection.prepare_cached("DELETE FROM info WHERE session = ?1")?.execute([row])?;
    checkpoint::delete(connection, row)?;
    search::delete(connection, row)?;
    connection.execute("INSERT INTO garbage (session) VALUES (?1)", [row]).map(drop)
}

/// Gives the row of a session another id, with all that the index has of it.
fn rename(connection: &Connection, id: &str, new: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE session SET id = ?2 WHERE id = ?1")?.execute([id, new]).map(drop)
}

/// Removes a piece of the turns of deleted sessions. False: nothing is left.
pub(crate) fn remove_garbage(connection: &Connection) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT session FROM garbage LIMIT 1")?;
    let found = select.query_row([], |found| found.get(0)).optional()?;
    let Some(row) = found else { return Ok(false) };
    if !search::remove(connection, store::keys_of(row), REMOVED_AT_ONCE)? {
        connection.execute("DELETE FROM garbage WHERE session = ?1", [row])?;
    }
    Ok(true)
}

fn row_of(connection: &Connection, id: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT row FROM session WHERE id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()
}
