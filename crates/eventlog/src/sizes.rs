//! What the log takes: all of it, and each session.
//!
//! A session's size is that of its files, as its row in the index has it.

use rusqlite::{Connection, Row, params};

use crate::log::EventLog;
use crate::query::{self, QueryError, SessionRow};

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
    /// Bytes of its files.
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
        self.shared.write_rows_first().await;
        Ok(self.shared.readers.read(move |connection| sizes(connection, after, limit)).await?)
    }

    /// Bytes of the files of all sessions.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn used_bytes(&self) -> Result<u64, QueryError> {
        self.shared.write_rows_first().await;
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
        "SELECT {columns}, session.bytes AS taken \
         FROM session LEFT JOIN info ON info.session = session.row \
         WHERE updated_ms >= ?1 AND (updated_ms > ?1 OR id > ?2) ORDER BY updated_ms, id LIMIT ?3"
    ))?;
    let read = |row: &Row<'_>| Ok(StoredSize { session: query::session_row(row)?, bytes: row.get("taken")? });
    select.query_map(params![updated_ms, id, limit], read)?.collect()
}

fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT coalesce(sum(bytes), 0) FROM session", [], |row| row.get(0))
}
