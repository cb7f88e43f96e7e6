//! Taking up the sessions of lost nodes: a claim, which only one node gets, then the archive, which no older claim adds to from then
//! on, then the history out of it.
//!
//! A node that dies in between goes on where it was: its claim says that the session is still to be taken up.

use super::{Local, Member};
use crate::archive::{GoesOn, Piece, goes_on};
use crate::engine::{EngineError, Expected, epoch_of};
use crate::placing::Wanted;
use crate::record::{Epoch, SessionRecord};
use acpd_record::{Partition, SessionId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often a claim is opened in the archive anew: an owner that was not heard may still add to it, until it learns of the claim.
const OPENINGS: usize = 20;

impl Member {
    /// Takes up the sessions of lost nodes that this node is the best place for.
    pub(super) async fn take_up(&self, local: &dyn Local) -> ! {
        // What could not be taken up, and when it is tried again: that reads all of it.
        let mut failed: BTreeMap<SessionId, Duration> = BTreeMap::new();
        loop {
            tokio::time::sleep(self.shared.lease.heartbeat()).await;
            if self.is_stale() || !self.shared.published.lock().is_learned() {
                continue;
            }
            let now = self.now();
            failed.retain(|_, again| now < *again);
            for record in self.to_take_up() {
                if failed.contains_key(&record.session) {
                    continue;
                }
                let SessionRecord { session, node, .. } = &*record;
                match self.take_up_one(local, &record).await {
                    Ok(false) => {}
                    Ok(true) => {
                        tracing::info!(%session, from = %node, "a session of a lost node was taken up")
                    }
                    Err(reason) => {
                        tracing::warn!(%session, from = %node, reason, "a session of a lost node cannot be taken up");
                        failed.insert(session.clone(), self.now() + self.shared.lease.lease());
                    }
                }
            }
        }
    }

    /// Sessions of lost nodes for which this node is the best place, and those it has begun with.
    fn to_take_up(&self) -> Vec<Arc<SessionRecord>> {
        let (me, now, lease) = (self.me(), self.now(), self.shared.lease);
        let after = lease.lease() + lease.margin();
        let lost = self.sessions_elsewhere(|owned| {
            owned.session.partition == Partition::Failover && owned.gone_for.is_some()
        });
        let watched = self.shared.directory.read();
        let silent = |session: &SessionRecord| now.saturating_sub(watched.directory.owner_heard(session));
        let lost: Vec<_> = lost.into_iter().map(|owned| (silent(&owned.session), owned.session)).collect();
        let begun =
            watched.directory.sessions().filter(|session| session.node_id == me.id && session.taking_up);
        let mut found: Vec<Arc<SessionRecord>> = begun.cloned().collect();
        drop(watched);
        for (silent, session) in lost {
            let agent = Some(session.told().agent);
            let Ok(places) = self.place(&Wanted { agent, ..Wanted::default() }) else {
                continue;
            };
            // The next best waits a heartbeat longer, in case the best does nothing.
            let rank =
                places.iter().position(|node| node.id == me.id).and_then(|rank| u32::try_from(rank).ok());
            let Some(rank) = rank else { continue };
            if silent >= after + lease.heartbeat() * rank {
                found.push(session);
            }
        }
        found
    }

    /// Whether it was taken up; false where another node was first, or its owner is there.
    async fn take_up_one(&self, local: &dyn Local, lost: &SessionRecord) -> Result<bool, String> {
        let engine = &self.shared.engine;
        let text = |error: EngineError| error.to_string();
        let Some((found, revision)) = engine.session(&lost.session).await.map_err(text)? else {
            return Ok(false);
        };
        let me = self.me();
        let (record, claim) = if found.node_id == me.id && found.taking_up {
            let claim = epoch_of(&found, revision);
            (found, claim)
        } else {
            if found.node_id != lost.node_id || found.partition != Partition::Failover {
                return Ok(false);
            }
            if engine.node(&found.node).await.map_err(text)?.is_some_and(|(node, _)| node.id == found.node_id)
            {
                return Ok(false);
            }
            let first = engine.read(&found.session, Default::default()).await.map_err(text)?;
            if first.is_none_or(|(piece, _)| piece.first != 1 || piece.part != 0) {
                return Err("the archive does not have it from its first event on".to_owned());
            }
            let mut record = found;
            (record.node, record.node_id) = (me.name.clone(), me.id.clone());
            (record.epoch, record.taking_up) = (None, true);
            match engine.put_session(&record, Expected::Unchanged(revision)).await {
                Ok(revision) => {
                    self.knows(&record, revision);
                    (record, Epoch(revision.0))
                }
                Err(EngineError::Conflict) => return Ok(false),
                Err(error) => return Err(text(error)),
            }
        };
        if !self.open(&record.session, claim).await? {
            return Ok(false);
        }
        let history = self.history(&record.session, 0).await.map_err(text)?;
        local.take_up(&record, history).await?;
        Ok(true)
    }

    /// Opens an epoch in the archive, so that no older one is added to; false where a later one is there.
    async fn open(&self, session: &SessionId, claim: Epoch) -> Result<bool, String> {
        let engine = &self.shared.engine;
        for _ in 0..OPENINGS {
            let last = engine.last(session).await.map_err(|error| error.to_string())?;
            let last = last.as_ref().map(|(piece, at)| (piece, *at));
            let (behind, after) = match goes_on(last, claim, 0) {
                GoesOn::Behind(_) => return Ok(false),
                GoesOn::From { opens: false, .. } if last.is_some() => return Ok(true),
                GoesOn::From { behind, after, .. } => (behind, after),
            };
            match engine.append(session, &Piece::opening(claim, after), behind).await {
                Ok(_) => return Ok(true),
                Err(EngineError::Conflict) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Err("its last owner still adds to the archive".to_owned())
    }
}
