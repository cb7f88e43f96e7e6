//! Sessions that are written in pieces: there as a whole, or not at all.

use acpd_eventlog::{Batch, EventLog, IndexUpdate, ListQuery, NewSession, Partial, WriteError};
use rusqlite::Connection;
use std::path::Path;
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn batch(events: u64) -> Batch {
    let mut batch = Batch::new();
    (0..events).for_each(|n| batch.push(1, n as i64, b"event"));
    batch
}

fn new(id: &str, events: u64) -> NewSession {
    let mut events = batch(events);
    events.update_index(IndexUpdate {
        updated_ms: 9,
        ended: Some(true),
        owner: Some(None),
        ..IndexUpdate::default()
    });
    NewSession { id: id.into(), owner: "host".into(), events, info: b"info".into(), ..NewSession::default() }
}

/// Rows of a table.
fn count(dir: &TempDir, table: &str) -> i64 {
    let file = Connection::open(crate::index(dir.path())).expect("a database");
    file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("a table")
}

/// How many pieces all sessions are in.
fn pieces(dir: &TempDir) -> i64 {
    files_below(&dir.path().join("sessions"))
}

fn files_below(path: &Path) -> i64 {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.map(|entry| files_below(&entry.expect("it is read").path())).sum(),
        Err(_) => 1,
    }
}

/// Pieces of what is not whole, and of what is gone.
fn left_over(dir: &TempDir) -> i64 {
    count(dir, "garbage") + files_below(&dir.path().join("sessions/.new"))
}

/// Waits until what belongs to no session is gone.
async fn cleaned(log: &EventLog, dir: &TempDir) {
    while left_over(dir) > 0 {
        // Whatever was queued before is done then.
        log.check().await.expect("it can be written");
        tokio::task::yield_now().await;
    }
}

async fn begun(log: &EventLog, owner: &str) -> Partial {
    let mut partial = log.begin_partial(owner).await.expect("room on the disk");
    partial.append(batch(3)).await.expect("room on the disk");
    partial.append(batch(2)).await.expect("room on the disk");
    partial
}

// contract 7.3: all or nothing: it is found when all of it is there, as any other session
#[tokio::test]
async fn a_session_comes_to_be_all_at_once() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let partial = begun(&log, "host").await;
    assert!(log.list(ListQuery::default()).await.unwrap().is_empty());
    assert!(log.get("a").await.unwrap().is_none());
    // What begins meanwhile does not get its number.
    drop(log.create(new("other", 1)).await.unwrap());
    partial.finish(new("a", 2)).await.unwrap();
    let row = log.get("a").await.unwrap().expect("it is there");
    assert_eq!((row.last_seq, row.ended, row.owner, row.updated_ms), (7, true, None, 9));
    assert_eq!(row.info, b"info");
    for (id, events) in [("a", 7), ("other", 1)] {
        let mut cursor = log.cursor(id, 0).await.unwrap();
        let mut seen = Vec::new();
        while let Some(block) = cursor.next().await.unwrap() {
            seen.extend(block.events().map(|event| event.seq));
        }
        assert_eq!(seen, (1..=events).collect::<Vec<u64>>());
    }
    let mut appender = log.reopen("a", "host").await.unwrap();
    assert_eq!(appender.append_durable(batch(1)).await.unwrap(), 8..=8);
    assert_eq!(left_over(&dir), 0);
    log.close().await;
}

// contract 7.3: a known id is refused; nothing is left of what is refused or given up
#[tokio::test]
async fn what_does_not_come_to_be_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut known = log.create(new("a", 1)).await.unwrap();
    let refused = begun(&log, "host").await.finish(new("a", 2)).await;
    assert!(matches!(refused, Err(WriteError::Exists { .. })), "{refused:?}");
    drop(begun(&log, "host").await);
    cleaned(&log, &dir).await;
    assert_eq!(log.indexed("a").await.unwrap(), Some(0), "the index knows it");
    assert_eq!((count(&dir, "session"), count(&dir, "info"), pieces(&dir)), (1, 1, 1));
    assert_eq!(known.append_durable(batch(1)).await.unwrap(), 2..=2);
    log.close().await;
}

// contract 7.3: what a dead host was writing is given up by those that live, and only that
#[tokio::test]
async fn what_a_dead_host_was_writing_is_discarded() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let (dead, alive) = (begun(&log, "dead").await, begun(&log, "alive").await);
    assert_eq!(log.owners().await.unwrap(), ["alive", "dead"]);
    log.discard_partials("dead").await.unwrap();
    assert_eq!(log.owners().await.unwrap(), ["alive"]);
    let late = dead.finish(new("a", 0)).await;
    assert!(matches!(late, Err(WriteError::Conflict { .. })), "{late:?}");
    alive.finish(new("b", 0)).await.unwrap();
    cleaned(&log, &dir).await;
    let sessions = log.list(ListQuery::default()).await.unwrap();
    assert_eq!(sessions.iter().map(|row| (&*row.id, row.last_seq)).collect::<Vec<_>>(), [("b", 5)]);
    assert_eq!(pieces(&dir), 2);
    log.close().await;
}

// contract 6: what is given up takes nothing of the limit
#[tokio::test]
async fn what_is_given_up_makes_room() {
    let dir = TempDir::new().unwrap();
    let options = acpd_eventlog::Options { max_bytes: Some(8 << 20), ..super::options() };
    let log = EventLog::open(dir.path(), options).unwrap();
    for round in 0..4_u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ round;
        let word = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        let noise: Vec<u8> = (0..512 << 10).flat_map(word).collect();
        let mut large = Batch::new();
        large.push(1, 1, &noise);
        let mut partial = log.begin_partial("host").await.unwrap();
        partial.append(large).await.expect("what was before has gone");
        drop(partial);
        cleaned(&log, &dir).await;
    }
    log.close().await;
}
