//! The index of sessions: listing, ownership, reopening, deleting.

use acpd_eventlog::{
    Batch, CursorError, EventLog, IndexUpdate, ListQuery, NewSession, SessionRow, WriteError,
};
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn session(id: &str, agent: &str, cwd: &str, created_ms: i64) -> NewSession {
    NewSession {
        id: id.into(),
        agent: agent.into(),
        cwd: cwd.into(),
        owner: "host".into(),
        created_ms,
        info: b"info".to_vec(),
        ..NewSession::default()
    }
}

fn one_event() -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 1, b"event");
    batch
}

fn released(updated_ms: i64) -> IndexUpdate {
    IndexUpdate { updated_ms, ended: Some(true), owner: Some(None), ..IndexUpdate::default() }
}

fn ids(rows: &[SessionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

// contract 1.3: cwd, agent, ended, cursor and limit; filters before paging
#[tokio::test]
async fn a_list_is_filtered_then_sorted_then_paged() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for (n, (agent, cwd)) in
        [("x", "/a"), ("y", "/a"), ("x", "/b"), ("x", "/a"), ("x", "/a")].iter().enumerate()
    {
        // Two of them changed at the same moment.
        let at = if n == 4 { 3 } else { n as i64 };
        log.create(session(&format!("s{n}"), agent, cwd, at)).await.unwrap();
    }
    let all = log.list(ListQuery::default()).await.unwrap();
    assert_eq!(ids(&all), ["s3", "s4", "s2", "s1", "s0"], "latest change first, then the id");
    let agent = Some("x".to_owned());
    let mut query = ListQuery { agent, cwd: Some("/a".into()), limit: Some(2), ..ListQuery::default() };
    let page = log.list(query.clone()).await.unwrap();
    assert_eq!(ids(&page), ["s3", "s4"]);
    query.after = page.last().map(|row| (row.updated_ms, row.id.clone()));
    assert_eq!(ids(&log.list(query.clone()).await.unwrap()), ["s0"]);
    query = ListQuery { after: Some((3, "s3".into())), ..ListQuery::default() };
    assert_eq!(ids(&log.list(query).await.unwrap()), ["s4", "s2", "s1", "s0"]);
    log.update_index("s1", Some("host"), "next", released(9)).await.unwrap();
    let query = |ended| ListQuery { ended: Some(ended), ..ListQuery::default() };
    assert_eq!(ids(&log.list(query(true)).await.unwrap()), ["s1"]);
    assert_eq!(ids(&log.list(query(false)).await.unwrap()), ["s3", "s4", "s2", "s0"]);
    assert_eq!(ids(&log.list(ListQuery::default()).await.unwrap()), ["s1", "s3", "s4", "s2", "s0"]);
}

// contract 1.7, SC-3: a list of what one creator has, and nothing of others
#[tokio::test]
async fn a_list_can_be_of_one_creator() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for (n, creator) in [Some("ci"), None, Some("other"), Some("ci"), Some("ci")].into_iter().enumerate() {
        let created_by = creator.map(str::to_owned);
        let new = NewSession { created_by, ..session(&format!("s{n}"), "x", "/", n as i64) };
        log.create(new).await.unwrap();
    }
    let mut query = ListQuery { created_by: Some("ci".into()), limit: Some(2), ..ListQuery::default() };
    let page = log.list(query.clone()).await.unwrap();
    assert_eq!(ids(&page), ["s4", "s3"]);
    assert_eq!(page[0].created_by.as_deref(), Some("ci"));
    query.after = page.last().map(|row| (row.updated_ms, row.id.clone()));
    assert_eq!(ids(&log.list(query).await.unwrap()), ["s0"]);
    let nobody = ListQuery { created_by: Some("".into()), ..ListQuery::default() };
    assert!(log.list(nobody).await.unwrap().is_empty(), "those of nobody are nobody's to ask for");
    assert_eq!(log.list(ListQuery::default()).await.unwrap().len(), 5);
}

// contract 6: whoever is killed while it creates a session leaves all of its beginning, or nothing
#[tokio::test]
async fn nobody_finds_a_session_without_its_beginning() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let creating = async {
        for n in 0..200 {
            let mut new = session(&format!("s{n}"), "x", "/", n);
            new.events.push(1, n, b"created");
            new.events.push(2, n, b"started");
            let mut appender = log.create(new).await.unwrap();
            assert_eq!(appender.committed().seq(), 2);
            assert_eq!(appender.append_durable(one_event()).await.unwrap(), 3..=3);
        }
    };
    let looking = async {
        let mut found = 0;
        while found < 200 {
            let rows = other.list(ListQuery::default()).await.unwrap();
            assert!(
                rows.iter().all(|row| row.last_seq >= 2),
                "{:?}",
                rows.iter().find(|row| row.last_seq < 2)
            );
            found = rows.len();
        }
    };
    tokio::join!(creating, looking);
    let mut cursor = other.cursor("s7", 0).await.unwrap();
    let block = cursor.next().await.unwrap().unwrap();
    assert_eq!(block.events().map(|event| event.kind).collect::<Vec<_>>()[..2], [1, 2]);

    let mut huge = session("huge", "x", "/", 1);
    huge.events.push(1, 1, &vec![b'x'; acpd_eventlog::MAX_PAYLOAD_BYTES + 1]);
    assert!(matches!(log.create(huge).await, Err(WriteError::TooLarge { .. })));
    assert_eq!(log.get("huge").await.unwrap(), None);
}

// contract 1.7: it stays whose it was, with whichever host goes on with it
#[tokio::test]
async fn a_creator_outlives_the_host() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let new = NewSession { created_by: Some("ci".into()), ..session("a", "x", "/", 1) };
    let appender = log.create(new).await.unwrap();
    appender.append_final(Batch::index_only(released(2))).await.unwrap();
    log.close().await;
    let log = open(&dir);
    drop(log.reopen("a", "other").await.unwrap());
    assert_eq!(log.get("a").await.unwrap().unwrap().created_by.as_deref(), Some("ci"));
}

// contract 1.3: what is listed of a session; TM-4: the end is written with its event
#[tokio::test]
async fn an_index_update_is_committed_with_its_events() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let new = NewSession { created_by: Some("ci".into()), ..session("a", "x", "/", 5) };
    let mut appender = log.create(new).await.unwrap();
    let mut batch = one_event();
    let (info, position) = (Some(b"new".to_vec()), Some(11));
    batch.update_index(IndexUpdate { updated_ms: 6, info, position, ..IndexUpdate::default() });
    appender.append_durable(batch).await.unwrap();
    let mut row = SessionRow {
        id: "a".into(),
        agent: "x".into(),
        cwd: "/".into(),
        owner: Some("host".into()),
        created_by: Some("ci".into()),
        created_ms: 5,
        updated_ms: 6,
        ended: false,
        last_seq: 1,
        state: 0,
        position: 11,
        info: b"new".to_vec(),
    };
    let found = log.get("a").await.unwrap().unwrap();
    assert_eq!(SessionRow { updated_ms: 6, ..found }, row, "when it was updated it learns a moment later");
    assert_eq!(log.list(ListQuery::default()).await.unwrap(), [row.clone()]);
    let range = appender.append_durable(Batch::index_only(released(7))).await.unwrap();
    assert!(range.is_empty(), "an index update takes no number");
    (row.updated_ms, row.ended, row.owner, row.position) = (7, true, None, 0);
    assert_eq!(log.get("a").await.unwrap().unwrap(), row);
    assert_eq!(appender.append_durable(one_event()).await.unwrap(), 2..=2);
    assert!(log.get("b").await.unwrap().is_none());
    let ended = ListQuery { ended: Some(true), ..ListQuery::default() };
    assert_eq!(ids(&log.list(ended).await.unwrap()), ["a"]);
}

// contract 1.3: what a live session is doing is said beside its events, and forgotten with its owner
#[tokio::test]
async fn a_state_lasts_as_long_as_its_owner() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let state = async || log.get("a").await.unwrap().unwrap().state;
    let doing = |updated_ms, state| {
        let mut batch = one_event();
        batch.update_index(IndexUpdate { updated_ms, state, ..IndexUpdate::default() });
        batch
    };
    let mut appender = log.create(session("a", "x", "/", 1)).await.unwrap();
    assert_eq!(state().await, 0);
    appender.append_durable(doing(2, Some(7))).await.unwrap();
    appender.append_durable(doing(3, None)).await.unwrap();
    assert_eq!(state().await, 7);
    appender.append_durable(Batch::index_only(released(4))).await.unwrap();
    assert_eq!(state().await, 0);
    // One that was killed has said nothing any more, until the next owner comes.
    appender.append_durable(doing(5, Some(7))).await.unwrap();
    drop(appender);
    drop(log.reopen("a", "other").await.unwrap());
    assert_eq!(state().await, 0);
}

// contract 1: ids are unique; contract 6: a session is live in one process at a time
#[tokio::test]
async fn a_session_has_one_writer() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let appender = log.create(session("a", "x", "/", 1)).await.unwrap();
    assert!(
        matches!(other.create(session("a", "x", "/", 1)).await, Err(WriteError::Exists { id }) if id == "a")
    );
    let live = |result| matches!(result, Err(WriteError::Live { owner, .. }) if owner == "host");
    assert!(live(other.reopen("a", "other").await));
    assert!(live(log.reopen("a", "host").await), "it has an appender here");
    assert!(matches!(log.reopen("b", "host").await, Err(WriteError::Unknown { id }) if id == "b"));
    appender.append_final(Batch::index_only(released(2))).await.unwrap();
    let mut appender = other.reopen("a", "other").await.unwrap();
    assert_eq!(log.get("a").await.unwrap().unwrap().owner.as_deref(), Some("other"));
    assert_eq!(appender.append_durable(one_event()).await.unwrap(), 1..=1);
}

// TM-4: a late event of a writer that was replaced leaves neither a hole nor a double
#[tokio::test]
async fn a_writer_that_was_replaced_can_not_write() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let mut stale = log.create(session("a", "x", "/", 1)).await.unwrap();
    stale.append_durable(one_event()).await.unwrap();
    other.append_to("a", Some("host"), "next", Batch::index_only(released(2))).await.unwrap();
    let mut fresh = other.reopen("a", "other").await.unwrap();
    assert_eq!(fresh.append_durable(one_event()).await.unwrap(), 2..=2);
    let refused = |error| matches!(error, Err(WriteError::TakenOver { id, owner }) if (&*id, &*owner) == ("a", "other"));
    assert!(refused(stale.append_durable(one_event()).await.map(drop)));
    assert!(refused(stale.append(one_event()).await.map(drop)), "it stays failed");
    assert!(refused(stale.committed().wait_for(2).await));
    assert!(refused(stale.append_final(one_event()).await.map(drop)));
    assert_eq!(fresh.append_durable(one_event()).await.unwrap(), 3..=3);
}

// TM-4: sessions that were live at a crash are found, and marked once
#[tokio::test]
async fn sessions_of_a_lost_host_are_found_and_ended_once() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    for id in ["a", "b", "c"] {
        log.create(session(id, "x", "/", 1)).await.unwrap();
    }
    log.close().await;
    let (one, two) = (open(&dir), open(&dir));
    assert_eq!(one.owners().await.unwrap(), ["host"]);
    assert_eq!(ids(&one.owned_by("host").await.unwrap()), ["a", "b", "c"]);
    for id in ["a", "b"] {
        let mut end = one_event();
        end.update_index(released(9));
        assert_eq!(one.append_to(id, Some("host"), "next", end).await.unwrap(), 1);
        let again = two.append_to(id, Some("host"), "next", one_event()).await;
        assert!(matches!(again, Err(WriteError::Conflict { .. })), "{again:?}");
    }
    assert_eq!(ids(&two.owned_by("host").await.unwrap()), ["c"]);
    let row = two.get("a").await.unwrap().unwrap();
    assert_eq!((row.ended, row.last_seq, row.owner), (true, 1, None));
}

// contract 1: delete removes from the list; SC-3: an id that is gone is unknown
#[tokio::test]
async fn a_deleted_session_is_unknown_and_its_id_is_free() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a", "x", "/", 1)).await.unwrap();
    for _ in 0..100 {
        appender.append_durable(one_event()).await.unwrap();
    }
    assert!(matches!(log.delete("a", "host").await, Err(WriteError::Live { .. })));
    appender.append_final(Batch::index_only(released(2))).await.unwrap();
    let mut reading = log.cursor("a", 0).await.unwrap();
    log.delete("a", "host").await.unwrap();
    assert!(matches!(log.delete("a", "host").await, Err(WriteError::Unknown { .. })));
    assert!(matches!(log.cursor("a", 0).await, Err(CursorError::Unknown { .. })));
    assert!(log.get("a").await.unwrap().is_none());
    let mut appender = log.create(session("a", "x", "/", 1)).await.unwrap();
    assert_eq!(appender.append_durable(one_event()).await.unwrap(), 1..=1, "the new one begins anew");
    // Its blocks may still be in memory; then the old cursor can read them, but never those of the new session.
    while let Ok(Some(block)) = reading.next().await {
        assert!(block.last() <= 100);
    }
}

fn updated(at_ms: i64) -> Batch {
    let mut batch = one_event();
    batch.update_index(IndexUpdate { updated_ms: at_ms, ..IndexUpdate::default() });
    batch
}

// contract 1.3: a list is in the order of the last change, though rows learn it a moment later
#[tokio::test]
async fn a_list_knows_the_last_change() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut first = log.create(session("a", "x", "/", 1)).await.unwrap();
    let mut second = log.create(session("b", "x", "/", 2)).await.unwrap();
    for round in 0..20 {
        first.append_durable(updated(10 + 2 * round)).await.unwrap();
        second.append_durable(updated(11 + 2 * round)).await.unwrap();
        assert_eq!(ids(&log.list(ListQuery::default()).await.unwrap()), ["b", "a"]);
        first.append_durable(updated(12 + 2 * round)).await.unwrap();
        let listed = log.list(ListQuery::default()).await.unwrap();
        assert_eq!((ids(&listed), listed[0].updated_ms), (vec!["a", "b"], 12 + 2 * round));
    }
}

// contract 1.3: another process sees it too, soon, and so does the next start
#[tokio::test]
async fn rows_learn_the_last_change() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut live = log.create(session("a", "x", "/", 1)).await.unwrap();
    live.append_durable(updated(50)).await.unwrap();
    let other = open(&dir);
    let soon = async {
        while other.get("a").await.unwrap().unwrap().updated_ms != 50 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), soon).await.expect("the row learns it");
    live.append_durable(updated(60)).await.unwrap();
    drop(live);
    log.close().await;
    assert_eq!(other.get("a").await.unwrap().unwrap().updated_ms, 60);
    other.close().await;
}
