//! The statements that change or read the tables, each inside a transaction of its caller.
//!
//! Invariant: a block is only inserted where the session's `last_seq` says that it comes next, and by the host that owns
//! the session, so two writers can neither leave a hole nor write a number twice, and one that was replaced writes nothing.
//! No policy, no retries, no threads here.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use crate::batch::IndexUpdate;
use crate::block::Block;
use crate::checkpoint;
use crate::log::NewSession;
use crate::outbox;
use crate::pack;
use crate::schema::SEQ_BITS;
use crate::search;
use crate::sizes::Unchanged;
use crate::waiting;

/// A piece of history that is read at once ends with the block that reaches this size.
const PIECE_BYTES: usize = 1024 * 1024;

/// Blocks, or turns of the index, that are removed in one transaction.
const REMOVED_AT_ONCE: i64 = 32;

/// The last block that is removed in one transaction is the one that reaches this size: the writer does nothing else then.
const REMOVED_BYTES: i64 = 4 * 1024 * 1024;

/// What must be known to write to a session.
#[derive(Debug)]
pub(crate) struct SessionHead {
    pub(crate) row: i64,
    pub(crate) owner: Option<String>,
    pub(crate) last_seq: u64,
    pub(crate) ended: bool,
}

impl SessionHead {
    pub(crate) fn standing(&self) -> Standing<'_> {
        Standing { row: self.row, owner: self.owner.as_deref(), after: self.last_seq }
    }
}

/// How a writer believes a session to be. Nothing is written to one that is not so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) row: i64,
    pub(crate) owner: Option<&'a str>,
    /// Its last event.
    pub(crate) after: u64,
}

fn base(session: i64) -> i64 {
    session << SEQ_BITS
}

pub(crate) fn key(session: i64, seq: u64) -> i64 {
    base(session) | seq as i64
}

pub(crate) fn session_head(connection: &Connection, id: &str) -> rusqlite::Result<Option<SessionHead>> {
    connection
        .prepare_cached("SELECT row, owner, last_seq, ended FROM session WHERE id = ?1")?
        .query_row([id], |found| {
            Ok(SessionHead {
                row: found.get(0)?,
                owner: found.get(1)?,
                last_seq: found.get(2)?,
                ended: found.get(3)?,
            })
        })
        .optional()
}

/// Where a new session stands: under the next number, or one whose blocks are there already up to an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) row: Option<i64>,
    pub(crate) last_seq: u64,
}

/// The new session's row, or nothing if there is a session of that id.
pub(crate) fn create(connection: &Connection, new: &NewSession) -> rusqlite::Result<Option<i64>> {
    create_at(connection, new, Place::default())
}

/// The same at a place of its own.
pub(crate) fn create_at(
    connection: &Connection,
    new: &NewSession,
    Place { row, last_seq }: Place,
) -> rusqlite::Result<Option<i64>> {
    let NewSession { id, agent, cwd, owner, created_ms, created_by, .. } = new;
    let inserted = connection
        .prepare_cached(
            "INSERT INTO session (row, id, agent, cwd, owner, created_ms, updated_ms, created_by, last_seq) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![row, id, agent, cwd, owner, created_ms, created_by, last_seq])?;
    if inserted == 0 {
        return Ok(None);
    }
    let row = connection.last_insert_rowid();
    put_info(connection, row, &new.info)?;
    Ok(Some(row))
}

/// A host begins with a session.
pub(crate) fn set_owner(connection: &Connection, session: i64, owner: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE session SET owner = ?2, state = 0, position = 0 WHERE row = ?1")?
        .execute(params![session, owner])?;
    waiting::forget(connection, session)
}

/// A host goes on with a session where another was.
pub(crate) fn move_owner(connection: &Connection, session: i64, owner: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE session SET owner = ?2 WHERE row = ?1")?
        .execute(params![session, owner])
        .map(drop)
}

/// Whether a row learns at once when its session was updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowTime {
    Now,
    /// Only with another change of its owner or its end; else [`write_time`] is called later.
    Later,
}

impl RowTime {
    /// Whether a change leaves the row behind.
    pub(crate) fn is_left(self, index: &IndexUpdate) -> bool {
        self == Self::Later && index.ended.is_none() && index.owner.is_none()
    }
}

/// Writes blocks that come next and changes the index. False: the session is gone or does not stand so, and nothing was
/// written.
pub(crate) fn write(
    connection: &Connection,
    session: Standing<'_>,
    blocks: &[Block],
    (index, time): (Option<&IndexUpdate>, RowTime),
) -> rusqlite::Result<bool> {
    let last = blocks.last().map_or(session.after, Block::last);
    if !move_on(connection, session, last, (index, time))? {
        return Ok(false);
    }
    insert_blocks(connection, session.row, blocks)?;
    let Some(index) = index else { return Ok(true) };
    waiting::change(connection, session.row, index)?;
    match &index.info {
        Some(info) => put_info(connection, session.row, info).map(|()| true),
        None => Ok(true),
    }
}

/// Writes blocks that the caller has found to be next.
pub(crate) fn insert_blocks(connection: &Connection, session: i64, blocks: &[Block]) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT INTO block (key, last_seq, unpacked, records) VALUES (?1, ?2, ?3, ?4)")?;
    for block in blocks {
        let packed = pack::pack(block.records());
        let key = key(session, block.first());
        insert.execute(params![key, block.last(), packed.unpacked, packed.bytes])?;
    }
    Ok(())
}

/// Moves the session's row on to a number, with what else changes in it. Only the columns that change are named: each
/// index on a column that is named is written anew, and a page of it with every commit.
fn move_on(
    connection: &Connection,
    Standing { row, owner, after }: Standing<'_>,
    last: u64,
    (index, time): (Option<&IndexUpdate>, RowTime),
) -> rusqlite::Result<bool> {
    let moved = match index {
        None => connection
            .prepare_cached(
                "UPDATE session SET last_seq = ?4 WHERE row = ?1 AND last_seq = ?2 AND owner IS ?3",
            )?
            .execute(params![row, after, owner, last])?,
        Some(IndexUpdate { state, position, .. }) if index.is_some_and(|index| time.is_left(index)) => {
            connection
                .prepare_cached(
                    "UPDATE session SET last_seq = ?4, state = coalesce(?5, state), \
                 position = coalesce(?6, position) WHERE row = ?1 AND last_seq = ?2 AND owner IS ?3",
                )?
                .execute(params![row, after, owner, last, state, position])?
        }
        Some(IndexUpdate { updated_ms, ended: None, owner: None, state, position, .. }) => connection
            .prepare_cached(
                "UPDATE session SET last_seq = ?4, updated_ms = ?5, state = coalesce(?6, state), \
                 position = coalesce(?7, position) WHERE row = ?1 AND last_seq = ?2 AND owner IS ?3",
            )?
            .execute(params![row, after, owner, last, updated_ms, state, position])?,
        Some(IndexUpdate { updated_ms, ended, owner: next, state, position, .. }) => connection
            .prepare_cached(
                "UPDATE session SET last_seq = ?4, updated_ms = ?5, ended = coalesce(?6, ended), \
                 owner = CASE WHEN ?7 THEN ?8 ELSE owner END, \
                 state = coalesce(?9, CASE WHEN ?7 THEN 0 ELSE state END), \
                 position = coalesce(?10, CASE WHEN ?7 THEN 0 ELSE position END) \
                 WHERE row = ?1 AND last_seq = ?2 AND owner IS ?3",
            )?
            .execute(params![
                row,
                after,
                owner,
                last,
                updated_ms,
                ended,
                next.is_some(),
                next.as_ref().and_then(Option::as_ref),
                state,
                position
            ])?,
    };
    Ok(moved != 0)
}

/// Tells the row of a session when it was updated by this owner.
pub(crate) fn write_time(
    connection: &Connection,
    session: i64,
    (owner, updated_ms): (Option<&str>, i64),
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE session SET updated_ms = ?3 WHERE row = ?1 AND owner IS ?2")?
        .execute(params![session, owner, updated_ms])
        .map(drop)
}

pub(crate) fn put_info(connection: &Connection, session: i64, info: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO info (session, info) VALUES (?1, ?2)")?
        .execute(params![session, info])
        .map(drop)
}

/// Makes the session unknown; its blocks become garbage.
pub(crate) fn delete(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    forget(connection, session)?;
    checkpoint::delete(connection, session)?;
    search::delete(connection, session)?;
    outbox::delete(connection, session)?;
    add_garbage(connection, session)
}

/// The row of a session that has ended and has not changed since it was seen.
pub(crate) fn ended_since(
    connection: &Connection,
    id: &str,
    Unchanged { last_seq, updated_ms }: Unchanged,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT row FROM session \
             WHERE id = ?1 AND ended = 1 AND owner IS NULL AND last_seq = ?2 AND updated_ms = ?3",
        )?
        .query_row(params![id, last_seq, updated_ms], |found| found.get(0))
        .optional()
}

/// Makes the session unknown, and nothing else.
pub(crate) fn forget(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM session WHERE row = ?1", [session])?;
    waiting::forget(connection, session)?;
    connection.execute("DELETE FROM info WHERE session = ?1", [session]).map(drop)
}

/// The blocks of this number belong to no session, and are to be removed.
pub(crate) fn add_garbage(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection.execute("INSERT INTO garbage (session) VALUES (?1)", [session]).map(drop)
}

/// Removes a piece of what deleted sessions left. False: nothing is left.
pub(crate) fn remove_garbage(connection: &Connection) -> rusqlite::Result<bool> {
    let Some(session) = connection
        .prepare_cached("SELECT session FROM garbage LIMIT 1")?
        .query_row([], |found| found.get::<_, i64>(0))
        .optional()?
    else {
        return Ok(false);
    };
    let keys = [base(session), base(session + 1)];
    if search::remove(connection, keys, REMOVED_AT_ONCE)? {
        return Ok(true);
    }
    match last_to_remove(connection, keys)? {
        Some(last) => connection
            .prepare_cached("DELETE FROM block WHERE key >= ?1 AND key <= ?2")?
            .execute([keys[0], last])?,
        None => connection.execute("DELETE FROM garbage WHERE session = ?1", [session])?,
    };
    Ok(true)
}

/// The last block that is removed together with those before it.
fn last_to_remove(connection: &Connection, keys: [i64; 2]) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached(
        "SELECT key, length(records) FROM block WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3",
    )?;
    let mut rows = select.query([keys[0], keys[1], REMOVED_AT_ONCE])?;
    let (mut last, mut bytes) = (None, 0);
    while bytes < REMOVED_BYTES
        && let Some(row) = rows.next()?
    {
        last = Some(row.get(0)?);
        bytes += row.get::<_, i64>(1)?;
    }
    Ok(last)
}

/// Blocks in order from the one that holds `from`, up to `upto` or the size of a piece, the first cut to begin
/// with `from`. Nothing when the bytes are not what the keys say, or when there is a hole.
pub(crate) fn read_piece(
    connection: &Connection,
    session: i64,
    from: u64,
    upto: u64,
) -> rusqlite::Result<Option<Vec<Block>>> {
    let mut select = connection.prepare_cached(
        "SELECT key, last_seq, unpacked, records FROM block \
         WHERE key >= (SELECT max(key) FROM block WHERE key >= ?1 AND key <= ?2) AND key <= ?3 ORDER BY key",
    )?;
    let mut rows = select.query([base(session), key(session, from), key(session, upto)])?;
    let (mut blocks, mut bytes, mut next) = (Vec::new(), 0, from);
    while bytes < PIECE_BYTES
        && let Some(found) = rows.next()?
    {
        let first = (found.get::<_, i64>(0)? - base(session)) as u64;
        let records = pack::unpack(found.get(2)?, found.get_ref(3)?.as_blob()?);
        let Some(records) = records.map(Bytes::from) else { return Ok(None) };
        bytes += records.len();
        let Some(block) = Block::checked(first, found.get(1)?, records) else { return Ok(None) };
        let Some(block) = block.starting_at(next) else { return Ok(None) };
        next = block.last() + 1;
        blocks.push(block);
    }
    Ok((!blocks.is_empty()).then_some(blocks))
}
