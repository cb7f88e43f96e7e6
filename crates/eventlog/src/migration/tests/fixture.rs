//! A log with sessions of all kinds, and all that is seen of it.

use crate::old_tables::DATABASE;
use crate::options::{Durability, Options};
use crate::{
    Batch, Checkpoint, EventLog, IndexUpdate, ListQuery, NewSession, OpenError, SessionRow, Subscriber,
};
use crate::{old_database, schema};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;

const DONE: &str = "it is done";
const HOOK: &str = "hook";

pub(super) fn open(dir: &Path) -> EventLog {
    EventLog::open(dir, Options::default()).expect("the log opens")
}

/// What an acpd does that knows databases only.
pub(super) fn open_as_before(dir: &Path) -> Result<Connection, OpenError> {
    schema::open_database(dir, &DATABASE, Durability::Process).map(|(_, connection)| connection)
}

pub(super) fn session(id: &str, owner: &str) -> NewSession {
    NewSession {
        id: id.into(),
        agent: format!("agent of {id}"),
        cwd: "/work".into(),
        owner: owner.into(),
        created_ms: 1,
        info: format!("{{\"{}\":1}}", id.len()).into_bytes(),
        ..NewSession::default()
    }
}

pub(super) fn push(payloads: &[&str]) -> Batch {
    let mut batch = Batch::new();
    payloads.iter().for_each(|payload| batch.push(6, 12, payload.as_bytes()));
    batch
}

pub(super) fn end(updated_ms: i64) -> Batch {
    let (ended, owner) = (Some(true), Some(None));
    Batch::index_only(IndexUpdate { updated_ms, ended, owner, ..IndexUpdate::default() })
}

/// Bytes that do not shrink much.
pub(super) fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ seed;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

/// A database with sessions that have ended, that hosts have had when they died, without events, deleted and half made. What is seen of
/// it once it is migrated.
pub(super) async fn fill(dir: &Path) -> Log {
    let log = open(dir);
    log.subscribe(vec![Subscriber { name: HOOK.into(), kinds: vec![6] }]).await.expect(DONE);
    let new = NewSession { created_by: Some("ci".into()), ..session("ended", "host-1") };
    let mut ended = log.create(new).await.expect(DONE);
    for n in 0..200_u16 {
        let mut batch = Batch::new();
        batch.push(n % 7, i64::from(n), &noise(usize::from(n) * 40, n.into()));
        batch.push(63, -5, b"");
        ended.append_durable(batch).await.expect(DONE);
    }
    let mut large = Batch::new();
    large.push(2, 9, &noise(2_500_000, 1));
    large.push(2, 9, &b"{\"sessionUpdate\":\"agent_message_chunk\"}".repeat(20_000));
    ended.append_durable(large).await.expect(DONE);
    ended.append_final(end(44)).await.expect(DONE);
    log.keep_checkpoint("ended", Checkpoint { seq: 300, bytes: b"what it was".to_vec() });

    for id in ["live", "live too"] {
        let mut live = log.create(session(id, "host-1")).await.expect(DONE);
        let waiting = vec![(3, Some(b"a prompt".to_vec())), (8, Some(b"another".to_vec()))];
        let mut batch = push(&["begun", "asked"]);
        batch.update_index(IndexUpdate {
            updated_ms: 60,
            state: Some(3),
            position: Some(77),
            info: Some(b"live".to_vec()),
            waiting,
            ..IndexUpdate::default()
        });
        live.append_durable(batch).await.expect(DONE);
    }
    drop(log.create(session("of another", "host 2/\u{e9}")).await.expect(DONE));
    let mut kept = log.create(session("ended, and had", "host-1")).await.expect(DONE);
    let ended = IndexUpdate { updated_ms: 61, ended: Some(true), ..IndexUpdate::default() };
    kept.append_durable(Batch::index_only(ended)).await.expect(DONE);

    let idle = log.create(session("idle", "host-1")).await.expect(DONE);
    let release = IndexUpdate { updated_ms: 2, owner: Some(None), ..IndexUpdate::default() };
    idle.append_final(Batch::index_only(release)).await.expect(DONE);
    let long = "x".repeat(300);
    for (at, id) in (3..).zip(["A/../\u{fc}", "Ab", "=ab", "..", long.as_str()]) {
        let mut odd = log.create(session(id, "host-1")).await.expect(DONE);
        odd.append_durable(push(&[id, "event"])).await.expect(DONE);
        odd.append_final(end(at)).await.expect(DONE);
    }
    let told = log.outbox(HOOK, 0, 2).await.expect(DONE);
    log.take_out(told.iter().map(|note| note.number).collect()).await.expect(DONE);
    log.close().await;
    let seen = look(dir).await;
    make_old(dir).await;
    let database = open_as_before(dir).expect("it opens");
    database
        .execute_batch(
            "INSERT INTO garbage (session) VALUES (1000); INSERT INTO partial (session, owner, last_seq) VALUES (1001, 'host-1', 2);
             INSERT INTO block (key, last_seq, records) VALUES (1000 << 36 | 1, 1, x''), (1001 << 36 | 1, 2, x'')",
        )
        .expect(DONE);
    seen
}

/// Makes a log a database.
pub(super) async fn make_old(dir: &Path) {
    let pack = |records: &[u8]| {
        let packed = crate::pack::pack(records);
        (packed.unpacked, packed.bytes.into_owned())
    };
    old_database::make_old(dir, pack).await.expect(DONE);
}

/// An event: number, kind, time and bytes.
pub(super) type Seen = (u64, u16, i64, Vec<u8>);

/// All that is seen of a log.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Log {
    pub(super) rows: Vec<SessionRow>,
    pub(super) events: BTreeMap<String, Vec<Seen>>,
    waiting: BTreeMap<String, Vec<(u64, Vec<u8>)>>,
    owned: BTreeMap<String, Vec<SessionRow>>,
    notes: Vec<(String, u64)>,
    checkpoints: BTreeMap<String, Option<Checkpoint>>,
}

pub(super) async fn look(dir: &Path) -> Log {
    let log = open(dir);
    let rows = log.list(ListQuery::default()).await.expect(DONE);
    let (mut events, mut waiting) = (BTreeMap::new(), BTreeMap::new());
    let (mut owned, mut checkpoints) = (BTreeMap::new(), BTreeMap::new());
    for row in &rows {
        assert_eq!(log.get(&row.id).await.expect(DONE).as_ref(), Some(row));
        let mut cursor = log.cursor(&row.id, 0).await.expect(DONE);
        let mut seen = Vec::new();
        while let Some(block) = cursor.next().await.expect(DONE) {
            let events = block.events();
            seen.extend(events.map(|event| (event.seq, event.kind, event.at_ms, event.payload.to_vec())));
        }
        events.insert(row.id.clone(), seen);
        waiting.insert(row.id.clone(), log.waiting(&row.id).await.expect(DONE));
        checkpoints.insert(row.id.clone(), log.checkpoint(&row.id, row.last_seq).await.expect(DONE));
    }
    for owner in log.owners().await.expect(DONE) {
        let mut sessions = log.owned_by(&owner).await.expect(DONE);
        sessions.sort_by(|one, other| one.id.cmp(&other.id));
        owned.insert(owner, sessions);
    }
    let notes = log.outbox(HOOK, 0, 1000).await.expect(DONE);
    let notes = notes.into_iter().map(|note| (note.session, note.seq)).collect();
    log.close().await;
    Log { rows, events, waiting, owned, notes, checkpoints }
}
