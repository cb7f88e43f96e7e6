//! Imports on a log: all or nothing, and what comes out again is what came in.

use super::*;
use crate::export::{ExportForm, SessionExport};
use crate::host_file::HostFile;
use crate::recovery::Recovery;
use acpd_eventlog::{EventLog, ListQuery, Options};
use std::path::Path;

const LINES: [&str; 5] = [
    r#"{"type":"acpd-export","version":1,"sessionId":"s-1","agent":"example","cwd":"/w","createdMs":7,"title":"T","events":4}"#,
    r#"{"seq":1,"atMs":7,"kind":"created","payload":{"agent":"example","cwd":"/w","by":"c"}}"#,
    r#"{"seq":2,"atMs":7,"kind":"run_started","payload":{"pid":7,"agentInfo":null}}"#,
    r#"{"seq":3,"atMs":8,"kind":"prompt","text":"{\"turn\":1,\"by\":\"c\",\"prompt\":[\n]}"}"#,
    r#"{"seq":4,"atMs":9,"kind":"update","payload":{ "jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"x":1.0}}}}"#,
];

fn open(dir: &Path) -> Arc<SessionStore> {
    let log = EventLog::open(dir, Options::default()).expect("it can be used");
    Arc::new(SessionStore::new(log, HostFile::create(dir).expect("it can be used")))
}

fn begin(store: &Arc<SessionStore>) -> SessionImport {
    let creator = Creator { client: "importer".into(), token: Some("ci".into()), key: None };
    SessionImport::new(Arc::clone(store), creator, 1 << 20)
}

async fn imported(store: &Arc<SessionStore>, text: &[u8]) -> Result<SessionId, ImportError> {
    let mut import = begin(store);
    for piece in text.chunks(100) {
        import.push(piece).await?;
    }
    import.finish().await
}

async fn exported(store: &SessionStore, id: &SessionId) -> String {
    let row = store.row(id).await.expect("it is there");
    let (mut export, mut all) =
        (SessionExport::begin(store, id, &row, ExportForm::Jsonl).await.expect("readable"), Vec::new());
    while let Some(piece) = export.next_piece().await.expect("readable") {
        all.extend_from_slice(&piece);
    }
    String::from_utf8(all).expect("text")
}

fn export() -> String {
    LINES.map(|line| format!("{line}\n")).concat()
}

// contract 7.3: the importer becomes the creator, the session has ended, and its export is byte-equal to what was imported
#[tokio::test]
async fn an_import_is_exported_as_it_came() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let id = imported(&store, export().as_bytes()).await.expect("it is legal");
    let row = store.row(&id).await.expect("it is there");
    assert_eq!((row.ended, row.owner.as_deref(), row.created_by.as_deref()), (true, None, Some("ci")));
    assert_eq!((row.created_ms, row.last_seq, &*row.cwd), (7, 5, "/w"));
    assert_eq!(acpd_record::SessionMeta::read(&row.info).client.as_deref(), Some("importer"));
    assert_eq!(exported(&store, &id).await, export());
    let again = imported(&store, export().as_bytes()).await.expect_err("it is there");
    assert_eq!(
        again.to_string(),
        "line 1: sessionId: s-1 is the id of a session that is here already; delete that first"
    );
    store.log.clone().close().await;
}

// contract 7.3: all or nothing, and the answer says which line it was
#[tokio::test]
async fn what_is_not_whole_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let whole = export();
    for (text, expected) in [
        (Vec::new(), "line 1: line: the first line of an export is required, and nothing came"),
        (whole.trim_end().into(), "line 5: line: it has no end: the export was cut off"),
        (
            format!("{}\n", LINES[..4].join("\n")).into(),
            "line 5: line: line 1 announces 4 events, and there are 3: it was cut off",
        ),
        (
            whole.replace('\n', "\r\n").into(),
            "line 1: line: a carriage return is not taken; lines end with \\n",
        ),
        (
            whole.replace("\n{\"seq\":3", "\n\n{\"seq\":3").into(),
            "line 4: line: an object of JSON is required: ",
        ),
        ([whole.as_bytes(), b"\xff\n"].concat(), "line 6: line: UTF-8 is required"),
        (whole.replace("\"s-1\"", "\"..\"").into(), "line 1: sessionId: an id that is not \".\" or \"..\""),
        (whole.replace("\"s-1\"", "\"-x\"").into(), "line 1: sessionId: an id that is not"),
        (
            format!("{}\n{}", LINES[0], "x".repeat(2 << 20)).into(),
            "line 2: line: it is longer than 1114112 bytes; line_bytes in [limits] bounds it",
        ),
    ] {
        let text: Vec<u8> = text;
        let error = imported(&store, &text).await.expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}\nand not\n{expected}");
        assert!(store.log.list(ListQuery::default()).await.expect("readable").is_empty());
    }
    imported(&store, whole.as_bytes()).await.expect("nothing is in its way");
    store.log.clone().close().await;
}

// contract 7.3: a line without an end is given up at its bound, whatever its length
#[tokio::test]
async fn a_gigabyte_in_a_line_takes_the_memory_of_the_bound() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let mut import = begin(&store);
    import.push(format!("{}\n", LINES[0]).as_bytes()).await.expect("a first line");
    let (piece, mut pushed) = ("x".repeat(64 << 10), 0);
    let error = loop {
        match import.push(piece.as_bytes()).await {
            Ok(()) => pushed += piece.len(),
            Err(error) => break error,
        }
    };
    assert!(pushed <= 2 << 20, "{pushed} bytes were taken");
    assert!(import.lines.capacity() <= 4 << 20, "{} bytes are held", import.lines.capacity());
    assert!(matches!(error, ImportError::Line { line: 2, .. }), "{error}");
    store.log.clone().close().await;
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("it is read");
        let copied = to.join(entry.file_name());
        if entry.file_type().expect("it is there").is_dir() {
            std::fs::create_dir(&copied).expect("it is new");
            copy(&entry.path(), &copied);
        } else {
            std::fs::copy(entry.path(), copied).expect("it is there");
        }
    }
}

// contract 7.3: what a host was importing when it died is discarded by the next
#[tokio::test]
async fn what_a_dead_host_was_importing_is_discarded() {
    let dir = tempfile::tempdir().expect("a directory");
    let dead = open(dir.path());
    let mut import = begin(&dead);
    import.push(export().as_bytes()).await.expect("it is legal");
    dead.log.committed().await.expect("it is open");
    // As kill -9 leaves it: nothing is tidied up, and no file is locked.
    let left = tempfile::tempdir().expect("a directory");
    copy(dir.path(), left.path());
    drop(import);
    dead.log.clone().close().await;
    let store = open(left.path());
    assert_eq!(store.log.owners().await.expect("readable").len(), 1);
    Recovery::new(Arc::clone(&store)).recover_dead_hosts().await;
    assert!(store.log.owners().await.expect("readable").is_empty());
    assert!(store.log.list(ListQuery::default()).await.expect("readable").is_empty());
    imported(&store, export().as_bytes()).await.expect("nothing is in its way");
    store.log.clone().close().await;
}
