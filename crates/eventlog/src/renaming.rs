//! Another id for a session that has ended, so that the one it had is free for another session.
//!
//! One commit: a process that is killed leaves the session under the one id or the other. What belongs to a session stands under the
//! number of its row, so all of it comes along: events, checkpoint, index, notes, and what waits. A reader of the old id
//! learns that nothing is there any more, as after a removal. Not here: which ids, and what is changed in the events (nothing).

use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::failure::WriteError;
use crate::log::{self, EventLog};
use crate::sizes::Unchanged;
use crate::store;
use crate::writer::Writer;

/// What a session is from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Its id, unique for ever.
    pub id: String,
    /// The host's own description, opaque here.
    pub info: Vec<u8>,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
}

impl EventLog {
    /// Gives a session that has ended, and has not changed since it was seen, another id and description. False: it has changed, is
    /// live, or is gone. As [`EventLog::delete`] does, it may use the reserve.
    ///
    /// # Errors
    ///
    /// [`WriteError::Exists`] if there is a session of the new id; nothing has changed then.
    pub async fn rename(&self, id: &str, seen: Unchanged, renamed: Renamed) -> Result<bool, WriteError> {
        let (id, presences) = (id.to_owned(), Arc::clone(&self.shared.presences));
        let bytes = renamed.info.len();
        let job = move |writer: &mut Writer| {
            if log::refuse_live(writer, &id).is_err() {
                return Ok(false);
            }
            let done = writer.transact(Some(bytes), |transaction| {
                let Some(row) = store::ended_since(transaction, &id, seen)? else { return Ok(Ok(false)) };
                if store::session_head(transaction, &renamed.id)?.is_some() {
                    return Ok(Err(WriteError::Exists { id: renamed.id.clone() }));
                }
                rename(transaction, row, &renamed).map(|()| Ok(true))
            })?;
            if done {
                // What waits to be written is of this session, not of the next one with its old id.
                writer.checkpoints().rename(&id, &renamed.id);
                writer.pieces().rename(&id, &renamed.id);
                presences.end(&id);
            }
            Ok(done)
        };
        self.shared.ask(bytes, job).await?
    }
}

fn rename(
    connection: &Connection,
    session: i64,
    Renamed { id, info, at_ms }: &Renamed,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE session SET id = ?2, updated_ms = ?3 WHERE row = ?1")?
        .execute(params![session, id, at_ms])?;
    store::put_info(connection, session, info)
}
