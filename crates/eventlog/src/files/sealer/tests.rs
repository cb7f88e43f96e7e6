//! Sealing in a log that goes on meanwhile, and what keeps a session from being sealed.

use super::*;
use crate::files::UpkeepOptions;
use crate::notes::{self, SessionNotes};
use crate::outbox::Subscriber;
use crate::schema;
use crate::session_files::{FailPoint, failing_at, layout};
use crate::{Appender, Batch, Cursor, CursorError, EventLog, IndexUpdate, NewSession, Options};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const DONE: &str = "it is done";
/// Longer than anything here takes; only a hang reaches it.
const HANG: Duration = Duration::from_secs(120);
/// Longer than any test.
const NEVER: Duration = Duration::from_secs(100_000);
const EVENT_BYTES: usize = 3000;

fn open(dir: &Path, seal_after: Duration) -> EventLog {
    let options = Options {
        // Readers take what they read from the files.
        cache_bytes: 1,
        max_bytes: Some(1 << 40),
        ..Options::default()
    };
    EventLog::open_with(dir, options, UpkeepOptions { seal_after, ..UpkeepOptions::default() })
        .expect("it opens")
}

fn new(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "host".into(), created_ms: 1, ..NewSession::default() }
}

/// So many events, each with its number.
async fn append(appender: &mut Appender, events: u64) {
    for _ in 0..events {
        let seq = appender.next_seq();
        let mut payload = vec![b'x'; EVENT_BYTES];
        payload.extend(seq.to_le_bytes());
        let mut batch = Batch::new();
        batch.push(6, 1, &payload);
        assert_eq!(appender.append_durable(batch).await.expect(DONE), seq..=seq);
    }
}

async fn release(appender: Appender, updated_ms: i64) {
    let (ended, owner) = (Some(true), Some(None));
    let index = IndexUpdate { updated_ms, ended, owner, ..IndexUpdate::default() };
    appender.append_final(Batch::index_only(index)).await.expect(DONE);
}

/// A session with so many events that has ended.
async fn ended(log: &EventLog, id: &str, updated_ms: i64, events: u64) {
    let mut appender = log.create(new(id)).await.expect(DONE);
    append(&mut appender, events).await;
    release(appender, updated_ms).await;
}

fn path(dir: &Path, id: &str) -> PathBuf {
    layout::session(&layout::sessions(dir), id)
}

fn names(dir: &Path, id: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(path(dir, id)).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

fn bytes(dir: &Path, id: &str) -> u64 {
    let lengths = names(dir, id).into_iter().map(|name| fs::metadata(path(dir, id).join(name)));
    lengths.map(|found| found.map_or(0, |found| found.len())).sum()
}

async fn until(what: &str, mut look: impl AsyncFnMut() -> bool) {
    // The thread that is waited for has the lowest priority.
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    let looks = async {
        while !look().await {
            ticks.tick().await;
        }
    };
    assert!(tokio::time::timeout(HANG, looks).await.is_ok(), "{what}");
}

async fn until_named(dir: &Path, id: &str, expected: &[&str]) {
    until(&format!("{id} becomes {expected:?}"), async || names(dir, id).iter().eq(expected)).await;
}

/// Reads the next block and checks that nothing is missing, doubled or changed. False: there is none.
async fn read_on(cursor: &mut Cursor) -> Result<bool, CursorError> {
    let mut expected = cursor.position() + 1;
    let Some(block) = tokio::time::timeout(HANG, cursor.next()).await.expect("no hang")? else {
        return Ok(false);
    };
    for event in block.events() {
        let number = event.payload.last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        assert_eq!((event.seq, number), (expected, Some(expected)));
        expected += 1;
    }
    Ok(true)
}

async fn read_through(cursor: &mut Cursor, last: u64) {
    while cursor.position() < last {
        assert!(read_on(cursor).await.expect("it is read"), "{} of {last}", cursor.position());
    }
}

/// What the log believes that the files take.
fn counted(log: &EventLog) -> u64 {
    let files = &log.shared.files;
    let used = files.limit.as_ref().map(|limit| limit.used.load(std::sync::atomic::Ordering::Relaxed));
    used.expect("it has a limit").unsigned_abs()
}

// issue 29; design session-files 5, 6, 7: a session is sealed while a slow cursor and a follower read it and while it is resumed;
// neither misses an event or has one twice, no resume fails, and its size is right in the index and for the limit
#[tokio::test]
async fn a_session_is_sealed_behind_those_that_use_it() {
    let dir = TempDir::new().expect("a directory");
    let log = open(dir.path(), Duration::ZERO);
    let mut appender = log.create(new("a")).await.expect(DONE);
    append(&mut appender, 1000).await;
    let mut slow = log.cursor("a", 0).await.expect(DONE);
    assert!(read_on(&mut slow).await.expect(DONE) && slow.position() < 1000);
    release(appender, 5).await;
    // Before or behind the seal of the first segment.
    let mut appender = log.reopen("a", "host").await.expect("a resume waits for no seal");
    let mut follower = log.cursor("a", 0).await.expect(DONE);
    read_through(&mut follower, 300).await;
    until_named(dir.path(), "a", &["1-1.seal", "2.log"]).await;
    read_through(&mut slow, 1000).await;
    assert!(!read_on(&mut slow).await.expect(DONE));
    append(&mut appender, 1000).await;
    read_through(&mut follower, 2000).await;
    release(appender, 6).await;
    for round in 0..20 {
        let mut appender = log.reopen("a", "host").await.expect("a resume waits for no seal");
        append(&mut appender, 10).await;
        release(appender, 7 + round).await;
    }
    until("all of it is sealed", async || names(dir.path(), "a").iter().all(|name| name.ends_with(".seal")))
        .await;
    let mut again = log.cursor("a", 0).await.expect(DONE);
    read_through(&mut again, 2200).await;
    until("the index has its size", async || {
        let sizes = log.sizes(None, 10).await.expect(DONE);
        (sizes.len(), sizes[0].bytes) == (1, bytes(dir.path(), "a"))
    })
    .await;
    assert_eq!(counted(&log), bytes(dir.path(), "a"));
    assert!(bytes(dir.path(), "a") < 300_000, "of 6.6 MB");
    assert_eq!(log.used_bytes().await.expect(DONE), bytes(dir.path(), "a"));
    log.close().await;
}

// issue 29: what an earlier process has left is sealed, but for what is not worth it and what a host has
#[tokio::test]
async fn what_was_left_is_sealed_after_a_start() {
    let dir = TempDir::new().expect("a directory");
    let log = open(dir.path(), NEVER);
    ended(&log, "large", 5, 20).await;
    ended(&log, "small", 6, 2).await;
    let mut left = log.create(new("left")).await.expect(DONE);
    append(&mut left, 20).await;
    drop(left);
    ended(&log, "last", 7, 20).await;
    log.close().await;
    let log = open(dir.path(), Duration::ZERO);
    until_named(dir.path(), "last", &["1-1.seal"]).await;
    assert_eq!(
        ["large", "small", "left"].map(|id| names(dir.path(), id).into_iter().next()),
        [Some("1-1.seal".to_owned()), Some("1.log".to_owned()), Some("1.log".to_owned())]
    );
    let index = || schema::open_reader(&dir.path().join("index-1.db")).expect("it opens");
    until("the index knows it", async || {
        log.sizes(None, 1).await.expect(DONE);
        let unsealed = index().query_row(
            "SELECT count(*) FROM session WHERE owner IS NULL AND unsealed = 1",
            [],
            |row| row.get::<_, u32>(0),
        );
        unsealed.expect(DONE) == 0
    })
    .await;
    log.close().await;
}

/// A log that seals nothing by itself, and what seals its sessions here.
fn sealer(dir: &Path) -> (EventLog, Sealer) {
    let log = open(dir, NEVER);
    let shared = &log.shared;
    let files = Arc::clone(&shared.files);
    let databases = (dir.join("index-1.db"), dir.join("hooks.db"));
    let sealer = Sealer::new(files, Arc::clone(&shared.live), Arc::clone(&shared.queue), databases);
    (log, sealer)
}

// issue 29: on a full disk nothing is lost, and it is tried again
#[tokio::test]
async fn a_full_disk_is_waited_for() {
    let dir = TempDir::new().expect("a directory");
    let (log, sealer) = sealer(dir.path());
    ended(&log, "a", 5, 20).await;
    for point in [FailPoint::HalfSealed, FailPoint::Sealed] {
        let seal = || sealer.seal_session("a", Some(20));
        assert_eq!(failing_at(point, std::io::ErrorKind::StorageFull, seal), Outcome::Full);
        assert!(names(dir.path(), "a").iter().eq(["1.log"]), "{point:?}");
        read_through(&mut log.cursor("a", 0).await.expect(DONE), 20).await;
    }
    assert_eq!(sealer.seal_session("a", Some(20)), Outcome::Done);
    assert!(names(dir.path(), "a").iter().eq(["1-1.seal"]));
    log.close().await;
}

// issue 29; design session-files 8: damage is not sealed over: what stands before it is read as before, and it is logged once
#[tokio::test]
async fn a_damaged_session_stays_as_it_is() {
    let dir = TempDir::new().expect("a directory");
    let (log, sealer) = sealer(dir.path());
    ended(&log, "a", 5, 20).await;
    let file = path(dir.path(), "a").join("1.log");
    let mut damaged = fs::read(&file).expect(DONE);
    damaged[10 * (EVENT_BYTES + 100)] ^= 1;
    fs::write(&file, &damaged).expect(DONE);
    for _ in 0..2 {
        assert_eq!(sealer.seal_session("a", Some(20)), Outcome::Done);
        assert!(names(dir.path(), "a").iter().eq(["1.log"]));
        assert_eq!(fs::read(&file).expect(DONE), damaged);
        assert_eq!(*sealer.failed.borrow(), HashSet::from(["a".to_owned()]));
    }
    let mut cursor = log.cursor("a", 0).await.expect(DONE);
    let error = loop {
        match read_on(&mut cursor).await {
            Ok(more) => assert!(more),
            Err(error) => break error,
        }
    };
    let next = cursor.position() + 1;
    assert!(
        matches!(error, CursorError::Damaged { seq, .. } if seq == next && (8..=11).contains(&next)),
        "{error:?}"
    );
    log.close().await;
}

// design session-files 7: a session is sealed only when its notes for hooks are written
#[tokio::test]
async fn a_session_without_its_notes_is_not_sealed() {
    let dir = TempDir::new().expect("a directory");
    let (log, sealer) = sealer(dir.path());
    ended(&log, "a", 5, 20).await;
    let mut hooks = notes::open(dir.path(), crate::Durability::Process).expect("it opens").1;
    let is_sealed = |noted| {
        assert_eq!(sealer.seal_session("a", noted), Outcome::Done);
        sealer.backlog.borrow_mut().close();
        names(dir.path(), "a").iter().eq(["1-1.seal"])
    };
    assert!(!is_sealed(Some(19)), "this process has not written them");
    let subscriber = Subscriber { name: "x".into(), kinds: vec![6] };
    notes::subscribe(&mut hooks, "host", &[subscriber], &[]).expect(DONE);
    let noted = |upto| SessionNotes { session: "a".into(), upto, notes: Vec::new() };
    for upto in [None, Some(19)] {
        upto.into_iter().for_each(|upto| notes::write(&mut hooks, &[noted(upto)]).expect(DONE));
        assert!(!is_sealed(None), "another has not");
    }
    notes::write(&mut hooks, &[noted(20)]).expect(DONE);
    assert!(is_sealed(None));
    log.close().await;
}

// issue 29: of two processes one reads the index for what was left; the other's death leaves it to the next
#[tokio::test]
async fn one_process_reads_what_was_left() {
    let dir = TempDir::new().expect("a directory");
    let log = open(dir.path(), NEVER);
    for (id, updated_ms) in [("c", 5), ("a", 6), ("b", 6), ("young", 7)] {
        ended(&log, id, updated_ms, 20).await;
    }
    log.sizes(None, 1).await.expect(DONE);
    let backlog = || Backlog::new(dir.path(), dir.path().join("index-1.db"), dir.path().join("hooks.db"));
    let (mut one, mut other) = (backlog(), backlog());
    assert_eq!(one.read(6).expect(DONE), ["c", "a", "b"], "oldest first");
    assert_eq!(other.read(6).expect(DONE), Vec::<String>::new());
    drop(one);
    assert_eq!(other.read(6).expect(DONE), ["c", "a", "b"]);
    assert_eq!(other.read(6).expect(DONE), Vec::<String>::new(), "behind the last");
    assert_eq!(backlog().read(6).expect(DONE).len(), 3, "and it holds the others back no longer");
    log.close().await;
}
