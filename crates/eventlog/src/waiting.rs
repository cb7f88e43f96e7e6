//! What a session was given and has not begun with: no events yet, and not to be lost with the host.
//!
//! Written with the batches of its host, and gone when the session has no host or another, unless that one goes on in its
//! place. What the bytes mean is the host's to know.

use rusqlite::{Connection, params};

use crate::batch::IndexUpdate;
use crate::log::EventLog;
use crate::query::QueryError;

/// Does what a change of the index says of it.
pub(crate) fn change(connection: &Connection, session: i64, index: &IndexUpdate) -> rusqlite::Result<()> {
    for (number, bytes) in &index.waiting {
        match bytes {
            Some(bytes) => connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO waiting (session, number, bytes) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![session, number, bytes])?,
            None => connection
                .prepare_cached("DELETE FROM waiting WHERE session = ?1 AND number = ?2")?
                .execute(params![session, number])?,
        };
    }
    if index.owner.is_some() { forget(connection, session) } else { Ok(()) }
}

/// Removes all of it.
pub(crate) fn forget(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM waiting WHERE session = ?1")?.execute([session]).map(drop)
}

impl EventLog {
    /// What a session was given and has not begun with, in the order of the numbers.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn waiting(&self, id: &str) -> Result<Vec<(u64, Vec<u8>)>, QueryError> {
        let id = id.to_owned();
        Ok(self.shared.readers.read(move |connection| read(connection, &id)).await?)
    }
}

fn read(connection: &Connection, id: &str) -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
    let mut select = connection.prepare_cached(
        "SELECT number, bytes FROM waiting WHERE session = (SELECT row FROM session WHERE id = ?1) ORDER BY number",
    )?;
    let found = select.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    found.collect()
}
