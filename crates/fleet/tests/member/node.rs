//! Nodes of a fleet over an engine in memory whose links can be cut, and the sessions that they have.

use acpd_fleet::{
    Engine, Fence, History, Lease, Local, Member, Memory, NodeId, NodeName, NodeRecord, Owned, Partition,
    Pending, Row, Run, SessionRecord,
};
use acpd_record::SessionId;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);
pub(crate) const LEASE: Duration = Duration::from_secs(20);
/// Events of a run.
pub(crate) const RUN: u64 = 7;
/// What any of the tests waits for comes within: a lease and what the design gives beyond it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(25);

/// The sessions of a node, as a log would have them.
#[derive(Debug, Default)]
pub(crate) struct Sessions(pub(crate) Mutex<BTreeMap<SessionId, Row>>, pub(crate) Mutex<Done>);

/// What was done to sessions.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// None: nothing was said yet.
    pub(crate) fence: Option<Fence>,
    pub(crate) counts_until: Option<tokio::time::Instant>,
    pub(crate) superseded: Vec<(SessionId, NodeName)>,
    pub(crate) taken_up: Vec<(SessionId, u64)>,
    /// So often a session is not taken up.
    pub(crate) refused: u32,
    /// So often they cannot be read.
    pub(crate) unread: u32,
}

impl Sessions {
    pub(crate) fn put(&self, session: &str, state: &str, changed_ms: i64) {
        self.put_as(session, state, changed_ms, Partition::Local);
    }

    pub(crate) fn put_as(&self, session: &str, state: &str, changed_ms: i64, partition: Partition) {
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
        let left = self.1.lock().unread.checked_sub(1);
        if let Some(left) = left {
            self.1.lock().unread = left;
            return Box::pin(async { Err("the disk is slow".to_owned()) });
        }
        let rows = self.0.lock().values().filter(|row| row.changed_ms >= since_ms).cloned().collect();
        Box::pin(async move { Ok(rows) })
    }

    fn room(&self) -> u32 {
        10_u32.saturating_sub(u32::try_from(self.0.lock().len()).expect("few"))
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
pub(crate) async fn archived(by: &Member, session: &str, after: u64) -> Vec<(u64, u64)> {
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
pub(crate) fn is_whole(runs: &[(u64, u64)], until: u64) -> bool {
    let mut next = 1;
    for (first, last) in runs {
        assert_eq!(*first, next, "no event twice, and none is missing: {runs:?}");
        next = last + 1;
    }
    next == until + 1
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::parse(text).expect("an id")
}

pub(crate) fn name(text: &str) -> NodeName {
    NodeName::try_from(text.to_owned()).expect("a name")
}

/// A running node.
pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) link: Arc<Memory>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn node(of: &Memory, called: &str, node_id: &str, run: &str, sessions: &Arc<Sessions>) -> Node {
    node_on(Arc::new(of.link()), called, node_id, run, sessions)
}

pub(crate) fn node_on(
    link: Arc<Memory>,
    called: &str,
    node_id: &str,
    run: &str,
    sessions: &Arc<Sessions>,
) -> Node {
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
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
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
    pub(crate) fn kill(&self) {
        self.task.abort();
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.sessions.1.lock().fence == Some(Fence::ForAll)
    }

    pub(crate) fn may_run(&self) -> bool {
        self.sessions.1.lock().fence == Some(Fence::Down)
    }

    pub(crate) fn taken_up(&self) -> Vec<(SessionId, u64)> {
        self.sessions.1.lock().taken_up.clone()
    }
}

pub(crate) fn state(owned: &Owned) -> &str {
    owned.session.info["state"].as_str().expect("a state")
}

/// Waits as long as that, on a clock that is paused and moves by itself.
pub(crate) async fn within<T>(time: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
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
