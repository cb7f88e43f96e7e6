//! What a node knows of its fleet: which nodes there are, whether they are there, and where sessions are.
//!
//! It is read from the directory and the own log, of which the log is believed. Nothing here waits.

use super::Member;
use crate::directory::{Directory, Reach};
use crate::name::NodeName;
use crate::placing::{Refused, Wanted, place};
use crate::record::{NodeRecord, SessionRecord};
use acpd_record::SessionId;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A node as another one sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// What it says of itself.
    pub record: NodeRecord,
    /// For how long it has not been there; None while it is.
    pub gone_for: Option<Duration>,
    /// Sessions that it has.
    pub sessions: usize,
    /// Those that have not ended.
    pub live: usize,
}

/// Where a session is.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned {
    /// Its entry.
    pub session: Arc<SessionRecord>,
    /// Its node, if that was ever heard of.
    pub node: Option<Arc<NodeRecord>>,
    /// For how long its node has not been there; None while it is.
    pub gone_for: Option<Duration>,
}

impl Member {
    /// All nodes by name, this one too.
    pub fn nodes(&self) -> Vec<Sight> {
        let (now, lease, me) = (self.now(), self.judging(), self.me());
        let watched = self.shared.directory.read();
        let directory = &watched.directory;
        let mut counts: HashMap<_, (usize, usize)> = HashMap::new();
        for session in directory.sessions().filter(|session| !session.is_claim()) {
            let (all, live) = counts.entry(&session.node_id).or_default();
            (*all, *live) = (*all + 1, *live + usize::from(!session.ended));
        }
        let sight = |(record, reach): (&Arc<NodeRecord>, Reach)| {
            let (sessions, live) = counts.get(&record.id).copied().unwrap_or_default();
            // What is so here may not have been told yet.
            let record = if (&record.id, &record.name) == (&me.id, &me.name) { &me } else { record };
            Sight {
                record: NodeRecord::clone(record),
                gone_for: gone_for(reach.gone_since(now, lease), now),
                sessions,
                live,
            }
        };
        let mut nodes: Vec<_> = directory.nodes().map(sight).collect();
        // A daemon that starts anew has not heard them: their sessions name them.
        for session in directory.unheard() {
            let is_named = nodes.iter().any(|sight| sight.record.name == session.node);
            if !is_named {
                let record = NodeRecord::new(session.node.clone(), session.node_id.clone(), "");
                let (sessions, live) = counts.get(&record.id).copied().unwrap_or_default();
                nodes.push(Sight { record, gone_for: Some(now), sessions, live });
            }
        }
        nodes.sort_by(|a, b| a.record.name.cmp(&b.record.name));
        nodes
    }

    /// A node of this name.
    pub fn node(&self, name: &NodeName) -> Option<Sight> {
        self.nodes().into_iter().find(|sight| sight.record.name == *name)
    }

    /// For how long a node has not been there, or was never heard of; None while it is there.
    pub fn gone_for(&self, name: &NodeName) -> Option<Duration> {
        let (now, lease) = (self.now(), self.judging());
        let watched = self.shared.directory.read();
        match watched.directory.node(name) {
            Some((_, reach)) => gone_for(reach.gone_since(now, lease), now),
            None => Some(now),
        }
    }

    /// Where a session is that another node owns; None where this node owns it, or the fleet does not know it. The log of this node is
    /// believed before the directory.
    pub fn elsewhere(&self, session: &SessionId) -> Option<Owned> {
        if self.shared.published.lock().keeps(session) {
            return None;
        }
        let me = self.shared.me.lock().record.id.clone();
        let (now, lease) = (self.now(), self.judging());
        let watched = self.shared.directory.read();
        let (record, _) = watched.directory.session(session)?;
        (record.node_id != me).then(|| owned(&watched.directory, record, now, lease))
    }

    /// A session that this node has claimed from a lost one, and may not have taken up yet.
    pub fn taking_up(&self, session: &SessionId) -> Option<Owned> {
        let me = self.shared.me.lock().record.id.clone();
        let (now, lease) = (self.now(), self.judging());
        let watched = self.shared.directory.read();
        let (record, _) = watched.directory.session(session)?;
        (record.node_id == me && record.taking_up).then(|| owned(&watched.directory, record, now, lease))
    }

    /// The sessions of other nodes that are meant, and those that this node has claimed from a lost one and does not have yet.
    pub fn sessions_elsewhere(&self, mut is_meant: impl FnMut(&Owned) -> bool) -> Vec<Owned> {
        let me = self.shared.me.lock().record.id.clone();
        let (now, lease) = (self.now(), self.judging());
        let published = self.shared.published.lock();
        let kept = published.kept();
        let watched = self.shared.directory.read();
        let is_elsewhere = |session: &SessionRecord| match session.node_id == me {
            true => session.taking_up && !published.has(&session.session),
            false => !session.is_claim() && !kept.contains(&session.session),
        };
        let others: Vec<_> = watched.directory.sessions().filter(|session| is_elsewhere(session)).collect();
        drop(published);
        others
            .into_iter()
            .map(|session| owned(&watched.directory, session, now, lease))
            .filter(|owned| is_meant(owned))
            .collect()
    }

    /// The nodes that can take a session, the best first.
    ///
    /// # Errors
    /// When none can; with the reason of each.
    pub fn place(&self, wanted: &Wanted) -> Result<Vec<NodeRecord>, Refused> {
        let me = self.me();
        let watched = self.shared.directory.read();
        let (now, lease) = (self.now(), self.judging());
        let names = place(&watched.directory, wanted, &me, |reach| reach.gone_since(now, lease).is_some())?;
        let node =
            |name: &NodeName| watched.directory.node(name).map(|(record, _)| NodeRecord::clone(record));
        Ok(names.iter().filter_map(node).collect())
    }

    /// Sessions of the fleet whose nodes are not there.
    pub fn unreachable_sessions(&self) -> usize {
        self.sessions_elsewhere(|owned| owned.gone_for.is_some()).len()
    }
}

/// From since when to for how long.
fn gone_for(since: Option<Duration>, now: Duration) -> Option<Duration> {
    since.map(|since| now.saturating_sub(since))
}

fn owned(
    directory: &Directory,
    session: &Arc<SessionRecord>,
    now: Duration,
    lease: Option<Duration>,
) -> Owned {
    let node = directory.node(&session.node).filter(|(node, _)| node.id == session.node_id);
    let gone_for = gone_for(directory.unreachable_since(session, now, lease), now);
    Owned { session: Arc::clone(session), node: node.map(|(node, _)| Arc::clone(node)), gone_for }
}
