//! Sessions whose files say less than the index does: their end is lost, or they were put back from a copy, or taken away.

use acpd_eventlog::{Batch, EventLog, IndexUpdate, NewSession};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn open(dir: &Path) -> EventLog {
    EventLog::open(dir, super::options()).expect("the log opens")
}

fn event(at_ms: i64) -> Batch {
    let mut batch = Batch::index_only(IndexUpdate { updated_ms: at_ms, ..IndexUpdate::default() });
    batch.push(1, at_ms, b"event");
    batch
}

fn end_at(at_ms: i64) -> Batch {
    let (updated_ms, ended, owner) = (at_ms, Some(true), Some(None));
    Batch::index_only(IndexUpdate { updated_ms, ended, owner, ..IndexUpdate::default() })
}

/// The only segment of the only session.
fn segment(dir: &Path) -> PathBuf {
    let only = |dir: PathBuf| {
        let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("it is read"));
        let mut named = entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        named.next().expect("there is one").path()
    };
    only(only(dir.join("sessions"))).join("1.log")
}

/// The sessions of a list: id, owner, whether it has ended, last event.
async fn listed(log: &EventLog) -> Vec<(String, Option<String>, bool, u64)> {
    let rows = log.list(Default::default()).await.expect("it is read");
    rows.into_iter().map(|row| (row.id, row.owner, row.ended, row.last_seq)).collect()
}

/// Makes a session with two events that has ended; gives its segment as it was after the first.
async fn ended_session(dir: &Path) -> Vec<u8> {
    let log = open(dir);
    let new = NewSession { id: "a".into(), owner: "host".into(), ..NewSession::default() };
    let mut live = log.create(new).await.expect("it is new");
    live.append_durable(event(1)).await.expect("it is written");
    let copy = fs::read(segment(dir)).expect("it is read");
    live.append_durable(event(2)).await.expect("it is written");
    live.append_final(end_at(3)).await.expect("it is written");
    log.close().await;
    copy
}

// issue 28: whoever finds a session without its end, which no host claims, can end it, whatever the index says of it
#[tokio::test]
async fn a_session_without_its_end_can_be_ended() {
    for is_put_back in [false, true] {
        let dir = TempDir::new().unwrap();
        let copy = ended_session(dir.path()).await;
        if is_put_back {
            fs::write(segment(dir.path()), copy).unwrap();
        } else {
            let file = fs::File::options().write(true).open(segment(dir.path())).unwrap();
            file.set_len(file.metadata().unwrap().len() - 20).unwrap();
        }
        let last = if is_put_back { 1 } else { 2 };
        let log = open(dir.path());
        let row = log.get("a").await.unwrap().unwrap();
        assert_eq!((row.owner.as_deref(), row.last_seq), (Some("host"), last));
        assert_eq!(listed(&log).await, [("a".to_owned(), Some("host".to_owned()), false, last)]);
        assert_eq!(log.owners().await.unwrap(), ["host"]);
        let left = log.owned_by("host").await.unwrap();
        assert_eq!(left.into_iter().map(|row| row.id).collect::<Vec<_>>(), ["a"]);
        log.append_to("a", Some("host"), "next", end_at(9)).await.unwrap();
        assert!(log.owners().await.unwrap().is_empty());
        log.close().await;
        let log = open(dir.path());
        assert_eq!(listed(&log).await, [("a".to_owned(), None, true, last)]);
        log.close().await;
    }
}

// issue 28: a session whose files were taken away is listed no more once it was looked for
#[tokio::test]
async fn a_session_without_its_files_is_listed_no_more() {
    let dir = TempDir::new().unwrap();
    ended_session(dir.path()).await;
    fs::remove_file(segment(dir.path())).unwrap();
    let log = open(dir.path());
    assert_eq!(log.get("a").await.unwrap(), None);
    assert!(listed(&log).await.is_empty());
    log.close().await;
    let log = open(dir.path());
    assert!(listed(&log).await.is_empty());
    log.close().await;
}
