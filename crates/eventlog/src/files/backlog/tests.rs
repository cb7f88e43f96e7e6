//! Appends while the disk stands still, on files whose writes are held up.

use crate::session_files::held_file::{Fate, HeldFile};
use crate::session_files::layout;
use crate::{Appender, Batch, Cursor, EventLog, IndexUpdate, ListQuery, NewSession, Options, WriteError};
use rustix::io::Errno;
use std::io::{BufRead, BufReader};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;

const WRITTEN: &str = "it is written";

fn open(state: &Path) -> EventLog {
    EventLog::open(state, Options::default()).expect("the log opens")
}

async fn begin(log: &EventLog, id: &str) -> Appender {
    let new = NewSession { id: id.into(), owner: "host".into(), ..NewSession::default() };
    log.create(new).await.expect("there is none")
}

/// Holds up what is written to the first segment of a session.
fn hold(state: &Path, id: &str) -> HeldFile {
    HeldFile::at(&layout::session(&layout::sessions(state), id).join("1.log"))
}

/// Has all appends handed over from now on, as behind a slow write, or none.
fn be_slow(log: &EventLog, is_slow: bool) {
    log.shared.files.writes.be_slow(is_slow);
}

/// A batch of one event, which is a number.
fn event(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 0, &number.to_le_bytes());
    batch
}

fn append_all(appender: &mut Appender, numbers: RangeInclusive<u64>) {
    for number in numbers {
        assert_eq!(appender.append_now(event(number)).expect("it is handed over"), number..=number);
    }
}

fn ended() -> Batch {
    let (ended, owner) = (Some(true), Some(None));
    Batch::index_only(IndexUpdate { updated_ms: 9, ended, owner, ..IndexUpdate::default() })
}

/// The numbers that a session has, as a log that is opened anew finds them.
async fn stored(state: &Path, id: &str) -> Vec<u64> {
    let log = open(state);
    let (mut cursor, mut numbers) = (log.cursor(id, 0).await.expect("it is there"), Vec::new());
    while let Some(found) = next(&mut cursor).await {
        numbers.extend(found);
    }
    log.close().await;
    numbers
}

/// The numbers of the next block. None: there are no more.
async fn next(cursor: &mut Cursor) -> Option<Vec<u64>> {
    let block = cursor.next().await.expect("it is read")?;
    let number = |payload: &[u8]| u64::from_le_bytes(payload.try_into().expect("a number"));
    Some(block.events().map(|event| number(event.payload)).collect())
}

/// What a future gives if it is polled now.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// How long of 100 commits of a session 99 take at most, of eight sessions that commit at the same time.
async fn slowest_of_99(log: &EventLog, round: usize) -> Duration {
    let mut sessions = JoinSet::new();
    for number in 0..8 {
        let log = log.clone();
        sessions.spawn(async move {
            let mut appender = begin(&log, &format!("other-{round}-{number}")).await;
            let mut cursor = log.cursor(appender.id(), 0).await.expect("it is there");
            let mut took = Vec::new();
            for number in 1..=100 {
                let began = now();
                appender.append_durable(event(number)).await.expect(WRITTEN);
                assert_eq!(next(&mut cursor).await, Some(vec![number]));
                took.push(began.elapsed());
            }
            took
        });
    }
    let mut took: Vec<_> = sessions.join_all().await.into_iter().flatten().collect();
    took.sort();
    took[took.len() * 99 / 100]
}

// design session-files 5 and 12: a disk that stands still in the writes of one session stops no other, nor who looks at it, on
// two threads
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_writes_stand_still_stops_no_other() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut stalled = begin(&log, "stalled").await;
    stalled.append_durable(event(1)).await.unwrap();
    let (held, room, committed) = (hold(dir.path(), "stalled"), stalled.room(), stalled.committed());
    let mut tasks = JoinSet::new();
    // On a busy machine the last one may have been slow, and another thread would write this one.
    be_slow(&log, false);
    // This thread stands still from here on.
    tasks.spawn(async move { stalled.append_now(event(2)).map(|_| stalled) });
    held.arrived(1).await;

    // What else this machine does makes it slower, as it does a log of which no session stands still.
    let other_dir = TempDir::new().unwrap();
    let other = open(other_dir.path());
    let mut took = Vec::new();
    while took.last().is_none_or(|(took, alone)| *took >= Duration::from_millis(5).max(2 * *alone)) {
        assert!(took.len() < 20, "99 of 100 took at most, beside it and alone: {took:?}");
        let beside = slowest_of_99(&log, took.len()).await;
        took.push((beside, slowest_of_99(&other, took.len()).await));
    }
    other.close().await;
    assert!(!room.is_free(), "who takes its lock would stand still, too");
    let mut idle = Box::pin(room.wait());
    assert!(poll_once(&mut idle).await.is_none());
    // A list, its row and what it has are told as they were.
    let rows = log.list(ListQuery::default()).await.unwrap();
    assert_eq!(rows.iter().find(|row| row.id == "stalled").unwrap().last_seq, 1);
    let mut cursor = log.cursor("stalled", 0).await.unwrap();
    assert_eq!((next(&mut cursor).await, committed.seq()), (Some(vec![1]), 1));

    held.decide(Fate::Goes);
    let stalled = tasks.join_next().await.unwrap().unwrap().unwrap();
    idle.await;
    assert_eq!((next(&mut cursor).await, committed.seq()), (Some(vec![2]), 2));
    drop(stalled);
    log.close().await;
}

// design session-files 5: appends keep their order from the caller's thread to others and back; what is handed over is told
// only when it is written
#[tokio::test]
async fn order_is_kept_over_each_change_of_who_writes() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    let mut cursor = log.cursor("a", 0).await.unwrap();
    let (room, committed) = (appender.room(), appender.committed());
    let mut number = 0;
    for _ in 0..20 {
        for _ in 0..3 {
            number += 1;
            // The last one may have been slow, on a busy machine.
            be_slow(&log, false);
            assert_eq!(appender.append_now(event(number)).unwrap(), number..=number);
            assert_eq!(committed.seq(), number, "it was written at once");
        }
        let (held, written) = (hold(dir.path(), "a"), number);
        be_slow(&log, true);
        for _ in 0..5 {
            number += 1;
            assert_eq!(appender.append_now(event(number)).unwrap(), number..=number);
        }
        held.arrived(1).await;
        // It is fast again, and still nothing overtakes what waits.
        be_slow(&log, false);
        number += 1;
        assert_eq!(appender.append(event(number)).await.unwrap(), number..=number);
        let mut flushed = Box::pin(room.flushed());
        assert!(poll_once(&mut flushed).await.is_none());
        assert_eq!(committed.seq(), written);
        held.decide(Fate::Goes);
        flushed.await;
        assert_eq!(committed.seq(), number);
    }
    let mut seen = Vec::new();
    while seen.len() < 180 {
        seen.extend(next(&mut cursor).await.unwrap());
    }
    drop(appender);
    assert_eq!(next(&mut cursor).await, None);
    log.close().await;
    assert_eq!(seen, (1..=180).collect::<Vec<_>>());
    assert_eq!(stored(dir.path(), "a").await, seen);
}

// design session-files 5: what waits is written though its appender is gone, and whoever has the session next waits for that
#[tokio::test]
async fn an_appender_that_is_dropped_leaves_what_it_queued() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    let mut cursor = log.cursor("a", 0).await.unwrap();
    let held = hold(dir.path(), "a");
    be_slow(&log, true);
    append_all(&mut appender, 1..=3);
    held.arrived(1).await;
    drop(appender);
    let mut reopened = Box::pin(log.reopen("a", "host"));
    assert!(poll_once(&mut reopened).await.is_none());
    held.decide(Fate::Goes);
    let reopened = reopened.await.unwrap();
    assert_eq!(reopened.next_seq(), 4);
    let mut seen = Vec::new();
    while let Some(found) = next(&mut cursor).await {
        seen.extend(found);
    }
    assert_eq!(seen, [1, 2, 3]);
}

// design session-files 5: a commit and last words behind a backlog come behind it
#[tokio::test]
async fn last_words_come_behind_what_waits() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    let held = hold(dir.path(), "a");
    be_slow(&log, true);
    appender.append_now(event(1)).unwrap();
    held.arrived(1).await;
    let mut ends = Box::pin(async move {
        let durable = appender.append_durable(event(2)).await?;
        appender.append_now(event(3))?;
        let mut last = event(4);
        last.update_index(ended().index.expect("it has one"));
        Ok::<_, WriteError>((durable, appender.append_final(last).await?))
    });
    assert!(poll_once(&mut ends).await.is_none());
    held.decide(Fate::Goes);
    assert_eq!(ends.await.unwrap(), (2..=2, 4..=4));
    let row = log.get("a").await.unwrap().unwrap();
    assert_eq!((row.ended, row.owner, row.last_seq), (true, None, 4));
    log.close().await;
    assert_eq!(stored(dir.path(), "a").await, [1, 2, 3, 4]);
}

// design session-files 5 and 8: a stall that ends in an error costs what waits of that session, but for its last words, and
// nothing of others; a disk that fails is not one to begin on
#[tokio::test]
async fn a_stall_may_end_in_an_error() {
    for error in [Errno::NOSPC, Errno::DQUOT, Errno::IO] {
        let dir = TempDir::new().unwrap();
        let log = open(dir.path());
        let (mut appender, mut other) = (begin(&log, "a").await, begin(&log, "b").await);
        log.check().await.unwrap();
        appender.append_now(event(1)).unwrap();
        let held = hold(dir.path(), "a");
        be_slow(&log, true);
        appender.append_now(event(2)).unwrap();
        held.arrived(1).await;
        appender.append_now(event(3)).unwrap();
        let mut durable = Box::pin(appender.append_durable(event(4)));
        assert!(poll_once(&mut durable).await.is_none());
        held.decide(Fate::Fails(error));
        let failed = durable.await.unwrap_err();
        let is_full = error != Errno::IO;
        let is_as_meant = |failed: &WriteError| match is_full {
            true => matches!(failed, WriteError::DiskFull { .. }),
            false => matches!(failed, WriteError::Io { .. }),
        };
        assert!(is_as_meant(&failed), "{error}: {failed:?}");
        assert!(is_as_meant(&appender.append_now(event(5)).unwrap_err()));
        assert_eq!(
            (appender.committed().seq(), is_as_meant(&appender.committed().failed().await)),
            (1, true)
        );
        let ready = log.check().await;
        assert_eq!(ready.is_ok(), is_full, "{error}: {ready:?}");
        other.append_durable(event(1)).await.unwrap();
        held.decide(Fate::Goes);
        assert_eq!(appender.append_final(event(6)).await.unwrap(), 2..=2, "behind what is committed");
        let third = begin(&log, "c").await;
        drop((other, third));
        log.close().await;
        assert_eq!(stored(dir.path(), "a").await, [1, 6]);
        assert_eq!(stored(dir.path(), "b").await, [1]);
    }
}

// issue 29: a file that may not be longer is followed by the next one, unless that could be no longer, which is as a full disk
#[tokio::test]
async fn at_the_limit_of_a_files_size_a_session_goes_on_in_the_next() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    appender.append_now(event(1)).unwrap();
    let held = hold(dir.path(), "a");
    held.decide(Fate::Fails(Errno::FBIG));
    // A busy machine may be slow enough for another thread to write it.
    append_all(&mut appender, 2..=3);
    appender.committed().wait_for(3).await.unwrap();
    assert_eq!(log.get("a").await.unwrap().unwrap().last_seq, 3);
    let mut other = begin(&log, "b").await;
    let held = (held, hold(dir.path(), "b"));
    held.1.decide(Fate::Fails(Errno::FBIG));
    let full = other.append_durable(event(1)).await.unwrap_err();
    assert!(matches!(full, WriteError::DiskFull { .. }), "{full:?}");
    log.check().await.unwrap();
    drop((appender, other));
    log.close().await;
    assert_eq!(stored(dir.path(), "a").await, [1, 2, 3]);
    assert_eq!(stored(dir.path(), "b").await, [0_u64; 0]);
}

// design session-files 5: what waits is bounded, over all sessions; whoever finds no room waits, and nothing is lost
#[tokio::test]
async fn what_waits_is_bounded() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let (mut one, mut other) = (begin(&log, "a").await, begin(&log, "b").await);
    let held = [hold(dir.path(), "a"), hold(dir.path(), "b")];
    be_slow(&log, true);
    let long = |number: usize| {
        let mut batch = Batch::new();
        batch.push(number as u16, 0, &vec![b'x'; 900_000]);
        batch
    };
    let mut count = 0;
    while one.room().is_free() {
        one.append_now(long(count)).unwrap();
        other.append_now(long(count)).unwrap();
        count += 1;
    }
    assert!((17..=19).contains(&count), "32 MiB, and not {count} times two batches");
    let room = other.room();
    let mut waits = (Box::pin(room.wait()), Box::pin(one.append(long(count))));
    assert!(poll_once(&mut waits.0).await.is_none() && poll_once(&mut waits.1).await.is_none());
    held.iter().for_each(|held| held.decide(Fate::Goes));
    waits.1.await.unwrap();
    waits.0.await;
    log.committed().await.unwrap();
    for (id, expected) in [("a", count + 1), ("b", count)] {
        let (mut cursor, mut kinds) = (log.cursor(id, 0).await.unwrap(), Vec::new());
        while kinds.len() < expected {
            let block = cursor.next().await.unwrap().unwrap();
            kinds.extend(block.events().map(|event| usize::from(event.kind)));
        }
        assert_eq!(kinds, (0..expected).collect::<Vec<_>>());
    }
}

// design session-files 5: no async thread packs what is long
#[tokio::test]
async fn a_long_batch_is_handed_over() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    let held = hold(dir.path(), "a");
    let mut batch = Batch::new();
    batch.push(1, 0, &vec![b'x'; super::LARGE_BYTES]);
    appender.append_now(batch).unwrap();
    assert_eq!(appender.committed().seq(), 0);
    held.decide(Fate::Goes);
    appender.committed().wait_for(1).await.unwrap();
}

// design session-files 4: a session that is taken over while something of it waits is told, and what waited counts nowhere
#[tokio::test]
async fn what_waits_when_a_session_is_taken_over_counts_nowhere() {
    let dir = TempDir::new().unwrap();
    let (log, heir) = (open(dir.path()), open(dir.path()));
    let mut appender = begin(&log, "a").await;
    appender.append_now(event(1)).unwrap();
    let held = hold(dir.path(), "a");
    be_slow(&log, true);
    appender.append_now(event(2)).unwrap();
    held.arrived(1).await;
    appender.append_now(event(3)).unwrap();
    let adopted = heir.adopt("a", "host", "heir", event(7)).await.unwrap();
    held.decide(Fate::Goes);
    let failed = appender.committed().failed().await;
    assert!(matches!(&failed, WriteError::TakenOver { owner, .. } if owner == "heir"), "{failed:?}");
    assert_eq!(appender.committed().seq(), 1);
    let refused = appender.append_final(ended()).await.unwrap_err();
    assert!(matches!(refused, WriteError::TakenOver { .. }), "{refused:?}");
    assert_eq!(adopted.next_seq(), 3);
    drop(adopted);
    log.close().await;
    heir.close().await;
    assert_eq!(stored(dir.path(), "a").await, [1, 7]);
}

// design session-files 5: a log that is closed writes what was handed over, and takes nothing more
#[tokio::test]
async fn a_close_writes_what_waits() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    let held = hold(dir.path(), "a");
    be_slow(&log, true);
    append_all(&mut appender, 1..=3);
    held.arrived(1).await;
    let mut closed = Box::pin(log.close());
    assert!(poll_once(&mut closed).await.is_none());
    assert!(matches!(appender.append_now(event(4)), Err(WriteError::Closed)));
    drop(appender);
    held.decide(Fate::Goes);
    closed.await;
    assert_eq!(stored(dir.path(), "a").await, [1, 2, 3]);
}

// design session-files 5: threads that read and stand still keep nobody from following a session that is in memory
#[tokio::test]
async fn readers_that_stand_still_stop_no_viewer() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let mut appender = begin(&log, "a").await;
    appender.append_now(event(1)).unwrap();
    let (mut readers, mut held) = (JoinSet::new(), Vec::new());
    for _ in 0..4 {
        let ((hold, holds), (begins, begun)) =
            (std::sync::mpsc::sync_channel::<()>(0), tokio::sync::oneshot::channel());
        let log = log.clone();
        readers.spawn(async move {
            let stand = move || {
                let _unheard = begins.send(());
                let _released = holds.recv();
            };
            log.shared.readers.run(stand).await.expect("it is open");
        });
        begun.await.unwrap();
        held.push(hold);
    }
    let mut got = Box::pin(log.get("a"));
    assert!(poll_once(&mut got).await.is_none(), "all readers stand still");
    let mut cursor = log.cursor("a", 0).await.unwrap();
    assert_eq!(next(&mut cursor).await, Some(vec![1]));
    appender.append_now(event(2)).unwrap();
    assert_eq!(next(&mut cursor).await, Some(vec![2]));
    drop(held);
    readers.join_all().await;
    assert_eq!(got.await.unwrap().unwrap().last_seq, 2);
}

// contract 6: whoever asks again and again whether sessions can begin, while a disk stands still, takes one thread
#[tokio::test]
async fn checks_that_stand_still_leave_threads_to_readers() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let _appender = begin(&log, "a").await;
    let standing = log.shared.files.check_turn().await;
    let mut checks: Vec<_> = (0..8).map(|_| Box::pin(log.check())).collect();
    for check in &mut checks {
        assert!(poll_once(check).await.is_none());
    }
    assert!(log.get("a").await.unwrap().is_some());
    drop(standing);
    for check in checks {
        check.await.unwrap();
    }
}

const KILLED: &str = "EVENTLOG_TEST_KILLED";

/// Not a test of its own: what the child of the next one does. Without a place it does nothing.
#[tokio::test]
async fn killed_part() {
    let Ok(dir) = std::env::var(KILLED) else { return };
    let dir = Path::new(&dir);
    let log = open(dir);
    let mut appender = begin(&log, "a").await;
    for number in 1..=5 {
        appender.append_durable(event(number)).await.unwrap();
    }
    let held = hold(dir, "a");
    be_slow(&log, true);
    append_all(&mut appender, 6..=9);
    held.arrived(1).await;
    let told = format!("\n# {}\n", appender.committed().seq());
    std::io::Write::write_all(&mut std::io::stdout(), told.as_bytes()).unwrap();
    std::future::pending::<()>().await;
}

// design session-files 8: what was told to be committed is there when a process is killed that has more to write
#[tokio::test]
async fn a_kill_with_a_backlog_costs_nothing_that_was_told() {
    let dir = TempDir::new().unwrap();
    let (_, module) = module_path!().split_once("::").unwrap();
    #[expect(clippy::disallowed_methods, reason = "a child that is to be killed, and reaped here")]
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args([&format!("{module}::killed_part"), "--exact", "--nocapture", "--test-threads=1"]);
    let mut child = command.env(KILLED, dir.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find_map(|line| Some(line.strip_prefix("# ")?.to_owned()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(told.as_deref(), Some("5"));
    assert_eq!(stored(dir.path(), "a").await, [1, 2, 3, 4, 5]);
}
