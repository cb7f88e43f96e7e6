//! Removing what has ended: which sessions go, who learns of it, and what the index gives back.

use acpd_eventlog::{
    Batch, Checkpoint, CursorError, EventLog, IndexUpdate, NewSession, StoredSize, Unchanged, WriteError,
};
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn new(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "host".into(), created_ms: 1, ..NewSession::default() }
}

fn released(updated_ms: i64) -> Batch {
    let (ended, owner) = (Some(true), Some(None));
    Batch::index_only(IndexUpdate { updated_ms, ended, owner, ..IndexUpdate::default() })
}

/// Bytes that no packing makes fewer.
fn noise(bytes: usize, mut state: u64) -> Vec<u8> {
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// A session that ended at a time, with so many events of 100 KiB.
async fn ended(log: &EventLog, id: &str, updated_ms: i64, events: u64) {
    let mut appender = log.create(new(id)).await.expect("a new session");
    for seq in 0..events {
        let mut batch = Batch::new();
        batch.push(1, 1, &noise(100 << 10, 1 + seq));
        appender.append_durable(batch).await.expect("room on the disk");
    }
    appender.append_final(released(updated_ms)).await.expect("room on the disk");
}

fn sizes(found: &[StoredSize]) -> Vec<(&str, bool, u64)> {
    found.iter().map(|found| (&*found.session.id, found.session.ended, found.bytes / (100 << 10))).collect()
}

// contract 7.3: what was taken up since it was chosen survives, whether it has ended again or not
#[tokio::test]
async fn only_what_ended_and_has_not_changed_is_deleted() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for id in ["gone", "later", "again", "live"] {
        ended(&log, id, 5, 1).await;
    }
    let seen = Unchanged { last_seq: 1, updated_ms: 5 };
    let mut appender = log.reopen("again", "host").await.unwrap();
    let mut batch = Batch::new();
    batch.push(1, 1, b"event");
    appender.append_durable(batch).await.unwrap();
    appender.append_final(released(5)).await.unwrap();
    let live = log.reopen("live", "host").await.unwrap();
    log.append_to("later", None, "next", released(6)).await.unwrap();
    for (id, deleted) in
        [("later", false), ("again", false), ("live", false), ("gone", true), ("gone", false)]
    {
        assert_eq!(log.delete_ended(id, "host", seen).await.unwrap(), deleted, "{id}");
    }
    // Of another process.
    assert!(!open(&dir).delete_ended("live", "host", seen).await.unwrap());
    drop(live);
    assert!(!log.delete_ended("live", "host", seen).await.unwrap(), "its host may be about to end it");
    let left: Vec<String> =
        log.list(Default::default()).await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(left, ["later", "again", "live"]);
}

// contract 7.3: removed sessions are unknown at once, also to those that were reading, who are told
#[tokio::test]
async fn readers_learn_of_a_removal() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    ended(&log, "a", 5, 40).await;
    log.close().await;
    // What was written just now is in memory.
    let log = open(&dir);
    let (mut behind, mut done) = (log.cursor("a", 0).await.unwrap(), log.cursor("a", 0).await.unwrap());
    assert!(behind.next().await.unwrap().is_some());
    while done.next().await.unwrap().is_some() {}
    let (presence, seen) = (done.presence(), Unchanged { last_seq: 40, updated_ms: 5 });
    drop(done);
    let ((), deleted) = tokio::join!(presence.over(), log.delete_ended("a", "host", seen));
    assert!(deleted.unwrap());
    behind.presence().over().await;
    let unread = async {
        while behind.next().await?.is_some() {}
        Ok::<_, CursorError>(())
    };
    assert!(matches!(unread.await, Err(CursorError::Unknown { .. })));
    assert!(matches!(log.delete("a", "host").await, Err(WriteError::Unknown { .. })));
}

// contract 7.2: the oldest first, live ones too, each with what its blocks take
#[tokio::test]
async fn sizes_are_those_of_the_blocks() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    ended(&log, "b", 7, 3).await;
    ended(&log, "a", 7, 1).await;
    ended(&log, "old", 6, 2).await;
    let _live = log.create(NewSession { created_ms: 8, ..new("live") }).await.unwrap();
    let all = log.sizes(None, 10).await.unwrap();
    assert_eq!(sizes(&all), [("old", true, 2), ("a", true, 1), ("b", true, 3), ("live", false, 0)]);
    let page = log.sizes(Some((7, "a".into())), 1).await.unwrap();
    assert_eq!(sizes(&page), [("b", true, 3)]);
    let (blocks, used): (u64, u64) = (all.iter().map(|one| one.bytes).sum(), log.used_bytes().await.unwrap());
    assert!(blocks >= 600 << 10 && used >= blocks && used < 2 * blocks, "{blocks} of {used}");
}

/// A session that ended, of which the index has so much more: 8 MiB.
async fn ended_with_checkpoint(log: &EventLog, id: &str) {
    ended(log, id, 5, 1).await;
    log.keep_checkpoint(id, Checkpoint { seq: 1, bytes: noise(8 << 20, 7) });
    while log.checkpoint(id, 1).await.expect("it is read").is_none() {
        tokio::task::yield_now().await;
    }
}

fn length(dir: &std::path::Path) -> u64 {
    std::fs::metadata(crate::index(dir)).map_or(0, |found| found.len())
}

/// Deletes a session, also in the index.
async fn delete(log: &EventLog, id: &str) {
    log.delete(id, "host").await.expect("it is there");
    log.used_bytes().await.expect("the index is written first");
}

// issue 11, deliver: the index becomes smaller, also when a process that removed was killed in the middle
#[tokio::test]
async fn the_index_shrinks() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for id in ["first", "second", "third"] {
        ended_with_checkpoint(&log, id).await;
    }
    log.close().await;
    let full = length(dir.path());
    let log = open(&dir);
    delete(&log, "first").await;
    log.reclaim().await.unwrap();
    let one_less = length(dir.path());
    assert!(one_less < full - (6 << 20), "{full} became {one_less}");
    // What was not given back when the process ends, the next one gives back by itself.
    delete(&log, "second").await;
    log.close().await;
    let log = open(&dir);
    let shrunk = async {
        while length(dir.path()) > full - (13 << 20) {
            log.get("third").await.unwrap();
        }
    };
    let shrunk = tokio::time::timeout(std::time::Duration::from_secs(60), shrunk);
    shrunk.await.expect("it shrinks when there is nothing to do");
    assert_eq!(sizes(&log.sizes(None, 9).await.unwrap()), [("third", true, 1)]);
}

// issue 11, deliver: a reader that is there at that moment does not keep the index as long as it was
#[tokio::test]
async fn the_index_shrinks_beside_a_reader() {
    // It is waited for no longer than a moment, which a busy machine may take for itself.
    for _ in 0..10 {
        let (before, after) = shrink_beside_a_reader().await;
        if after < before - (6 << 20) {
            return;
        }
    }
    panic!("it stays as long as it was");
}

/// How long the index was before and after a session's room is given back, while a reader sees it as it was until then.
async fn shrink_beside_a_reader() -> (u64, u64) {
    let dir = TempDir::new().expect("a directory");
    let log = open(&dir);
    ended_with_checkpoint(&log, "first").await;
    log.close().await;
    let before = length(dir.path());
    let log = open(&dir);
    let free = |reader: &rusqlite::Connection| {
        reader.pragma_query_value(None, "freelist_count", |row| row.get::<_, u64>(0)).expect("it says so")
    };
    let open_reader = || rusqlite::Connection::open(crate::index(dir.path())).expect("it opens");
    let (reader, looks) = (open_reader(), open_reader());
    reader.execute_batch("BEGIN").expect("it begins");
    assert_eq!(free(&reader), 0);
    let is_done = std::cell::Cell::new(false);
    let reclaims = async {
        delete(&log, "first").await;
        log.reclaim().await.expect("it is written");
        is_done.set(true);
    };
    let lets_go = async {
        let mut most = 0;
        while !is_done.get() && (most <= 128 || free(&looks) > 128) {
            most = most.max(free(&looks));
            tokio::task::yield_now().await;
        }
        reader.execute_batch("COMMIT").expect("it ends");
    };
    tokio::join!(reclaims, lets_go);
    (before, length(dir.path()))
}
