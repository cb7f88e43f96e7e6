//! Sessions that get another id: what comes along, who learns of it, and what is refused.

use acpd_eventlog::{
    Batch, Checkpoint, CursorError, EventLog, IndexUpdate, NewSession, Renamed, SearchQuery,
    SearchText, Subscriber, TurnText, Unchanged, WriteError,
};
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn events(count: u64, payload: &[u8]) -> Batch {
    let mut batch = Batch::new();
    (0..count).for_each(|_| batch.push(4, 1, payload));
    batch
}

/// A session with these events that ended at time 5.
async fn ended(log: &EventLog, id: &str, events: impl IntoIterator<Item = Batch>) {
    let new = NewSession { id: id.into(), owner: "host".into(), info: id.into(), ..NewSession::default() };
    let mut appender = log.create(new).await.expect("a new session");
    for batch in events {
        appender.append_durable(batch).await.expect("room on the disk");
    }
    let (ended, owner) = (Some(true), Some(None));
    let over = IndexUpdate { updated_ms: 5, ended, owner, ..IndexUpdate::default() };
    appender.append_final(Batch::index_only(over)).await.expect("room on the disk");
}

fn seen(last_seq: u64) -> Unchanged {
    Unchanged { last_seq, updated_ms: 5 }
}

fn renamed(id: &str) -> Renamed {
    Renamed { id: id.into(), info: b"renamed".to_vec(), at_ms: 7 }
}

async fn found(log: &EventLog, word: &str) -> Vec<(String, u64)> {
    let text = SearchText::parse(word).expect("a word");
    let query = SearchQuery { text, created_by: None, after: None, limit: 10 };
    let hits = log.search(query).await.expect("readable");
    hits.into_iter().map(|hit| (hit.session.id, hit.seq)).collect()
}

/// Each payload of a session.
async fn payloads(log: &EventLog, id: &str) -> Vec<Vec<u8>> {
    let mut cursor = log.cursor(id, 0).await.expect("it is there");
    let mut all = Vec::new();
    while let Some(block) = cursor.next().await.expect("readable") {
        all.extend(block.events().map(|event| event.payload.to_vec()));
    }
    all
}

/// The events that a checkpoint of a session stands for, when the writer has nothing else to do.
async fn kept(log: &EventLog, id: &str) -> u64 {
    loop {
        match log.checkpoint(id, 100).await.expect("readable") {
            Some(checkpoint) => return checkpoint.seq,
            None => tokio::task::yield_now().await,
        }
    }
}

// design fleet, partition: all that belongs to a session comes along, and its old id is free for one that begins anew
#[tokio::test]
async fn all_of_a_session_comes_along() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    log.subscribe(vec![Subscriber { name: "hook".to_owned(), kinds: vec![4] }]).await.unwrap();
    ended(&log, "old", [events(3, b"first")]).await;
    let turns = vec![TurnText { seq: 1, at_ms: 1, text: "parser".to_owned() }];
    assert!(log.index("old", (0, 3), turns).await.unwrap());
    log.keep_checkpoint("old", Checkpoint { seq: 3, bytes: b"state".to_vec() });
    // It may wait still, and is of this session all the same.
    assert!(log.rename("old", "host", seen(3), renamed("new")).await.unwrap());
    assert!(log.get("old").await.unwrap().is_none());
    ended(&log, "old", [events(5, b"second")]).await;
    assert_eq!(kept(&log, "new").await, 3);
    assert_eq!(log.checkpoint("old", 100).await.unwrap(), None);
    let row = log.get("new").await.unwrap().expect("it is there");
    assert_eq!((row.ended, row.owner, row.last_seq, row.updated_ms), (true, None, 3, 7));
    assert_eq!(row.info, b"renamed");
    for log in [log.clone(), open(&dir)] {
        assert_eq!(payloads(&log, "new").await, vec![b"first".to_vec(); 3]);
        assert_eq!(payloads(&log, "old").await, vec![b"second".to_vec(); 5]);
        assert_eq!(found(&log, "parser").await, [("new".to_owned(), 1)]);
    }
    let notes = log.outbox("hook", 0, 10).await.unwrap();
    let notes: Vec<_> = notes.into_iter().map(|note| (note.session, note.seq)).collect();
    let of = |id: &str, upto: u64| (1..=upto).map(|seq| (id.to_owned(), seq)).collect::<Vec<_>>();
    assert_eq!(notes, [of("new", 3), of("old", 5)].concat());
    // Each goes on by itself.
    let mut appender = log.reopen("new", "host").await.unwrap();
    assert_eq!(appender.append_durable(events(1, b"third")).await.unwrap(), 4..=4);
    assert_eq!(payloads(&log, "old").await.len(), 5);
}

// design fleet, partition: who reads under the old id learns that nothing is there any more
#[tokio::test]
async fn readers_learn_of_it() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    ended(&log, "old", std::iter::repeat_n(events(10, &[b'x'; 100 << 10]), 4)).await;
    log.close().await;
    // What was written just now is in memory.
    let log = open(&dir);
    let (mut behind, done) = (log.cursor("old", 0).await.unwrap(), log.cursor("old", 40).await.unwrap());
    assert!(behind.next().await.unwrap().is_some());
    let presence = done.presence();
    let ((), done) = tokio::join!(presence.over(), log.rename("old", "host", seen(40), renamed("new")));
    assert!(done.unwrap());
    behind.presence().over().await;
    let unread = async {
        while behind.next().await?.is_some() {}
        Ok::<_, CursorError>(())
    };
    assert!(matches!(unread.await, Err(CursorError::Unknown { .. })));
    assert_eq!(payloads(&log, "new").await.len(), 40);
}

// design fleet, partition: what has changed since it was seen, is live, or would be two sessions under one id stays as it is
#[tokio::test]
async fn what_is_not_as_it_was_seen_keeps_its_id() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for id in ["changed", "live", "other"] {
        ended(&log, id, [events(2, b"event")]).await;
    }
    let live = log.reopen("live", "host").await.unwrap();
    for (id, was) in [("changed", seen(1)), ("live", seen(2)), ("gone", seen(2))] {
        assert!(!log.rename(id, "host", was, renamed("new")).await.unwrap(), "{id}");
        // Of another process.
        assert!(!open(&dir).rename(id, "host", was, renamed("new")).await.unwrap(), "{id}");
    }
    drop(live);
    let taken = log.rename("changed", "host", seen(2), renamed("other")).await;
    assert!(matches!(taken, Err(WriteError::Exists { ref id }) if id == "other"), "{taken:?}");
    let mut left: Vec<_> = log.list(Default::default()).await.unwrap().into_iter().collect();
    left.sort_by(|a, b| a.id.cmp(&b.id));
    let left: Vec<_> = left.into_iter().map(|row| (row.id, String::from_utf8(row.info).unwrap())).collect();
    let same = |id: &str| (id.to_owned(), id.to_owned());
    assert_eq!(left, [same("changed"), same("live"), same("other")]);
}
