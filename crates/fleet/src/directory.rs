//! The directory as a node knows it: a fold over the changes that its watch tells.
//!
//! Invariant: an older revision never replaces a newer one, whatever order changes come in. Pure.

use crate::engine::{Change, Revision};
use crate::name::NodeName;
use crate::record::{NodeRecord, SessionRecord};
use acpd_record::SessionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What a node knows of its fleet. Times are those of one monotonic clock, since some moment.
#[derive(Debug, Default)]
pub struct Directory {
    nodes: BTreeMap<NodeName, Node>,
    /// Those that belong to the fleet until they are removed, as they were noted when they last joined or left it.
    members: BTreeMap<NodeName, Arc<NodeRecord>>,
    sessions: BTreeMap<SessionId, (Arc<SessionRecord>, Revision)>,
    /// What was told since the watch began, until it is complete.
    told: Option<WatchSnapshot>,
}

/// The names of all entries that a watch has reported since it began.
#[derive(Debug, Default)]
struct WatchSnapshot {
    nodes: BTreeSet<NodeName>,
    members: BTreeSet<NodeName>,
    sessions: BTreeSet<SessionId>,
}

#[derive(Debug)]
struct Node {
    record: Arc<NodeRecord>,
    revision: Revision,
    reach: Reach,
    /// When it last said something.
    heard: Duration,
}

impl Node {
    /// One that is gone may have left in order without being heard here.
    fn note(&mut self, member: &Arc<NodeRecord>) {
        let is_same = (&self.record.id, &self.record.run) == (&member.id, &member.run);
        if is_same && matches!(self.reach, Reach::Gone(_)) {
            self.record = Arc::clone(member);
        }
    }
}

/// Whether a node can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It is there, and was last heard then.
    Heard(Duration),
    /// It is gone since then.
    Gone(Duration),
}

impl Reach {
    /// Since when a node is gone, seen from `now`; one that was not heard for a lease is as well, where there is one to go by.
    pub fn gone_since(self, now: Duration, lease: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Gone(since) => Some(since),
            Self::Heard(last) => lease.filter(|lease| now.saturating_sub(last) > *lease).map(|_| last),
        }
    }
}

impl Directory {
    /// A directory of which all is still to be told.
    pub fn new() -> Self {
        Self { told: Some(Default::default()), ..Self::default() }
    }

    /// Takes in a change that came at `now`.
    pub fn apply(&mut self, change: Change, now: Duration) {
        match change {
            Change::Node(record, revision) => {
                if let Some(told) = &mut self.told {
                    told.nodes.insert(record.name.clone());
                }
                if record.removed {
                    self.nodes.remove(&record.name);
                    return;
                }
                let known = self.nodes.get(&record.name).map(|node| node.revision);
                if known.is_none_or(|known| known < revision) {
                    let node =
                        Node { record: Arc::from(record), revision, reach: Reach::Heard(now), heard: now };
                    self.nodes.insert(node.record.name.clone(), node);
                }
            }
            Change::NodeGone(name) => self.lose(&name, now),
            Change::Member(record) => {
                if let Some(told) = &mut self.told {
                    told.members.insert(record.name.clone());
                }
                self.note_member(Arc::from(record), now);
            }
            Change::MemberGone(name) => self.forget_member(&name),
            Change::Session(record, revision) => {
                if let Some(told) = &mut self.told {
                    told.sessions.insert(record.session.clone());
                }
                let known = self.sessions.get(&record.session).map(|(_, known)| *known);
                if known.is_none_or(|known| known < revision) {
                    self.sessions.insert(record.session.clone(), (Arc::from(record), revision));
                }
            }
            Change::SessionGone(session) => {
                self.sessions.remove(&session);
            }
            Change::Again => self.told = Some(Default::default()),
            Change::Complete => {
                let Some(told) = self.told.take() else { return };
                self.sessions.retain(|session, _| told.sessions.contains(session));
                let gone = self.nodes.keys().filter(|name| !told.nodes.contains(*name));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.lose(&name, now);
                }
                let removed = self.members.keys().filter(|name| !told.members.contains(*name));
                for name in removed.cloned().collect::<Vec<_>>() {
                    self.forget_member(&name);
                }
            }
        }
    }

    fn lose(&mut self, name: &NodeName, now: Duration) {
        if let Some(node) = self.nodes.get_mut(name)
            && let Reach::Heard(_) = node.reach
        {
            node.reach = Reach::Gone(now);
            if let Some(member) = self.members.get(name) {
                node.note(member);
            }
        }
    }

    /// A member that was not heard is gone. Of one that was heard it may be known only here that it has left since.
    fn note_member(&mut self, record: Arc<NodeRecord>, now: Duration) {
        self.members.insert(record.name.clone(), Arc::clone(&record));
        match self.nodes.get_mut(&record.name) {
            None => {
                let (name, heard) = (record.name.clone(), Duration::ZERO);
                let node = Node { record, revision: Revision::default(), reach: Reach::Gone(now), heard };
                self.nodes.insert(name, node);
            }
            Some(node) => node.note(&record),
        }
    }

    fn forget_member(&mut self, name: &NodeName) {
        let is_gone = self.nodes.get(name).is_some_and(|node| matches!(node.reach, Reach::Gone(_)));
        if self.members.remove(name).is_some() && is_gone {
            self.nodes.remove(name);
        }
    }

    /// Whether a node may have sessions that were not told: it is gone without having told all, seen as in [`Reach::gone_since`], or is
    /// still telling them. An owner that was never heard of is such a node.
    pub fn lacks_some(&self, now: Duration, lease: Option<Duration>) -> bool {
        let is_behind = |node: &Node| match node.reach.gone_since(now, lease) {
            Some(_) => !node.record.left,
            None => node.record.incomplete,
        };
        self.nodes.values().any(is_behind) || self.unheard().next().is_some()
    }

    /// The owners of sessions of which no node of that name was ever heard, once or more often each.
    pub fn unheard(&self) -> impl Iterator<Item = &Arc<SessionRecord>> {
        self.sessions().filter(|session| !self.nodes.contains_key(&session.node))
    }

    /// Keeps of a session only whose it is and how it stands: what is said of it is known elsewhere.
    pub(crate) fn drop_info(&mut self, session: &SessionId) {
        if let Some((record, _)) = self.sessions.get_mut(session)
            && !record.is_claim()
        {
            Arc::make_mut(record).info = serde_json::json!({});
        }
    }

    /// Whether all that was there has been told.
    pub fn is_complete(&self) -> bool {
        self.told.is_none()
    }

    /// The nodes by name, also those that are gone.
    pub fn nodes(&self) -> impl Iterator<Item = (&Arc<NodeRecord>, Reach)> {
        self.nodes.values().map(|node| (&node.record, node.reach))
    }

    /// A node that belongs to the fleet.
    pub fn member(&self, name: &NodeName) -> Option<&Arc<NodeRecord>> {
        self.members.get(name)
    }

    /// The nodes that belong to the fleet.
    pub fn members(&self) -> impl Iterator<Item = &Arc<NodeRecord>> {
        self.members.values()
    }

    /// A node, if it was ever heard of.
    pub fn node(&self, name: &NodeName) -> Option<(&Arc<NodeRecord>, Reach)> {
        self.nodes.get(name).map(|node| (&node.record, node.reach))
    }

    /// The sessions by id.
    pub fn sessions(&self) -> impl Iterator<Item = &Arc<SessionRecord>> {
        self.sessions.values().map(|(session, _)| session)
    }

    /// A session and the revision of its entry.
    pub fn session(&self, session: &SessionId) -> Option<(&Arc<SessionRecord>, Revision)> {
        self.sessions.get(session).map(|(record, revision)| (record, *revision))
    }

    /// Since when the owner of a session is gone, seen from `now` as in [`Reach::gone_since`]; None while it is there. An owner
    /// that was never heard of, or another one of its name, is gone since the beginning.
    pub fn unreachable_since(
        &self,
        session: &SessionRecord,
        now: Duration,
        lease: Option<Duration>,
    ) -> Option<Duration> {
        match self.nodes.get(&session.node) {
            Some(node) if node.record.id == session.node_id => node.reach.gone_since(now, lease),
            _ => Some(Duration::ZERO),
        }
    }

    /// When the owner of a session was last heard; at the beginning, where it never was.
    pub fn owner_heard(&self, session: &SessionRecord) -> Duration {
        let node = self.nodes.get(&session.node).filter(|node| node.record.id == session.node_id);
        node.map_or(Duration::ZERO, |node| node.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::NodeId;
    use serde_json::Value;

    fn node(name: &str, id: &str) -> NodeRecord {
        let name = NodeName::try_from(name.to_owned()).expect("a name");
        NodeRecord::new(name, NodeId(id.to_owned()), "1")
    }

    fn session(id: &str, owner: &NodeRecord) -> SessionRecord {
        SessionRecord::new(SessionId::parse(id).expect("an id"), owner, Value::Null)
    }

    fn told(node: &NodeRecord, revision: u64) -> Change {
        Change::Node(Box::new(node.clone()), Revision(revision))
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    // design fleet: a lost node is shown, with since when; the sessions of another node of its name are not its own
    #[test]
    fn the_owner_of_a_session_is_there_or_gone() {
        let (mut directory, one) = (Directory::new(), node("a", "1"));
        let of_one = session("s", &one);
        assert_eq!(directory.unreachable_since(&of_one, seconds(6), None), Some(Duration::ZERO));
        directory.apply(told(&one, 1), seconds(1));
        assert_eq!(directory.unreachable_since(&of_one, seconds(6), None), None);
        directory.apply(Change::NodeGone(one.name.clone()), seconds(2));
        directory.apply(Change::NodeGone(one.name.clone()), seconds(3));
        assert_eq!(
            directory.unreachable_since(&of_one, seconds(6), None),
            Some(seconds(2)),
            "since the first time"
        );
        assert_eq!(directory.owner_heard(&of_one), seconds(1), "before it was gone");
        directory.apply(told(&one, 4), seconds(4));
        assert_eq!(directory.node(&one.name).map(|(_, reach)| reach), Some(Reach::Heard(seconds(4))));
        let silent = |now| directory.unreachable_since(&of_one, now, Some(seconds(20)));
        assert_eq!(
            (silent(seconds(24)), silent(seconds(25))),
            (None, Some(seconds(4))),
            "since it was heard"
        );
        directory.apply(told(&node("a", "2"), 5), seconds(5));
        assert_eq!(directory.unreachable_since(&of_one, seconds(6), None), Some(Duration::ZERO));
    }

    // design fleet: what was missed while nothing was told is made up for
    #[test]
    fn a_watch_that_begins_again_forgets_what_is_gone() {
        let (mut directory, one, two) = (Directory::new(), node("a", "1"), node("b", "2"));
        let changed = |session: &SessionRecord, revision| {
            Change::Session(Box::new(session.clone()), Revision(revision))
        };
        let (kept, gone) = (session("kept", &one), session("gone", &two));
        for change in [told(&one, 1), told(&two, 2), changed(&kept, 3), changed(&gone, 4), Change::Complete] {
            assert!(!directory.is_complete());
            directory.apply(change, seconds(1));
        }
        assert!(directory.is_complete());
        let newer = SessionRecord { seq: 7, ..kept.clone() };
        directory.apply(changed(&newer, 6), seconds(2));
        for change in [Change::Again, told(&one, 1), changed(&kept, 3)] {
            directory.apply(change, seconds(3));
        }
        assert_eq!(directory.sessions().count(), 2, "nothing is forgotten before all was told");
        directory.apply(Change::Complete, seconds(4));
        assert_eq!(
            directory.sessions().map(|session| session.seq).collect::<Vec<_>>(),
            [7],
            "the newer one stays"
        );
        assert_eq!(directory.node(&two.name).map(|(_, reach)| reach), Some(Reach::Gone(seconds(4))));
        let removed = NodeRecord { removed: true, ..two.clone() };
        directory.apply(told(&removed, 9), seconds(5));
        directory.apply(Change::NodeGone(two.name.clone()), seconds(6));
        assert_eq!(directory.nodes().map(|(node, _)| node.name.as_str()).collect::<Vec<_>>(), ["a"]);
    }
}
