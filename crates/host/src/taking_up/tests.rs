//! Sessions of other nodes on a log: all or nothing, with what they were, and nothing that may not be taken over.

use super::*;
use crate::host_file::HostFile;
use crate::recovery::Recovery;
use acpd_eventlog::{Batch, EventLog, ListQuery, NewSession, Options};
use acpd_record::{Cause, Reason, SessionMeta};
use std::path::Path;

const CREATED: (u16, &str) = (1, r#"{"agent":"example","cwd":"/w","by":"c"}"#);
const RUN: (u16, &str) = (2, r#"{"pid":7,"agentInfo":null}"#);
const PROMPT: (u16, &str) = (3, r#"{"turn":1,"by":"c","prompt":[]}"#);
const UPDATE: (u16, &str) = (
    4,
    r#"{ "jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"plan","entries":[]}}}"#,
);
const TURN_ENDED: (u16, &str) = (6, r#"{"turn":1,"stopReason":"end_turn"}"#);
const FENCED: (u16, &str) = (
    9,
    r#"{"reason":"error","terminatedBy":"daemon","message":"m","endedAt":"x","cause":"fenced","initiator":"daemon","turnActive":false,"leaked":false,"lastEventSeq":5}"#,
);

fn open(dir: &Path) -> Arc<SessionStore> {
    let log = EventLog::open(dir, Options::default()).expect("it can be used");
    Arc::new(SessionStore::new(log, HostFile::create(dir).expect("it can be used")))
}

fn id() -> SessionId {
    SessionId::parse("s-1").expect("an id")
}

fn session() -> TakenUp {
    TakenUp {
        id: id(),
        agent: "example".into(),
        cwd: "/w".into(),
        created_ms: 7,
        title: Some("T".into()),
        forked_from: None,
        created_by: Some("ci".into()),
        native_session_id: Some(NativeSessionId::of_text("native")),
        partition: Partition::Failover,
    }
}

/// These events as blocks of two, as a log of another node has them, from event `after` on.
async fn blocks(events: &[(u16, &str)], after: u64) -> Vec<Block> {
    let dir = tempfile::tempdir().expect("a directory");
    let log = EventLog::open(dir.path(), Options::default()).expect("it can be used");
    let mut appender =
        log.create(NewSession { id: "other".into(), ..NewSession::default() }).await.expect("new");
    for two in events.chunks(2) {
        let mut batch = Batch::new();
        two.iter().for_each(|(kind, payload)| batch.push(*kind, 9, payload.as_bytes()));
        appender.append_durable(batch).await.expect("room on the disk");
    }
    drop(appender);
    let mut cursor = log.cursor("other", after).await.expect("it is there");
    let mut blocks = Vec::new();
    while cursor.position() < events.len() as u64 {
        blocks.extend(cursor.next().await.expect("readable"));
    }
    log.close().await;
    blocks
}

async fn taken_up(
    store: &Arc<SessionStore>,
    session: TakenUp,
    blocks: &[Block],
) -> Result<SessionId, TakeUpError> {
    let mut take_up = TakeUp::begin(store, session).await?;
    for block in blocks {
        take_up.push(block).await?;
    }
    take_up.finish().await
}

async fn stored(store: &SessionStore) -> Vec<(u16, String)> {
    let last = store.row(&id()).await.expect("it is there").last_seq;
    let mut cursor = store.log.cursor("s-1", 0).await.expect("it is there");
    let mut events = Vec::new();
    while cursor.position() < last {
        let block = cursor.next().await.expect("readable").expect("there are more");
        let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("text");
        events.extend(block.events().map(|event| (event.kind, text(event.payload))));
    }
    events
}

fn texts(events: &[(u16, &str)]) -> Vec<(u16, String)> {
    events.iter().map(|(kind, payload)| (*kind, (*payload).to_owned())).collect()
}

// design fleet, partition: identity and history move: its id, its creator, its policy, its agent's own id, and each event as it was
#[tokio::test]
async fn a_session_of_another_node_is_what_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let events = [CREATED, RUN, PROMPT, UPDATE, TURN_ENDED, FENCED];
    let blocks = blocks(&events, 0).await;
    let taken = taken_up(&store, session(), &blocks).await.expect("it is legal");
    assert_eq!(taken, id());
    let row = store.row(&taken).await.expect("it is there");
    assert_eq!((row.ended, row.owner.as_deref(), row.created_by.as_deref()), (true, None, Some("ci")));
    assert_eq!((row.created_ms, row.last_seq, &*row.cwd, &*row.agent), (7, 6, "/w", "example"));
    assert_eq!(stored(&store).await, texts(&events), "its run has ended already");
    let meta = SessionMeta::read(&row.info);
    assert_eq!(meta.native_session_id.as_ref().map(NativeSessionId::text).as_deref(), Some("native"));
    assert_eq!((meta.partition, meta.imported, meta.added_end), (Partition::Failover, false, None));
    assert_eq!((meta.title.as_deref(), meta.client.as_deref()), (Some("T"), Some("c")));
    assert_eq!(meta.termination().expect("it has ended").cause, Some(Cause::Fenced));
    // It is one like any other: another host can have it.
    store.log.reopen("s-1", "host").await.expect("nobody has it");
    store.log.clone().close().await;
}

// design fleet, partition: a run that was live on a node that was lost has ended with it
#[tokio::test]
async fn a_run_that_was_live_has_ended() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let events = [CREATED, RUN, PROMPT, UPDATE];
    let without_id = TakenUp { native_session_id: None, ..session() };
    taken_up(&store, without_id, &blocks(&events, 0).await).await.expect("it is legal");
    let row = store.row(&id()).await.expect("it is there");
    let meta = SessionMeta::read(&row.info);
    let end = meta.termination().expect("it has ended");
    assert_eq!((end.reason, end.cause, end.turn_active), (Reason::Error, Some(Cause::DaemonLost), true));
    assert_eq!(end.message.as_deref(), Some("its node was lost while the session was live"));
    assert_eq!((end.last_event_seq, row.last_seq), (Some(4), 5));
    assert!(meta.imported, "an agent that never named it goes on with a transcript");
    let stored = stored(&store).await;
    assert_eq!((&stored[..4], stored[4].0), (&texts(&events)[..], 9));
    store.log.clone().close().await;
}

// design fleet, partition: what another node says is checked; nothing is left of what is refused
#[tokio::test]
async fn what_may_not_be_taken_over_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let other = UPDATE.1.replace("s-1", "s-2");
    let agent = CREATED.1.replace("example", "another");
    let later = (60_000, "{}");
    for (events, after, expected) in [
        (vec![CREATED, RUN, PROMPT], 1, "event 2: seq: event 1 is required here"),
        (vec![CREATED, RUN, TURN_ENDED], 0, "event 3: kind: no such event may stand here"),
        (vec![CREATED, RUN, (4, &*other)], 0, "event 3: payload: a message names another session"),
        (vec![(1, &*agent)], 0, "event 1: payload: agent and cwd"),
        (vec![CREATED, later], 0, "event 2: kind: "),
        (vec![CREATED, (2, "{")], 0, "event 2: payload: "),
        (vec![CREATED], 0, "event 2: line: a session that has never run is none"),
    ] {
        let refused = taken_up(&store, session(), &blocks(&events, after).await).await;
        let refused = refused.expect_err(expected).to_string();
        assert!(refused.starts_with(expected), "{refused}\nand not\n{expected}");
        assert!(store.log.list(ListQuery::default()).await.expect("readable").is_empty());
    }
    for (said, expected) in [
        (TakenUp { agent: "a b".into(), ..session() }, "agent: "),
        (TakenUp { cwd: "w".into(), ..session() }, "cwd: "),
        (TakenUp { created_ms: -1, ..session() }, "createdMs: "),
        (TakenUp { title: Some("x".repeat(70_000)), ..session() }, "title: "),
    ] {
        let refused = TakeUp::begin(&store, said).await.expect_err(expected).to_string();
        assert!(refused.starts_with(expected), "{refused}");
    }
    // Blocks that come twice have a hole in front of them.
    let twice = blocks(&[CREATED, RUN, PROMPT], 0).await;
    let refused = taken_up(&store, session(), &[&twice[..1], &twice[..]].concat()).await;
    assert!(refused.is_err_and(|error| error.to_string().starts_with("event 1: seq: event 3")));
    store.log.clone().close().await;
}

// design fleet, partition: an id is one session: one that is here already is not taken up, nor twice at once
#[tokio::test]
async fn a_known_session_is_not_taken_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = open(dir.path());
    let blocks = blocks(&[CREATED, RUN], 0).await;
    let mut late = TakeUp::begin(&store, session()).await.expect("it is not here");
    taken_up(&store, session(), &blocks).await.expect("it is not here");
    late.push(&blocks[0]).await.expect("it is legal");
    assert_eq!(late.position(), 2);
    assert!(matches!(late.finish().await, Err(TakeUpError::Known { .. })));
    let again = TakeUp::begin(&store, session()).await;
    assert!(matches!(again, Err(TakeUpError::Known { id: known }) if known == id()));
    assert_eq!(store.log.list(ListQuery::default()).await.expect("readable").len(), 1);
    store.log.clone().close().await;
}

// design fleet, partition: what a host was taking up when it died is discarded by the next
#[tokio::test]
async fn what_a_dead_host_was_taking_up_is_discarded() {
    let dir = tempfile::tempdir().expect("a directory");
    let dead = open(dir.path());
    let blocks = blocks(&[CREATED, RUN], 0).await;
    let mut take_up = TakeUp::begin(&dead, session()).await.expect("it is not here");
    take_up.push(&blocks[0]).await.expect("it is legal");
    // Its log is closed before it can tidy up, as by kill -9.
    dead.log.clone().close().await;
    drop(take_up);
    drop(dead);
    let store = open(dir.path());
    Recovery::new(Arc::clone(&store)).recover_dead_hosts().await;
    assert!(store.log.list(ListQuery::default()).await.expect("readable").is_empty());
    taken_up(&store, session(), &blocks).await.expect("nothing is in its way");
    store.log.clone().close().await;
}
