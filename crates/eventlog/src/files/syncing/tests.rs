//! Syncing over a disk that takes nothing when a test says so.

use super::*;
use crate::files::UpkeepOptions;
use crate::{Appender, Batch, EventLog, IndexUpdate, NewSession, Options, WriteError};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use tokio::sync::mpsc;

const DONE: &str = "it is done";
/// Longer than anything here takes; only a hang reaches it.
const HANG: Duration = Duration::from_secs(120);
/// Longer than any test.
const NEVER: Duration = Duration::from_secs(100_000);

/// A log that syncs so long behind a change, with `sync`.
fn open(dir: &Path, sync_every: Duration, sync: SyncFile) -> EventLog {
    let options = Options::default();
    let upkeep = UpkeepOptions { sync_every, sync, ..UpkeepOptions::default() };
    EventLog::open_with(dir, options, upkeep).expect("it opens")
}

fn inode(file: &File) -> u64 {
    file.metadata().map_or(0, |found| found.ino())
}

/// The inode of a segment.
fn segment(dir: &Path, id: &str, number: u32) -> u64 {
    use crate::session_files::layout;
    let path = layout::session(&layout::sessions(dir), id).join(Part::Log(number).name());
    std::fs::metadata(path).map_or(0, |found| found.ino())
}

fn new(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "host".into(), ..NewSession::default() }
}

fn event() -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 1, b"event");
    batch
}

async fn release(appender: Appender) {
    let index = IndexUpdate { updated_ms: 2, owner: Some(None), ..IndexUpdate::default() };
    appender.append_final(Batch::index_only(index)).await.expect(DONE);
}

/// A disk that says which files it was asked to take.
fn recording_disk() -> (SyncFile, mpsc::Receiver<u64>) {
    let (tells, told) = mpsc::channel(1000);
    let sync = move |file: &File| {
        file.sync_data()?;
        tells.try_send(inode(file)).map_err(io::Error::other)
    };
    (Arc::new(sync), told)
}

async fn next(told: &mut mpsc::Receiver<u64>) -> u64 {
    tokio::time::timeout(HANG, told.recv()).await.expect("no hang").expect("the log is open")
}

fn is_idle(log: &EventLog) -> bool {
    let state = log.shared.files.unsynced.state.lock();
    state.due.is_none() && state.unsynced.is_empty()
}

// design session-files 5: what changed is synced, once for each time that it changed, and then nothing wakes up
#[tokio::test]
async fn what_changes_is_synced() {
    let dir = TempDir::new().expect("a directory");
    let (sync, mut told) = recording_disk();
    let log = open(dir.path(), Duration::ZERO, sync);
    let mut appender = log.create(new("a")).await.expect(DONE);
    let file = segment(dir.path(), "a", 1);
    assert_eq!(next(&mut told).await, file);
    for _ in 0..5 {
        appender.append_durable(event()).await.expect(DONE);
        assert_eq!(next(&mut told).await, file);
        assert!(is_idle(&log));
    }
    drop(appender);
    let index = IndexUpdate { updated_ms: 3, owner: Some(None), ..IndexUpdate::default() };
    log.update_index("a", Some("host"), "next", index).await.expect(DONE);
    assert_eq!([next(&mut told).await, next(&mut told).await], [1, 2].map(|at| segment(dir.path(), "a", at)));
    assert!(is_idle(&log) && told.try_recv().is_err());
    log.close().await;
}

// design session-files 5, 11: a segment is on the disk before the one that follows it, however far the next sync is
#[tokio::test]
async fn a_claim_has_what_it_follows_synced() {
    let dir = TempDir::new().expect("a directory");
    let (sync, mut told) = recording_disk();
    let log = open(dir.path(), NEVER, sync);
    let mut appender = log.create(new("a")).await.expect(DONE);
    appender.append_durable(event()).await.expect(DONE);
    release(appender).await;
    assert!(told.try_recv().is_err());
    let appender = log.reopen("a", "host").await.expect(DONE);
    // By the one who wrote it, who had the first error, and again by the one who follows.
    for number in [1, 1, 2] {
        assert_eq!(next(&mut told).await, segment(dir.path(), "a", number));
    }
    drop(appender);
    log.close().await;
}

// issue 29: what has ended keeps few files open until it is synced
#[tokio::test]
async fn many_that_ended_are_synced_at_once() {
    let dir = TempDir::new().expect("a directory");
    let (sync, mut told) = recording_disk();
    let log = open(dir.path(), NEVER, sync);
    for at in 0..=ENDED {
        assert!(told.try_recv().is_err());
        release(log.create(new(&at.to_string())).await.expect(DONE)).await;
    }
    for at in 0..=ENDED {
        assert_eq!(next(&mut told).await, segment(dir.path(), &at.to_string(), 1));
    }
    assert!(is_idle(&log));
    log.close().await;
}

// design session-files 5, 8: what the disk does not take ends the session concerned with an error of input or output, and no
// other; the log is not ready until the disk takes something
#[tokio::test]
async fn a_session_that_is_not_synced_ends() {
    let dir = TempDir::new().expect("a directory");
    let (is_broken, spared) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0)));
    let (breaks, sparing) = (Arc::clone(&is_broken), Arc::clone(&spared));
    let sync = move |file: &File| match breaks.load(Ordering::SeqCst) && inode(file) != *sparing.lock() {
        true => Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error())),
        false => Ok(()),
    };
    let log = open(dir.path(), Duration::ZERO, Arc::new(sync));
    let mut healthy = log.create(new("b")).await.expect(DONE);
    *spared.lock() = segment(dir.path(), "b", 1);
    is_broken.store(true, Ordering::SeqCst);
    log.check().await.expect("nothing has failed yet");
    let mut appender = log.create(new("a")).await.expect(DONE);
    let told = tokio::time::timeout(HANG, appender.committed().failed()).await.expect("no hang");
    assert!(matches!(told, WriteError::Io { .. }), "{told:?}");
    assert!(matches!(appender.append_durable(event()).await, Err(WriteError::Io { .. })));
    healthy.append_durable(event()).await.expect("it goes on");
    assert!(matches!(log.check().await, Err(WriteError::Io { .. })));
    release(appender).await;
    assert_eq!(
        log.get("a").await.expect(DONE).expect("it is there").owner,
        None,
        "its last words are written"
    );
    is_broken.store(false, Ordering::SeqCst);
    log.check().await.expect("the disk takes it again");
    assert!(healthy.committed().failure().is_none());
    log.close().await;
}

// SU-6, SU-9: what a session held is free again when it has ended, also for a reader that stays
#[tokio::test]
async fn who_knows_how_far_an_ended_session_goes_keeps_nothing_of_it_open() {
    let dir = TempDir::new().expect("a directory");
    let log = open(dir.path(), Duration::ZERO, Arc::new(File::sync_data));
    let mut appender = log.create(new("a")).await.expect(DONE);
    appender.append_durable(event()).await.expect(DONE);
    let (committed, room) = (appender.committed(), appender.room());
    let cursor = log.cursor("a", 0).await.expect(DONE);
    let live = log.shared.live.get("a").map(|live| Arc::downgrade(&live)).expect("it is live");
    release(appender).await;
    let forgotten = async {
        while live.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, forgotten).await.expect("it is forgotten");
    assert_eq!((committed.seq(), cursor.last(), room.is_idle()), (1, 1, true));
    log.close().await;
}
