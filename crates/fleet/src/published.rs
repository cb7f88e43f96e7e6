//! What the directory and the archive have of a node's own sessions, and what is to be written there. Pure.
//!
//! Invariant: what a session does is due at once; what only grows, such as the number of its events, once in a heartbeat. An entry
//! of another owner is never written over.

use crate::archive::Position;
use crate::engine::{Expected, Revision, epoch_of};
use crate::name::NodeName;
use crate::record::{Creator, Epoch, NodeRecord, SessionRecord};
use acpd_record::{Partition, SessionId};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Members of a session's information that change with each of its events.
const GROWING: [&str; 3] = ["updatedAt", "eventCount", "usage"];

/// A session of this node, as the node says that it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its id.
    pub session: SessionId,
    /// By whom it was created.
    pub creator: Option<Creator>,
    /// What becomes of it without this node.
    pub partition: Partition,
    /// Its last event.
    pub seq: u64,
    /// Whether its last run is over.
    pub ended: bool,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it changed, in milliseconds since 1970.
    pub changed_ms: i64,
    /// What REST says of it.
    pub info: Value,
}

/// The own sessions of a node.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// All sessions that there were at the beginning are known.
    is_learned: bool,
    sessions: BTreeMap<SessionId, Own>,
    /// Those of which the directory may not have what is so.
    open: BTreeSet<SessionId>,
}

#[derive(Debug)]
struct Own {
    row: Row,
    /// What the directory has.
    entry: Option<Entry>,
    /// Another node owns it.
    others: Option<Other>,
    archive: Filed,
}

/// The owner of a session that is not this node.
#[derive(Debug)]
struct Other {
    node: NodeName,
    /// What it has under this id is another session, created under the same key while the nodes did not hear of one another.
    has_another: bool,
}

/// What the archive has of a session, as far as this process knows.
#[derive(Debug, Default)]
struct Filed {
    /// The last event that is there.
    last: u64,
    /// The last piece; None where that is still to be asked for.
    behind: Option<Position>,
    /// Why nothing can be added.
    trouble: Option<String>,
}

/// A session with events that are not in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfiled {
    pub(crate) session: SessionId,
    /// The claim by which this node owns it.
    pub(crate) claim: Epoch,
    /// The last event in the archive, as far as is known.
    pub(crate) after: u64,
    /// The last piece; None where that is to be asked for.
    pub(crate) behind: Option<Position>,
    /// The last event that there is.
    pub(crate) seq: u64,
}

#[derive(Debug)]
struct Entry {
    record: SessionRecord,
    revision: Revision,
    /// When it was written.
    at: Duration,
}

impl Published {
    /// All that there are were said.
    pub(crate) fn learned(&mut self) {
        self.is_learned = true;
    }

    /// Whether all that there are were said once.
    pub(crate) fn is_learned(&self) -> bool {
        self.is_learned
    }

    /// A session is so now.
    pub(crate) fn is_now(&mut self, row: Row) {
        match self.sessions.get_mut(&row.session) {
            Some(own) if own.row == row => return,
            Some(own) => own.row = row.clone(),
            None => {
                let own = Own { row: row.clone(), entry: None, others: None, archive: Filed::default() };
                self.sessions.insert(row.session.clone(), own);
            }
        }
        self.open.insert(row.session);
    }

    /// Whether a session is there.
    pub(crate) fn has(&self, session: &SessionId) -> bool {
        self.sessions.contains_key(session)
    }

    /// Whether directory and archive have all that there is, as far as they can.
    pub(crate) fn is_told(&self) -> bool {
        self.open.is_empty() && self.unfiled().is_empty()
    }

    /// Whether the directory's entry of a session is known here.
    pub(crate) fn knows_entry(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|own| own.entry.is_some() || own.others.is_some())
    }

    /// The directory has this of a session. What is older than what is known says nothing.
    pub(crate) fn found(&mut self, record: &SessionRecord, revision: Revision, me: &NodeRecord) {
        let is_new = |own: &Own| own.entry.as_ref().is_none_or(|entry| entry.revision < revision);
        if let Some(own) = self.sessions.get_mut(&record.session).filter(|own| is_new(own)) {
            let has_another = record.created_ms != 0 && record.created_ms != own.row.created_ms;
            own.others = (record.node_id != me.id).then(|| Other { node: record.node.clone(), has_another });
            let mut record = record.clone();
            record.epoch = Some(epoch_of(&record, revision));
            own.entry = own.others.is_none().then_some(Entry { record, revision, at: Duration::ZERO });
            own.archive = Filed { last: own.archive.last, ..Filed::default() };
            self.open.insert(own.row.session.clone());
        }
    }

    /// The directory has no entry of it any more.
    pub(crate) fn missing(&mut self, session: &SessionId) {
        if let Some(own) = self.sessions.get_mut(session) {
            (own.entry, own.others) = (None, None);
            self.open.insert(session.clone());
        }
    }

    /// What is to be written at `now`, and what has to be there.
    pub(crate) fn due(
        &mut self,
        me: &NodeRecord,
        now: Duration,
        heartbeat: Duration,
    ) -> Vec<(SessionRecord, Expected)> {
        let mut due = Vec::new();
        self.open.retain(|session| {
            let own = self.sessions.get(session).filter(|own| own.others.is_none());
            let Some((record, entry)) = own.map(|own| (own.record(me), &own.entry)) else { return false };
            let Some(entry) = entry else {
                due.push((record, Expected::Nothing));
                return true;
            };
            let is_open = entry.record != record;
            if is_open && (is_news(&entry.record, &record) || now.saturating_sub(entry.at) >= heartbeat) {
                due.push((record, Expected::Unchanged(entry.revision)));
            }
            is_open
        });
        due
    }

    /// That was written.
    pub(crate) fn wrote(&mut self, mut record: SessionRecord, revision: Revision, at: Duration) {
        if let Some(own) = self.sessions.get_mut(&record.session) {
            record.epoch = Some(epoch_of(&record, revision));
            own.entry = Some(Entry { record, revision, at });
        }
    }

    /// The own sessions of which the archive has less than there is.
    pub(crate) fn unfiled(&self) -> Vec<Unfiled> {
        let unfiled = |own: &Own| {
            let entry =
                own.entry.as_ref().filter(|_| own.others.is_none() && own.archive.trouble.is_none())?;
            let (session, claim, after) = (own.row.session.clone(), entry.record.epoch?, own.filed());
            let behind = own.archive.behind;
            (after < own.row.seq).then_some(Unfiled { session, claim, after, behind, seq: own.row.seq })
        };
        self.sessions.values().filter_map(unfiled).collect()
    }

    /// The archive has a session up to an event, of which the piece is there.
    pub(crate) fn filed(&mut self, session: &SessionId, last: u64, behind: Position) {
        if let Some(own) = self.sessions.get_mut(session) {
            own.archive = Filed { last, behind: Some(behind), trouble: None };
            self.open.insert(session.clone());
        }
    }

    /// What the archive has of a session is to be asked for.
    pub(crate) fn doubt(&mut self, session: &SessionId) {
        if let Some(own) = self.sessions.get_mut(session) {
            own.archive.behind = None;
        }
    }

    /// Nothing can be added to the archive of a session, until its owner is another one.
    pub(crate) fn cannot_file(&mut self, session: &SessionId, why: String) {
        if let Some(own) = self.sessions.get_mut(session) {
            own.archive.trouble = Some(why);
        }
    }

    /// The sessions that other nodes may take up.
    pub(crate) fn movable(&self) -> Vec<SessionId> {
        let movable = |own: &&Own| own.row.partition == Partition::Failover;
        self.sessions.values().filter(movable).map(|own| own.row.session.clone()).collect()
    }

    /// Those of them that other nodes have taken up, and those whose id is that of another session of another node; with the node.
    pub(crate) fn superseded(&self) -> Vec<(SessionId, NodeName)> {
        let by = |own: &Own| {
            let is_movable = own.row.partition == Partition::Failover;
            let other = own.others.as_ref().filter(|other| is_movable || other.has_another)?;
            Some((own.row.session.clone(), other.node.clone()))
        };
        self.sessions.values().filter_map(by).collect()
    }

    /// A session is not there any more.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.sessions.remove(session);
    }

    /// How many events are not in the archive.
    pub(crate) fn lag(&self) -> u64 {
        let own = self.sessions.values().filter(|own| own.others.is_none());
        own.map(|own| own.row.seq.saturating_sub(own.filed())).sum()
    }

    /// Only these sessions are there; the entries of others, which are to be removed.
    pub(crate) fn only(&mut self, there: &BTreeSet<SessionId>) -> Vec<(SessionId, Revision)> {
        let gone: Vec<_> =
            self.sessions.keys().filter(|session| !there.contains(*session)).cloned().collect();
        let entry = |session: SessionId| {
            let entry = self.sessions.remove(&session)?.entry?;
            Some((session, entry.revision))
        };
        gone.into_iter().filter_map(entry).collect()
    }
}

impl Own {
    /// What the directory is to have of it.
    fn record(&self, me: &NodeRecord) -> SessionRecord {
        let Row { session, info, .. } = &self.row;
        let mut record = SessionRecord::new(session.clone(), me, info.clone());
        (record.creator, record.partition) = (self.row.creator.clone(), self.row.partition);
        (record.seq, record.ended) = (self.row.seq, self.row.ended);
        (record.created_ms, record.changed_ms) = (self.row.created_ms, self.row.changed_ms);
        if let Some(entry) = &self.entry {
            (record.epoch, record.archived) = (entry.record.epoch, self.filed());
        }
        record
    }

    /// The last event that is in the archive.
    fn filed(&self) -> u64 {
        let told = self.entry.as_ref().map_or(0, |entry| entry.record.archived);
        self.archive.last.max(told)
    }
}

/// Whether more has changed than what grows with each event.
fn is_news(before: &SessionRecord, now: &SessionRecord) -> bool {
    let without = |record: &SessionRecord| {
        let mut record = SessionRecord { seq: 0, changed_ms: 0, archived: 0, ..record.clone() };
        if let Value::Object(members) = &mut record.info {
            GROWING.iter().for_each(|name| drop(members.shift_remove(*name)));
        }
        record
    };
    without(before) != without(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Epoch, NodeId};
    use serde_json::json;

    const HEARTBEAT: Duration = Duration::from_secs(5);

    fn node(id: &str) -> NodeRecord {
        NodeRecord::new(NodeName::try_from("a".to_owned()).expect("a name"), NodeId(id.to_owned()), "1")
    }

    fn row(state: &str, seq: u64) -> Row {
        Row {
            session: SessionId::parse("s").expect("an id"),
            creator: None,
            partition: Partition::Local,
            seq,
            ended: false,
            created_ms: 0,
            changed_ms: 0,
            info: json!({"state": state, "updatedAt": seq, "eventCount": seq}),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    // design fleet, sessions: what a session does is told at once, what grows once in a heartbeat
    #[test]
    fn news_are_written_at_once_and_growth_with_the_heartbeat() {
        let (mut published, me) = (Published::default(), node("1"));
        published.is_now(row("idle", 1));
        let due = published.due(&me, at(1), HEARTBEAT);
        assert!(
            matches!(&due[..], [(record, Expected::Nothing)] if record.epoch.is_none()),
            "a claim: {due:?}"
        );
        published.wrote(due[0].0.clone(), Revision(7), at(1));
        assert_eq!(published.due(&me, at(1), HEARTBEAT), []);
        published.is_now(row("idle", 2));
        assert_eq!(published.due(&me, at(5), HEARTBEAT), [], "it has only grown");
        let due = published.due(&me, at(6), HEARTBEAT);
        assert_eq!(due.len(), 1);
        assert_eq!((due[0].0.epoch, due[0].1), (Some(Epoch(7)), Expected::Unchanged(Revision(7))));
        published.wrote(due[0].0.clone(), Revision(8), at(6));
        published.is_now(row("running", 3));
        let due = published.due(&me, at(6), HEARTBEAT);
        assert_eq!((due[0].0.seq, due[0].0.epoch), (3, Some(Epoch(7))), "the claim stays what it was");
    }

    // design fleet, fence: what another node owns is not written over; what is the own one of an earlier life goes on
    #[test]
    fn an_entry_of_another_owner_stays() {
        let (mut published, me, other) = (Published::default(), node("1"), node("2"));
        let entry = |owner| SessionRecord::new(row("idle", 1).session, owner, json!({}));
        published.is_now(row("idle", 1));
        published.found(&entry(&other), Revision(3), &me);
        assert!(published.knows_entry(&row("idle", 1).session));
        published.is_now(row("running", 2));
        assert_eq!(published.due(&me, at(100), HEARTBEAT), []);
        published.found(&entry(&me), Revision(4), &me);
        let due = published.due(&me, at(100), HEARTBEAT);
        assert_eq!((due[0].0.epoch, due[0].1), (Some(Epoch(4)), Expected::Unchanged(Revision(4))));
        published.missing(&row("idle", 1).session);
        assert_eq!(published.due(&me, at(100), HEARTBEAT)[0].1, Expected::Nothing);
    }

    // design fleet, log archive: what is not in the archive is added, as far as is known, and told with the heartbeat
    #[test]
    fn what_the_archive_lacks_is_added() {
        let (mut published, me) = (Published::default(), node("1"));
        let session = row("idle", 1).session;
        published.is_now(row("idle", 3));
        assert_eq!((published.unfiled(), published.lag()), (vec![], 3), "nothing before it is claimed");
        let claim = published.due(&me, at(0), HEARTBEAT).remove(0).0;
        published.wrote(claim, Revision(7), at(0));
        let unfiled =
            |after, behind| Unfiled { session: session.clone(), claim: Epoch(7), after, behind, seq: 3 };
        assert_eq!(published.unfiled(), [unfiled(0, None)]);
        published.filed(&session, 2, Position(9));
        assert_eq!((published.unfiled(), published.lag()), (vec![unfiled(2, Some(Position(9)))], 1));
        published.doubt(&session);
        assert_eq!(published.unfiled(), [unfiled(2, None)]);
        published.filed(&session, 3, Position(10));
        assert_eq!((published.unfiled(), published.lag()), (vec![], 0));
        assert_eq!(published.due(&me, at(1), HEARTBEAT), []);
        assert_eq!(published.due(&me, at(5), HEARTBEAT)[0].0.archived, 3);
        published.is_now(row("idle", 4));
        published.cannot_file(&session, "it is another one's".to_owned());
        assert_eq!((published.unfiled(), published.lag()), (vec![], 1), "what cannot be added is counted");
        // A process that knows nothing yet goes by what was told.
        let mut again = Published::default();
        again.is_now(row("idle", 3));
        let told = SessionRecord { archived: 2, ..SessionRecord::new(session.clone(), &me, json!({})) };
        again.found(&told, Revision(7), &me);
        assert_eq!(again.unfiled(), [unfiled(2, None)]);
    }

    // design fleet: what was deleted leaves the directory
    #[test]
    fn what_is_not_there_is_removed() {
        let (mut published, me) = (Published::default(), node("1"));
        published.is_now(row("idle", 1));
        let (record, _) = published.due(&me, at(0), HEARTBEAT).remove(0);
        published.wrote(record, Revision(2), at(0));
        let there = BTreeSet::from([row("idle", 1).session]);
        assert_eq!(published.only(&there), []);
        assert_eq!(published.only(&BTreeSet::new()), [(row("idle", 1).session, Revision(2))]);
        assert_eq!(published.due(&me, at(100), HEARTBEAT), []);
    }
}
