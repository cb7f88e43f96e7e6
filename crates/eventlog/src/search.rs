//! The index of what was said: full-text search over the turns of sessions. What their text is, the host says.
//!
//! Beside the log and never ahead of it: it is written when the writer has nothing else to do, a piece at a time, and each piece
//! moves the number of the event up to which its session is indexed, in the same transaction. So a process that is killed leaves
//! nothing twice, and what is missing follows from that number. The text itself is not kept: what is shown of it is read from the
//! events. Not here: which text, and when.

use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params, params_from_iter};
use tokio::sync::oneshot;

use crate::failure::WriteError;
use crate::log::EventLog;
use crate::query::{self, QueryError, SessionRow};
use crate::schema::SEQ_BITS;
use crate::store;
use crate::words::{self, SearchText, words};
use crate::writer::Writer;

/// The text of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnText {
    /// The event that the turn is known by.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970; what is found is sorted by it.
    pub at_ms: i64,
    /// What was said in it.
    pub text: String,
}

/// What is searched for, and which page of it. The latest turn comes first.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The words.
    pub text: SearchText,
    /// Only in sessions of this creator.
    pub created_by: Option<String>,
    /// Only what comes after this place.
    pub after: Option<Place>,
    /// At most so many.
    pub limit: u32,
}

/// A place in the order of what was found: the time of the turn, and a number that no other one has.
pub type Place = (i64, i64);

/// A turn that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its session.
    pub session: SessionRow,
    /// The event that the turn is known by.
    pub seq: u64,
    /// When that happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// Its place in the order.
    pub place: Place,
}

/// A session of which not all is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unindexed {
    /// Its id.
    pub id: String,
    /// Its last event.
    pub last_seq: u64,
    /// When it last changed, in milliseconds since 1970: its place among the others, with its id.
    pub updated_ms: i64,
}

/// What waits for the writer to have nothing else to do. One that asks waits for its answer, so there is one for each that asks.
#[derive(Default)]
pub(crate) struct WaitingPieces(Mutex<VecDeque<Piece>>);

pub(crate) enum Piece {
    Index(Indexing, oneshot::Sender<Result<bool, WriteError>>),
    /// All of the index goes.
    Clear,
}

pub(crate) struct Indexing {
    session: String,
    after: u64,
    upto: u64,
    turns: Vec<TurnWords>,
}

struct TurnWords {
    seq: u64,
    at_ms: i64,
    words: String,
}

impl WaitingPieces {
    pub(crate) fn put(&self, piece: Piece) {
        self.0.lock().push_back(piece);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    fn take(&self) -> Option<Piece> {
        self.0.lock().pop_front()
    }

    /// A session has another id.
    pub(crate) fn rename(&self, id: &str, new: &str) {
        for piece in &mut *self.0.lock() {
            if let Piece::Index(indexing, _) = piece
                && indexing.session == id
            {
                new.clone_into(&mut indexing.session);
            }
        }
    }

    /// Those that wait for an answer learn that there will be none.
    pub(crate) fn abandon(&self) {
        self.0.lock().clear();
    }
}

/// Each word once: how often it stands in a turn does not count.
fn words_of(TurnText { seq, at_ms, text }: TurnText) -> TurnWords {
    let words: BTreeSet<String> = words(&text).map(|(_, word)| word).collect();
    TurnWords { seq, at_ms, words: words.into_iter().collect::<Vec<_>>().join(" ") }
}

impl EventLog {
    /// Whether there is an index.
    pub fn has_index(&self) -> bool {
        self.shared.searches
    }

    /// How long turns of live sessions may wait to be [indexed](Self::index), unless somebody asks for them.
    pub fn index_lag(&self) -> Duration {
        self.shared.index_lag
    }

    /// Indexes turns of a session, of which all up to event `after` is indexed; afterwards all up to event `upto` is. It is
    /// written when the writer has nothing else to do: takes as long as it is busy. False: the session is indexed up to another
    /// event, or has no such event; nothing was written.
    ///
    /// # Errors
    ///
    /// When there is no room to spare, or the file cannot be written.
    pub async fn index(
        &self,
        id: &str,
        (after, upto): (u64, u64),
        turns: Vec<TurnText>,
    ) -> Result<bool, WriteError> {
        // Here and not on the writer's thread.
        let turns = turns.into_iter().map(words_of).collect();
        let (reply, answer) = oneshot::channel();
        let indexing = Indexing { session: id.to_owned(), after, upto, turns };
        self.shared.pieces.put(Piece::Index(indexing, reply));
        // Wakes the writer up.
        self.shared.queue.job(Box::new(|_| {}))?;
        answer.await.map_err(|_| WriteError::Closed)?
    }

    /// The event up to which a session is indexed; None if there is no such session.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn indexed(&self, id: &str) -> Result<Option<u64>, QueryError> {
        let read = async || {
            let id = id.to_owned();
            self.shared.readers.read(move |connection| indexed(connection, &id)).await
        };
        if !self.shared.files.rows.is_replaced(id)
            && let Some(upto) = read().await?
        {
            // How far its row is behind is of no account.
            return Ok(Some(upto));
        }
        self.shared.write_rows_first().await;
        Ok(read().await?)
    }

    /// Sessions that no host has live and of which not all is indexed, the latest change first; only those after a place.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn unindexed(
        &self,
        after: Option<(i64, String)>,
        limit: u32,
    ) -> Result<Vec<Unindexed>, QueryError> {
        self.shared.write_rows_first().await;
        Ok(self.shared.readers.read(move |connection| unindexed(connection, after, limit)).await?)
    }

    /// Turns in which all the words stand.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn search(&self, query: SearchQuery) -> Result<Vec<Hit>, QueryError> {
        self.shared.write_rows_first().await;
        Ok(self.shared.readers.read(move |connection| search(connection, query)).await?)
    }
}

impl Writer {
    /// Writes one of the pieces that wait, if any does.
    pub(crate) fn write_waiting_piece(&mut self) -> bool {
        if self.pieces().is_empty() {
            return false;
        }
        match self.take_with_rows(|writer| writer.pieces().take()) {
            None => return false,
            Some((rows, Piece::Index(piece, reply))) => {
                let bytes = piece.turns.iter().map(|turn| turn.words.len()).sum();
                let written = self.write_with_rows(&rows, bytes, |transaction| put(transaction, &piece));
                // Who asked may have gone; what was indexed stays indexed.
                drop(reply.send(written));
            }
            Some((rows, Piece::Clear)) => {
                if let Err(error) = self.write_changes(&rows, 0, |transaction| clear(transaction)) {
                    tracing::warn!(%error, "the index of the event log is dropped at the next start");
                }
            }
        }
        true
    }
}

/// False when the session is gone, is indexed up to another event, or has not all those events.
fn put(connection: &Connection, piece: &Indexing) -> rusqlite::Result<bool> {
    let head = store::session_head(connection, &piece.session)?;
    let Some(head) = head.filter(|head| head.last_seq >= piece.upto) else { return Ok(false) };
    if indexed(connection, &piece.session)? != Some(piece.after) {
        return Ok(false);
    }
    let mut turn = connection.prepare_cached("INSERT INTO turn (key, at_ms) VALUES (?1, ?2)")?;
    let mut search = connection.prepare_cached("INSERT INTO search (rowid, words) VALUES (?1, ?2)")?;
    for TurnWords { seq, at_ms, words } in &piece.turns {
        turn.execute(params![store::key(head.row, *seq), at_ms])?;
        search.execute(params![connection.last_insert_rowid(), words])?;
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO searched (session, seq) VALUES (?1, ?2)")?
        .execute(params![head.row, piece.upto])?;
    Ok(true)
}

fn indexed(connection: &Connection, id: &str) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached(
            "SELECT coalesce(seq, 0) FROM session LEFT JOIN searched ON searched.session = session.row \
             WHERE id = ?1",
        )?
        .query_row([id], |row| row.get(0))
        .optional()
}

fn unindexed(
    connection: &Connection,
    after: Option<(i64, String)>,
    limit: u32,
) -> rusqlite::Result<Vec<Unindexed>> {
    let (updated_ms, id) = after.unwrap_or((i64::MAX, String::new()));
    let mut select = connection.prepare_cached(
        "SELECT id, last_seq, updated_ms FROM session LEFT JOIN searched ON searched.session = session.row \
         WHERE owner IS NULL AND last_seq > coalesce(seq, 0) \
         AND updated_ms <= ?1 AND (updated_ms < ?1 OR id > ?2) ORDER BY updated_ms DESC, id LIMIT ?3",
    )?;
    let read =
        |row: &Row<'_>| Ok(Unindexed { id: row.get(0)?, last_seq: row.get(1)?, updated_ms: row.get(2)? });
    select.query_map(params![updated_ms, id, limit], read)?.collect()
}

/// The index gives all turns; those that are not on the page are forgotten before anything else is read of them.
fn search(connection: &Connection, query: SearchQuery) -> rusqlite::Result<Vec<Hit>> {
    let SearchQuery { text, created_by, after, limit } = query;
    let mut conditions = String::new();
    let mut values: Vec<Value> = vec![i64::from(SEQ_BITS).into(), text.expression().into()];
    if let Some(created_by) = created_by {
        conditions.push_str(" AND session.created_by = ?");
        values.push(created_by.into());
    }
    if let Some((at_ms, id)) = after {
        conditions.push_str(" AND turn.at_ms <= ? AND (turn.at_ms < ? OR turn.id < ?)");
        values.extend([at_ms.into(), at_ms.into(), id.into()]);
    }
    values.push(i64::from(limit).into());
    let columns = query::COLUMNS;
    let mut select = connection.prepare_cached(&format!(
        "SELECT {columns}, hit.key, hit.at_ms, hit.turn FROM ( \
           SELECT turn.id AS turn, turn.key AS key, turn.at_ms AS at_ms, session.row AS found \
           FROM search CROSS JOIN turn ON turn.id = search.rowid \
           CROSS JOIN session ON session.row = turn.key >> ? \
           WHERE search MATCH ?{conditions} ORDER BY turn.at_ms DESC, turn.id DESC LIMIT ? \
         ) AS hit JOIN session ON session.row = hit.found LEFT JOIN info ON info.session = session.row \
         ORDER BY hit.at_ms DESC, hit.turn DESC"
    ))?;
    let read = |row: &Row<'_>| {
        let (key, at_ms, turn): (i64, i64, i64) = (row.get("key")?, row.get("at_ms")?, row.get("turn")?);
        let seq = (key & ((1 << SEQ_BITS) - 1)) as u64;
        Ok(Hit { session: query::session_row(row)?, seq, at_ms, place: (at_ms, turn) })
    };
    select.query_map(params_from_iter(values), read)?.collect()
}

/// Removes a piece of what a deleted session left. False: nothing is left.
pub(crate) fn remove(connection: &Connection, keys: [i64; 2], most: i64) -> rusqlite::Result<bool> {
    let mut select =
        connection.prepare_cached("SELECT id FROM turn WHERE key >= ?1 AND key < ?2 LIMIT ?3")?;
    let turns = select.query_map(params![keys[0], keys[1], most], |row| row.get(0))?;
    let turns = turns.collect::<rusqlite::Result<Vec<i64>>>()?;
    for turn in &turns {
        connection.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([turn])?;
        connection.prepare_cached("DELETE FROM turn WHERE id = ?1")?.execute([turn])?;
    }
    Ok(!turns.is_empty())
}

/// With its session; the rest is [`remove`]d.
pub(crate) fn delete(connection: &Connection, session: i64) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM searched WHERE session = ?1", [session]).map(drop)
}

fn clear(connection: &Connection) -> rusqlite::Result<()> {
    let any: bool = connection.query_row("SELECT EXISTS (SELECT 1 FROM searched)", [], |row| row.get(0))?;
    if any {
        connection.execute_batch(
            "INSERT INTO search (search) VALUES ('delete-all'); DELETE FROM turn; DELETE FROM searched;",
        )?;
    }
    Ok(())
}

/// Drops an index of other words than are made now, to be made again in the background. Which words it has is noted as the number of
/// indexed events of a session that no log has.
pub(crate) fn drop_other_words(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| {
        let mut select = connection.prepare("SELECT seq FROM searched WHERE session = ?1")?;
        select.query_row([NO_SESSION], |row| row.get(0)).optional()
    };
    if version(connection)? == Some(words::VERSION) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    if version(&transaction)? != Some(words::VERSION) {
        clear(&transaction)?;
        let mut note = transaction.prepare("INSERT INTO searched (session, seq) VALUES (?1, ?2)")?;
        note.execute([NO_SESSION, words::VERSION])?;
    }
    transaction.commit()
}

/// Sessions count from 1.
const NO_SESSION: i64 = 0;
