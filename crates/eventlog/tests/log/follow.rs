//! Appending to a session and following it, within one process.

use std::ops::RangeInclusive;
use std::time::Duration;

use acpd_eventlog::{
    Appender, Batch, Cursor, CursorError, EventLog, FormKind, MAX_PAYLOAD_BYTES, NewSession, Options, WriteError,
};
use tempfile::TempDir;

/// Longer than anything here takes; only a hang reaches it.
const HANG: Duration = Duration::from_secs(60);

fn open(dir: &TempDir) -> EventLog {
    open_with_cache(dir, 1 << 20)
}

fn open_with_cache(dir: &TempDir, cache_bytes: usize) -> EventLog {
    EventLog::open(dir.path(), Options { cache_bytes, ..super::options() }).expect("the log opens")
}

fn session(id: &str) -> NewSession {
    NewSession {
        id: id.into(),
        agent: "example".into(),
        cwd: "/w".into(),
        owner: "host".into(),
        created_ms: 1,
        info: b"{}".to_vec(),
        ..NewSession::default()
    }
}

fn numbered(range: RangeInclusive<u64>) -> Batch {
    let mut batch = Batch::new();
    for n in range {
        batch.push(n as u16, n as i64, format!("event {n}").as_bytes());
    }
    batch
}

/// Reads until `last` was given and checks that nothing is missing, doubled or changed.
async fn expect_through(cursor: &mut Cursor, last: u64) {
    while cursor.position() < last {
        let expected = cursor.position() + 1;
        let block = tokio::time::timeout(HANG, cursor.next()).await.expect("no hang").expect("readable");
        let block = block.expect("the session goes on");
        assert_eq!(*block.range().start(), expected);
        for event in block.events() {
            assert_eq!((event.kind, event.at_ms), (event.seq as u16, event.seq as i64));
            assert_eq!(event.payload, format!("event {}", event.seq).as_bytes());
        }
    }
}

async fn append(appender: &mut Appender, range: RangeInclusive<u64>) {
    let given = appender.append(numbered(range.clone())).await.expect("room in the queue");
    assert_eq!(given, range);
}

// contract 1.6: sequence numbers from 1 without holes; SE-5: history, then live, with neither gap nor duplicate
#[tokio::test]
async fn a_cursor_reads_what_was_and_then_follows() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    assert_eq!(appender.next_seq(), 1);
    append(&mut appender, 1..=3).await;
    append(&mut appender, 4..=4).await;
    appender.committed().wait_for(4).await.unwrap();
    let mut from_start = log.cursor("a", 0).await.unwrap();
    let mut from_middle = log.cursor("a", 2).await.unwrap();
    expect_through(&mut from_start, 4).await;
    assert!(from_start.try_next().is_none());
    append(&mut appender, 5..=9).await;
    expect_through(&mut from_start, 9).await;
    expect_through(&mut from_middle, 9).await;
    append(&mut appender, 10..=10).await;
    drop(appender);
    expect_through(&mut from_start, 10).await;
    assert!(from_start.next().await.unwrap().is_none(), "the appender is gone and everything was read");
    assert!(from_start.next().await.unwrap().is_none(), "and stays so");
    log.close().await;
}

// UP-5: history survives a restart
#[tokio::test]
async fn everything_is_there_after_a_restart_and_numbers_go_on() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    append(&mut appender, 1..=1000).await;
    drop(appender);
    log.close().await;
    let log = open(&dir);
    let mut cursor = log.cursor("a", 0).await.unwrap();
    expect_through(&mut cursor, 1000).await;
    assert!(cursor.next().await.unwrap().is_none(), "a session without an appender ends");
    let mut appender = log.reopen("a", "host").await.unwrap();
    append(&mut appender, 1001..=1001).await;
    let mut cursor = log.cursor("a", 999).await.unwrap();
    expect_through(&mut cursor, 1001).await;
}

// contract 1.6: a cursor of the future or of an unknown session is an error of its own
#[tokio::test]
async fn a_cursor_beyond_the_end_or_of_no_session_is_refused() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    appender.append_durable(numbered(1..=2)).await.unwrap();
    assert!(log.cursor("a", 2).await.is_ok());
    assert!(matches!(log.cursor("a", 3).await, Err(CursorError::Future { after: 3, last: 2 })));
    assert!(matches!(log.cursor("b", 0).await, Err(CursorError::Unknown { id }) if id == "b"));
    drop(appender);
    log.close().await;
    let log = open(&dir);
    assert!(matches!(log.cursor("a", 3).await, Err(CursorError::Future { after: 3, last: 2 })));
}

// architecture 5: next() may stand in a select
#[tokio::test]
async fn a_dropped_wait_or_read_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let log = open_with_cache(&dir, 0);
    let mut appender = log.create(session("a")).await.unwrap();
    let mut cursor = log.cursor("a", 0).await.unwrap();
    let (mut given, mut dropped) = (0, 0);
    for last in 1..=200 {
        appender.append_durable(numbered(last..=last)).await.unwrap();
        // Polled once: mostly dropped while it reads the file, and then while it waits for the next event.
        for _ in 0..2 {
            tokio::select! {
                biased;
                block = cursor.next() => {
                    let block = block.unwrap().expect("the session goes on");
                    assert_eq!(block.first(), given + 1);
                    given = block.last();
                }
                () = std::future::ready(()) => dropped += 1,
            }
        }
        assert_eq!(cursor.position(), given);
    }
    assert!(dropped > 0);
    expect_through(&mut cursor, 200).await;
}

// issue 2, deliver 2 and 4: lines up to 64 MiB are events too
#[tokio::test]
async fn an_event_of_64_mib_is_one_event() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    let big = vec![0xa5; 64 * 1024 * 1024 + 1];
    let mut batch = numbered(1..=1);
    batch.push(2, 2, &big);
    batch.push(3, 3, b"after");
    assert_eq!(appender.append_durable(batch).await.unwrap(), 1..=3);
    let mut cursor = log.cursor("a", 0).await.unwrap();
    let mut lengths = Vec::new();
    while lengths.len() < 3 {
        let block = cursor.next().await.unwrap().unwrap();
        for event in block.events() {
            assert!(event.seq != 2 || event.payload == big);
            lengths.push(event.payload.len());
        }
    }
    assert_eq!(lengths, [7, big.len(), 5]);
}

// contract 1.6: nothing of a refused batch is in the log
#[tokio::test]
async fn an_event_over_the_limit_is_refused_and_the_appender_goes_on() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    let mut batch = numbered(1..=1);
    let part = vec![0; MAX_PAYLOAD_BYTES / 8];
    batch.push_with(1, 1, |payload| {
        (0..8).for_each(|_| payload.extend(&part));
        payload.extend(b"!");
    });
    let refused = appender.append(batch).await;
    assert!(
        matches!(refused, Err(WriteError::TooLarge { bytes, limit: MAX_PAYLOAD_BYTES }) if bytes == MAX_PAYLOAD_BYTES + 1)
    );
    assert_eq!(appender.append_durable(numbered(1..=1)).await.unwrap(), 1..=1);
}

// issue 2, must hold: bounded memory, also for a long history
#[tokio::test]
async fn a_long_history_is_read_in_pieces() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    let mut batch = Batch::new();
    let payload = vec![7; 100_000];
    (0..400).for_each(|_| batch.push(1, 1, &payload));
    appender.append_durable(batch).await.unwrap();
    drop(appender);
    log.close().await;
    let log = open(&dir);
    let mut cursor = log.cursor("a", 0).await.unwrap();
    while let Some(block) = cursor.next().await.unwrap() {
        assert!(block.bytes() < 2 << 20, "{} bytes at once", block.bytes());
    }
    assert_eq!(cursor.position(), 400);
}

// architecture 2: a slow viewer is behind, never lossy, and does not slow the writer
#[tokio::test]
async fn a_cursor_that_fell_behind_the_cache_misses_nothing() {
    let dir = TempDir::new().unwrap();
    let log = open_with_cache(&dir, 4096);
    let mut appender = log.create(session("a")).await.unwrap();
    let mut slow = log.cursor("a", 0).await.unwrap();
    let mut next = 1;
    for size in (1..200).chain([5000]) {
        append(&mut appender, next..=next + size - 1).await;
        next += size;
        if size % 50 == 0 {
            slow.next().await.unwrap().unwrap();
        }
    }
    expect_through(&mut slow, next - 1).await;
}

// issue 2, deliver 4: close flushes what is queued
#[tokio::test]
async fn close_commits_the_queue_and_ends_everybody() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    let mut cursor = log.cursor("a", 0).await.unwrap();
    for n in 1..=500 {
        append(&mut appender, n..=n).await;
    }
    let committed = appender.committed();
    log.clone().close().await;
    assert_eq!(committed.seq(), 500);
    assert!(matches!(committed.wait_for(501).await, Err(WriteError::Closed)));
    assert!(matches!(appender.append(numbered(501..=501)).await, Err(WriteError::Closed)));
    assert!(matches!(log.create(session("b")).await, Err(WriteError::Closed)));
    expect_through(&mut cursor, 500).await;
    assert!(cursor.next().await.unwrap().is_none());
    drop(log);
    let mut cursor = open(&dir).cursor("a", 0).await.unwrap();
    expect_through(&mut cursor, 500).await;
}

// architecture 5: queues are bounded; the policy is to wait
#[tokio::test]
async fn a_flood_waits_for_room_and_arrives_whole() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    let payload = vec![1; 1 << 20];
    for _ in 0..100 {
        let mut batch = Batch::new();
        batch.push(1, 1, &payload);
        appender.append(batch).await.unwrap();
        // At most the queue's 32 MiB and one group that is being committed.
        assert!(appender.next_seq() - appender.committed().seq() < 42);
    }
    appender.committed().wait_for(100).await.unwrap();
}

// contract 1.6: many sessions share the writer and do not see each other's events
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_at_once_keep_their_own_order() {
    let dir = TempDir::new().unwrap();
    let log = open_with_cache(&dir, 64 * 1024);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let log = log.clone();
        tasks.spawn(async move {
            let id = format!("s{n}");
            let mut appender = log.create(session(&id)).await.unwrap();
            let mut cursor = log.cursor(&id, 0).await.unwrap();
            for seq in 1..=200 {
                append(&mut appender, seq..=seq).await;
            }
            expect_through(&mut cursor, 200).await;
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}

// issue 29, deliver 3: encoded once for all that follow; one that is alone, or begins inside a block, keeps nothing
#[tokio::test]
async fn a_form_is_shared_by_all_that_follow() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    append(&mut appender, 1..=3).await;
    appender.committed().wait_for(3).await.unwrap();
    let mut cursor = log.cursor("a", 0).await.unwrap();
    cursor.share_forms(FormKind(0));
    let form = || std::iter::once(bytes::Bytes::from_static(b"form")).collect();
    let alone = cursor.next().await.unwrap().unwrap();
    assert!(cursor.shared_form(&alone, form).is_none(), "there is nobody to share with");
    let mut cursors = Vec::new();
    for after in [0, 1, 3, 3] {
        let mut cursor = log.cursor("a", after).await.unwrap();
        cursor.share_forms(FormKind(0));
        cursors.push(cursor);
    }
    let mut made = 0;
    let mut read = async |cursor: &mut Cursor| {
        let block = tokio::time::timeout(HANG, cursor.next()).await.expect("no hang").unwrap().unwrap();
        let form = cursor.shared_form(&block, || {
            made += 1;
            form()
        });
        (form.is_some(), made)
    };
    assert_eq!(read(&mut cursors[0]).await, (true, 1));
    assert_eq!(read(&mut cursors[1]).await, (false, 1), "it began inside the block");
    append(&mut appender, 4..=4).await;
    cursors.push(cursor);
    for cursor in &mut cursors {
        assert_eq!(read(cursor).await, (true, 2));
    }
    cursors.truncate(2);
    append(&mut appender, 5..=5).await;
    cursors[1].share_forms(FormKind(1));
    assert_eq!(read(&mut cursors[0]).await, (false, 2), "the others have gone, or are of another kind");
}
