//! Writing the own sessions into the directory.

use super::{Local, Member};
use crate::engine::{EngineError, Expected, Revision};
use crate::published::{BATCH, Row};
use crate::record::{SessionRecord, fitted};
use acpd_record::SessionId;
use futures_util::{StreamExt, stream};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often a node looks which of its sessions have changed.
const PACE: Duration = Duration::from_millis(250);
/// How far back it looks: a row learns of its last change a moment late.
const OVERLAP_MS: i64 = 1_000;
/// Heartbeats after which it reads all: which are not there any more, and which changed long before that could be read.
const LOOK_EVERY: u32 = 4;
/// Logged when the own sessions cannot be read.
const UNREAD: &str = "the fleet does not learn what sessions do";
/// How long a node that leaves tells what has become of its sessions.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Entries that are written at a time.
const AT_ONCE: usize = 32;
/// The most bytes of what an entry says of a session: each node keeps those of all.
const ENTRY: usize = 32 * 1024;

impl Member {
    /// Reads the own sessions for the first time, all of them.
    pub(super) async fn learn_all(&self, local: &dyn Local) {
        loop {
            match local.changed(i64::MIN).await {
                Ok(rows) => {
                    rows.into_iter().for_each(|row| self.learn(row));
                    return self.shared.published.lock().learned();
                }
                Err(reason) => tracing::warn!(reason, "{UNREAD}"),
            }
            tokio::time::sleep(PACE).await;
        }
    }

    /// Writes what changes of the own sessions.
    pub(super) async fn publish(&self, local: &dyn Local) -> ! {
        let (mut since_ms, mut looked, mut has_more) = (0, None, false);
        loop {
            self.shared.passes.send_modify(|passes| *passes += 1);
            let pace = if std::mem::take(&mut has_more) { Duration::ZERO } else { PACE };
            let _hurried = tokio::time::timeout(pace, self.shared.news.notified()).await;
            // Before that it is not known which entries are those of an earlier life.
            if self.is_new() {
                continue;
            }
            let pause = self.shared.lease.heartbeat() * LOOK_EVERY;
            let is_look = looked.is_none_or(|looked| self.now().saturating_sub(looked) >= pause);
            let over = self.claims_that_are_over();
            let rows = match local.changed(if is_look { i64::MIN } else { since_ms }).await {
                Ok(rows) => rows,
                Err(reason) => {
                    tracing::warn!(reason, "{UNREAD}");
                    continue;
                }
            };
            let latest = rows.iter().map(|row| row.changed_ms).max();
            since_ms = latest.map_or(since_ms, |latest| since_ms.max(latest - OVERLAP_MS));
            let there: Option<BTreeSet<SessionId>> =
                is_look.then(|| rows.iter().map(|row| row.session.clone()).collect());
            rows.into_iter().for_each(|row| self.learn(row));
            looked = if is_look { Some(self.now()) } else { looked };
            if self.is_stale() {
                continue;
            }
            has_more = self.write_batch().await;
            if !self.is_stale() && self.shared.published.lock().is_listed() {
                self.change(|record| record.incomplete = false);
            }
            self.settle(over).await;
            if let Some(there) = there {
                self.remove(&there).await;
            }
        }
    }

    fn learn(&self, mut row: Row) {
        let session = row.session.clone();
        row.info = fitted(row.info, ENTRY.min(self.shared.engine.most_bytes() / 2));
        let entry = {
            let mut published = self.shared.published.lock();
            published.is_now(row);
            let entry = self
                .shared
                .directory
                .read()
                .directory
                .session(&session)
                .map(|(record, at)| (Arc::clone(record), at));
            entry.filter(|_| !published.knows_entry(&session))
        };
        let Some((record, revision)) = entry else { return };
        self.hear_of_own(&record, revision);
        if record.node_id == self.me().id && !record.taking_up {
            drop(record);
            self.shared.directory.write().directory.drop_info(&session);
        }
    }

    /// Waits until the fleet knows of the own sessions what there is now, as far as the engine lets it within moments.
    /// Returns whether it does.
    pub(super) async fn tell_all(&self) -> bool {
        let mut passes = self.shared.passes.subscribe();
        self.shared.is_leaving.store(true, Ordering::Relaxed);
        let told = async {
            // What is looked at now may have been looked at before the last change.
            for _ in 0..2 {
                self.shared.news.notify_one();
                let _passed = passes.changed().await;
            }
            while !self.shared.published.lock().is_told() && !self.is_stale() {
                let _passed = passes.changed().await;
            }
        };
        let is_told = tokio::time::timeout(LAST_WORDS, told).await.is_ok();
        if !is_told {
            tracing::debug!("the fleet was not told all of the sessions of this node");
        }
        is_told && !self.is_stale()
    }

    /// Writes a batch of what is due, so that what changes meanwhile is in the next one. What the engine does not take is passed over;
    /// it ends where the engine does not answer. Returns whether there may be more that can be written.
    async fn write_batch(&self) -> bool {
        let is_leaving = self.shared.is_leaving.load(Ordering::Relaxed);
        let heartbeat = if is_leaving { Duration::ZERO } else { self.shared.lease.heartbeat() };
        let due = self.shared.published.lock().due(&self.me(), self.now(), heartbeat);
        let is_full = due.len() >= BATCH;
        let writing = stream::iter(due).map(|due| self.put(due)).buffer_unordered(AT_ONCE);
        let mut writing = std::pin::pin!(writing);
        let (mut has_written, mut failures) = (false, 0);
        while let Some(is_written) = writing.next().await {
            has_written |= is_written;
            failures = if is_written { 0 } else { failures + 1 };
            if failures >= AT_ONCE || self.is_stale() {
                return false;
            }
        }
        is_full && has_written
    }

    /// Writes an entry; whether it was written.
    async fn put(&self, (record, expected): (SessionRecord, Expected)) -> bool {
        let (engine, session) = (&self.shared.engine, &record.session);
        let error = match engine.put_session(&record, expected).await {
            Ok(revision) => {
                self.shared.published.lock().wrote(record, revision, self.now());
                return true;
            }
            Err(error) => error,
        };
        let error = match error {
            EngineError::Conflict => match engine.session(session).await {
                Ok(found) => {
                    self.found_instead(session, found);
                    return false;
                }
                Err(error) => error,
            },
            error => error,
        };
        let (now, lease) = (self.now(), self.shared.lease);
        if let EngineError::Refused(reason) = error {
            self.shared.refused_entries.fetch_add(1, Ordering::Relaxed);
            if self.shared.published.lock().refused(session, now, lease.lease()) {
                tracing::warn!(%session, reason, "the directory does not take the entry of a session: other nodes do not see it as it is");
            }
        } else {
            // It is tried again when this node is heard again.
            self.shared.published.lock().failed(session, now, lease.heartbeat());
            tracing::debug!(%session, %error, "the directory is behind");
        }
        false
    }

    /// The directory has something else of a session than was expected.
    fn found_instead(&self, session: &SessionId, found: Option<(SessionRecord, Revision)>) {
        let Some((found, revision)) = found else { return self.shared.published.lock().missing(session) };
        self.found(&found, revision);
        if found.node_id != self.me().id && !self.shared.published.lock().keeps(session) {
            tracing::warn!(%session, node = %found.node, "another node owns this session");
        }
    }

    /// Removes the entries of sessions that were deleted: those that are not among all that are there.
    async fn remove(&self, there: &BTreeSet<SessionId>) {
        let mut gone = self.shared.published.lock().only(there);
        let me = self.me();
        {
            let watched = self.shared.directory.read();
            let claims = self.shared.claims.lock();
            let is_own = |session: &&Arc<SessionRecord>| {
                session.node_id == me.id && !session.taking_up && !claims.contains_key(&session.session)
            };
            let of_earlier_lives = watched.directory.sessions().filter(is_own);
            let of_earlier_lives = of_earlier_lives.filter(|session| !there.contains(&session.session));
            let entry =
                |session: &SessionRecord| watched.directory.session(&session.session).map(|(_, at)| at);
            let more =
                of_earlier_lives.filter_map(|session| Some((session.session.clone(), entry(session)?)));
            let known: BTreeSet<SessionId> = gone.iter().map(|(session, _)| session.clone()).collect();
            gone.extend(more.filter(|(session, _)| !known.contains(session)));
        }
        for (session, revision) in gone {
            // One that has changed meanwhile is looked at again.
            if let Err(error) = self.shared.engine.remove_session(&session, revision).await {
                tracing::debug!(%session, %error, "the directory keeps a session that is not there for now");
            }
        }
    }
}
