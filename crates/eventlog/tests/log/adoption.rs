//! Whose a session is: another host goes on with one where it stands, and the old one writes nothing more.


use acpd_eventlog::{
    Batch, EventLog, IndexUpdate, ListQuery, NewSession, SessionRow, Subscriber, WriteError,
};
use tempfile::TempDir;

fn open(dir: &TempDir) -> EventLog {
    EventLog::open(dir.path(), super::options()).expect("the log opens")
}

fn session(id: &str) -> NewSession {
    NewSession { id: id.into(), owner: "old".into(), info: b"info".to_vec(), ..NewSession::default() }
}

fn event() -> Batch {
    let mut batch = Batch::new();
    batch.push(1, 1, b"event");
    batch
}

fn with(index: IndexUpdate) -> Batch {
    let mut batch = event();
    batch.update_index(index);
    batch
}

fn at(updated_ms: i64, position: u64) -> IndexUpdate {
    IndexUpdate { updated_ms, position: Some(position), ..IndexUpdate::default() }
}

fn released(updated_ms: i64) -> IndexUpdate {
    IndexUpdate { updated_ms, ended: Some(true), owner: Some(None), ..IndexUpdate::default() }
}

async fn row(log: &EventLog) -> SessionRow {
    log.get("a").await.expect("readable").expect("it is there")
}

async fn events(log: &EventLog) -> Vec<u64> {
    let mut cursor = log.cursor("a", 0).await.expect("it is there");
    let (mut found, last) = (Vec::new(), row(log).await.last_seq);
    while found.len() < last as usize {
        let block = cursor.next().await.expect("readable").expect("as many as the row says");
        found.extend(block.events().map(|event| event.seq));
    }
    found
}

// contract 7.3: what a session has handled of its agent's output is committed with what came of it
#[tokio::test]
async fn a_position_is_committed_with_its_events() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    assert_eq!(row(&log).await.position, 0);
    appender.append_durable(with(at(1, 10))).await.unwrap();
    assert_eq!((row(&log).await.position, row(&log).await.last_seq), (10, 1));
    // Nothing else of the row changes.
    appender.append_durable(Batch::index_only(at(1, 20))).await.unwrap();
    assert_eq!((row(&log).await.position, row(&log).await.last_seq), (20, 1));
    appender.append_durable(with(IndexUpdate::default())).await.unwrap();
    appender.append_durable(event()).await.unwrap();
    assert_eq!(row(&log).await.position, 20, "what is not said stays");
    // The last of a group is the one that counts.
    for n in 0..50 {
        appender.append(with(at(2, 100 + n))).await.unwrap();
    }
    appender.append_durable(event()).await.unwrap();
    assert_eq!(row(&log).await.position, 149);
    assert_eq!(log.list(ListQuery::default()).await.unwrap()[0].position, 149);
    // As large as there are bytes.
    appender.append_durable(Batch::index_only(at(3, i64::MAX as u64))).await.unwrap();
    assert_eq!(row(&log).await.position, i64::MAX as u64);
}

// contract 7.3: a position is of one run of an agent; the next one counts from its own start
#[tokio::test]
async fn a_new_run_has_handled_nothing() {
    let dir = TempDir::new().unwrap();
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    appender.append_durable(with(at(1, 10))).await.unwrap();
    appender.append_final(with(released(2))).await.unwrap();
    assert_eq!(row(&log).await.position, 0, "of no run");
    let mut appender = log.reopen("a", "old").await.unwrap();
    appender.append_durable(with(at(3, 20))).await.unwrap();
    // A host that comes again before it has said its last words.
    drop(appender);
    drop(log.reopen("a", "old").await.unwrap());
    assert_eq!(row(&log).await.position, 0);
}

// contract 7.3: a session whose keeper answers goes on where it stands, with the next host
#[tokio::test]
async fn a_session_is_adopted_as_it_stands() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let mut old = log.create(session("a")).await.unwrap();
    let (state, info) = (Some(7), Some(b"more".to_vec()));
    old.append_durable(with(IndexUpdate { state, info, ..at(1, 10) })).await.unwrap();
    log.list(ListQuery::default()).await.unwrap();
    let before = row(&log).await;

    let adopted = other.adopt("a", "old", "new", Batch::new()).await.unwrap();
    let expected = SessionRow { owner: Some("new".into()), ..before };
    assert_eq!((row(&log).await, adopted.next_seq()), (expected, 2));
    drop(adopted);
    let mut adopted = other.adopt("a", "new", "newer", with(at(9, 30))).await.unwrap();
    let found = row(&log).await;
    assert_eq!((found.owner.as_deref(), found.last_seq, found.updated_ms), (Some("newer"), 2, 9));
    assert_eq!((found.state, found.position, found.info), (7, 30, b"more".to_vec()));
    assert_eq!((adopted.committed().seq(), adopted.next_seq()), (2, 3));
    let mut follower = other.cursor("a", 1).await.unwrap();
    assert_eq!(follower.next().await.unwrap().unwrap().range(), 2..=2);
    assert_eq!(adopted.append_durable(event()).await.unwrap(), 3..=3);
    assert_eq!(follower.next().await.unwrap().unwrap().range(), 3..=3, "it is live there");
    adopted.append_final(with(released(10))).await.unwrap();
    assert_eq!(events(&other).await, [1, 2, 3, 4]);
}

// contract 7.3: hooks are told of what an adoption brings as of any other event
#[tokio::test]
async fn an_adoption_is_noted_for_subscribers() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    drop(log.create(session("a")).await.unwrap());
    other.subscribe(vec![Subscriber { name: "hook".into(), kinds: vec![1] }]).await.unwrap();
    drop(other.adopt("a", "old", "new", event()).await.unwrap());
    let notes = other.outbox("hook", 0, 10).await.unwrap();
    assert_eq!(notes.iter().map(|note| note.seq).collect::<Vec<_>>(), [1]);
}

// contract 7.3: what is not the dead host's, or has ended, is left alone
#[tokio::test]
async fn only_what_the_dead_host_has_live_is_adopted() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let unknown = other.adopt("a", "old", "new", event()).await;
    assert!(matches!(&unknown, Err(WriteError::Unknown { id }) if id == "a"), "{unknown:?}");
    let appender = log.create(session("a")).await.unwrap();
    let here = log.adopt("a", "old", "new", event()).await;
    assert!(matches!(&here, Err(WriteError::Live { id, .. }) if id == "a"), "{here:?}");
    let wrong = other.adopt("a", "older", "new", event()).await;
    assert!(matches!(&wrong, Err(WriteError::TakenOver { owner, .. }) if owner == "old"), "{wrong:?}");
    let mut huge = Batch::new();
    huge.push(1, 1, &vec![b'x'; acpd_eventlog::MAX_PAYLOAD_BYTES + 1]);
    let huge = other.adopt("a", "old", "new", huge).await;
    assert!(matches!(&huge, Err(WriteError::TooLarge { .. })), "{huge:?}");

    appender.append_final(Batch::index_only(IndexUpdate { owner: Some(None), ..at(2, 0) })).await.unwrap();
    let nobodys = other.adopt("a", "old", "new", event()).await;
    assert!(matches!(&nobodys, Err(WriteError::Conflict { id }) if id == "a"), "{nobodys:?}");
    log.update_index("a", None, "next", released(3)).await.unwrap();
    let ended = other.adopt("a", "old", "new", event()).await;
    assert!(matches!(&ended, Err(WriteError::Ended { id }) if id == "a"), "{ended:?}");
    assert_eq!(ended.unwrap_err().to_string(), "session a has ended");
    assert_eq!((row(&log).await.last_seq, row(&log).await.owner), (0, None));
}

// contract 7.3: of several hosts that find a session without its own, one goes on with it
#[tokio::test]
async fn one_of_two_hosts_adopts() {
    let dir = TempDir::new().unwrap();
    let (log, one, two) = (open(&dir), open(&dir), open(&dir));
    for n in 0..20 {
        let id = format!("s{n}");
        drop(log.create(session(&id)).await.unwrap());
        let (first, second) =
            tokio::join!(one.adopt(&id, "old", "one", event()), two.adopt(&id, "old", "two", event()));
        let (winner, refused) = if first.is_ok() { ("one", second) } else { ("two", first) };
        assert!(
            matches!(&refused, Err(WriteError::TakenOver { owner, .. }) if owner == winner),
            "{refused:?}"
        );
        let found = log.get(&id).await.unwrap().unwrap();
        assert_eq!((found.owner.as_deref(), found.last_seq), (Some(winner), 1));
    }
}

/// What of an appender's ways to write is tried.
#[derive(Clone, Copy, Debug)]
enum Write {
    Events,
    Index,
    Both,
    Last,
}

// design/continuity.md I5: an older host that wakes changes nothing, whatever it writes, also where no event came since
#[tokio::test]
async fn the_old_host_writes_nothing_more() {
    for write in [Write::Events, Write::Index, Write::Both, Write::Last] {
        let dir = TempDir::new().unwrap();
        let (log, other) = (open(&dir), open(&dir));
        let mut old = log.create(session("a")).await.unwrap();
        old.append_durable(with(at(1, 10))).await.unwrap();
        log.list(ListQuery::default()).await.unwrap();
        // No event comes with it: the number alone would let the old one go on.
        let mut fresh = other.adopt("a", "old", "new", Batch::new()).await.unwrap();
        let before = row(&log).await;
        let changes = IndexUpdate { state: Some(9), info: Some(b"old".to_vec()), ..at(99, 99) };
        let refused = match write {
            Write::Events => old.append_durable(event()).await.map(drop),
            Write::Index => old.append_durable(Batch::index_only(changes)).await.map(drop),
            Write::Both => old.append_durable(with(changes)).await.map(drop),
            Write::Last => old.append_final(with(released(99))).await.map(drop),
        };
        let error = refused.expect_err("it is another's");
        assert_eq!(error.to_string(), "session a was taken over by host new", "{write:?}");
        log.list(ListQuery::default()).await.unwrap();
        assert_eq!(row(&log).await, before, "{write:?}");
        assert_eq!(fresh.append_durable(event()).await.unwrap(), 2..=2);
        assert_eq!(events(&other).await, [1, 2]);
    }
}

// design/continuity.md I5: what rows learn a moment later is not learned from the old host
#[tokio::test]
async fn the_old_host_does_not_say_when_a_session_changed() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let mut old = log.create(session("a")).await.unwrap();
    for n in 0..50 {
        old.append_durable(with(at(n, 10))).await.unwrap();
        drop(other.adopt("a", "old", "new", Batch::index_only(at(1000 + n, 10))).await.unwrap());
        // Before a list, rows are told what they do not know.
        log.list(ListQuery::default()).await.unwrap();
        assert_eq!(row(&log).await.updated_ms, 1000 + n);
        drop(old);
        old = log.adopt("a", "new", "old", Batch::new()).await.unwrap();
    }
}

// architecture 4: the fence costs no statement: an append that is refused leaves nothing, and neither does its group
#[tokio::test]
async fn others_of_the_same_group_are_written() {
    let dir = TempDir::new().unwrap();
    let (log, other) = (open(&dir), open(&dir));
    let mut old = log.create(session("a")).await.unwrap();
    let mut beside = log.create(session("b")).await.unwrap();
    drop(other.adopt("a", "old", "new", Batch::new()).await.unwrap());
    for _ in 0..100 {
        drop(old.append(event()).await);
        beside.append(event()).await.unwrap();
    }
    beside.append_durable(event()).await.unwrap();
    assert!(matches!(old.committed().failure(), Some(WriteError::TakenOver { .. })));
    assert_eq!(row(&log).await.last_seq, 0);
    assert_eq!(log.get("b").await.unwrap().unwrap().last_seq, 101);
}

// contract 7.3: what waits is committed with the batches of its host, stays for one that goes on in its place, and for no other
#[tokio::test]
async fn what_waits_goes_with_its_host() {
    let dir = TempDir::new().unwrap();
    let waiting = |entries: &[(u64, Option<&[u8]>)]| IndexUpdate {
        waiting: entries.iter().map(|(number, bytes)| (*number, bytes.map(<[u8]>::to_vec))).collect(),
        ..at(1, 10)
    };
    let log = open(&dir);
    let mut appender = log.create(session("a")).await.unwrap();
    appender
        .append_durable(with(waiting(&[(7, Some(b"b")), (3, Some(b"a")), (9, Some(b"c"))])))
        .await
        .unwrap();
    appender.append_now(Batch::index_only(waiting(&[(7, None)]))).unwrap();
    appender.room().flushed().await;
    let left = vec![(3, b"a".to_vec()), (9, b"c".to_vec())];
    assert_eq!(log.waiting("a").await.unwrap(), left);
    assert_eq!(log.waiting("b").await.unwrap(), []);

    let other = open(&dir);
    let adopted = other.adopt("a", "old", "new", event()).await.unwrap();
    assert_eq!(other.waiting("a").await.unwrap(), left);
    // The old host writes nothing more, and is told so at once or afterwards.
    drop(appender.append_now(Batch::index_only(waiting(&[(3, None)]))));
    appender.room().flushed().await;
    assert_eq!(other.waiting("a").await.unwrap(), left);
    adopted.append_final(Batch::index_only(released(2))).await.unwrap();
    assert_eq!(other.waiting("a").await.unwrap(), []);
}
