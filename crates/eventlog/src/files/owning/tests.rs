//! Changes of sessions that nobody has, cut off in the middle.

use crate::renaming::Renamed;
use crate::session_files::{FailPoint, failing_at};
use crate::sizes::Unchanged;
use crate::{Batch, EventLog, IndexUpdate, ListQuery, NewSession, Options};
use std::io::ErrorKind;
use std::path::Path;
use tempfile::TempDir;

const DONE: &str = "it is done";

fn open(dir: &Path) -> EventLog {
    let options = Options::default();
    EventLog::open(dir, options).expect("it opens")
}

async fn listed(log: &EventLog) -> Vec<String> {
    log.list(ListQuery::default()).await.expect(DONE).into_iter().map(|row| row.id).collect()
}

/// What is listed once a host has died in a change of a session that has ended, and whether another log finds each of these.
async fn listed_after(
    point: FailPoint,
    change: impl FnOnce(&EventLog) -> Result<(), crate::WriteError>,
) -> Vec<String> {
    let dir = TempDir::new().expect("a directory");
    let log = open(dir.path());
    let new = NewSession { id: "a".into(), owner: "host".into(), created_ms: 1, ..NewSession::default() };
    let mut appender = log.create(new).await.expect(DONE);
    let mut batch = Batch::new();
    batch.push(6, 1, b"event");
    appender.append_durable(batch).await.expect(DONE);
    let (ended, owner) = (Some(true), Some(None));
    let index = IndexUpdate { updated_ms: 5, ended, owner, ..IndexUpdate::default() };
    appender.append_final(Batch::index_only(index)).await.expect(DONE);
    log.shared.write_rows_first().await;
    failing_at(point, ErrorKind::Other, || change(&log)).expect_err("it is cut off");
    log.close().await;
    let log = open(dir.path());
    let listed = listed(&log).await;
    for id in &listed {
        assert!(log.get(id).await.expect(DONE).is_some(), "{id} is listed");
    }
    log.close().await;
    listed
}

// contract 7.3: a session whose removal was cut off by a kill is in no list of the next process, whatever the index says
#[tokio::test]
async fn a_removal_that_was_cut_off_is_not_listed() {
    for point in [FailPoint::Doomed, FailPoint::Unlinked] {
        let delete = |log: &EventLog| {
            let files = &*log.shared.files;
            log.shared.delete_files(files, "a", "host")
        };
        assert_eq!(listed_after(point, delete).await, Vec::<String>::new(), "{point:?}");
    }
}

// contract 7.3: one that was being renamed is listed under its new id alone
#[tokio::test]
async fn a_renaming_that_was_cut_off_is_listed_once() {
    for point in [FailPoint::Moving, FailPoint::Moved] {
        let rename = |log: &EventLog| {
            let files = &*log.shared.files;
            let renamed = Renamed { id: "b".into(), info: Vec::new(), at_ms: 6 };
            let seen = Unchanged { last_seq: 1, updated_ms: 5 };
            log.shared.rename_files(files, ("a", "host"), seen, renamed).map(drop)
        };
        assert_eq!(listed_after(point, rename).await, ["b"], "{point:?}");
    }
}

// issue 29: a host names a session that it changes only until the index says what became of it
#[tokio::test]
async fn a_change_that_is_done_leaves_no_claim() {
    let dir = TempDir::new().expect("a directory");
    let log = open(dir.path());
    for id in ["a", "b"] {
        let new = NewSession { id: id.into(), owner: "other".into(), created_ms: 1, ..NewSession::default() };
        let appender = log.create(new).await.expect(DONE);
        let (ended, owner) = (Some(true), Some(None));
        let index = IndexUpdate { updated_ms: 5, ended, owner, ..IndexUpdate::default() };
        appender.append_final(Batch::index_only(index)).await.expect(DONE);
    }
    let seen = Unchanged { last_seq: 0, updated_ms: 5 };
    assert!(!log.delete_ended("a", "host", Unchanged { last_seq: 1, ..seen }).await.expect(DONE));
    log.delete("a", "host").await.expect(DONE);
    let renamed = Renamed { id: "c".into(), info: Vec::new(), at_ms: 6 };
    assert!(log.rename("b", "host", seen, renamed).await.expect(DONE));
    log.shared.write_rows_first().await;
    assert_eq!(log.owners().await.expect(DONE), Vec::<String>::new());
    log.close().await;
}
