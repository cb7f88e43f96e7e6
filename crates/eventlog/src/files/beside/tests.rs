//! The notes of a session whose host dies between the release and them.

use crate::notes;
use crate::outbox::{Note, Subscriber};
use crate::session_files::layout;
use crate::{Batch, EventLog, IndexUpdate, ListQuery, NewSession, Options, schema};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const DONE: &str = "it is done";

fn open(dir: &Path) -> EventLog {
    EventLog::open(dir, Options::default()).expect("it opens")
}

fn event() -> Batch {
    let mut batch = Batch::new();
    batch.push(6, 1, b"event");
    batch
}

/// The directory as a process leaves it that is killed now.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect(DONE);
    for entry in fs::read_dir(from).expect(DONE) {
        let entry = entry.expect(DONE);
        let name = entry.file_name();
        if entry.file_type().expect(DONE).is_dir() {
            copy(&entry.path(), &to.join(name));
        } else if !name.to_string_lossy().ends_with("-shm") {
            fs::copy(entry.path(), to.join(name)).expect(DONE);
        }
    }
}

// contract 7.2: a host that is killed behind the end of a session has hooks told of that by whoever finds it dead, and is then
// forgotten
#[tokio::test]
async fn the_end_of_a_session_is_noted_for_a_host_that_died_with_it() {
    let (dir, left) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let log = open(dir.path());
    let subscribers = vec![Subscriber { name: "x".into(), kinds: vec![6] }];
    log.subscribe(subscribers.clone()).await.expect(DONE);
    let new = NewSession { id: "a".into(), owner: "dead".into(), ..NewSession::default() };
    let mut appender = log.create(new).await.expect(DONE);
    appender.append_durable(event()).await.expect(DONE);
    assert_eq!(log.outbox("x", 0, 9).await.expect(DONE).len(), 1);
    // From here on nothing is noted.
    let foreign = rusqlite::Connection::open(dir.path().join("hooks.db")).expect("it opens");
    foreign.execute_batch("BEGIN IMMEDIATE").expect("it is locked");
    let mut end = event();
    end.update_index(IndexUpdate { updated_ms: 2, owner: Some(None), ..IndexUpdate::default() });
    appender.append_final(end).await.expect("a session needs no notes");
    copy(dir.path(), left.path());
    drop(foreign);
    log.close().await;

    let log = open(left.path());
    log.subscribe(subscribers).await.expect(DONE);
    log.discard_partials("dead").await.expect(DONE);
    let noted: Vec<u64> =
        log.outbox("x", 0, 9).await.expect(DONE).into_iter().map(|Note { seq, .. }| seq).collect();
    assert_eq!(noted, [1, 2]);
    log.discard_partials("dead").await.expect(DONE);
    let hooks = schema::open_reader(&left.path().join("hooks.db")).expect("it opens");
    assert_eq!(notes::subscribers(&hooks, "dead").expect(DONE), []);
    assert!(!left.path().join("claims").join(layout::name_of("dead")).exists());
    log.close().await;
}

// contract 6, contract 1.2: what is recorded behind the end of a session is listed, too, if its recorder is killed before the index has it
#[tokio::test]
async fn an_end_that_was_made_final_is_listed_though_its_recorder_died() {
    let (dir, left) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let log = open(dir.path());
    let new = NewSession { id: "a".into(), owner: "dead".into(), ..NewSession::default() };
    let mut end = event();
    end.update_index(IndexUpdate { updated_ms: 2, owner: Some(None), ..IndexUpdate::default() });
    log.create(new).await.expect(DONE).append_final(end).await.expect(DONE);
    log.shared.write_rows_first().await;
    // From here on nothing is indexed.
    let foreign = rusqlite::Connection::open(dir.path().join("index-1.db")).expect("it opens");
    foreign.execute_batch("BEGIN IMMEDIATE").expect("it is locked");
    assert_eq!(log.append_to("a", None, "next", event()).await.expect("a session needs no index"), 2);
    copy(dir.path(), left.path());
    drop(foreign);
    log.close().await;

    let log = open(left.path());
    let rows = log.list(ListQuery::default()).await.expect(DONE);
    assert_eq!(rows.iter().map(|row| row.last_seq).collect::<Vec<_>>(), [2]);
    log.close().await;
}
