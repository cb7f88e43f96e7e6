//! An engine that is connected when it is first used, so that a node starts while no server can be reached.
//!
//! Not here: what becomes of a connection that is lost later.

use crate::engine::Nats;
use crate::settings::NatsSettings;
use acpd_fleet::{
    Changes, Engine, EngineError, Expected, NodeName, NodeRecord, Pending, Piece, Position, Revision,
    SessionRecord,
};
use acpd_record::SessionId;
use tokio::sync::OnceCell;

/// An engine over NATS that is tried again by each call until it is there.
#[derive(Debug)]
pub struct Reached {
    settings: NatsSettings,
    engine: OnceCell<Nats>,
}

impl Reached {
    /// Connects nothing yet.
    pub fn new(settings: NatsSettings) -> Self {
        Self { settings, engine: OnceCell::new() }
    }

    async fn engine(&self) -> Result<&Nats, EngineError> {
        let connect = || async {
            let connecting = Nats::connect(self.settings.clone());
            match tokio::time::timeout(self.settings.patience, connecting).await {
                Ok(connected) => connected.map_err(|error| error.to_string()),
                Err(_) => Err(format!("no NATS server can be used within {:?}", self.settings.patience)),
            }
        };
        self.engine.get_or_try_init(connect).await.map_err(EngineError::Unavailable)
    }

    fn with<'a, T: 'a, F: Future<Output = Result<T, EngineError>> + Send + 'a>(
        &'a self,
        call: impl FnOnce(&'a Nats) -> F + Send + 'a,
    ) -> Pending<'a, Result<T, EngineError>> {
        Box::pin(async move { call(self.engine().await?).await })
    }
}

impl Engine for Reached {
    fn most_bytes(&self) -> usize {
        self.engine.get().map_or(usize::MAX, Engine::most_bytes)
    }

    fn put_node<'a>(
        &'a self,
        node: &'a NodeRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>> {
        self.with(move |engine| engine.put_node(node, expected))
    }

    fn remove_node<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |engine| engine.remove_node(name))
    }

    fn node<'a>(
        &'a self,
        name: &'a NodeName,
    ) -> Pending<'a, Result<Option<(NodeRecord, Revision)>, EngineError>> {
        self.with(move |engine| engine.node(name))
    }

    fn put_member<'a>(&'a self, node: &'a NodeRecord) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |engine| engine.put_member(node))
    }

    fn remove_member<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |engine| engine.remove_member(name))
    }

    fn put_session<'a>(
        &'a self,
        session: &'a SessionRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>> {
        self.with(move |engine| engine.put_session(session, expected))
    }

    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
        expected: Revision,
    ) -> Pending<'a, Result<(), EngineError>> {
        self.with(move |engine| engine.remove_session(session, expected))
    }

    fn session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(SessionRecord, Revision)>, EngineError>> {
        self.with(move |engine| engine.session(session))
    }

    fn watch(&self) -> Pending<'_, Result<Changes, EngineError>> {
        self.with(Engine::watch)
    }

    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        piece: &'a Piece,
        behind: Position,
    ) -> Pending<'a, Result<Position, EngineError>> {
        self.with(move |engine| engine.append(session, piece, behind))
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        behind: Position,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>> {
        self.with(move |engine| engine.read(session, behind))
    }

    fn last<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>> {
        self.with(move |engine| engine.last(session))
    }
}
