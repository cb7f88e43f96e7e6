//! What the archive has of a node's own sessions, and what is to be added to it. Pure.

use super::{BATCH, Own, Published, Retries};
use crate::archive::Position;
use crate::record::Epoch;
use acpd_record::SessionId;
use std::time::Duration;

/// What the archive has of a session, as far as this process knows.
#[derive(Debug, Default)]
pub(super) struct Filed {
    /// The last event that is there.
    pub(super) last: u64,
    /// The last piece; None where that is still to be asked for.
    pub(super) behind: Option<Position>,
    /// Why nothing can be added.
    pub(super) trouble: Option<String>,
    /// Adding to it.
    pub(super) retries: Retries,
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

impl Published {
    /// The own sessions of which the archive has less than there is, and to which something is to be added at `now`. While a node
    /// `is_joining`, those that have ended wait until all are listed, which takes the same disks: others wait for the list, and nobody
    /// for the archive. Of those that have ended only as many are given that what comes of the others is not held up by them for long.
    pub(crate) fn unfiled(&self, now: Duration, is_joining: bool) -> Vec<Unfiled> {
        let is_listing = |own: &Own| own.is_unlisted() && own.retries.failed == 0;
        let ended_wait = is_joining && self.sessions.values().any(is_listing);
        let unfiled = |own: &Own| {
            let Filed { trouble, retries, .. } = &own.archive;
            let is_due = trouble.is_none()
                && if now == Duration::MAX { !retries.is_refused } else { retries.is_due(now) };
            let entry = own.entry.as_ref().filter(|_| is_due)?;
            let (session, claim, after) = (own.row.session.clone(), entry.record.epoch?, own.filed());
            let behind = own.archive.behind;
            (after < own.row.seq).then_some(Unfiled { session, claim, after, behind, seq: own.row.seq })
        };
        let live = self.sessions.values().filter(|own| !own.row.ended).filter_map(unfiled);
        let ended = self.sessions.values().filter(|own| own.row.ended && !ended_wait).filter_map(unfiled);
        live.chain(ended.take(BATCH)).collect()
    }

    /// The archive has a session up to an event, of which the piece is there.
    pub(crate) fn filed(&mut self, session: &SessionId, last: u64, behind: Position) {
        if let Some(own) = self.sessions.get_mut(session) {
            // What is behind another event may be taken.
            let retries = match own.archive.last < last {
                true => Retries::default(),
                false => std::mem::take(&mut own.archive.retries),
            };
            own.archive = Filed { last, behind: Some(behind), trouble: None, retries };
            self.open.insert(session.clone());
        }
    }

    /// Nothing was added to the archive of a session, or it may not have been: what is there is to be asked for.
    pub(crate) fn doubt(&mut self, session: &SessionId, now: Duration, pause: Duration) {
        if let Some(own) = self.sessions.get_mut(session) {
            own.archive.behind = None;
            own.archive.retries.fail(now, pause);
        }
    }

    /// The engine does not take what is to be added to the archive of a session. Returns whether it is the first time.
    pub(crate) fn refused_piece(&mut self, session: &SessionId, now: Duration, pause: Duration) -> bool {
        let Some(own) = self.sessions.get_mut(session) else { return false };
        own.archive.behind = None;
        own.archive.retries.refuse(now, pause)
    }

    /// Nothing can be added to the archive of a session, until its owner is another one.
    pub(crate) fn cannot_file(&mut self, session: &SessionId, why: String) {
        if let Some(own) = self.sessions.get_mut(session) {
            own.archive.trouble = Some(why);
        }
    }

    /// How many events are not in the archive.
    pub(crate) fn lag(&self) -> u64 {
        let own = self.sessions.values().filter(|own| !own.is_given_up());
        own.map(|own| own.row.seq.saturating_sub(own.filed())).sum()
    }
}

impl Own {
    /// The last event that is in the archive.
    pub(super) fn filed(&self) -> u64 {
        let told = self.entry.as_ref().map_or(0, |entry| entry.record.archived);
        self.archive.last.max(told)
    }
}
