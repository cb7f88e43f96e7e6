//! What live sessions are waits to be indexed, and nobody sees that.

use acpd_eventlog::{Batch, EventLog, IndexUpdate, NewSession, Options, SearchQuery, SearchText, TurnText};
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// A log whose index learns of live sessions only what is asked for.
fn open(dir: &Path) -> EventLog {
    let options = Options { index_lag: Duration::from_secs(3600), ..super::options() };
    EventLog::open(dir, options).expect("the log opens")
}

fn updated(at_ms: i64) -> Batch {
    let mut batch = Batch::index_only(IndexUpdate { updated_ms: at_ms, ..IndexUpdate::default() });
    batch.push(1, at_ms, b"event");
    batch
}

/// What the index says of a session: whether a host has it, and its last event.
fn indexed(connection: &Connection, id: &str) -> Option<(bool, u64)> {
    let mut select = connection
        .prepare("SELECT owner IS NOT NULL, last_seq FROM session WHERE id = ?1")
        .expect("it is an index");
    let row = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)));
    row.optional().expect("it is read")
}

async fn listed(log: &EventLog) -> Vec<(String, u64)> {
    let rows = log.list(Default::default()).await.expect("it is read");
    rows.into_iter().map(|row| (row.id, row.last_seq)).collect()
}

async fn found(log: &EventLog, text: &str) -> Vec<u64> {
    let text = SearchText::parse(text).expect("words");
    let query = SearchQuery { text, created_by: None, after: None, limit: 10 };
    log.search(query).await.expect("it is read").into_iter().map(|hit| hit.seq).collect()
}

fn turn(seq: u64) -> Vec<TurnText> {
    vec![TurnText { seq, at_ms: 0, text: "needle".to_owned() }]
}

// issue 29, design session-files 7: nothing is written to the index while a session runs, except its turns for search; lists and
// searches know all that was said before them, and what ends is indexed soon
#[tokio::test]
async fn a_running_session_is_indexed_when_it_is_searched_for() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(dir.path()), open(dir.path()));
    let index = Connection::open(crate::index(dir.path())).unwrap();
    let version = || index.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0)).unwrap();
    let new = NewSession { id: "a".into(), owner: "host".into(), ..NewSession::default() };
    let before = version();
    let mut live = log.create(new).await.unwrap();
    for at in 1..500 {
        live.append_now(updated(at)).unwrap();
    }
    // Behind all the others, which may wait for a disk that is busy.
    live.append_durable(updated(500)).await.unwrap();
    for log in [&log, &other] {
        assert_eq!(listed(log).await, [("a".to_owned(), 500)]);
    }
    assert_eq!((version(), indexed(&index, "a")), (before, None));

    assert!(log.index("a", (0, 400), turn(400)).await.unwrap());
    assert_eq!(indexed(&index, "a"), Some((true, 500)), "its row goes with its words");
    assert_eq!(found(&log, "needle").await, [400]);
    live.append_durable(updated(501)).await.unwrap();
    assert_eq!(log.indexed("a").await.unwrap(), Some(400));
    assert_eq!(indexed(&index, "a"), Some((true, 500)), "that needs no row");
    assert!(log.index("a", (400, 501), turn(501)).await.unwrap());
    assert_eq!(found(&log, "needle").await, [501, 400]);
    assert_eq!(found(&other, "needle").await, [501, 400]);

    let over =
        IndexUpdate { updated_ms: 502, owner: Some(None), ended: Some(true), ..IndexUpdate::default() };
    live.append_final(Batch::index_only(over)).await.unwrap();
    let soon = async {
        while indexed(&index, "a") != Some((false, 501)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(90), soon).await.expect("the index learns of an end");

    let new = NewSession { id: "b".into(), owner: "host".into(), ..NewSession::default() };
    let mut live = log.create(new).await.unwrap();
    live.append_now(updated(600)).unwrap();
    drop(live);
    log.close().await;
    assert_eq!(indexed(&index, "b"), Some((true, 1)), "a log that closes has written all");
    other.close().await;
}
