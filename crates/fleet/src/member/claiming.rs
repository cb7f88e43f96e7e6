//! Ids of sessions that are to begin here, claimed before they do, and looks at the directory that its watch is still to tell.
//!
//! A request under a key may come again at another node. The id of its session follows from the key, so what the nodes have to agree
//! on is whose that id is. An entry that is a claim says nothing of a session. It becomes the entry of the session, or is removed
//! when none came of it.

use super::{Member, Owned};
use crate::engine::{EngineError, Expected, Revision};
use crate::record::{Creator, SessionRecord};
use acpd_record::SessionId;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often an entry is tried to be written where others write it.
const TRIES: usize = 3;
/// How long a session that has begun waits for its entry.
const TELLING: Duration = Duration::from_secs(1);

/// Claims by the ids of sessions: how many beginnings each has; none where all are over, and it is to be seen what came of them.
pub(super) type Claims = BTreeMap<SessionId, usize>;

/// Whose an id is.
#[derive(Debug)]
pub enum Claim {
    /// This node's.
    Own(Claimed),
    /// Another node's.
    Other(Box<Owned>),
    /// That cannot be said, because the engine does not answer.
    Unknown,
}

/// A session that is to begin here; to be dropped when it has, or will not.
#[derive(Debug)]
pub struct Claimed {
    member: Member,
    session: SessionId,
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if let Some(count) = self.member.shared.claims.lock().get_mut(&self.session) {
            *count = count.saturating_sub(1);
        }
        self.member.shared.news.notify_one();
    }
}

impl Member {
    /// Claims the id of a session that is to begin here, created by a token or without one.
    pub async fn claim(&self, session: &SessionId, creator: Option<Creator>) -> Claim {
        self.told().await;
        if self.is_stale() {
            return self.elsewhere(session).map_or(Claim::Unknown, |owned| Claim::Other(Box::new(owned)));
        }
        *self.shared.claims.lock().entry(session.clone()).or_default() += 1;
        let claimed = Claimed { member: self.clone(), session: session.clone() };
        let mut own = self.shared.directory.read().directory.session(session).map(|(_, revision)| revision);
        for _ in 0..TRIES {
            if let Some(owned) = self.elsewhere(session) {
                return Claim::Other(Box::new(owned));
            }
            let expected = own.map_or(Expected::Nothing, Expected::Unchanged);
            let mut record = SessionRecord::new(session.clone(), &self.me(), serde_json::Value::Null);
            record.creator.clone_from(&creator);
            match self.shared.engine.put_session(&record, expected).await {
                Ok(revision) => {
                    self.knows(&record, revision);
                    return Claim::Own(claimed);
                }
                Err(EngineError::Conflict) => {}
                Err(_) => return Claim::Unknown,
            }
            let Ok(found) = self.look(session).await else { return Claim::Unknown };
            own = found;
        }
        Claim::Unknown
    }

    /// Reads the entry of a session, which the watch may not have told yet; gives its revision, if there is one.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn look(&self, session: &SessionId) -> Result<Option<Revision>, EngineError> {
        let Some((record, revision)) = self.shared.engine.session(session).await? else { return Ok(None) };
        self.knows(&record, revision);
        Ok(Some(revision))
    }

    /// Waits until the directory has an own session that has just begun; not for an engine that does not answer.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn tell(&self, session: &SessionId) {
        let mut passes = self.shared.passes.subscribe();
        let is_there = || self.shared.published.lock().knows_entry(session);
        self.shared.news.notify_one();
        let told = async {
            while !is_there() && !self.is_stale() && !self.is_new() {
                let _passed = passes.changed().await;
            }
        };
        let _late = tokio::time::timeout(TELLING, told).await;
    }

    /// The claims of which all beginnings are over.
    pub(super) fn claims_that_are_over(&self) -> Vec<SessionId> {
        let claims = self.shared.claims.lock();
        claims.iter().filter(|(_, count)| **count == 0).map(|(session, _)| session.clone()).collect()
    }

    /// Removes the entries of claims of which no session came. All sessions that there were when these claims were over are known.
    pub(super) async fn settle(&self, over: Vec<SessionId>) {
        for session in over {
            let entry = {
                let mut claims = self.shared.claims.lock();
                if claims.get(&session) != Some(&0) {
                    continue;
                }
                claims.remove(&session);
                let watched = self.shared.directory.read();
                let own = watched.directory.session(&session);
                own.filter(|(record, _)| record.node_id == self.me().id && record.is_claim())
                    .map(|(_, at)| at)
            };
            let Some(revision) = entry.filter(|_| !self.shared.published.lock().has(&session)) else {
                continue;
            };
            if let Err(error) = self.shared.engine.remove_session(&session, revision).await {
                tracing::debug!(%session, %error, "the directory keeps a claim of which no session came for now");
            }
        }
    }
}
