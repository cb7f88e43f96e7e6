//! The engine: each call of the fleet's trait, as what it is over NATS.
//!
//! Not here: how entries and pieces look there.

use crate::archive::Archive;
use crate::connect::{NatsError, Parts, connect};
use crate::entries::{Bucket, Found};
use crate::link::Link;
use crate::settings::NatsSettings;
use crate::watching::{self, MEMBER, Watched};
use acpd_fleet::{
    Changes, Engine, EngineError, Expected, NodeName, NodeRecord, Pending, Piece, Position, Revision,
    SessionRecord,
};
use acpd_record::SessionId;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How often an entry is looked at again that changes while it is replaced or removed: who renews it soon notices that it leaves.
const TRIES: usize = 3;

/// An engine over NATS. What watches over it ends with it.
#[derive(Debug)]
pub struct Nats {
    link: Link,
    nodes: Bucket,
    members: Bucket,
    sessions: Bucket,
    archive: Archive,
    tasks: Mutex<JoinSet<()>>,
}

impl Nats {
    /// Connects, and finds or makes what the fleet has there. A connection that is lost later is made again by itself; until then
    /// calls are `Unavailable`.
    ///
    /// # Errors
    /// When no server can be used with these settings; [`NatsError::is_temporary`] says whether it is worth another try.
    pub async fn connect(settings: NatsSettings) -> Result<Self, NatsError> {
        let Parts { link, nodes, sessions, archive } = connect(&settings).await?;
        Ok(Self { members: nodes.lasting(MEMBER), link, nodes, sessions, archive, tasks: Mutex::default() })
    }

    /// Starts a task that ends with the engine at the latest.
    fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        // Those that have ended are not kept.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn within<'a, T: Send + 'a>(
        &'a self,
        call: impl Future<Output = Result<T, EngineError>> + Send + 'a,
    ) -> Pending<'a, Result<T, EngineError>> {
        Box::pin(self.link.within(call))
    }
}

fn to_json(entry: &impl Serialize) -> Result<Vec<u8>, EngineError> {
    serde_json::to_vec(entry).map_err(|error| EngineError::Refused(error.to_string()))
}

fn from_found<T: DeserializeOwned>(found: Found) -> Result<Option<(T, Revision)>, EngineError> {
    let Found::Entry(json, revision) = found else { return Ok(None) };
    match serde_json::from_slice(&json) {
        Ok(entry) => Ok(Some((entry, revision))),
        Err(error) => Err(EngineError::Refused(format!("an entry that cannot be read: {error}"))),
    }
}

/// Removes the entry of a name, whatever it says.
async fn remove(bucket: &Bucket, name: &NodeName) -> Result<(), EngineError> {
    for _ in 0..TRIES {
        let Found::Entry(_, revision) = bucket.find(name.as_str()).await? else { return Ok(()) };
        match bucket.remove(name.as_str(), revision).await {
            Err(EngineError::Conflict) => {}
            removed => return removed,
        }
    }
    Err(EngineError::Conflict)
}

impl Engine for Nats {
    fn most_bytes(&self) -> usize {
        self.link.most_bytes()
    }

    fn put_node<'a>(
        &'a self,
        node: &'a NodeRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>> {
        self.within(async move { self.nodes.write(node.name.as_str(), to_json(node)?, expected).await })
    }

    fn remove_node<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>> {
        self.within(remove(&self.nodes, name))
    }

    fn node<'a>(
        &'a self,
        name: &'a NodeName,
    ) -> Pending<'a, Result<Option<(NodeRecord, Revision)>, EngineError>> {
        self.within(async move { from_found(self.nodes.find(name.as_str()).await?) })
    }

    fn put_member<'a>(&'a self, node: &'a NodeRecord) -> Pending<'a, Result<(), EngineError>> {
        self.within(async move {
            let name = node.name.as_str();
            for _ in 0..TRIES {
                let expected = match self.members.find(name).await? {
                    Found::Entry(_, revision) => Expected::Unchanged(revision),
                    Found::Nothing { .. } => Expected::Nothing,
                };
                match self.members.write(name, to_json(node)?, expected).await {
                    Err(EngineError::Conflict) => {}
                    written => return written.map(drop),
                }
            }
            Err(EngineError::Conflict)
        })
    }

    fn remove_member<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>> {
        self.within(remove(&self.members, name))
    }

    fn put_session<'a>(
        &'a self,
        session: &'a SessionRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>> {
        let id = session.session.as_str();
        self.within(async move { self.sessions.write(id, to_json(session)?, expected).await })
    }

    /// The entry goes first: only who owns the session removes it, and then nothing is appended to it any more. Said again, it
    /// removes what is left of the archive.
    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
        expected: Revision,
    ) -> Pending<'a, Result<(), EngineError>> {
        self.within(async move {
            self.sessions.remove(session.as_str(), expected).await?;
            self.archive.remove(session).await
        })
    }

    fn session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(SessionRecord, Revision)>, EngineError>> {
        self.within(async move { from_found(self.sessions.find(session.as_str()).await?) })
    }

    fn watch(&self) -> Pending<'_, Result<Changes, EngineError>> {
        self.within(async move {
            let watched = Watched::new(self.link.clone(), self.nodes.clone(), self.sessions.clone());
            let feeds = watched.open().await?;
            let (sender, changes) = mpsc::channel(watching::WAITING);
            self.start(watched.run(feeds, sender));
            Ok(changes)
        })
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        piece: &'a Piece,
        behind: Position,
    ) -> Pending<'a, Result<Position, EngineError>> {
        self.within(self.archive.append(session, piece, behind))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        behind: Position,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>> {
        self.within(self.archive.read(session, behind))
    }

    fn last<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>> {
        self.within(self.archive.last(session))
    }
}
