//! Disks that do not confirm what was written.

use super::*;
use crate::session_files::held_file::{Fate, HeldFile};
use crate::{Batch, Durability, EventLog, IndexUpdate, NewSession, Options, WriteError};
use tempfile::TempDir;

const OPTIONS: fn() -> Options = || Options { durability: Durability::Power, ..Options::default() };

fn one() -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 0, b"event");
    batch
}

fn last_words() -> Batch {
    let (ended, owner) = (Some(true), Some(None));
    let mut batch = one();
    batch.update_index(IndexUpdate { updated_ms: 9, ended, owner, ..IndexUpdate::default() });
    batch
}

fn session(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "host".into(), ..NewSession::default() }
}

/// How many events a session has, and whether they can all be read.
async fn events(log: &EventLog, id: &str) -> u64 {
    let mut cursor = log.cursor(id, 0).await.expect("it is there");
    let mut count = 0;
    while let Some(block) = cursor.next().await.expect("it is read") {
        count = block.last();
    }
    assert_eq!(log.get(id).await.expect("it is read").expect("it is there").last_seq, count);
    count
}

// issue 29, durability = "power": a redo file that cannot be synced ends the sessions concerned with an I/O error, a check says so, and
// others go on once the disk does
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redo_file_that_cannot_be_synced_ends_the_sessions_concerned() {
    let (dir, lost) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let disk = Arc::<Mutex<Disk>>::default();
    let seen = Arc::clone(&disk);
    let recorder = Recorder::begin(dir.path(), move |disk| *seen.lock() = disk.clone());
    let log = EventLog::open(dir.path(), OPTIONS()).unwrap();
    let mut concerned = log.create(session("concerned")).await.unwrap();
    let mut other = log.create(session("other")).await.unwrap();
    concerned.append_durable(one()).await.unwrap();
    other.append_durable(one()).await.unwrap();
    log.check().await.unwrap();
    recorder.fail("/redo/");
    let refused = concerned.append_durable(one()).await.unwrap_err();
    assert!(matches!(refused, WriteError::Io { .. }), "{refused:?}");
    assert!(matches!(log.check().await, Err(WriteError::Io { .. })));
    assert_eq!(concerned.committed().seq(), 1);
    // Its last words need no redo file.
    assert_eq!(concerned.append_final(last_words()).await.unwrap(), 2..=2);
    recorder.fail("");
    log.check().await.unwrap();
    assert_eq!(other.append_durable(one()).await.unwrap(), 2..=2);
    disk.lock().clone().lose_power(dir.path(), lost.path(), Unsynced::Lost);
    let after = EventLog::open(lost.path(), OPTIONS()).unwrap();
    assert_eq!((events(&after, "concerned").await, events(&after, "other").await), (2, 2));
    after.close().await;
    drop(other);
    log.close().await;
    assert_eq!(fs::read_dir(dir.path().join("redo")).unwrap().count(), 0);
}

// issue 29, durability = "power": a file that may not be longer ends its session as a full disk does, and no other one; its last words are in
// its next segment, and what is lost puts nothing in front of them
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_of_a_files_size_a_session_ends() {
    let (dir, lost) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let disk = Arc::<Mutex<Disk>>::default();
    let seen = Arc::clone(&disk);
    let _recorder = Recorder::begin(dir.path(), move |disk| *seen.lock() = disk.clone());
    let log = EventLog::open(dir.path(), OPTIONS()).unwrap();
    let mut concerned = log.create(session("concerned")).await.unwrap();
    let mut other = log.create(session("other")).await.unwrap();
    concerned.append_durable(one()).await.unwrap();
    let place = crate::session_files::layout::session(&dir.path().join("sessions"), "concerned");
    let held = HeldFile::at(&place.join("1.log"));
    held.decide(Fate::Fails(Errno::FBIG));
    let refused = concerned.append_durable(one()).await.unwrap_err();
    assert!(matches!(refused, WriteError::DiskFull { .. }), "{refused:?}");
    other.append_durable(one()).await.unwrap();
    log.check().await.unwrap();
    assert_eq!(concerned.append_final(last_words()).await.unwrap(), 2..=2);
    assert!(place.join("2.log").exists());
    disk.lock().clone().lose_power(dir.path(), lost.path(), Unsynced::Lost);
    let after = EventLog::open(lost.path(), OPTIONS()).unwrap();
    assert_eq!((events(&after, "concerned").await, events(&after, "other").await), (2, 1));
    after.close().await;
    drop(other);
    log.close().await;
}

// issue 29, durability = "power": a segment that cannot be synced ends its session, and what was committed of it is still not lost
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_segment_that_cannot_be_synced_ends_its_session() {
    let dir = TempDir::new().unwrap();
    let recorder = Recorder::begin(dir.path(), |_| {});
    let log = EventLog::open(dir.path(), OPTIONS()).unwrap();
    let mut concerned = log.create(session("concerned")).await.unwrap();
    let mut other = log.create(session("other")).await.unwrap();
    let place = crate::session_files::layout::session(&dir.path().join("sessions"), "concerned");
    let length = fs::metadata(place.join("1.log")).unwrap().len();
    for appender in [&mut concerned, &mut other] {
        appender.append_durable(one()).await.unwrap();
    }
    recorder.fail(place.to_str().unwrap());
    let files = Arc::clone(&log.shared.files);
    files.redo.as_ref().unwrap().sync();
    assert!(matches!(concerned.committed().failed().await, WriteError::Io { .. }));
    log.check().await.unwrap();
    recorder.fail("");
    other.append_durable(one()).await.unwrap();
    drop((concerned, other));
    log.close().await;
    drop(files);
    // What the disk did not take is gone, though the machine has not booted.
    File::options().write(true).open(place.join("1.log")).unwrap().set_len(length).unwrap();
    let log = EventLog::open(dir.path(), OPTIONS()).unwrap();
    assert_eq!((events(&log, "concerned").await, events(&log, "other").await), (1, 2));
    assert_eq!(fs::read_dir(dir.path().join("redo")).unwrap().count(), 0);
    log.close().await;
}
