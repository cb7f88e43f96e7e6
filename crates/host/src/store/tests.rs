//! How much of a log is read for what a session is: counted, not timed.

use super::*;
use crate::checkpoints::LONG;
use acpd_eventlog::{Appender, Batch, IndexUpdate, NewSession, Options};
use acpd_record::{Position, StderrInfo};
use std::path::PathBuf;
use tempfile::TempDir;

const MANY: u64 = 200_000;

struct Stored {
    dir: TempDir,
    store: SessionStore,
    id: SessionId,
    meta: SessionMeta,
    /// What a fold over all of it comes to.
    folded: Projection,
}

/// Event `seq` of a session that does a little of everything.
fn event(seq: u64) -> (u16, String) {
    match (seq, seq % 1000) {
        (1, _) => (1, r#"{"agent":"a","cwd":"/"}"#.to_owned()),
        (2, _) => (2, r#"{"pid":1,"state":{"modes":{"currentModeId":"a"}}}"#.to_owned()),
        (_, 3) => (3, format!(r#"{{"turn":{},"via":"v","prompt":[]}}"#, seq / 1000 + 1)),
        (_, 4) => (12, format!(r#"{{"request":{seq},"message":{{"id":{seq}}}}}"#)),
        (_, 5) => {
            let update = format!(r#"{{"sessionUpdate":"plan","entries":[{seq}]}}"#);
            (4, format!(r#"{{"params":{{"update":{update}}}}}"#))
        }
        (_, 999) => (6, format!(r#"{{"turn":{},"stopReason":"end_turn"}}"#, seq / 1000 + 1)),
        _ => (4, r#"{"params":{"update":{"sessionUpdate":"agent_message_chunk","content":{}}}}"#.to_owned()),
    }
}

impl Stored {
    async fn with(events: u64) -> Self {
        let dir = TempDir::new().expect("a directory");
        let log = EventLog::open(dir.path(), Options::default()).expect("it can be used");
        let store = SessionStore::new(log, HostFile::create(dir.path()).expect("it can be used"));
        let (id, meta) = (SessionId::parse("long").expect("an id"), SessionMeta::default());
        let new = NewSession { id: id.to_string(), owner: "host".into(), ..NewSession::default() };
        let appender = store.log.create(new).await.expect("it is new");
        let mut stored = Self { dir, store, id, meta, folded: Projection::default() };
        stored.append(appender, events).await;
        stored
    }

    /// Adds events; no host has the session then.
    async fn append(&mut self, mut appender: Appender, events: u64) {
        let last = self.folded.last_seq() + events;
        while self.folded.last_seq() < last {
            let mut batch = Batch::new();
            for seq in (self.folded.last_seq() + 1..=last).take(500) {
                let (kind, payload) = event(seq);
                batch.push(kind, seq as i64, payload.as_bytes());
                self.folded.see(Position { seq, at_ms: seq as i64 }, kind, payload.as_bytes());
            }
            appender.append_durable(batch).await.expect("room on the disk");
        }
        let released = IndexUpdate { owner: Some(None), ..IndexUpdate::default() };
        appender.append_final(Batch::index_only(released)).await.expect("room on the disk");
        assert_eq!(self.folded.skipped(), 0, "a legal log");
    }

    /// Where the log keeps checkpoints.
    fn database(&self) -> PathBuf {
        self.dir.path().join("index-1.db")
    }

    async fn grow(&mut self, events: u64) {
        let appender = self.store.log.reopen(self.id.as_str(), "host").await.expect("it is free");
        self.append(appender, events).await;
    }

    /// What is recalled, and how many events were read for it.
    async fn recalled(&self) -> (Projection, u64) {
        let (last, mut read) = (self.folded.last_seq(), 0);
        let known = checkpoints::find(&self.store.log, &self.id, last).await.unwrap_or_default();
        let recalled = self.store.go_on(&self.id, known, last, |_| read += 1).await.expect("readable");
        assert_eq!(self.store.recall(&self.id, &self.meta, last).await.expect("readable"), recalled);
        (recalled, read)
    }

    /// Waits for the checkpoint at an event.
    async fn kept(&self, seq: u64) {
        while checkpoints::find(&self.store.log, &self.id, seq)
            .await
            .is_none_or(|found| found.last_seq() != seq)
        {
            tokio::task::yield_now().await;
        }
    }
}

// design 1: a long session is opened from its checkpoint on
#[tokio::test]
async fn a_long_log_is_read_once() {
    let mut stored = Stored::with(MANY).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), MANY));
    stored.kept(MANY).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), 0));
    stored.grow(50).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), 50));
    // What was written since is not worth another.
    stored.kept(MANY).await;
    stored.grow(LONG).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), LONG + 50));
    stored.kept(MANY + LONG + 50).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), 0));
}

// ADR 0012: a reader who needs each event gets each
#[tokio::test]
async fn a_transcript_needs_every_event() {
    let stored = Stored::with(LONG).await;
    stored.recalled().await;
    stored.kept(LONG).await;
    let mut seen = 0;
    let each = stored.store.recall_each(&stored.id, &stored.meta, LONG, |_| seen += 1).await;
    assert_eq!((each.expect("readable"), seen), (stored.folded.clone(), LONG));
}

// ADR 0012: a checkpoint that cannot be used costs time and nothing else, and another takes its place
#[tokio::test]
async fn a_checkpoint_that_is_not_its_own_is_not_used() {
    let stored = Stored::with(LONG).await;
    stored.recalled().await;
    stored.kept(LONG).await;
    let good = stored.store.log.checkpoint("long", LONG).await.expect("readable").expect("it is kept").bytes;
    let other = SessionId::parse("other").expect("an id");
    let other = stored.folded.to_checkpoint(&other, usize::MAX).expect("it is small");
    let mut of_another_version = good.clone();
    of_another_version[0] ^= 1;
    let file = rusqlite::Connection::open(stored.database()).expect("a database");
    for (wrong, seq, bytes) in [
        ("truncated", LONG, good[..good.len() / 2].to_vec()),
        ("empty", LONG, Vec::new()),
        ("garbage", LONG, vec![0x5a; good.len()]),
        ("of another version", LONG, of_another_version),
        ("of another session", LONG, other),
        ("of another event", LONG - 1, good.clone()),
        ("ahead of the log", LONG + 1, good.clone()),
    ] {
        let mut read = 0;
        // A good one that was on its way may be written over it.
        for _ in 0..3 {
            let changed = file.execute("UPDATE checkpoint SET seq = ?1, bytes = ?2", (seq as i64, &bytes));
            assert_eq!(changed.expect("it can be written"), 1);
            let recalled = stored.recalled().await;
            assert_eq!(recalled.0, stored.folded, "{wrong}");
            read = recalled.1;
            if read == LONG {
                break;
            }
        }
        assert_eq!(read, LONG, "{wrong}");
        stored.kept(LONG).await;
        assert_eq!(stored.recalled().await, (stored.folded.clone(), 0), "{wrong}");
    }
    file.execute("DELETE FROM checkpoint", ()).expect("it can be written");
    assert_eq!(stored.recalled().await, (stored.folded.clone(), LONG));
}

// ADR 0012: a short log has none
#[tokio::test]
async fn a_short_log_is_read_as_a_whole() {
    let mut stored = Stored::with(LONG - 1).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), LONG - 1));
    checkpoints::keep(&stored.store.log, &stored.id, &stored.folded);
    stored.grow(1).await;
    assert_eq!(stored.recalled().await, (stored.folded.clone(), LONG));
    stored.kept(LONG).await;
}

// contract 1.2: the text of stderr comes from the event, and where that cannot be read the rest still does
#[tokio::test]
async fn the_index_sends_for_stderr() {
    let stored = Stored::with(2).await;
    let appender = stored.store.log.reopen(stored.id.as_str(), "host").await.expect("it is free");
    let stderr = StderrInfo { head: Some("why".into()), tail: None, truncated: false, total_lines: 1 };
    let info = TerminationInfo { stderr: Some(stderr), last_event_seq: Some(2), ..Default::default() };
    let (mut meta, mut batch) = (SessionMeta::default(), Batch::new());
    meta.ended(&info);
    recording::push(&mut batch, 3, &Event::Ended(Box::new(info.clone())));
    batch.update_index(IndexUpdate { info: Some(meta.write()), ended: Some(true), ..IndexUpdate::default() });
    appender.append_final(batch).await.expect("room on the disk");
    let row = stored.store.row(&stored.id).await.expect("it is there");
    assert!(!String::from_utf8_lossy(&row.info).contains("why"));
    let whole = stored.store.whole_meta(&stored.id, &row).await;
    assert_eq!(whole.termination().expect("it is readable"), info);
    for seq in [1, 2, 9] {
        let odd = TerminationInfo { last_event_seq: Some(seq - 1), ..info.without_stderr_text() };
        let end = stored.store.whole_end(&stored.id, Json::new(&odd)).await;
        assert_eq!(end.get(), Json::new(&odd).get(), "event {seq} is no end");
    }
    // As earlier versions stored it, or a later one may.
    for other in [Json::new(&info), Json::new(&[1])] {
        assert_eq!(stored.store.whole_end(&stored.id, other.clone()).await.get(), other.get());
    }
}
