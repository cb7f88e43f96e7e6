//! The statements that several parts of the index share, each inside a transaction of its caller.

use rusqlite::{Connection, OptionalExtension, params};

use crate::schema::SEQ_BITS;

/// A session in the index.
#[derive(Debug)]
pub(crate) struct SessionHead {
    pub(crate) row: i64,
    pub(crate) last_seq: u64,
}

fn base(session: i64) -> i64 {
    session << SEQ_BITS
}

pub(crate) fn key(session: i64, seq: u64) -> i64 {
    base(session) | seq as i64
}

/// The first key of a session, and that of the next one.
pub(crate) fn keys_of(session: i64) -> [i64; 2] {
    [base(session), base(session + 1)]
}

pub(crate) fn session_head(connection: &Connection, id: &str) -> rusqlite::Result<Option<SessionHead>> {
    connection
        .prepare_cached("SELECT row, last_seq FROM session WHERE id = ?1")?
        .query_row([id], |found| Ok(SessionHead { row: found.get(0)?, last_seq: found.get(1)? }))
        .optional()
}

pub(crate) fn put_info(connection: &Connection, session: i64, info: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO info (session, info) VALUES (?1, ?2)")?
        .execute(params![session, info])
        .map(drop)
}
