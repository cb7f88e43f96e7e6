//! Removing a node that is gone for good: its sessions leave the directory and the archive, and every node forgets it.

use super::Member;
use crate::engine::{EngineError, Expected, Revision};
use crate::name::NodeName;
use crate::record::NodeRecord;
use acpd_record::SessionId;
use futures_util::{StreamExt, stream};
use std::time::Duration;
use tokio::time::Instant;

/// Entries that are removed at a time.
const AT_ONCE: usize = 32;
/// How long one call removes: more is for the next one.
const LASTS: Duration = Duration::from_secs(3);

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removed {
    /// Sessions that were.
    pub sessions: usize,
    /// Sessions that are still to be.
    pub left: usize,
}

/// Why nothing was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRemoved {
    /// No node has that name.
    Unknown,
    /// It is there.
    There,
    /// The engine does not answer.
    Engine(String),
}

/// A node that may be removed.
struct Gone {
    /// What it last said, unless another node has its name now.
    record: Option<NodeRecord>,
    sessions: Vec<(SessionId, Revision)>,
}

impl Member {
    /// Removes a node that is gone, with its sessions; of one of which another node has the name, the sessions.
    ///
    /// # Errors
    /// When there is none, it is there, or the engine does not answer.
    pub async fn remove_node(&self, name: &NodeName) -> Result<Removed, NotRemoved> {
        if self.is_stale() {
            return Err(NotRemoved::Engine("it does not hear of this node".to_owned()));
        }
        let Gone { record, sessions } = self.gone(name)?;
        let failed = |error: EngineError| NotRemoved::Engine(error.to_string());
        let expected = match (self.shared.engine.node(name).await.map_err(failed)?, &record) {
            (Some((found, revision)), Some(record)) if found.run == record.run => {
                Expected::Unchanged(revision)
            }
            // It has come back.
            (Some(_), Some(_)) => return Err(NotRemoved::There),
            _ => Expected::Nothing,
        };
        let until = Instant::now() + LASTS;
        let remove = async |(session, revision)| {
            let removing = self.shared.engine.remove_session(&session, revision);
            tokio::time::timeout_at(until, removing).await
        };
        let mut removed = Removed { sessions: 0, left: 0 };
        let mut all = std::pin::pin!(stream::iter(sessions).map(remove).buffer_unordered(AT_ONCE));
        while let Some(done) = all.next().await {
            match done {
                Ok(Ok(())) => removed.sessions += 1,
                // Another node has taken it up.
                Ok(Err(EngineError::Conflict)) => {}
                _ => removed.left += 1,
            }
        }
        if let (Some(record), 0) = (record, removed.left) {
            self.mark_removed(record, expected).await?;
            self.shared.engine.remove_member(name).await.map_err(failed)?;
        }
        Ok(removed)
    }

    /// Writes that a node is removed, into the entry that was found or where none was.
    ///
    /// # Errors
    /// When the node has come back, or the engine does not answer.
    async fn mark_removed(&self, mut record: NodeRecord, found: Expected) -> Result<(), NotRemoved> {
        let engine = &self.shared.engine;
        let failed = |error: EngineError| NotRemoved::Engine(error.to_string());
        record.removed = true;
        match engine.put_node(&record, found).await {
            Ok(_) => return Ok(()),
            Err(EngineError::Conflict) => {}
            Err(error) => return Err(failed(error)),
        }
        // Its entry leaves by its lease, which may be over since the look at it: that is no node that comes back.
        if engine.node(&record.name).await.map_err(failed)?.is_some() {
            return Err(NotRemoved::There);
        }
        match engine.put_node(&record, Expected::Nothing).await {
            Ok(_) => Ok(()),
            Err(EngineError::Conflict) => Err(NotRemoved::There),
            Err(error) => Err(failed(error)),
        }
    }

    fn gone(&self, name: &NodeName) -> Result<Gone, NotRemoved> {
        let (now, lease, me) = (self.now(), self.judging(), self.me());
        let watched = self.shared.directory.read();
        let directory = &watched.directory;
        let node = directory.node(name);
        // One that was removed but for what was noted of it.
        let noted = directory.member(name).map(|member| NodeRecord::clone(member));
        let is_there = node.is_some_and(|(_, reach)| reach.gone_since(now, lease).is_none());
        let of_it = directory.sessions().filter(|session| session.node == *name && session.node_id != me.id);
        let lost = of_it.filter(|session| directory.unreachable_since(session, now, lease).is_some());
        let entry = |session: &SessionId| directory.session(session).map(|(_, at)| (session.clone(), at));
        let sessions: Vec<_> = lost.filter_map(|session| entry(&session.session)).collect();
        match (node, is_there, sessions.is_empty()) {
            (None, _, true) if noted.is_none() => Err(NotRemoved::Unknown),
            (Some(_), true, true) => Err(NotRemoved::There),
            (node, ..) => {
                let heard = node.filter(|_| !is_there).map(|(record, _)| NodeRecord::clone(record));
                let record = heard.or(noted.filter(|_| !is_there));
                Ok(Gone { record, sessions })
            }
        }
    }
}
