//! What the directory and the archive have of a node's own sessions, and what is to be written there. Pure.
//!
//! Invariant: what a session does is due at once; what only grows, such as the number of its events, once in a heartbeat. An entry
//! of another owner is written over only where this node has the session and never gave it up: a session of policy `local` that is
//! live here, or that was this node's in the directory before. What cannot be written holds up nothing else.

mod filing;

pub(crate) use filing::Unfiled;

use crate::engine::{Expected, Revision, epoch_of};
use crate::name::NodeName;
use crate::record::{Creator, NodeRecord, SessionRecord};
use acpd_record::{Partition, SessionId};
use filing::Filed;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Entries that are handed out at a time, each a copy of what REST says of a session; and ended sessions to be added to the archive.
pub(crate) const BATCH: usize = 256;
/// Failures in a row after which a write waits: before that they may be the engine's.
const FAILURES: u32 = 3;

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
    /// Writing its entry.
    retries: Retries,
    /// When its entry was last written over that of another owner.
    reclaimed: Option<Duration>,
}

/// The owner of a session, as the directory has it, that is not this node.
#[derive(Debug)]
struct Other {
    node: NodeName,
    revision: Revision,
    /// What it has under this id is another session, created under the same key while the nodes did not hear of one another.
    has_another: bool,
    /// It says no more than whose the id is.
    is_claim: bool,
    /// The entry was this node's before.
    was_mine: bool,
}

/// The failures of a write, and when it is tried again.
#[derive(Debug, Default)]
struct Retries {
    failed: u32,
    again: Duration,
    is_refused: bool,
}

impl Retries {
    fn is_due(&self, now: Duration) -> bool {
        now >= self.again
    }

    fn fail(&mut self, now: Duration, pause: Duration) {
        self.failed = self.failed.saturating_add(1);
        self.again = if self.failed < FAILURES { now } else { now + pause };
    }

    /// Returns whether it is the first refusal.
    fn refuse(&mut self, now: Duration, pause: Duration) -> bool {
        (self.failed, self.again) = (self.failed.saturating_add(1), now + pause);
        !std::mem::replace(&mut self.is_refused, true)
    }
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
                self.sessions.insert(row.session.clone(), Own::new(row.clone()));
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
        let is_refused =
            |session: &SessionId| self.sessions.get(session).is_some_and(|own| own.retries.is_refused);
        self.open.iter().all(is_refused) && self.unfiled(Duration::MAX, false).is_empty()
    }

    /// Whether the directory has an entry of each session, as far as it takes them.
    pub(crate) fn is_listed(&self) -> bool {
        self.sessions.values().all(|own| !own.is_unlisted() || own.retries.is_refused)
    }

    /// Whether the directory's entry of a session is known here.
    pub(crate) fn knows_entry(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|own| !own.is_unlisted())
    }

    /// The directory has this of a session. What is older than what is known says nothing. Returns whether it names another owner of
    /// a session that this node keeps all the same.
    pub(crate) fn found(&mut self, record: &SessionRecord, revision: Revision, me: &NodeRecord) -> bool {
        let Some(own) = self.sessions.get_mut(&record.session) else { return false };
        let known = own.entry.as_ref().map(|entry| entry.revision);
        let known = known.max(own.others.as_ref().map(|other| other.revision));
        if known.is_some_and(|known| known >= revision) {
            return false;
        }
        own.archive = Filed { last: own.archive.last, ..Filed::default() };
        self.open.insert(own.row.session.clone());
        if record.node_id == me.id {
            let mut record = record.clone();
            record.epoch = Some(epoch_of(&record, revision));
            (own.entry, own.others) = (Some(Entry { record, revision, at: Duration::ZERO }), None);
            return false;
        }
        let before = own.others.take();
        let is_news = before.as_ref().is_none_or(|before| before.node != record.node);
        let was_mine = own.entry.take().is_some() || before.is_some_and(|before| before.was_mine);
        let has_another = record.created_ms != 0 && record.created_ms != own.row.created_ms;
        let other = Other {
            node: record.node.clone(),
            revision,
            has_another: has_another && !is_drawn(&record.session),
            is_claim: record.is_claim(),
            was_mine,
        };
        let is_kept = !own.yields_to(&other);
        own.others = Some(other);
        is_news && is_kept
    }

    /// Whether a session is this node's whatever the directory says.
    pub(crate) fn keeps(&self, session: &SessionId) -> bool {
        self.sessions.get(session).is_some_and(|own| match &own.others {
            Some(other) => !own.yields_to(other),
            // The directory is read more often than it is told here.
            None => own.is_local() && (!own.row.ended || own.entry.is_some()),
        })
    }

    /// The sessions of which the directory names another owner, and which are this node's all the same.
    pub(crate) fn kept(&self) -> BTreeSet<SessionId> {
        let is_kept = |own: &&Own| own.others.as_ref().is_some_and(|other| !own.yields_to(other));
        self.sessions.values().filter(is_kept).map(|own| own.row.session.clone()).collect()
    }

    /// The directory has no entry of it any more.
    pub(crate) fn missing(&mut self, session: &SessionId) {
        if let Some(own) = self.sessions.get_mut(session) {
            (own.entry, own.others) = (None, None);
            self.open.insert(session.clone());
        }
    }

    /// The entry of a session was not written, or may not have been.
    pub(crate) fn failed(&mut self, session: &SessionId, now: Duration, pause: Duration) {
        if let Some(own) = self.sessions.get_mut(session) {
            own.retries.fail(now, pause);
        }
    }

    /// The engine does not take the entry of a session. Returns whether it is the first time.
    pub(crate) fn refused(&mut self, session: &SessionId, now: Duration, pause: Duration) -> bool {
        self.sessions.get_mut(session).is_some_and(|own| own.retries.refuse(now, pause))
    }

    /// What is to be written at `now`, and what has to be there: a batch. In it sessions that have ended and were never listed come
    /// behind all that others may wait for, and what failed before is the last.
    pub(crate) fn due(
        &mut self,
        me: &NodeRecord,
        now: Duration,
        heartbeat: Duration,
    ) -> Vec<(SessionRecord, Expected)> {
        let (mut due, mut backlog, mut late) = (Vec::new(), Vec::new(), Vec::new());
        self.open.retain(|session| {
            let Some(own) = self.sessions.get(session).filter(|own| !own.is_given_up()) else { return false };
            let batch = match own.retries.failed {
                0 if own.row.ended && own.is_unlisted() => &mut backlog,
                0 => &mut due,
                _ => &mut late,
            };
            if batch.len() >= BATCH || !own.retries.is_due(now) {
                return true;
            }
            let record = own.record(me);
            match (&own.entry, &own.others) {
                (Some(entry), _) => {
                    let is_open = entry.record != record;
                    if is_open
                        && (is_news(&entry.record, &record) || now.saturating_sub(entry.at) >= heartbeat)
                    {
                        batch.push((record, Expected::Unchanged(entry.revision)));
                    }
                    is_open
                }
                (None, None) => {
                    batch.push((record, Expected::Nothing));
                    true
                }
                // Who has claimed the id says what becomes of it.
                (None, Some(other)) if other.is_claim => true,
                (None, Some(other)) => {
                    if own.reclaimed.is_none_or(|last| now.saturating_sub(last) >= heartbeat) {
                        batch.push((record, Expected::Unchanged(other.revision)));
                    }
                    true
                }
            }
        });
        due.extend(backlog);
        due.extend(late);
        due.truncate(BATCH);
        due
    }

    /// That was written.
    pub(crate) fn wrote(&mut self, mut record: SessionRecord, revision: Revision, at: Duration) {
        if let Some(own) = self.sessions.get_mut(&record.session) {
            record.epoch = Some(epoch_of(&record, revision));
            own.reclaimed = own.others.take().map(|_| at).or(own.reclaimed);
            (own.entry, own.retries) = (Some(Entry { record, revision, at }), Retries::default());
        }
    }

    /// The sessions that other nodes may take up.
    pub(crate) fn movable(&self) -> Vec<SessionId> {
        self.sessions.values().filter(|own| !own.is_local()).map(|own| own.row.session.clone()).collect()
    }

    /// Those of them that other nodes have taken up, and those whose id is that of another session of another node; with the node.
    pub(crate) fn superseded(&self) -> Vec<(SessionId, NodeName)> {
        let by = |own: &Own| {
            let other = own.others.as_ref().filter(|other| !own.is_local() || other.has_another)?;
            Some((own.row.session.clone(), other.node.clone()))
        };
        self.sessions.values().filter_map(by).collect()
    }

    /// A session is not there any more.
    pub(crate) fn forget(&mut self, session: &SessionId) {
        self.sessions.remove(session);
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
    fn new(row: Row) -> Self {
        let (archive, retries) = Default::default();
        Self { row, entry: None, others: None, archive, retries, reclaimed: None }
    }

    /// Whether the directory has no entry of it, as far as is known.
    fn is_unlisted(&self) -> bool {
        self.entry.is_none() && self.others.is_none()
    }

    /// Whether no other node may take it up.
    fn is_local(&self) -> bool {
        self.row.partition == Partition::Local
    }

    /// Whether another owner in the directory is believed: that of a session that may be taken up, of another session, or of one that
    /// has ended here and was never this node's, as a copy of a state directory has them.
    fn yields_to(&self, other: &Other) -> bool {
        !self.is_local() || other.has_another || (self.row.ended && !other.was_mine)
    }

    /// Whether it is another node's now.
    fn is_given_up(&self) -> bool {
        self.others.as_ref().is_some_and(|other| self.yields_to(other))
    }

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
}

/// Whether an id was drawn for one session (a UUID of version 7): two nodes never have that of two sessions.
fn is_drawn(session: &SessionId) -> bool {
    let id = session.as_str().as_bytes();
    id.len() == 36 && id[14] == b'7'
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
mod tests;
