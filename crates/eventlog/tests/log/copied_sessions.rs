//! Backups: the session files of a state directory, copied and put into another.

use acpd_eventlog::{Batch, EventLog, IndexUpdate, NewSession};
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn session(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "old".into(), ..NewSession::default() }
}

fn event() -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 1, b"event");
    batch
}

fn end() -> Batch {
    Batch::index_only(IndexUpdate { ended: Some(true), owner: Some(None), ..IndexUpdate::default() })
}

/// Copies all files below a directory.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("it is made");
    for entry in std::fs::read_dir(from).expect("it is read").flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).expect("it is copied")),
        }
    }
}

// contract 6: a copy of the sessions of a running host, and of nothing else, is a backup: what was live in it can be ended
#[tokio::test]
async fn what_was_live_in_a_copy_is_found() {
    let (dir, restored) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let log = open(&dir);
    let mut live = log.create(session("a")).await.unwrap();
    live.append_durable(event()).await.unwrap();
    let mut ended = log.create(session("b")).await.unwrap();
    ended.append_durable(end()).await.unwrap();
    copy(&dir.path().join("sessions"), &restored.path().join("sessions"));
    // The second one finds an index that the first has made.
    for _ in 0..2 {
        let copied = open(&restored);
        assert_eq!(copied.owners().await.unwrap(), ["old"]);
        let owned = copied.owned_by("old").await.unwrap();
        assert_eq!(owned.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["a"]);
        copied.close().await;
    }
    let copied = open(&restored);
    copied.append_to("a", Some("old"), "next", end()).await.unwrap();
    assert!(copied.owners().await.unwrap().is_empty() && copied.owned_by("old").await.unwrap().is_empty());
    drop(copied.reopen("a", "new").await.unwrap());
    copied.close().await;
    live.append_durable(event()).await.unwrap();
    log.close().await;
}
