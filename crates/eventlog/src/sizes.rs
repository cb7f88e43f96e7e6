//! What the log takes: all of it, and each session.
//!
//! A session's size is that of its blocks as they are stored: packed, without the index for search, and without what the
//! database needs around them. It is read from the blocks' rows, not from the blocks, and kept nowhere.

use rusqlite::{Connection, Row, params};

use crate::log::EventLog;
use crate::query::{self, QueryError, SessionRow};
use crate::schema::{PAGE_BYTES, SEQ_BITS};

/// Where a session stood when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unchanged {
    /// Its last event.
    pub last_seq: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// A session and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSize {
    /// The session.
    pub session: SessionRow,
    /// Bytes of its blocks.
    pub bytes: u64,
}

impl EventLog {
    /// A page of sessions, the one that changed longest ago first; only those behind a place.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn sizes(
        &self,
        after: Option<(i64, String)>,
        limit: u32,
    ) -> Result<Vec<StoredSize>, QueryError> {
        Ok(self.shared.readers.read(move |connection| sizes(connection, after, limit)).await?)
    }

    /// Bytes of the pages that are in use: more than the blocks of all sessions together. Does not take longer the more
    /// there is.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn used_bytes(&self) -> Result<u64, QueryError> {
        Ok(self.shared.readers.read(used_bytes).await?)
    }
}

fn sizes(
    connection: &Connection,
    after: Option<(i64, String)>,
    limit: u32,
) -> rusqlite::Result<Vec<StoredSize>> {
    let (updated_ms, id) = after.unwrap_or((i64::MIN, String::new()));
    let columns = query::COLUMNS;
    // The index is in the order of lists: its other end, and the ids of one moment in their order.
    let mut select = connection.prepare_cached(&format!(
        "SELECT {columns}, (SELECT coalesce(sum(length(records)), 0) FROM block \
           WHERE key >= session.row << {SEQ_BITS} AND key < (session.row + 1) << {SEQ_BITS}) AS bytes \
         FROM session LEFT JOIN info ON info.session = session.row \
         WHERE updated_ms >= ?1 AND (updated_ms > ?1 OR id > ?2) ORDER BY updated_ms, id LIMIT ?3"
    ))?;
    let read = |row: &Row<'_>| Ok(StoredSize { session: query::session_row(row)?, bytes: row.get("bytes")? });
    select.query_map(params![updated_ms, id, limit], read)?.collect()
}

fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    Ok(pragma("page_count")?.saturating_sub(pragma("freelist_count")?) * PAGE_BYTES)
}
