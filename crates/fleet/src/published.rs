//! What the directory has of a node's own sessions, and what is to be written there. Pure.
//!
//! Invariant: what a session does is due at once; what only grows, such as the number of its events, once in a heartbeat. An entry
//! of another owner is never written over.

use crate::engine::{Expected, Revision, epoch_of};
use crate::record::{Creator, NodeRecord, Partition, SessionRecord};
use acpd_record::SessionId;
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
    /// When it changed, in milliseconds since 1970.
    pub changed_ms: i64,
    /// What REST says of it.
    pub info: Value,
}

/// The own sessions of a node.
#[derive(Debug, Default)]
pub(crate) struct Published {
    sessions: BTreeMap<SessionId, Own>,
}

#[derive(Debug)]
struct Own {
    row: Row,
    /// What the directory has.
    entry: Option<Entry>,
    /// Another node owns it.
    is_others: bool,
}

#[derive(Debug)]
struct Entry {
    record: SessionRecord,
    revision: Revision,
    /// When it was written.
    at: Duration,
}

impl Published {
    /// A session is so now.
    pub(crate) fn is_now(&mut self, row: Row) {
        match self.sessions.get_mut(&row.session) {
            Some(own) => own.row = row,
            None => {
                self.sessions.insert(row.session.clone(), Own { row, entry: None, is_others: false });
            }
        }
    }

    /// Whether the directory's entry of a session is known here.
    pub(crate) fn knows_entry(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|own| own.entry.is_some() || own.is_others)
    }

    /// The directory has this of a session.
    pub(crate) fn found(&mut self, record: &SessionRecord, revision: Revision, me: &NodeRecord) {
        if let Some(own) = self.sessions.get_mut(&record.session) {
            own.is_others = record.node_id != me.id;
            let mut record = record.clone();
            record.epoch = Some(epoch_of(&record, revision));
            own.entry = (!own.is_others).then_some(Entry { record, revision, at: Duration::ZERO });
        }
    }

    /// The directory has no entry of it any more.
    pub(crate) fn missing(&mut self, session: &SessionId) {
        if let Some(own) = self.sessions.get_mut(session) {
            (own.entry, own.is_others) = (None, false);
        }
    }

    /// What is to be written at `now`, and what has to be there.
    pub(crate) fn due(
        &self,
        me: &NodeRecord,
        now: Duration,
        heartbeat: Duration,
    ) -> Vec<(SessionRecord, Expected)> {
        let due = |own: &Own| {
            if own.is_others {
                return None;
            }
            let mut record = SessionRecord::new(own.row.session.clone(), me, own.row.info.clone());
            (record.creator, record.partition) = (own.row.creator.clone(), own.row.partition);
            (record.seq, record.ended, record.changed_ms) = (own.row.seq, own.row.ended, own.row.changed_ms);
            let Some(entry) = &own.entry else { return Some((record, Expected::Nothing)) };
            (record.epoch, record.archived) = (entry.record.epoch, entry.record.archived);
            let is_due = is_news(&entry.record, &record)
                || (entry.record != record && now.saturating_sub(entry.at) >= heartbeat);
            is_due.then_some((record, Expected::Unchanged(entry.revision)))
        };
        self.sessions.values().filter_map(due).collect()
    }

    /// That was written.
    pub(crate) fn wrote(&mut self, mut record: SessionRecord, revision: Revision, at: Duration) {
        if let Some(own) = self.sessions.get_mut(&record.session) {
            record.epoch = Some(epoch_of(&record, revision));
            own.entry = Some(Entry { record, revision, at });
        }
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
    use crate::name::NodeName;
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
