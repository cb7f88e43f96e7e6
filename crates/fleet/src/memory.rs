//! An engine in memory, for tests of what stands on an engine: each node has a link of its own to it, which can be cut.

use crate::archive::{Piece, Position};
use crate::engine::{Change, Changes, Engine, EngineError, Expected, Pending, Revision};
use crate::name::NodeName;
use crate::record::{NodeRecord, SessionRecord};
use acpd_record::SessionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Changes that wait for one that watches.
const WAITING: usize = 100_000;

/// A link to an engine in memory.
#[derive(Debug)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    is_cut: AtomicBool,
    most_bytes: AtomicUsize,
    is_deaf: AtomicBool,
    /// How long a write of a session or a piece takes.
    write: Mutex<Duration>,
    /// Entries of sessions and pieces that were written over this link.
    entries: AtomicUsize,
    pieces: AtomicUsize,
    /// And the removal of a session.
    removal: Mutex<Duration>,
    lease: Duration,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    nodes: BTreeMap<NodeName, Node>,
    members: BTreeMap<NodeName, NodeRecord>,
    sessions: BTreeMap<SessionId, (SessionRecord, Revision)>,
    archive: BTreeMap<SessionId, Vec<Piece>>,
    watchers: Vec<mpsc::Sender<Change>>,
}

#[derive(Debug)]
struct Node {
    record: NodeRecord,
    revision: Revision,
    until: Instant,
}

impl Memory {
    /// An engine, and the first link to it. A node's entry goes when nothing was said for a lease.
    pub fn new(lease: Duration) -> Self {
        Self::on(Arc::default(), lease)
    }

    /// Another link to the same engine.
    pub fn link(&self) -> Self {
        Self::on(Arc::clone(&self.state), self.lease)
    }

    fn on(state: Arc<Mutex<State>>, lease: Duration) -> Self {
        let most_bytes = AtomicUsize::new(usize::MAX);
        let [is_cut, is_deaf] = [const { AtomicBool::new(false) }; 2];
        let [entries, pieces] = [const { AtomicUsize::new(0) }; 2];
        let [write, removal] = [const { Mutex::new(Duration::ZERO) }; 2];
        Self { state, is_cut, most_bytes, is_deaf, write, entries, pieces, removal, lease }
    }

    /// Takes no longer writes over this link from now on.
    pub fn bound(&self, most_bytes: usize) {
        self.most_bytes.store(most_bytes, Ordering::Relaxed);
    }

    /// Cuts this link, or mends it. What watches over it ends.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Answers no write of a session over this link, or answers them again.
    pub fn silence_sessions(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// Takes so long for each write of a session and each piece over this link.
    pub fn slow_writes(&self, write: Duration) {
        *self.write.lock() = write;
    }

    /// How many entries of sessions, and how many pieces of the archive, were written over this link.
    pub fn writes(&self) -> (usize, usize) {
        (self.entries.load(Ordering::Relaxed), self.pieces.load(Ordering::Relaxed))
    }

    /// Takes so long for the removal of a session over this link.
    pub fn slow_removals(&self, removal: Duration) {
        *self.removal.lock() = removal;
    }

    fn with<'a, T: Send + 'a>(
        &'a self,
        does: impl FnOnce(&mut State, Duration) -> Result<T, EngineError> + Send + 'a,
    ) -> Pending<'a, Result<T, EngineError>> {
        Box::pin(async move {
            self.check()?;
            let mut state = self.state.lock();
            state.expire();
            does(&mut state, self.lease)
        })
    }

    fn check_length(&self, bytes: usize) -> Result<(), EngineError> {
        match bytes > self.most_bytes() {
            true => Err(EngineError::Refused(format!("{bytes} bytes are too many"))),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<(), EngineError> {
        match self.is_cut.load(Ordering::Relaxed) {
            true => Err(EngineError::Unavailable("the link is cut".to_owned())),
            false => Ok(()),
        }
    }
}

impl State {
    fn next(&mut self) -> Revision {
        self.revision += 1;
        Revision(self.revision)
    }

    fn tell(&mut self, change: &Change) {
        self.watchers.retain(|watcher| watcher.try_send(change.clone()).is_ok());
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let over = |node: &Node| node.until <= now;
        let gone: Vec<NodeName> =
            self.nodes.iter().filter(|(_, node)| over(node)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.nodes.remove(&name);
            self.tell(&Change::NodeGone(name));
        }
    }
}

fn check(found: Option<Revision>, expected: Expected) -> Result<(), EngineError> {
    match (found, expected) {
        (None, Expected::Nothing) => Ok(()),
        (Some(found), Expected::Unchanged(expected)) if found == expected => Ok(()),
        _ => Err(EngineError::Conflict),
    }
}

impl Engine for Memory {
    fn most_bytes(&self) -> usize {
        self.most_bytes.load(Ordering::Relaxed)
    }

    fn put_node<'a>(
        &'a self,
        node: &'a NodeRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>> {
        self.with(move |state, lease| {
            check(state.nodes.get(&node.name).map(|node| node.revision), expected)?;
            let revision = state.next();
            let until = Instant::now() + lease;
            state.nodes.insert(node.name.clone(), Node { record: node.clone(), revision, until });
            state.tell(&Change::Node(Box::new(node.clone()), revision));
            Ok(revision)
        })
    }

    fn remove_node<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |state, _| {
            if state.nodes.remove(name).is_some() {
                state.tell(&Change::NodeGone(name.clone()));
            }
            Ok(())
        })
    }

    fn node<'a>(
        &'a self,
        name: &'a NodeName,
    ) -> Pending<'a, Result<Option<(NodeRecord, Revision)>, EngineError>> {
        self.with(move |state, _| Ok(state.nodes.get(name).map(|node| (node.record.clone(), node.revision))))
    }

    fn put_member<'a>(&'a self, node: &'a NodeRecord) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |state, _| {
            state.members.insert(node.name.clone(), node.clone());
            state.tell(&Change::Member(Box::new(node.clone())));
            Ok(())
        })
    }

    fn remove_member<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |state, _| {
            if state.members.remove(name).is_some() {
                state.tell(&Change::MemberGone(name.clone()));
            }
            Ok(())
        })
    }

    fn put_session<'a>(
        &'a self,
        session: &'a SessionRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>> {
        let write = self.with(move |state, _| {
            if self.is_deaf.load(Ordering::Relaxed) {
                return Err(EngineError::Unavailable("it is slow".to_owned()));
            }
            self.check_length(serde_json::to_vec(session).unwrap_or_default().len())?;
            check(state.sessions.get(&session.session).map(|(_, revision)| *revision), expected)?;
            let revision = state.next();
            state.sessions.insert(session.session.clone(), (session.clone(), revision));
            state.tell(&Change::Session(Box::new(session.clone()), revision));
            self.entries.fetch_add(1, Ordering::Relaxed);
            Ok(revision)
        });
        let takes = *self.write.lock();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            write.await
        })
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
        expected: Revision,
    ) -> Pending<'a, Result<(), EngineError>> {
        let removal = *self.removal.lock();
        let removed = self.with(move |state, _| {
            let found = state.sessions.get(session).map(|(_, revision)| *revision);
            check(found, Expected::Unchanged(expected))?;
            state.sessions.remove(session);
            state.archive.remove(session);
            state.tell(&Change::SessionGone(session.clone()));
            Ok(())
        });
        Box::pin(async move {
            tokio::time::sleep(removal).await;
            removed.await
        })
    }

    fn session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(SessionRecord, Revision)>, EngineError>> {
        self.with(move |state, _| Ok(state.sessions.get(session).cloned()))
    }

    fn watch(&self) -> Pending<'_, Result<Changes, EngineError>> {
        self.with(move |state, _| {
            let (sender, changes) = mpsc::channel(WAITING);
            let nodes = state.nodes.values();
            let nodes = nodes.map(|node| Change::Node(Box::new(node.record.clone()), node.revision));
            let members = state.members.values().map(|node| Change::Member(Box::new(node.clone())));
            let sessions = state.sessions.values();
            let sessions =
                sessions.map(|(session, revision)| Change::Session(Box::new(session.clone()), *revision));
            for change in nodes.chain(members).chain(sessions).chain([Change::Complete]) {
                sender.try_send(change).map_err(|_| EngineError::Refused("it has no room".to_owned()))?;
            }
            state.watchers.push(sender);
            Ok(changes)
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        piece: &'a Piece,
        behind: Position,
    ) -> Pending<'a, Result<Position, EngineError>> {
        let write = self.with(move |state, _| {
            self.check_length(piece.bytes.len())?;
            let pieces = state.archive.entry(session.clone()).or_default();
            if pieces.len() as u64 != behind.0 {
                let there = usize::try_from(behind.0).ok().and_then(|index| pieces.get(index));
                let is_repeated = there == Some(piece);
                return if is_repeated { Ok(Position(behind.0 + 1)) } else { Err(EngineError::Conflict) };
            }
            pieces.push(piece.clone());
            self.pieces.fetch_add(1, Ordering::Relaxed);
            Ok(Position(pieces.len() as u64))
        });
        let takes = *self.write.lock();
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            write.await
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        behind: Position,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>> {
        self.with(move |state, _| {
            let pieces = state.archive.get(session).map(Vec::as_slice).unwrap_or_default();
            let index = usize::try_from(behind.0).unwrap_or(usize::MAX);
            Ok(pieces.get(index).map(|piece| (piece.clone(), Position(behind.0 + 1))))
        })
    }

    fn last<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>> {
        self.with(move |state, _| {
            let pieces = state.archive.get(session).map(Vec::as_slice).unwrap_or_default();
            Ok(pieces.last().map(|piece| (piece.clone(), Position(pieces.len() as u64))))
        })
    }
}
