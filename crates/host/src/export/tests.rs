//! What an export has of a session that goes on, and how much of it is in memory.

use super::*;
use crate::host_file::HostFile;
use acpd_eventlog::{Appender, Batch, EventLog, NewSession, Options};
use std::path::Path;

fn store(dir: &Path) -> SessionStore {
    let log = EventLog::open(dir, Options::default()).expect("it can be used");
    SessionStore::new(log, HostFile::create(dir).expect("it can be used"))
}

async fn live(store: &SessionStore, id: &SessionId, info: &str) -> Appender {
    let mut events = Batch::new();
    events.push(1, 5, br#"{"agent":"a","cwd":"/w"}"#);
    events.push(2, 5, br#"{"pid":7,"agentInfo":null}"#);
    let new = NewSession {
        id: id.to_string(),
        agent: "a".into(),
        cwd: "/w".into(),
        owner: "host".into(),
        created_by: Some("token".into()),
        created_ms: 5,
        info: info.into(),
        events,
    };
    store.log.create(new).await.expect("it is new")
}

async fn begun(store: &SessionStore, id: &SessionId) -> SessionExport {
    let row = store.row(id).await.expect("it is there");
    SessionExport::begin(store, id, &row, ExportForm::Jsonl).await.expect("it can be read")
}

async fn whole(mut export: SessionExport) -> String {
    let mut all = Vec::new();
    while let Some(piece) = export.next_piece().await.expect("it can be read") {
        all.extend_from_slice(&piece);
    }
    String::from_utf8(all).expect("text")
}

// contract 7.3: the facts and the events of a session, a line each; nothing of the agent's id, of the mode that its questions
// are answered in, or of the token
#[tokio::test]
async fn an_export_has_what_was_committed_when_it_began() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, id) = (store(dir.path()), SessionId::parse("s-1").expect("an id"));
    let info = r#"{"nativeSessionId":"native","permissionMode":"bypassPermissions","title":"T","client":"c","runs":1}"#;
    let mut appender = live(&store, &id, info).await;
    let export = begun(&store, &id).await;
    let mut later = Batch::new();
    later.push(3, 6, br#"{"turn":1,"by":"c","prompt":[]}"#);
    appender.append_durable(later).await.expect("room on the disk");
    let lines = [
        r#"{"type":"acpd-export","version":1,"sessionId":"s-1","agent":"a","cwd":"/w","createdMs":5,"title":"T","events":2}"#,
        r#"{"seq":1,"atMs":5,"kind":"created","payload":{"agent":"a","cwd":"/w"}}"#,
        r#"{"seq":2,"atMs":5,"kind":"run_started","payload":{"pid":7,"agentInfo":null}}"#,
        "",
    ];
    assert_eq!(whole(export).await, lines.join("\n"));
    let now = whole(begun(&store, &id).await).await;
    assert_eq!(now.lines().count(), 4);
    assert!(now.ends_with("\"payload\":{\"turn\":1,\"by\":\"c\",\"prompt\":[]}}\n"), "{now}");
    drop(appender);
    store.log.close().await;
}

// contract 7.3: a session of any length takes the memory of a block
#[tokio::test]
async fn an_export_comes_in_pieces() {
    const EVENTS: usize = 40_000;
    let dir = tempfile::tempdir().expect("a directory");
    let (store, id) = (store(dir.path()), SessionId::parse("s-1").expect("an id"));
    let mut appender = live(&store, &id, "{}").await;
    let payload = format!(r#"{{"text":"{}"}}"#, "x".repeat(400));
    for _ in 0..EVENTS / 1000 {
        let mut batch = Batch::new();
        (0..1000).for_each(|_| batch.push(4, 5, payload.as_bytes()));
        appender.append_durable(batch).await.expect("room on the disk");
    }
    let (mut export, mut bytes, mut lines) = (begun(&store, &id).await, 0, 0);
    while let Some(piece) = export.next_piece().await.expect("it can be read") {
        assert!(piece.len() < 2 << 20, "a piece of {} bytes", piece.len());
        assert_eq!(piece.last(), Some(&b'\n'));
        bytes += piece.len();
        lines += piece.iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(lines, EVENTS + 3);
    assert!(bytes > 16 << 20, "{bytes}");
    drop(appender);
    store.log.close().await;
}

// contract 7.3: an export of a session that is deleted meanwhile breaks off, and does not look whole
#[tokio::test]
async fn a_session_that_goes_is_no_short_export() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, id) = (store(dir.path()), SessionId::parse("s-1").expect("an id"));
    let mut appender = live(&store, &id, "{}").await;
    let big = format!("\"{}\"", "x".repeat(1 << 20));
    for _ in 0..40 {
        let mut batch = Batch::new();
        batch.push(4, 5, big.as_bytes());
        appender.append_durable(batch).await.expect("room on the disk");
    }
    let released = acpd_eventlog::IndexUpdate { owner: Some(None), ..acpd_eventlog::IndexUpdate::default() };
    appender.append_final(Batch::index_only(released)).await.expect("room on the disk");
    let mut export = begun(&store, &id).await;
    assert!(export.next_piece().await.expect("its head").is_some());
    store.log.delete(id.as_str(), "host").await.expect("it is there");
    let error = loop {
        match export.next_piece().await {
            Ok(piece) => assert!(piece.is_some(), "it looks whole"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, HostError::UnknownSession { .. }), "{error:?}");
    store.log.close().await;
}

// design fleet, partition: a copy that was set aside is exported, and can be imported, under the id that it has
#[tokio::test]
async fn a_session_with_another_id_is_exported_under_that() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, id) = (store(dir.path()), SessionId::parse("s-1").expect("an id"));
    let info = r#"{"setAside":{"id":"former","by":"b"}}"#;
    let mut appender = live(&store, &id, info).await;
    let mut update = Batch::new();
    update.push(
        4,
        6,
        br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"former","x":1.0}}"#,
    );
    appender.append_durable(update).await.expect("room on the disk");
    let all = whole(begun(&store, &id).await).await;
    let update = r#""params":{"sessionId":"s-1","x":1.0}"#;
    assert!(all.contains(update) && !all.contains("former"), "{all}");
}
