//! Nodes of a fleet and what each knows of the others, over an engine in memory whose links can be cut.

use acpd_fleet::{
    Claim, Creator, Engine, Expected, Fence, History, Lease, Local, Member, Memory, NodeId, NodeName,
    NodeRecord, NotRemoved, Owned, Partition, Pending, Piece, Removed, Row, Run, SessionRecord, epoch_of,
};
use acpd_record::SessionId;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const HEARTBEAT: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(20);
/// Events of a run.
const RUN: u64 = 7;
/// What any of the tests waits for comes within: a lease and what the design gives beyond it.
const PATIENCE: Duration = Duration::from_secs(25);

/// The sessions of a node, as a log would have them.
#[derive(Debug, Default)]
struct Sessions(Mutex<BTreeMap<SessionId, Row>>, Mutex<Done>);

/// What was done to sessions.
#[derive(Debug, Default)]
struct Done {
    /// None: nothing was said yet.
    fence: Option<Fence>,
    counts_until: Option<tokio::time::Instant>,
    superseded: Vec<(SessionId, NodeName)>,
    taken_up: Vec<(SessionId, u64)>,
    /// So often a session is not taken up.
    refused: u32,
}

impl Sessions {
    fn put(&self, session: &str, state: &str, changed_ms: i64) {
        self.put_as(session, state, changed_ms, Partition::Local);
    }

    fn put_as(&self, session: &str, state: &str, changed_ms: i64, partition: Partition) {
        let id = id(session);
        let info = json!({"sessionId": session, "agent": "example", "state": state, "updatedAt": changed_ms});
        let seq = changed_ms.unsigned_abs();
        let row = Row {
            session: id.clone(),
            creator: None,
            partition,
            seq,
            ended: false,
            created_ms: 0,
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

    fn run<'a>(&'a self, session: &'a SessionId, after: u64) -> Pending<'a, Result<Option<Run>, String>> {
        let seq = self.0.lock().get(session).map_or(0, |row| row.seq);
        let (first, last) = (after + 1, seq.min(after + RUN));
        let run = Run { first, last, bytes: format!("{first}-{last}").into() };
        Box::pin(async move { Ok((first <= last).then_some(run)) })
    }

    fn fence(&self, fence: Fence) {
        self.1.lock().fence = Some(fence);
    }

    fn counts_until(&self, until: tokio::time::Instant) {
        self.1.lock().counts_until = Some(until);
    }

    fn supersede<'a>(&'a self, session: &'a SessionId, by: &'a NodeName) -> Pending<'a, Result<(), String>> {
        self.0.lock().remove(session);
        self.1.lock().superseded.push((session.clone(), by.clone()));
        Box::pin(async { Ok(()) })
    }

    fn take_up<'a>(
        &'a self,
        record: &'a SessionRecord,
        mut history: History,
    ) -> Pending<'a, Result<(), String>> {
        Box::pin(async move {
            let left = self.1.lock().refused.checked_sub(1);
            if let Some(left) = left {
                self.1.lock().refused = left;
                return Err("the disk is full".to_owned());
            }
            let mut runs = Vec::new();
            while let Some(run) = history.next().await.map_err(|error| error.to_string())? {
                runs.push((run.first, run.last));
            }
            let last = history.last();
            assert!(is_whole(&runs, last));
            self.1.lock().taken_up.push((record.session.clone(), last));
            let changed_ms = i64::try_from(last).expect("few");
            self.put_as(record.session.as_str(), "ended", changed_ms, record.partition);
            Ok(())
        })
    }
}

/// The runs of a session in the archive behind an event.
async fn archived(by: &Member, session: &str, after: u64) -> Vec<(u64, u64)> {
    let mut history = by.history(&id(session), after).await.expect("the engine answers");
    let mut runs = Vec::new();
    while let Some(run) = history.next().await.expect("the engine answers") {
        assert_eq!(run.bytes, format!("{}-{}", run.first, run.last));
        runs.push((run.first, run.last));
    }
    assert_eq!(history.position(), history.last().max(after));
    runs
}

/// Whether all events are there, each once and in order.
fn is_whole(runs: &[(u64, u64)], until: u64) -> bool {
    let mut next = 1;
    for (first, last) in runs {
        assert_eq!(*first, next, "no event twice, and none is missing: {runs:?}");
        next = last + 1;
    }
    next == until + 1
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
    node_on(Arc::new(of.link()), called, node_id, run, sessions)
}

fn node_on(link: Arc<Memory>, called: &str, node_id: &str, run: &str, sessions: &Arc<Sessions>) -> Node {
    // What an earlier life was told says nothing of this one.
    sessions.1.lock().fence = None;
    let mut record = NodeRecord::new(name(called), NodeId(node_id.to_owned()), "1");
    (record.run, record.agents) = (run.to_owned(), vec!["example".to_owned()]);
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

impl Node {
    /// It is killed: it does nothing more.
    fn kill(&self) {
        self.task.abort();
    }

    fn is_fenced(&self) -> bool {
        self.sessions.1.lock().fence == Some(Fence::ForAll)
    }

    fn may_run(&self) -> bool {
        self.sessions.1.lock().fence == Some(Fence::Down)
    }

    fn taken_up(&self) -> Vec<(SessionId, u64)> {
        self.sessions.1.lock().taken_up.clone()
    }
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

// design fleet: one list: a session of which the log says late what it did long before is known as well
#[tokio::test(start_paused = true)]
async fn a_change_that_is_read_late_is_told() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 100_000);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    a.sessions.put("late", "idle", 1);
    until("b knows the other one", || b.member.elsewhere(&id("late"))).await;
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
    // Under another name it is none either, as long as the first one is there.
    drop(copy);
    let renamed = node(&memory, "b", "1", "z", &none);
    let trouble = until("it says it", || renamed.member.trouble().filter(|why| why.contains("node a"))).await;
    assert!(trouble.contains("node-id"), "{trouble}");
    assert!(first.member.node(&name("b")).is_none() && renamed.member.is_stale());
    first.member.leave().await;
    first.kill();
    until("a node that was renamed is one", || (!renamed.member.is_stale()).then_some(())).await;
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

// design fleet, log archive: all events of a session come to the archive, each once, over a cut link and a start of the node
#[tokio::test(start_paused = true)]
async fn the_archive_gets_every_event_once() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    for (at, session) in (1..).zip(["s", "t"]) {
        a.sessions.put(session, "idle", 100 * at);
    }
    until("all is known", || {
        (a.member.lag() == 0 && b.member.sessions_elsewhere(|_| true).len() == 2).then_some(())
    })
    .await;
    for (session, seq) in [("s", 100), ("t", 200)] {
        assert!(is_whole(&archived(&b.member, session, 0).await, seq), "{session}");
    }
    a.link.cut(true);
    a.sessions.put("s", "running", 1_000);
    until("it is behind", || (a.member.lag() == 900).then_some(())).await;
    a.link.cut(false);
    until("it has made up for it", || (a.member.lag() == 0).then_some(())).await;
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    of_a.put("s", "idle", 2_000);
    let again = node(&memory, "a", "1", "y", &of_a);
    let told = || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 2_000);
    until("the next life goes on", told).await;
    assert_eq!(again.member.lag(), 0);
    let runs = archived(&b.member, "s", 0).await;
    assert!(is_whole(&runs, 2_000));
    // From any event on, that event's run is the first.
    for after in [1, 6, 7, 8, 99, 100, 101, 999, 1_000, 1_999, 2_000] {
        let behind: Vec<_> = runs.iter().filter(|(_, last)| *last > after).copied().collect();
        assert_eq!(archived(&b.member, "s", after).await, behind, "{after}");
    }
    assert_eq!(archived(&b.member, "unknown", 0).await, []);
}

// design fleet, fence: an owner whose session was claimed appends nothing more, and learns it by that
#[tokio::test(start_paused = true)]
async fn what_was_claimed_is_not_added_to() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put_as("s", "idle", 100, Partition::Failover);
    let told = || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 100);
    until("it is archived", told).await;
    let (other, session) = (NodeRecord::new(name("c"), NodeId("3".to_owned()), "1"), id("s"));
    let (mut claim, revision) = memory.session(&session).await.expect("it answers").expect("it is there");
    (claim.node, claim.node_id, claim.epoch) = (other.name, other.id, None);
    let claimed = memory.put_session(&claim, Expected::Unchanged(revision)).await.expect("it is as it was");
    let (last, at) = memory.last(&session).await.expect("it answers").expect("it is there");
    let opening = Piece::opening(epoch_of(&claim, claimed), last.last);
    memory.append(&session, &opening, at).await.expect("it follows");
    a.sessions.put_as("s", "running", 300, Partition::Failover);
    until("it is another one's", || a.member.elsewhere(&session)).await;
    until("nothing of it is to be added", || (a.member.lag() == 0).then_some(())).await;
    let (last, _) = memory.last(&session).await.expect("it answers").expect("it is there");
    assert_eq!(last, opening);
}

/// How long a lease, the margin and what comes behind take, when it fails twice at first.
const TAKEN_UP: Duration = Duration::from_secs(20 + 7 + 2 * (20 + 5) + 5);

async fn within<T>(time: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < time, "it never came to this: {what}");
        // tidy: allow sleep, the clock is paused, and goes on only while all wait
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

// design fleet, partition: a session of a lost node is taken up once, with all its history, if it may be; then it is the new node's
#[tokio::test(start_paused = true)]
async fn a_session_of_a_lost_node_is_taken_up_once() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b, of_c] = [(); 3].map(|()| Arc::<Sessions>::default());
    let a = node(&memory, "a", "1", "x", &of_a);
    let others = [node(&memory, "b", "2", "x", &of_b), node(&memory, "c", "3", "x", &of_c)];
    of_a.put_as("s", "running", 100, Partition::Failover);
    of_a.put("t", "running", 101);
    let [b, c] = &others;
    // The disk of the node that has the most room is full at first.
    of_c.put("u", "idle", 1);
    of_b.1.lock().refused = 2;
    let told = || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 100);
    let before = until("it is archived", told).await.session;
    until("it may run", || a.may_run().then_some(())).await;
    let lost = tokio::time::Instant::now();
    a.kill();
    let taken = |node: &Node| !node.taken_up().is_empty();
    let begun = within(TAKEN_UP, "it is claimed", || b.member.taking_up(&id("s"))).await;
    assert!(begun.session.node == name("b") && b.taken_up().is_empty(), "it does not have it yet");
    assert!(c.member.taking_up(&id("s")).is_none(), "that is another node's");
    within(TAKEN_UP, "it is taken up", || others.iter().any(taken).then_some(())).await;
    assert!(lost.elapsed() >= LEASE, "not before the lease is over");
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing more is done
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!((b.taken_up(), c.taken_up()), (vec![(id("s"), 100)], vec![]));
    assert!(b.member.taking_up(&id("s")).is_none(), "it has it");
    let owned = c.member.elsewhere(&id("s")).expect("it is b's");
    assert_eq!((&owned.session.node, owned.gone_for, owned.session.taking_up), (&name("b"), None, false));
    assert!(owned.session.epoch > before.epoch);
    let left = c.member.elsewhere(&id("t")).expect("it is a's");
    assert!(left.session.node == name("a") && left.gone_for.is_some());
    // It goes on there.
    of_b.put_as("s", "running", 200, Partition::Failover);
    let goes_on = || c.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 200);
    until("it goes on", goes_on).await;
    assert!(is_whole(&archived(&c.member, "s", 0).await, 200));

    // Its first node is back, and has more of it.
    drop(a);
    of_a.put_as("s", "running", 150, Partition::Failover);
    let again = node(&memory, "a", "1", "y", &of_a);
    let superseded = || Some(of_a.1.lock().superseded.clone()).filter(|superseded| !superseded.is_empty());
    assert_eq!(until("it learns it", superseded).await, [(id("s"), name("b"))]);
    until("its other sessions may run", || again.may_run().then_some(())).await;
    assert!(is_whole(&archived(&c.member, "s", 0).await, 200), "it has added nothing");
    assert_eq!(again.member.elsewhere(&id("s")).map(|owned| owned.session.node.clone()), Some(name("b")));
    assert!(again.member.elsewhere(&id("t")).is_none(), "that is its own");
}

// design fleet, partition: an owner that is cut off ends its session before another may take it up, and does not begin again
// before it has read whose it is
#[tokio::test(start_paused = true)]
async fn an_owner_that_is_cut_off_ends_first() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b] = [(); 2].map(|()| Arc::<Sessions>::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    of_a.put_as("s", "running", 100, Partition::Failover);
    of_a.put_as("t", "running", 101, Partition::Failover);
    let told = || (a.member.lag() == 0 && b.member.sessions_elsewhere(|_| true).len() == 2).then_some(());
    until("they are known", told).await;
    until("they may run", || a.may_run().then_some(())).await;
    a.link.cut(true);
    let cut = tokio::time::Instant::now();
    until("it is fenced", || a.is_fenced().then_some(())).await;
    let counted = of_a.1.lock().counts_until.expect("it was heard");
    assert!(counted <= tokio::time::Instant::now() && counted > cut, "what it had said before");
    assert!(cut.elapsed() < LEASE, "{:?}", cut.elapsed());
    assert_eq!(b.taken_up(), []);
    within(TAKEN_UP, "both are taken up", || (b.taken_up().len() == 2).then_some(())).await;
    assert!(a.is_fenced());
    a.link.cut(false);
    until("it may run what is its own", || a.may_run().then_some(())).await;
    let mut superseded = of_a.1.lock().superseded.clone();
    superseded.sort();
    assert_eq!(superseded, [(id("s"), name("b")), (id("t"), name("b"))], "before that");
}

// design fleet, partition: a node that is away for less than its lease keeps its sessions
#[tokio::test(start_paused = true)]
async fn a_node_that_is_back_in_time_keeps_its_sessions() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b] = [(); 2].map(|()| Arc::<Sessions>::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    of_a.put_as("s", "running", 100, Partition::Failover);
    until("it is known", || b.member.elsewhere(&id("s"))).await;
    until("it may run", || a.may_run().then_some(())).await;
    for _ in 0..3 {
        a.link.cut(true);
        until("it is fenced", || a.is_fenced().then_some(())).await;
        a.link.cut(false);
        until("it may run again", || a.may_run().then_some(())).await;
    }
    // At a start what was left runs until it is known whose it is, or that takes too long.
    drop(a);
    let link = Arc::new(memory.link());
    link.cut(true);
    let a = node_on(link, "a", "1", "y", &of_a);
    assert_eq!(until("it begins", || a.sessions.1.lock().fence).await, Fence::ForNew);
    until("it is fenced", || a.is_fenced().then_some(())).await;
    a.link.cut(false);
    until("it may run again", || a.may_run().then_some(())).await;
    // A node that leaves may come back as well: its next version, with the agents that were kept.
    a.member.leave().await;
    a.kill();
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing is done
    tokio::time::sleep(LEASE).await;
    drop(a);
    let _again = node(&memory, "a", "1", "z", &of_a);
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing is done
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!((b.taken_up(), of_a.1.lock().superseded.clone()), (vec![], vec![]));
}

// contract 7.3: the id of a session that is to begin is one node's; it is free again when none came of it
#[tokio::test(start_paused = true)]
async fn an_id_is_claimed_before_its_session_begins() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    for of in [&a, &b] {
        until("it is told", || (!of.member.is_stale()).then_some(())).await;
    }
    let is_other = |claim: &Claim| matches!(claim, Claim::Other(owned) if owned.session.node == name("a"));
    let claim = a.member.claim(&id("s"), None).await;
    assert!(matches!(claim, Claim::Own(_)));
    // The same request under way twice.
    let again = a.member.claim(&id("s"), None).await;
    assert!(matches!(again, Claim::Own(_)));
    assert!(is_other(&b.member.claim(&id("s"), None).await), "at once");
    assert_eq!(b.member.sessions_elsewhere(|_| true), [], "it is no session");
    drop(claim);
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing happens
    tokio::time::sleep(LEASE * 2).await;
    assert!(is_other(&b.member.claim(&id("s"), None).await), "the other request is under way");
    drop(again);
    let free = until("it is free", || b.member.elsewhere(&id("s")).is_none().then_some(()));
    free.await;
    let claim = b.member.claim(&id("s"), None).await;
    assert!(matches!(claim, Claim::Own(_)));
    b.sessions.put("s", "idle", 1);
    drop(claim);
    b.member.tell(&id("s")).await;
    assert_eq!(a.member.look(&id("s")).await.map(|at| at.is_some()), Ok(true));
    let owned = a.member.elsewhere(&id("s")).expect("it is told");
    assert_eq!((owned.session.node.clone(), state(&owned)), (name("b"), "idle"));
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing happens
    tokio::time::sleep(LEASE * 2).await;
    assert!(a.member.elsewhere(&id("s")).is_some_and(|owned| state(&owned) == "idle"), "it stays");
    a.link.cut(true);
    until("it is said", || a.member.is_stale().then_some(())).await;
    assert!(matches!(a.member.claim(&id("t"), None).await, Claim::Unknown));
    assert!(matches!(a.member.claim(&id("s"), None).await, Claim::Other(_)), "what is known is known");
}

// design fleet: what has become of its sessions is told by a node before it leaves
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_has_told_all() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 1);
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    a.sessions.put("s", "ended", 20);
    a.member.leave().await;
    assert!(b.member.look(&id("s")).await.is_ok());
    let owned = b.member.elsewhere(&id("s")).expect("it is known");
    assert_eq!((state(&owned), owned.session.seq, owned.session.archived), ("ended", 20, 20));
    assert!(is_whole(&archived(&b.member, "s", 0).await, 20));
    // Without an engine it goes all the same.
    b.link.cut(true);
    let begun = tokio::time::Instant::now();
    b.member.leave().await;
    assert!(begun.elapsed() < HEARTBEAT, "{:?}", begun.elapsed());
}

// design fleet: a node that is gone for good is removed with its sessions, at every node; one that is there is not
#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_for_good_is_removed() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b, of_c) = (Arc::default(), Arc::default(), Arc::default());
    let a = node(&memory, "a", "1", "x", &of_a);
    let (b, c) = (node(&memory, "b", "2", "x", &of_b), node(&memory, "c", "3", "x", &of_c));
    for session in ["s", "t"] {
        a.sessions.put(session, "idle", 9);
        until("it is known", || c.member.elsewhere(&id(session))).await;
    }
    until("it is archived", || (a.member.lag() == 0).then_some(())).await;
    let remove = async |called: &str| b.member.remove_node(&name(called)).await;
    assert_eq!(remove("a").await, Err(NotRemoved::There));
    assert_eq!(remove("b").await, Err(NotRemoved::There), "it is itself");
    assert_eq!(remove("x").await, Err(NotRemoved::Unknown));
    a.kill();
    until("it is lost", || b.member.gone_for(&name("a"))).await;
    assert_eq!(remove("a").await, Ok(Removed { sessions: 2, left: 0 }));
    for of in [&b, &c] {
        until("it is forgotten", || of.member.node(&name("a")).is_none().then_some(())).await;
        until("so are its sessions", || of.member.sessions_elsewhere(|_| true).is_empty().then_some(()))
            .await;
    }
    assert_eq!(archived(&c.member, "s", 0).await, []);
    assert_eq!(remove("a").await, Err(NotRemoved::Unknown));
    // It comes back all the same.
    let of_a = Arc::clone(&a.sessions);
    drop(a);
    let again = node(&memory, "a", "1", "y", &of_a);
    until("it is there", || b.member.elsewhere(&id("s")).filter(|owned| owned.gone_for.is_none())).await;
    again.kill();
    until("it is lost", || b.member.gone_for(&name("a"))).await;
    // Another one has its name.
    let other = node(&memory, "a", "4", "x", &Arc::default());
    until("it is there", || b.member.gone_for(&name("a")).is_none().then_some(())).await;
    assert_eq!(remove("a").await, Ok(Removed { sessions: 2, left: 0 }));
    assert_eq!(b.member.gone_for(&name("a")), None, "it stays");
    drop(other);
}

/// Writes another owner into the entry of a session, as one does who has only a credential of the engine.
async fn claim_falsely(memory: &Memory, session: &str, owner: &NodeRecord, created_ms: i64) {
    let (mut entry, revision) = memory.session(&id(session)).await.expect("it answers").expect("it is there");
    (entry.node, entry.node_id, entry.epoch) = (owner.name.clone(), owner.id.clone(), None);
    entry.created_ms = created_ms;
    memory.put_session(&entry, Expected::Unchanged(revision)).await.expect("it is as it was");
}

// contract 7.3: the truth of a session is the log of its node: a false owner in the directory takes nothing from it, and
// the entry is written again, under an epoch of its own
#[tokio::test(start_paused = true)]
async fn a_node_believes_its_own_log() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    for (session, state) in [("live", "running"), ("ended", "idle")] {
        a.sessions.put(session, state, 100);
    }
    a.sessions.0.lock().get_mut(&id("ended")).expect("it is there").ended = true;
    let told = |session| b.member.elsewhere(&id(session)).filter(|owned| owned.session.archived == 100);
    for session in ["live", "ended"] {
        until("it is archived", || told(session)).await;
    }
    let false_owner = NodeRecord::new(name("evil"), NodeId("3".to_owned()), "1");
    memory.put_node(&false_owner, Expected::Nothing).await.expect("it is new");
    for session in ["live", "ended"] {
        let epoch = told(session).expect("it is known").session.epoch;
        for _ in 0..3 {
            claim_falsely(&memory, session, &false_owner, 0).await;
            until("b is told", || {
                b.member.elsewhere(&id(session)).filter(|owned| owned.session.node == name("evil"))
            })
            .await;
            assert_eq!(a.member.elsewhere(&id(session)), None, "it is here");
            assert_eq!(a.member.sessions_elsewhere(|_| true), [], "and is listed once");
            let again = || b.member.elsewhere(&id(session)).filter(|owned| owned.session.node == name("a"));
            let again = until("its entry is written again", again).await;
            assert_eq!(again.session.node_id, NodeId("1".to_owned()));
        }
        let written = || told(session).filter(|owned| owned.session.epoch > epoch);
        until("under an epoch of its own, behind which the archive goes on", written).await;
    }
    assert_eq!(a.sessions.1.lock().superseded, []);
    // What it gave up is the other node's.
    a.sessions.put_as("movable", "running", 100, Partition::Failover);
    until("it is archived", || told("movable")).await;
    claim_falsely(&memory, "movable", &false_owner, 0).await;
    until("it is given up", || a.sessions.1.lock().superseded.first().cloned()).await;
}

// design fleet, sessions, log archive: what the engine does not take is passed over, counted, and in the way of nothing; what is too long
// is cut or left out as far as it can be
#[tokio::test(start_paused = true)]
async fn what_the_engine_does_not_take_is_passed_over() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.link.bound(600);
    for (session, long) in [("1-long", 700), ("2-refused", 700), ("3-plain", 1)] {
        a.sessions.put(session, "idle", 100);
        let mut rows = a.sessions.0.lock();
        let row = rows.get_mut(&id(session)).expect("it is there");
        row.info["title"] = json!("t".repeat(long));
        if session == "2-refused" {
            let creator = Creator { name: "n".repeat(700), fingerprint: String::new() };
            row.creator = Some(creator);
        }
    }
    let cut = until("it is listed", || b.member.elsewhere(&id("1-long"))).await;
    assert_eq!((state(&cut), cut.session.info.get("title")), ("idle", None));
    until("the next is listed", || b.member.elsewhere(&id("3-plain"))).await;
    assert!(b.member.elsewhere(&id("2-refused")).is_none() && a.member.refusals().0 > 0);
    until("a has told all that it can", || (!b.member.is_behind()).then_some(())).await;
    let archived_all = || {
        let archived = |session| b.member.elsewhere(&id(session)).map(|owned| owned.session.archived);
        (archived("1-long") == Some(100) && archived("3-plain") == Some(100)).then_some(())
    };
    until("the archive has them", archived_all).await;
    // When it is taken, it is told.
    a.link.bound(usize::MAX);
    until("it is listed now", || b.member.elsewhere(&id("2-refused"))).await;
    // A piece that is refused holds up no other session.
    a.link.bound(1);
    let refused = a.member.refusals().1;
    a.sessions.put("3-plain", "idle", 110);
    let cut = until("the archive has it", || (a.member.lag() == 0).then_some(a.member.refusals().1)).await;
    assert_eq!(cut, refused, "pieces are cut to what is taken");
}

// contract 7.3: what is not known may be a session of a node that is not heard, until that is removed, or of one that is
// still telling what it has; a node that left has told all
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_heard_may_have_more() {
    let memory = Memory::new(LEASE);
    let (of_a, of_b) = (Arc::default(), Arc::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    a.sessions.put("s", "idle", 9);
    until("all is told", || (!a.member.is_behind() && !b.member.is_behind()).then_some(())).await;
    until("b knows the session", || b.member.elsewhere(&id("s"))).await;
    a.link.cut(true);
    until("a is not heard", || b.member.gone_for(&name("a"))).await;
    assert!(b.member.is_behind() && !b.member.is_stale());
    // A daemon that starts anew has never heard it.
    drop(b);
    let b = node(&memory, "b", "2", "y", &Arc::default());
    let sight = until("it is known by its session", || b.member.node(&name("a"))).await;
    assert!(sight.gone_for.is_some() && (sight.sessions, sight.live) == (1, 1), "{sight:?}");
    until("b is heard", || (!b.member.is_stale()).then_some(())).await;
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing changes
    tokio::time::sleep(LEASE).await;
    assert!(b.member.is_behind());
    a.link.cut(false);
    until("it is back, and has told all", || (!b.member.is_behind()).then_some(())).await;
    a.kill();
    until("it is lost", || b.member.is_behind().then_some(())).await;
    assert_eq!(b.member.remove_node(&name("a")).await, Ok(Removed { sessions: 1, left: 0 }));
    until("it is forgotten", || (!b.member.is_behind()).then_some(())).await;
    // What is telling its sessions.
    let of_c = Arc::<Sessions>::default();
    of_c.put("t", "idle", 9);
    let link = Arc::new(memory.link());
    link.silence_sessions(true);
    let c = node_on(Arc::clone(&link), "c", "3", "x", &of_c);
    until("it has more than it has told", || b.member.is_behind().then_some(())).await;
    link.silence_sessions(false);
    until("it has told all", || (!b.member.is_behind()).then_some(())).await;
    assert!(b.member.elsewhere(&id("t")).is_some());
    c.member.leave().await;
    c.kill();
    until("it has left", || b.member.gone_for(&name("c"))).await;
    assert!(!b.member.is_behind(), "it has told all");
}

// design fleet, partition: while a session is taken up it is listed by the node that takes it up
#[tokio::test(start_paused = true)]
async fn a_session_that_is_taken_up_is_always_listed() {
    let memory = Memory::new(LEASE);
    let [of_a, of_b] = [(); 2].map(|()| Arc::<Sessions>::default());
    let (a, b) = (node(&memory, "a", "1", "x", &of_a), node(&memory, "b", "2", "x", &of_b));
    of_a.put_as("s", "running", 100, Partition::Failover);
    until("it is archived", || b.member.elsewhere(&id("s")).filter(|owned| owned.session.archived == 100))
        .await;
    of_b.1.lock().refused = 1;
    a.kill();
    let is_listed = || {
        let elsewhere = b.member.sessions_elsewhere(|owned| owned.session.session == id("s")).len();
        elsewhere + of_b.0.lock().len()
    };
    within(TAKEN_UP, "it is taken up", || {
        assert!(is_listed() >= 1, "it is missing");
        (!b.taken_up().is_empty()).then_some(())
    })
    .await;
    // tidy: allow sleep, on a clock that is paused nothing marks that nothing happens
    tokio::time::sleep(LEASE).await;
    assert_eq!(is_listed(), 1, "once");
}
