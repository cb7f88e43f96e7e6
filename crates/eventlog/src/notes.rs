//! Notes of events that subscribers are still to be told of, in a database of their own: which were told is in no event, so they
//! cannot be rebuilt.
//!
//! Notes are written in groups behind the appends, with the event up to which each session was noted. What a host that died has not
//! written is derived from the events behind that. Invariants: no note is lost by the death of a process, one may come twice; a
//! note of history is never made. Not here: how subscribers are told (`outbox.rs`).

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::block::Events;
use crate::options::Durability;
use crate::outbox::{Note, Subscriber, bit};
use crate::schema::{self, OpenError, Tables};
use crate::segment::BatchFlags;
use crate::session_files::{SessionDir, SessionFileError};

/// Pages of the write-ahead file from which a commit moves them to the database.
const CHECKPOINT_PAGES: u32 = 256;

pub(crate) const NOTES: Tables = Tables {
    file: "hooks.db",
    // `acph` in ASCII.
    application_id: 0x6163_7068,
    steps: &["
    -- Numbers are never used twice.
    CREATE TABLE note (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        subscriber TEXT NOT NULL, session TEXT NOT NULL, seq INTEGER NOT NULL
    );
    CREATE INDEX note_by_subscriber ON note (subscriber, number);
    CREATE INDEX note_by_session ON note (session);
    -- The event up to which a session is noted.
    CREATE TABLE noted (session TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
    -- For whom a host notes, by which what it has not written is derived.
    CREATE TABLE subscriber (
        host TEXT NOT NULL, name TEXT NOT NULL, kinds INTEGER NOT NULL, PRIMARY KEY (host, name)
    ) WITHOUT ROWID;
"],
    touched: &["note"],
};

/// What is noted of a session's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionNotes {
    /// The session.
    pub(crate) session: String,
    /// The event up to which these are all.
    pub(crate) upto: u64,
    /// Names of subscribers, and the events.
    pub(crate) notes: Vec<(String, u64)>,
}

/// Opens the database of a state directory, which is made if needed. Its file is the log's, too (`log_files.rs`).
pub(crate) fn open(dir: &Path, durability: Durability) -> Result<(PathBuf, Connection), OpenError> {
    let (path, connection) = schema::open_database(dir, &NOTES, durability)?;
    match connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES) {
        Ok(()) => Ok((path, connection)),
        Err(error) => Err(OpenError::Sqlite { path, source: error.into() }),
    }
}

/// Writes notes, and up to where these are all, in one transaction. A session without notes has only that moved on.
pub(crate) fn write(connection: &mut Connection, all: &[SessionNotes]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for SessionNotes { session, upto, notes } in all {
        for (subscriber, seq) in notes {
            transaction
                .prepare_cached("INSERT INTO note (subscriber, session, seq) VALUES (?1, ?2, ?3)")?
                .execute(params![subscriber, session, seq])?;
        }
        note_up_to(&transaction, session, *upto)?;
    }
    transaction.commit()
}

fn note_up_to(transaction: &Transaction<'_>, session: &str, upto: u64) -> rusqlite::Result<()> {
    // Also back: another session may have had its id, and a note too many is better than one too few.
    transaction
        .prepare_cached("INSERT OR REPLACE INTO noted (session, seq) VALUES (?1, ?2)")?
        .execute(params![session, upto])
        .map(drop)
}

/// The notes of a subscriber behind number `after`, oldest first.
pub(crate) fn read(
    connection: &Connection,
    subscriber: &str,
    after: u64,
    limit: u32,
) -> rusqlite::Result<Vec<Note>> {
    let mut select = connection.prepare_cached(
        "SELECT number, session, seq FROM note WHERE subscriber = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let note =
        |row: &rusqlite::Row<'_>| Ok(Note { number: row.get(0)?, session: row.get(1)?, seq: row.get(2)? });
    select.query_map(params![subscriber, after, limit], note)?.collect()
}

/// Takes notes out: they were told, or need not be.
pub(crate) fn take_out(connection: &mut Connection, numbers: &[u64]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for number in numbers {
        transaction.prepare_cached("DELETE FROM note WHERE number = ?1")?.execute([number])?;
    }
    transaction.commit()
}

/// Takes out what is noted for names that are none of these subscribers'.
pub(crate) fn forget_others(connection: &mut Connection, subscribers: &[Subscriber]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let noted: Vec<String> = transaction
        .prepare("SELECT DISTINCT subscriber FROM note")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in noted.iter().filter(|name| subscribers.iter().all(|one| one.name != **name)) {
        transaction.execute("DELETE FROM note WHERE subscriber = ?1", [name])?;
    }
    transaction.commit()
}

/// A session goes, and nobody is told of it any more. Called once its removal is written and before its files go: who finishes a
/// removal that was cut off calls it, too.
pub(crate) fn delete(connection: &mut Connection, session: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.prepare_cached("DELETE FROM note WHERE session = ?1")?.execute([session])?;
    transaction.prepare_cached("DELETE FROM noted WHERE session = ?1")?.execute([session])?;
    transaction.commit()
}

/// A session has another id. Twice is the same as once.
pub(crate) fn rename(connection: &mut Connection, session: &str, new: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute("UPDATE note SET session = ?2 WHERE session = ?1", [session, new])?;
    transaction.execute("UPDATE OR REPLACE noted SET session = ?2 WHERE session = ?1", [session, new])?;
    transaction.commit()
}

/// The event up to which a session is noted; none if nothing was written of it.
pub(crate) fn noted(connection: &Connection, session: &str) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT seq FROM noted WHERE session = ?1")?
        .query_row([session], |row| row.get(0))
        .optional()
}

/// From here on a host notes for these. `live` are the sessions that it has, each with the event up to which it has noted for those
/// before: what comes later is for these.
pub(crate) fn subscribe(
    connection: &mut Connection,
    host: &str,
    subscribers: &[Subscriber],
    live: &[(String, u64)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    forget_subscribers(&transaction, host)?;
    for subscriber in subscribers {
        transaction.execute(
            "INSERT OR REPLACE INTO subscriber (host, name, kinds) VALUES (?1, ?2, ?3)",
            params![host, subscriber.name, kinds_of(subscriber).cast_signed()],
        )?;
    }
    for (session, upto) in live {
        note_up_to(&transaction, session, *upto)?;
    }
    transaction.commit()
}

/// For whom a host notes, or did when it died.
pub(crate) fn subscribers(connection: &Connection, host: &str) -> rusqlite::Result<Vec<Subscriber>> {
    let mut select =
        connection.prepare_cached("SELECT name, kinds FROM subscriber WHERE host = ?1 ORDER BY name")?;
    let subscriber = |row: &rusqlite::Row<'_>| {
        let kinds = row.get::<_, i64>(1)?.cast_unsigned();
        Ok(Subscriber { name: row.get(0)?, kinds: (0..64).filter(|kind| kinds & bit(*kind) != 0).collect() })
    };
    select.query_map([host], subscriber)?.collect()
}

/// A host is gone, and all that it has not written was derived.
pub(crate) fn forget_subscribers(connection: &Connection, host: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM subscriber WHERE host = ?1", [host]).map(drop)
}

fn kinds_of(subscriber: &Subscriber) -> u64 {
    subscriber.kinds.iter().fold(0, |kinds, kind| kinds | bit(*kind))
}

/// What is noted of events.
pub(crate) fn notes_of(
    events: Events<'_>,
    subscribers: &[Subscriber],
) -> impl Iterator<Item = (String, u64)> {
    events.flat_map(move |event| {
        let told = subscribers.iter().filter(move |one| one.kinds.contains(&event.kind));
        told.map(move |one| (one.name.clone(), event.seq))
    })
}

/// What a host that died would have noted of a session behind what is [`noted`]. To be written before anybody else claims the session:
/// what another host has appended is that one's to note.
pub(crate) fn derive(
    directory: &SessionDir,
    host: &str,
    noted: Option<u64>,
    subscribers: &[Subscriber],
) -> Result<SessionNotes, SessionFileError> {
    let last = directory.last()?;
    let (session, upto) = (last.facts.id, last.standing.last_seq);
    // What lies behind the end was noted of another session that had this id.
    let after = noted.filter(|noted| *noted <= upto).unwrap_or_default();
    let kinds = subscribers.iter().fold(0, |kinds, one| kinds | kinds_of(one));
    let mut notes = Vec::new();
    if kinds == 0 || after == upto {
        return Ok(SessionNotes { session, upto, notes });
    }
    directory.visit_batches(after, |writer, batch| {
        let is_history = batch.head.flags.has(BatchFlags::HISTORY);
        if writer != host || is_history || batch.head.kinds & kinds == 0 {
            return;
        }
        // What is damaged nobody can be told of.
        let Ok(records) = batch.unpacked_records() else { return };
        let found = notes_of(Events::new(batch.head.first_seq, &records), subscribers);
        notes.extend(found.filter(|(_, seq)| (after + 1..=upto).contains(seq)));
    })?;
    Ok(SessionNotes { session, upto, notes })
}

#[cfg(test)]
mod tests;
