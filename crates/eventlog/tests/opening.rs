//! Opening: fresh, shared, newer, damaged and foreign files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Barrier;

use acpd_eventlog::{
    Batch, Checkpoint, CursorError, EventLog, ListQuery, NewSession, OpenError, Options, QueryError,
    WriteError,
};
use rusqlite::Connection;
use tempfile::TempDir;

fn open(dir: &TempDir) -> Result<EventLog, OpenError> {
    EventLog::open(dir.path(), Options::default())
}

fn database(dir: &TempDir) -> PathBuf {
    dir.path().join("acpd.db")
}

fn session(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "host".into(), ..NewSession::default() }
}

async fn fill(dir: &TempDir, events: u64) {
    let log = open(dir).expect("the log opens");
    let mut appender = log.create(session("a")).await.expect("a new session");
    for n in 0..events {
        let mut batch = Batch::new();
        batch.push(1, n as i64, &[b'x'; 3000]);
        appender.append_durable(batch).await.expect("room on the disk");
    }
    drop(appender);
    log.close().await;
}

fn refusal(dir: &TempDir) -> OpenError {
    let before = fs::read(database(dir)).expect("the file is there");
    let error = open(dir).expect_err("refused");
    assert!(fs::read(database(dir)).expect("still there") == before, "a refused file stays as it is");
    error
}

// contract 6: several processes may share a state directory, from the first moment on
#[test]
fn a_fresh_directory_can_be_opened_by_many_at_once() {
    for _ in 0..10 {
        let dir = TempDir::new().unwrap();
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    open(&dir).map(drop).unwrap();
                });
            }
        });
    }
}

// SC-1: file modes 0700 and 0600
#[tokio::test]
async fn nobody_else_can_read_it() {
    let parent = TempDir::new().unwrap();
    let dir = parent.path().join("state/acpd");
    let log = EventLog::open(&dir, Options::default()).unwrap();
    log.create(session("a")).await.unwrap();
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir.clone()), 0o700);
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }
}

// issue 2, deliver 4: a clear error for a newer file
#[tokio::test]
async fn a_newer_file_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    fill(&dir, 1).await;
    let file = Connection::open(database(&dir)).unwrap();
    file.pragma_update(None, "user_version", 10).unwrap();
    drop(file);
    let error = refusal(&dir);
    assert!(matches!(&error, OpenError::Newer { found: 10, supported: 9, path } if *path == database(&dir)));
    assert!(error.to_string().contains("use the newer acpd"), "{error}");
}

/// The tables as they were when format 1 was released.
const FORMAT_1: &str = "
    CREATE TABLE session (
        row INTEGER PRIMARY KEY AUTOINCREMENT CHECK (row < 134217728), id TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL, cwd TEXT NOT NULL, owner TEXT, created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0,
        last_seq INTEGER NOT NULL DEFAULT 0 CHECK (last_seq < 68719476736)
    );
    CREATE INDEX session_by_time ON session (updated_ms DESC, id);
    CREATE INDEX session_by_agent ON session (agent, updated_ms DESC, id);
    CREATE INDEX session_by_cwd ON session (cwd, updated_ms DESC, id);
    CREATE INDEX session_by_owner ON session (owner) WHERE owner IS NOT NULL;
    CREATE TABLE info (session INTEGER PRIMARY KEY, info BLOB NOT NULL);
    CREATE TABLE block (
        key INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, unpacked INTEGER NOT NULL DEFAULT 0,
        records BLOB NOT NULL
    );
    CREATE TABLE garbage (session INTEGER PRIMARY KEY);
    INSERT INTO session (id, agent, cwd, created_ms, updated_ms, ended) VALUES ('old', 'x', '/', 1, 2, 1);
    INSERT INTO info (session, info) VALUES (1, x'7b7d');
    PRAGMA application_id = 1633906788;
    PRAGMA user_version = 1;
";

// contract 1.7: sessions from before there were creators are nobody's, and go on as they are
#[tokio::test]
async fn a_file_of_the_first_format_is_brought_up_to_date() {
    let dir = TempDir::new().unwrap();
    let file = Connection::open(database(&dir)).unwrap();
    file.pragma_update(None, "journal_mode", "wal").unwrap();
    file.execute_batch(FORMAT_1).unwrap();
    drop(file);
    let log = open(&dir).unwrap();
    let row = log.get("old").await.unwrap().unwrap();
    assert_eq!((row.created_by, row.ended, row.updated_ms, row.info), (None, true, 2, b"{}".to_vec()));
    assert_eq!((row.state, row.position), (0, 0));
    let mut appender = log.reopen("old", "host").await.unwrap();
    let mut batch = Batch::new();
    batch.push(1, 3, b"event");
    assert_eq!(appender.append_durable(batch).await.unwrap(), 1..=1);
    drop(appender);
    log.keep_checkpoint("old", Checkpoint { seq: 1, bytes: b"one".to_vec() });
    log.create(NewSession { created_by: Some("ci".into()), ..session("new") }).await.unwrap();
    let query = ListQuery { created_by: Some("ci".into()), ..ListQuery::default() };
    assert_eq!(log.list(query).await.unwrap().len(), 1);
    log.close().await;
    // Once is enough.
    let log = open(&dir).unwrap();
    assert_eq!(log.list(ListQuery::default()).await.unwrap().len(), 2);
    assert!(log.checkpoint("old", 1).await.unwrap().is_some());
}

// issue 2, deliver 4: a clear error for a damaged file
#[tokio::test]
async fn a_damaged_file_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    fs::write(
        database(&dir),
        b"this is a text, and quite long enough to be taken for a header of something".repeat(99),
    )
    .unwrap();
    let error = refusal(&dir);
    assert!(matches!(&error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("restore it from a backup"), "{error}");
    for (from, to) in [(0, 100), (40, 4096), (8192, 65536)] {
        let dir = TempDir::new().unwrap();
        fill(&dir, 20).await;
        let mut bytes = fs::read(database(&dir)).unwrap();
        bytes[from..to].fill(0x5a);
        fs::write(database(&dir), bytes).unwrap();
        let error = refusal(&dir);
        assert!(matches!(&error, OpenError::Damaged { .. }), "{from}..{to}: {error:?}");
    }
}

// issue 2, deliver 4: damage that shows later is an error of the reader, never wrong events
#[tokio::test]
async fn damaged_events_are_an_error_and_not_a_gap() {
    let dir = TempDir::new().unwrap();
    fill(&dir, 5).await;
    let file = Connection::open(database(&dir)).unwrap();
    file.execute("DELETE FROM block WHERE last_seq = 3", []).unwrap();
    drop(file);
    let log = open(&dir).unwrap();
    let mut cursor = log.cursor("a", 1).await.unwrap();
    let error = loop {
        match cursor.next().await {
            Ok(block) => assert!(block.is_some_and(|block| block.last() < 3)),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CursorError::Damaged { seq: 2 | 3, .. }), "{error:?}");
}

/// The page where a table or an index begins.
fn first_page(dir: &TempDir, name: &str) -> usize {
    let file = Connection::open(database(dir)).expect("it is a database");
    let find = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    file.query_row(find, [name], |row| row.get::<_, i64>(0)).expect("it is there") as usize - 1
}

/// What a check of the log says, once it has found something.
async fn until_damaged(log: &EventLog) -> WriteError {
    loop {
        if let Err(error) = log.check().await {
            return error;
        }
        tokio::task::yield_now().await;
    }
}

// contract 6: a log that is damaged where the start does not look is not ready, before a request meets it and after
#[tokio::test]
async fn damage_is_told_by_the_check() {
    // The lists' index; the index that only some requests need; an event.
    for name in ["session_by_time", "session_by_cwd", "block"] {
        let dir = TempDir::new().unwrap();
        fill(&dir, 60).await;
        let mut bytes = fs::read(database(&dir)).unwrap();
        let page = match name {
            // Events are what was written last.
            "block" => bytes.len() / 8192 - 3,
            index => first_page(&dir, index),
        };
        bytes[page * 8192..(page + 1) * 8192].fill(0x5a);
        fs::write(database(&dir), bytes).unwrap();
        let log = open(&dir).unwrap();
        let told = until_damaged(&log).await;
        assert!(matches!(told, WriteError::Damaged { .. }), "{name}: {told:?}");
        drop(log.list(ListQuery::default()).await);
        let told = log.check().await.unwrap_err();
        assert!(matches!(told, WriteError::Damaged { .. }), "{name}: {told:?}");
        let source = std::error::Error::source(&told).unwrap();
        assert!(source.to_string().contains("malformed") && source.source().is_none(), "{source}");
        log.close().await;
    }
}

// contract 6: what one reader has met is told to all who ask whether the log can be used
#[tokio::test]
async fn damage_that_a_request_meets_is_remembered() {
    let dir = TempDir::new().unwrap();
    fill(&dir, 60).await;
    let log = open(&dir).unwrap();
    let page = first_page(&dir, "session_by_time");
    let file = fs::OpenOptions::new().write(true).open(database(&dir)).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; 8192], page as u64 * 8192).unwrap();
    let error = log.list(ListQuery::default()).await.unwrap_err();
    assert!(matches!(error, QueryError::Read { .. }), "{error:?}");
    assert_eq!(error.to_string(), "the event log is damaged, restore it from a backup");
    assert!(matches!(log.check().await, Err(WriteError::Damaged { .. })));
    log.close().await;
}

// contract 6: the state directory holds acpd's file and nobody else's
#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let file = Connection::open(database(&dir)).unwrap();
    file.execute_batch("CREATE TABLE theirs (x); PRAGMA application_id = 5").unwrap();
    drop(file);
    let error = refusal(&dir);
    assert!(matches!(error, OpenError::Foreign { application_id: 5, .. }), "{error:?}");
}

// contract 6: an unusable state directory is named
#[test]
fn a_directory_that_can_not_be_made_is_named() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = EventLog::open(&dir.path().join("file/state"), Options::default()).err().unwrap();
    assert!(matches!(&error, OpenError::Directory { path, .. } if path.ends_with("file/state")), "{error:?}");
}

// UP-5: a crash in the middle of the first start leaves something that the next start can finish
#[test]
fn an_empty_file_is_a_fresh_one() {
    let dir = TempDir::new().unwrap();
    fs::write(database(&dir), "").unwrap();
    open(&dir).unwrap();
}
