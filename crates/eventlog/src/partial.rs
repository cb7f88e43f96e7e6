//! A session that is written in pieces and comes to be all at once.
//!
//! Its blocks stand under the number of a row that is not there yet, so no reader finds them, and nothing waits for one large
//! commit. Invariant: each number with blocks is that of a session, of a partial one, or of garbage; so what is given up, here
//! or by the death of its host, becomes garbage like a deleted session. Not here: what is written.

use std::fmt;
use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::batch::Batch;
use crate::block::BlockBuilder;
use crate::failure::WriteError;
use crate::log::{EventLog, NewSession, Shared};
use crate::metrics;
use crate::reclaiming::Left;
use crate::store::{self, Place, RowTime, Standing};
use crate::writer::Writer;

/// A session that is being written. When it is dropped, nothing is left of it.
pub struct Partial {
    shared: Arc<Shared>,
    row: i64,
    last: u64,
    finished: bool,
}

impl EventLog {
    /// Begins a session that host `owner` writes in pieces.
    ///
    /// # Errors
    ///
    /// When there is no room for it.
    pub async fn begin_partial(&self, owner: &str) -> Result<Partial, WriteError> {
        let (shared, owner) = (Arc::clone(&self.shared), owner.to_owned());
        let job = move |writer: &mut Writer| {
            writer.check_plenty()?;
            let row = writer.transact_once(0, |transaction| begin(transaction, &owner).map(Ok))?;
            Ok(Partial { shared, row, last: 0, finished: false })
        };
        self.shared.ask(0, job).await?
    }

    /// Gives up the sessions that host `owner` was writing when it died.
    ///
    /// # Errors
    ///
    /// When that cannot be written.
    pub async fn discard_partials(&self, owner: &str) -> Result<(), WriteError> {
        let owner = owner.to_owned();
        let job = move |writer: &mut Writer| {
            let discarded =
                writer.transact(Some(0), |transaction| discard_of(transaction, &owner).map(Ok))?;
            if discarded > 0 {
                writer.expect(Left::Blocks);
            }
            Ok(())
        };
        self.shared.ask(0, job).await?
    }
}

impl Partial {
    /// Appends events; they are written when this returns.
    ///
    /// # Errors
    ///
    /// When there is no room, or the session was given up from outside.
    pub async fn append(&mut self, batch: Batch) -> Result<(), WriteError> {
        batch.check_size()?;
        let (row, after, count, bytes) = (self.row, self.last, batch.count, batch.cost());
        let job = move |writer: &mut Writer| {
            writer.check_plenty()?;
            let blocks = BlockBuilder::whole(after + 1, batch.records, count);
            writer.transact_once(bytes, |transaction| {
                if !move_on(transaction, row, (after, after + count))? {
                    return Ok(Err(given_up()));
                }
                store::insert_blocks(transaction, row, &blocks).map(Ok)
            })?;
            metrics::appended(count, bytes as u64);
            Ok(())
        };
        self.shared.ask(bytes, job).await??;
        self.last += count;
        Ok(())
    }

    /// Makes it a session, with its last events and what the index says in the batch of `new`; it has no appender.
    ///
    /// # Errors
    ///
    /// [`WriteError::Exists`] if there is one of that id, and those of [`append`](Self::append). Nothing is left of it then.
    pub async fn finish(mut self, new: NewSession) -> Result<(), WriteError> {
        new.events.check_size()?;
        let (row, after, bytes) = (self.row, self.last, new.events.cost());
        let job = move |writer: &mut Writer| finish(writer, (row, after), new);
        self.shared.ask(bytes, job).await??;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let row = self.row;
        let job = move |writer: &mut Writer| match writer
            .transact(Some(0), |transaction| discard(transaction, row).map(Ok))
        {
            Ok(()) => writer.expect(Left::Blocks),
            Err(error) => tracing::warn!(%error, "what was written of a session stays until the next start"),
        };
        // A log that is closed is cleaned by the next host that looks.
        drop(self.shared.queue.job(Box::new(job)));
    }
}

impl fmt::Debug for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partial").field("row", &self.row).field("last", &self.last).finish_non_exhaustive()
    }
}

fn given_up() -> WriteError {
    WriteError::Conflict { id: "that is being written".to_owned() }
}

/// The number of a row that no session has, and none gets.
fn begin(connection: &Connection, owner: &str) -> rusqlite::Result<i64> {
    // A number is used once, also that of a row that is gone. No session has an empty id.
    let place = NewSession::default();
    let row = store::create(connection, &place)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    store::forget(connection, row)?;
    connection
        .prepare_cached("INSERT INTO partial (session, owner, last_seq) VALUES (?1, ?2, 0)")?
        .execute(params![row, owner])?;
    Ok(row)
}

/// False: it was given up, or does not end at `after`.
fn move_on(connection: &Connection, row: i64, (after, last): (u64, u64)) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("UPDATE partial SET last_seq = ?3 WHERE session = ?1 AND last_seq = ?2")?
        .execute(params![row, after, last])
        .map(|moved| moved != 0)
}

fn finish(writer: &mut Writer, (row, after): (i64, u64), mut new: NewSession) -> Result<(), WriteError> {
    writer.check_plenty()?;
    let events = std::mem::take(&mut new.events);
    let (count, bytes) = (events.count, events.cost());
    let blocks = BlockBuilder::whole(after + 1, events.records, count);
    writer.transact_once(bytes, |transaction| {
        if !move_on(transaction, row, (after, after))? {
            return Ok(Err(given_up()));
        }
        transaction.execute("DELETE FROM partial WHERE session = ?1", [row])?;
        let place = Place { row: Some(row), last_seq: after };
        if store::create_at(transaction, &new, place)?.is_none() {
            return Ok(Err(WriteError::Exists { id: new.id.clone() }));
        }
        let index = (events.index.as_ref(), RowTime::Now);
        let standing = Standing { row, owner: Some(&new.owner), after };
        store::write(transaction, standing, &blocks, index)?;
        Ok(Ok(()))
    })?;
    metrics::appended(count, bytes as u64);
    Ok(())
}

fn discard(connection: &Connection, row: i64) -> rusqlite::Result<()> {
    if connection.execute("DELETE FROM partial WHERE session = ?1", [row])? != 0 {
        store::add_garbage(connection, row)?;
    }
    Ok(())
}

fn discard_of(connection: &Connection, owner: &str) -> rusqlite::Result<usize> {
    let mut select = connection.prepare("SELECT session FROM partial WHERE owner = ?1")?;
    let rows = select.query_map([owner], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    rows.iter().try_for_each(|row| discard(connection, *row))?;
    Ok(rows.len())
}
