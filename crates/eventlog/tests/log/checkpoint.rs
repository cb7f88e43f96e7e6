//! Checkpoints of sessions: kept beside the log, and never more than it.

use acpd_eventlog::{Appender, Batch, Checkpoint, EventLog, IndexUpdate, NewSession, Options};
use rusqlite::Connection;
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

async fn session(log: &EventLog, id: &str, events: u64) -> Appender {
    let new = NewSession { id: id.into(), owner: "host".into(), ..NewSession::default() };
    let mut appender = log.create(new).await.expect("a new session");
    let mut batch = Batch::new();
    for n in 0..events {
        batch.push(1, n as i64, b"event");
    }
    appender.append_durable(batch).await.expect("room on the disk");
    appender
}

fn at(seq: u64, bytes: &[u8]) -> Checkpoint {
    Checkpoint { seq, bytes: bytes.to_vec() }
}

/// Waits until the writer has nothing else to do.
async fn kept(log: &EventLog, id: &str, seq: u64) -> Checkpoint {
    loop {
        match log.checkpoint(id, u64::MAX >> 1).await.expect("readable") {
            Some(found) if found.seq == seq => return found,
            _ => tokio::task::yield_now().await,
        }
    }
}

/// The stored rows, whatever they are.
fn rows(dir: &TempDir) -> i64 {
    let file = Connection::open(crate::index(dir.path())).expect("a database");
    file.query_row("SELECT count(*) FROM checkpoint", [], |row| row.get(0)).expect("a table")
}

// ADR 0012: the latest counts, and one is of use up to its own event only
#[tokio::test]
async fn a_session_has_one_checkpoint() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let _live = session(&log, "a", 9).await;
    assert_eq!(log.checkpoint("a", 9).await.unwrap(), None);
    log.keep_checkpoint("a", at(4, b"four"));
    log.keep_checkpoint("a", at(8, b"eight"));
    assert_eq!(kept(&log, "a", 8).await, at(8, b"eight"));
    assert_eq!(log.checkpoint("a", 8).await.unwrap(), Some(at(8, b"eight")));
    assert_eq!(log.checkpoint("a", 7).await.unwrap(), None);
    assert_eq!(log.checkpoint("b", 9).await.unwrap(), None);
    assert_eq!(rows(&dir), 1);
}

// ADR 0012: no checkpoint stands for an event that a crash could take away
#[tokio::test]
async fn a_checkpoint_is_never_ahead_of_the_log() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let _live = session(&log, "a", 9).await;
    log.keep_checkpoint("a", at(10, b"ahead"));
    log.keep_checkpoint("unknown", at(1, b"of none"));
    log.keep_checkpoint("a", at(9, b"nine"));
    assert_eq!(kept(&log, "a", 9).await.bytes, b"nine");
    assert_eq!(rows(&dir), 1);
}

// ADR 0012: what waits is written before the log is closed, and found when it is opened again
#[tokio::test]
async fn checkpoints_that_wait_are_written_at_the_end() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for id in ["a", "b", "c"] {
        drop(session(&log, id, 3).await);
        log.keep_checkpoint(id, at(3, id.as_bytes()));
    }
    log.close().await;
    let log = open(&dir);
    assert_eq!(log.checkpoint("b", 3).await.unwrap(), Some(at(3, b"b")));
    assert_eq!(rows(&dir), 3);
}

// contract 1: a session that is deleted leaves nothing; a late checkpoint does not bring it back
#[tokio::test]
async fn a_checkpoint_goes_with_its_session() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let (gone, _stays) = (session(&log, "a", 3).await, session(&log, "b", 3).await);
    log.keep_checkpoint("a", at(3, b"a"));
    log.keep_checkpoint("b", at(2, b"b"));
    kept(&log, "b", 2).await;
    let released =
        IndexUpdate { updated_ms: 9, ended: Some(true), owner: Some(None), ..IndexUpdate::default() };
    gone.append_final(Batch::index_only(released)).await.unwrap();
    log.delete("a", "host").await.unwrap();
    log.keep_checkpoint("a", at(3, b"late"));
    log.keep_checkpoint("b", at(3, b"b"));
    kept(&log, "b", 3).await;
    assert_eq!((log.checkpoint("a", 3).await.unwrap(), rows(&dir)), (None, 1));
}

// ADR 0012: what cannot be written is dropped, and the log is as before
#[tokio::test]
async fn a_checkpoint_that_does_not_fit_is_dropped() {
    let dir = TempDir::new().unwrap();
    let options = Options { max_bytes: Some(512 * 1024), ..super::options() };
    let log = EventLog::open(dir.path(), options).unwrap();
    let mut live = session(&log, "a", 3).await;
    log.keep_checkpoint("a", at(1, &[b'x'; 600 * 1024]));
    log.keep_checkpoint("a", at(1, &vec![b'x'; 17 * 1024 * 1024]));
    log.keep_checkpoint("a", at(2, b"small"));
    assert_eq!(kept(&log, "a", 2).await.bytes, b"small");
    let mut batch = Batch::new();
    batch.push(1, 1, b"event");
    assert_eq!(live.append_durable(batch).await.unwrap(), 4..=4);
    log.check().await.unwrap();
}
