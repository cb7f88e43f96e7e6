//! State directories as earlier versions had them: one database of all sessions.
//!
//! The tables are recorded as the last of those versions made them. What is in them is written from a log of today, of which nothing
//! is left. Tests of several crates include it.

#![allow(unreachable_pub, reason = "it is included by others, whose modules are private")]

use acpd_eventlog::{Block, Checkpoint, EventLog, ListQuery, Options, SessionRow};
use rusqlite::{Connection, params};
use std::error::Error;
use std::path::Path;

/// The tables, in their last form.
const TABLES: &str = "
    CREATE TABLE session (
        row INTEGER PRIMARY KEY AUTOINCREMENT CHECK (row < 134217728), id TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
        cwd TEXT NOT NULL, owner TEXT, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL DEFAULT 0 CHECK (last_seq < 68719476736),
        created_by TEXT, state INTEGER NOT NULL DEFAULT 0, position INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX session_by_time ON session (updated_ms DESC, id);
    CREATE INDEX session_by_agent ON session (agent, updated_ms DESC, id);
    CREATE INDEX session_by_cwd ON session (cwd, updated_ms DESC, id);
    CREATE INDEX session_by_owner ON session (owner) WHERE owner IS NOT NULL;
    CREATE INDEX session_by_creator ON session (created_by, updated_ms DESC, id) WHERE created_by IS NOT NULL;
    CREATE TABLE info (session INTEGER PRIMARY KEY, info BLOB NOT NULL);
    CREATE TABLE block (
        key INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, unpacked INTEGER NOT NULL DEFAULT 0, records BLOB NOT NULL
    );
    CREATE TABLE garbage (session INTEGER PRIMARY KEY);
    CREATE TABLE checkpoint (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL);
    CREATE TABLE partial (session INTEGER PRIMARY KEY, owner TEXT NOT NULL, last_seq INTEGER NOT NULL);
    CREATE VIRTUAL TABLE search USING fts5 (
        words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
    );
    CREATE TABLE turn (id INTEGER PRIMARY KEY, key INTEGER NOT NULL UNIQUE, at_ms INTEGER NOT NULL);
    CREATE TABLE searched (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    CREATE TABLE outbox (
        number INTEGER PRIMARY KEY AUTOINCREMENT, subscriber TEXT NOT NULL, session INTEGER NOT NULL, seq INTEGER NOT NULL
    );
    CREATE INDEX outbox_by_subscriber ON outbox (subscriber, number);
    CREATE INDEX outbox_by_session ON outbox (session);
    CREATE TABLE waiting (
        session INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (session, number)
    );
    PRAGMA application_id = 1633906788;
    PRAGMA user_version = 9;
";

/// A block ends with the event with which its records reach this size, in bytes.
const BLOCK_BYTES: usize = 4096;

/// All that a log has of a session.
struct Session {
    row: SessionRow,
    blocks: Vec<(u64, u64, Vec<u8>)>,
    waiting: Vec<(u64, Vec<u8>)>,
    checkpoint: Option<Checkpoint>,
}

/// Makes the log of a state directory, which nobody has open, a database as earlier versions had it. `pack` gives the stored form of a
/// block's records, and their size where it is another one, else 0.
///
/// # Errors
/// When it cannot be read or written.
pub async fn make_old(
    state: &Path,
    pack: impl Fn(&[u8]) -> (u64, Vec<u8>),
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let (sessions, notes) = take(state).await?;
    let mut database = Connection::open(state.join("acpd.db"))?;
    database.pragma_update(None, "page_size", 8192)?;
    database.pragma_update(None, "auto_vacuum", "incremental")?;
    database.pragma_update(None, "journal_mode", "wal")?;
    let transaction = database.transaction()?;
    transaction.execute_batch(TABLES)?;
    for Session { row, blocks, waiting, checkpoint } in &sessions {
        let SessionRow { id, agent, cwd, owner, created_by, created_ms, updated_ms, .. } = row;
        let SessionRow { ended, last_seq, state, position, info, .. } = row;
        transaction.execute(
            "INSERT INTO session (id, agent, cwd, owner, created_by, created_ms, updated_ms, ended, last_seq, state, position) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                id, agent, cwd, owner, created_by, created_ms, updated_ms, ended, signed(*last_seq), state,
                signed(*position)
            ],
        )?;
        let number = transaction.last_insert_rowid();
        transaction.execute("INSERT INTO info (session, info) VALUES (?1, ?2)", params![number, info])?;
        for (first, last, records) in blocks {
            let (unpacked, stored) = pack(records);
            transaction.execute(
                "INSERT INTO block (key, last_seq, unpacked, records) VALUES (?1, ?2, ?3, ?4)",
                params![number << 36 | signed(*first), signed(*last), signed(unpacked), stored],
            )?;
        }
        for (waits, bytes) in waiting {
            let put = "INSERT INTO waiting (session, number, bytes) VALUES (?1, ?2, ?3)";
            transaction.execute(put, params![number, signed(*waits), bytes])?;
        }
        if let Some(Checkpoint { seq, bytes }) = checkpoint {
            let put = "INSERT INTO checkpoint (session, seq, bytes) VALUES (?1, ?2, ?3)";
            transaction.execute(put, params![number, signed(*seq), bytes])?;
        }
    }
    for (subscriber, session, seq) in &notes {
        transaction.execute(
            "INSERT INTO outbox (subscriber, session, seq) SELECT ?1, row, ?3 FROM session WHERE id = ?2",
            params![subscriber, session, seq],
        )?;
    }
    transaction.commit()?;
    Ok(database.close().map_err(|(_, error)| error)?)
}

type Note = (String, String, i64);

/// What a log has, which is gone then.
async fn take(state: &Path) -> Result<(Vec<Session>, Vec<Note>), Box<dyn Error + Send + Sync>> {
    let log = EventLog::open(state, Options::default())?;
    let mut sessions = Vec::new();
    for row in log.list(ListQuery::default()).await? {
        let (mut cursor, mut blocks) = (log.cursor(&row.id, 0).await?, Vec::new());
        while let Some(block) = cursor.next().await? {
            cut(&block, &mut blocks);
        }
        let waiting = log.waiting(&row.id).await?;
        let checkpoint = log.checkpoint(&row.id, row.last_seq).await?;
        sessions.push(Session { row, blocks, waiting, checkpoint });
    }
    log.close().await;
    let hooks = Connection::open(state.join("hooks.db"))?;
    let mut select = hooks.prepare("SELECT subscriber, session, seq FROM note ORDER BY number")?;
    let notes = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let notes = notes.collect::<rusqlite::Result<_>>()?;
    drop(select);
    drop(hooks);
    for entry in std::fs::read_dir(state)? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        if ["sessions", "claims", "redo"].contains(&&*name) {
            std::fs::remove_dir_all(entry.path())?;
        } else if ["acpd.db", "index-1.db", "hooks.db"].iter().any(|known| name.starts_with(known)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok((sessions, notes))
}

/// The events of a block in blocks of a database: first and last number, and records.
fn cut(block: &Block, blocks: &mut Vec<(u64, u64, Vec<u8>)>) {
    let mut open = false;
    for event in block.events() {
        if !open {
            blocks.push((event.seq, event.seq, Vec::new()));
        }
        if let Some((_, last, records)) = blocks.last_mut() {
            *last = event.seq;
            records.extend((event.payload.len() as u32).to_le_bytes());
            records.extend(event.kind.to_le_bytes());
            records.extend(event.at_ms.to_le_bytes());
            records.extend(event.payload);
            open = records.len() < BLOCK_BYTES;
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
