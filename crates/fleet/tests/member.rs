//! Nodes of a fleet and what each knows of the others, over an engine in memory whose links can be cut.

use acpd_fleet::{
    Engine, Lease, Local, Member, Memory, NodeId, NodeName, NodeRecord, Owned, Partition, Pending, Row,
};
use acpd_record::SessionId;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const HEARTBEAT: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(20);
/// What any of the tests waits for comes within: a lease and what the design gives beyond it.
const PATIENCE: Duration = Duration::from_secs(25);

/// The sessions of a node, as a log would have them.
#[derive(Debug, Default)]
struct Sessions(Mutex<BTreeMap<SessionId, Row>>);

impl Sessions {
    fn put(&self, session: &str, state: &str, changed_ms: i64) {
        let id = id(session);
        let info = json!({"sessionId": session, "state": state, "updatedAt": changed_ms});
        let seq = changed_ms.unsigned_abs();
        let row = Row {
            session: id.clone(),
            creator: None,
            partition: Partition::Local,
            seq,
            ended: false,
            changed_ms,
            info,
        };
        self.0.lock().insert(id, row);
    }
}

impl Local for Sessions {
    fn changed(&self, since_ms: i64) -> Pending<'_, Result<Vec<Row>, String>> {
        let rows = self.0.lock().values().filter(|row| row.changed_ms >= since_ms).cloned().collect();
        Box::pin(async move { Ok(rows) })
    }

    fn room(&self) -> u32 {
        10 - u32::try_from(self.0.lock().len()).expect("few")
    }

    fn all(&self) -> Pending<'_, Result<BTreeSet<SessionId>, String>> {
        let all = self.0.lock().keys().cloned().collect();
        Box::pin(async move { Ok(all) })
    }
}

fn id(text: &str) -> SessionId {
    SessionId::parse(text).expect("an id")
}

fn name(text: &str) -> NodeName {
    NodeName::try_from(text.to_owned()).expect("a name")
}

/// A running node.
struct Node {
    member: Member,
    link: Arc<Memory>,
    sessions: Arc<Sessions>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn node(of: &Memory, called: &str, node_id: &str, run: &str, sessions: &Arc<Sessions>) -> Node {
    let link = Arc::new(of.link());
    let mut record = NodeRecord::new(name(called), NodeId(node_id.to_owned()), "1");
    record.run = run.to_owned();
    let lease = Lease::new(HEARTBEAT, LEASE).expect("it is long enough");
    let engine: Arc<dyn Engine> = Arc::clone(&link) as _;
    let member = Member::new(engine, record, lease);
    let (running, own) = (member.clone(), Arc::clone(sessions));
    #[expect(clippy::disallowed_methods, reason = "it ends with its node")]
    let task = tokio::spawn(async move { running.run(&*own).await });
    Node { member, link, sessions: Arc::clone(sessions), task }
}

/// Waits, on a clock that is paused and moves by itself.
async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            // tidy: allow sleep, the clock is paused, and goes on only while all wait
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.unwrap_or_else(|_| panic!("it never came to this: {what}"))
}

fn state(owned: &Owned) -> &str {
    owned.session.info["state"].as_str().expect("a state")
}

// design fleet: one list: each node knows the sessions of the others, with what they do, until they are deleted
#[tokio::test(start_paused = true)]
async fn a_session_is_known_everywhere() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    let owned = until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    assert_eq!((owned.session.node.clone(), owned.gone_for, state(&owned)), (name("a"), None, "idle"));
    assert!(owned.session.epoch.is_none() && owned.node.is_some());
    assert_eq!(a.member.elsewhere(&id("s")), None, "it is its own");
    a.sessions.put("s", "running", 2_000);
    let running = || b.member.elsewhere(&id("s")).filter(|owned| state(owned) == "running");
    let owned = until("it runs", running).await;
    assert!(owned.session.epoch.is_some_and(|epoch| epoch.0 > 0));
    assert_eq!(b.member.sessions_elsewhere(|_| true).len(), 1);
    let room = || b.member.node(&name("a")).filter(|sight| sight.record.room == 9);
    until("it has less room", room).await;
    let counted = b.member.nodes().into_iter().map(|sight| (sight.sessions, sight.live));
    assert_eq!(counted.collect::<Vec<_>>(), [(1, 1), (0, 0)]);
    assert_eq!(b.member.sessions_elsewhere(|owned| state(owned) == "idle"), []);
    a.sessions.0.lock().clear();
    until("it is deleted", || b.member.elsewhere(&id("s")).is_none().then_some(())).await;
    assert!(!a.member.is_stale() && !b.member.is_stale());
}

// design fleet: a node that leaves, and one that is lost, are shown as gone, with since when; its sessions stay in the list
#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_shown() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    assert_eq!(b.member.unreachable_sessions(), 0);
    let gone = || b.member.node(&name("a")).and_then(|sight| sight.gone_for);
    // Killed: it says nothing any more.
    a.task.abort();
    until("it is lost", gone).await;
    assert_eq!(b.member.unreachable_sessions(), 1);
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    let again = node(&memory, "a", "1", "y", &of_a);
    until("it is back", || gone().is_none().then_some(())).await;
    assert_eq!(b.member.unreachable_sessions(), 0);
    again.member.leave().await;
    assert!(until("it has left", gone).await < HEARTBEAT);
}

// design fleet, fence: a node that starts again goes on with its claims
#[tokio::test(start_paused = true)]
async fn a_claim_outlives_its_node() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    let epoch = |state: &'static str| {
        let member = b.member.clone();
        move || {
            member
                .elsewhere(&id("s"))
                .filter(|owned| owned.session.info["state"] == state)
                .and_then(|owned| owned.session.epoch)
        }
    };
    a.sessions.put("s", "idle", 1);
    until("it is claimed", || b.member.elsewhere(&id("s"))).await;
    a.sessions.put("s", "running", 2_000);
    let first = until("it is written", epoch("running")).await;
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    of_a.put("s", "waiting", 3_000);
    let _again = node(&memory, "a", "1", "y", &of_a);
    assert_eq!(until("it is written again", epoch("waiting")).await, first);
}

// design fleet, engine down: what is known is served as stale, and what was missed is made up for
#[tokio::test(start_paused = true)]
async fn without_the_engine_lists_are_stale() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    for link in [&a.link, &b.link] {
        link.cut(true);
    }
    until("it is said", || b.member.is_stale().then_some(())).await;
    assert!(b.member.trouble().expect("the reason").contains("the link is cut"));
    a.sessions.put("s", "running", 2_000);
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing is forgotten
    tokio::time::sleep(LEASE * 2).await;
    let owned = b.member.elsewhere(&id("s")).expect("it is still known");
    assert_eq!(state(&owned), "idle");
    for link in [&a.link, &b.link] {
        link.cut(false);
    }
    let running = || b.member.elsewhere(&id("s")).filter(|owned| state(owned) == "running");
    let owned = until("it runs", running).await;
    assert_eq!(owned.gone_for, None);
    until("it is not stale", || (!b.member.is_stale()).then_some(())).await;
    assert_eq!(b.member.trouble(), None);
}

// contract 7.2: the name of a node is unique in its fleet; a copy of a state directory is no second node
#[tokio::test(start_paused = true)]
async fn a_name_has_one_node() {
    let memory = Memory::new(LEASE);
    let none = Arc::default();
    let first = node(&memory, "a", "1", "x", &none);
    until("it is there", || first.member.node(&name("a"))).await;
    let second = node(&memory, "a", "2", "x", &none);
    let trouble = until("the name is taken", || second.member.trouble()).await;
    assert!(trouble.contains("another node is called a"), "{trouble}");
    assert!(second.member.is_stale() && !first.member.is_stale());
    drop(second);
    let copy = node(&memory, "a", "1", "y", &none);
    let trouble =
        until("one of them says it", || first.member.trouble().or_else(|| copy.member.trouble())).await;
    assert!(trouble.contains("copy of this one's state directory"), "{trouble}");
}

// design fleet: what a node says of itself is told at once, not with the next heartbeat
#[tokio::test(start_paused = true)]
async fn a_change_is_told_at_once() {
    let memory = Memory::new(LEASE);
    let none = Arc::default();
    let (a, b) = (node(&memory, "a", "1", "x", &none), node(&memory, "b", "2", "x", &none));
    until("it is there", || b.member.node(&name("a"))).await;
    a.member.change(|record| record.draining = true);
    let drains = || b.member.node(&name("a")).filter(|sight| sight.record.draining);
    let told = tokio::time::timeout(HEARTBEAT / 2, until("it drains", drains));
    told.await.expect("before the next heartbeat");
    let names = b.member.nodes().into_iter().map(|sight| sight.record.name.to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
}
