//! What a fleet needs of an engine: a directory with revisions, and an archive that refuses what does not follow.

use crate::archive::{Piece, Position};
use crate::name::NodeName;
use crate::record::{Epoch, NodeRecord, SessionRecord};
use acpd_record::SessionId;
use std::fmt::Debug;
use std::pin::Pin;
use thiserror::Error;
use tokio::sync::mpsc;

/// What a call gives when it is done.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A version of an entry; each change of the directory has a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// What a write has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No entry.
    Nothing,
    /// An entry that has not changed since.
    Unchanged(Revision),
}

/// Why a call did not do what it was to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// Something else is there than was expected: another node was first. Nothing was written.
    #[error("another node was first")]
    Conflict,
    /// It cannot be said whether it was done.
    #[error("the engine does not answer: {0}")]
    Unavailable(String),
    /// It was not done, and will not be.
    #[error("{0}")]
    Refused(String),
}

/// What has changed in the directory.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// All that was there before has been told.
    Complete,
    /// A node has said that it is there.
    Node(Box<NodeRecord>, Revision),
    /// A node has left, or has not said for a lease that it is there.
    NodeGone(NodeName),
    /// A node belongs to the fleet, whether it is there or not.
    Member(Box<NodeRecord>),
    /// A node belongs to the fleet no longer.
    MemberGone(NodeName),
    /// A session is new or has changed.
    Session(Box<SessionRecord>, Revision),
    /// A session was removed.
    SessionGone(SessionId),
    /// The directory may have changed without being told of; it is told anew, as if by a new watch.
    Again,
}

/// Changes of the directory as they come. Its end: the engine cannot be watched any more.
pub type Changes = mpsc::Receiver<Change>;

/// The engine of a fleet. Each call ends within the engine's patience, with an error if need be.
///
/// A write that is `Unavailable` may have been done; the writer reads the directory before it goes on from there.
pub trait Engine: Debug + Send + Sync {
    /// The most bytes of one write that it takes now: of an entry as JSON, or of a piece. Longer ones are `Refused`.
    fn most_bytes(&self) -> usize {
        usize::MAX
    }

    /// Says that a node is there, for a lease from now on.
    fn put_node<'a>(
        &'a self,
        node: &'a NodeRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>>;

    /// A node leaves.
    fn remove_node<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>>;

    /// The entry of a node, if it is there.
    fn node<'a>(
        &'a self,
        name: &'a NodeName,
    ) -> Pending<'a, Result<Option<(NodeRecord, Revision)>, EngineError>>;

    /// Notes that a node belongs to the fleet, in place of what was noted under its name before. Unlike its entry, that has no lease.
    fn put_member<'a>(&'a self, node: &'a NodeRecord) -> Pending<'a, Result<(), EngineError>>;

    /// Removes what was noted of a node, if anything was.
    fn remove_member<'a>(&'a self, name: &'a NodeName) -> Pending<'a, Result<(), EngineError>>;

    /// Writes a session's entry. A claim is such a write, of an entry without an epoch: its revision is the epoch.
    fn put_session<'a>(
        &'a self,
        session: &'a SessionRecord,
        expected: Expected,
    ) -> Pending<'a, Result<Revision, EngineError>>;

    /// Removes a session's entry and its archive.
    fn remove_session<'a>(
        &'a self,
        session: &'a SessionId,
        expected: Revision,
    ) -> Pending<'a, Result<(), EngineError>>;

    /// The entry of a session as it is now.
    fn session<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(SessionRecord, Revision)>, EngineError>>;

    /// All entries, then what becomes of them.
    fn watch(&self) -> Pending<'_, Result<Changes, EngineError>>;

    /// Appends to a session's archive, behind what is expected to be its last piece. A piece that is already right behind that one
    /// is not appended again: its place is given, so that an append whose outcome is not known can be repeated. A conflict is also
    /// that the last piece is no longer there, because the archive keeps none for ever; [`Engine::last`] says from where it goes on.
    fn append<'a>(
        &'a self,
        session: &'a SessionId,
        piece: &'a Piece,
        behind: Position,
    ) -> Pending<'a, Result<Position, EngineError>>;

    /// The first piece of a session's archive behind a position.
    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        behind: Position,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>>;

    /// The last piece of a session's archive.
    fn last<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> Pending<'a, Result<Option<(Piece, Position)>, EngineError>>;
}

/// The epoch of an entry: that of its claim.
pub fn epoch_of(session: &SessionRecord, revision: Revision) -> Epoch {
    session.epoch.unwrap_or(Epoch(revision.0))
}
