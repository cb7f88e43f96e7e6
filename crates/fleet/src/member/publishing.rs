//! Writing the own sessions into the directory.

use super::{Local, Member};
use crate::engine::{EngineError, Expected};
use crate::published::Row;
use crate::record::SessionRecord;
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
/// How long a node that leaves tells what has become of its sessions.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Entries that are written at a time.
const AT_ONCE: usize = 32;

impl Member {
    /// Writes what changes of the own sessions.
    pub(super) async fn publish(&self, local: &dyn Local) -> ! {
        let (mut since_ms, mut looked) = (0, None);
        loop {
            self.shared.passes.send_modify(|passes| *passes += 1);
            let _hurried = tokio::time::timeout(PACE, self.shared.news.notified()).await;
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
                    tracing::warn!(reason, "the fleet does not learn what sessions do");
                    continue;
                }
            };
            let latest = rows.iter().map(|row| row.changed_ms).max();
            since_ms = latest.map_or(since_ms, |latest| since_ms.max(latest - OVERLAP_MS));
            let there: Option<BTreeSet<SessionId>> =
                is_look.then(|| rows.iter().map(|row| row.session.clone()).collect());
            rows.into_iter().for_each(|row| self.learn(row));
            self.shared.published.lock().learned();
            looked = if is_look { Some(self.now()) } else { looked };
            if self.is_stale() {
                continue;
            }
            self.write().await;
            self.settle(over).await;
            if let Some(there) = there {
                self.remove(&there).await;
            }
        }
    }

    fn learn(&self, row: Row) {
        let session = row.session.clone();
        let mut published = self.shared.published.lock();
        published.is_now(row);
        if !published.knows_entry(&session) {
            let me = self.me();
            let watched = self.shared.directory.read();
            if let Some((record, revision)) = watched.directory.session(&session) {
                published.found(record, revision, &me);
            }
        }
    }

    /// Waits until the fleet knows of the own sessions what there is now, as far as the engine lets it within moments.
    pub(super) async fn tell_all(&self) {
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
        if tokio::time::timeout(LAST_WORDS, told).await.is_err() {
            tracing::debug!("the fleet was not told all of the sessions of this node");
        }
    }

    async fn write(&self) {
        let (me, engine) = (self.me(), &self.shared.engine);
        let put = |(record, expected): (SessionRecord, Expected)| async move {
            let put = engine.put_session(&record, expected).await;
            let found = match &put {
                Err(EngineError::Conflict) => Some(engine.session(&record.session).await),
                _ => None,
            };
            (record, put, found)
        };
        let is_leaving = self.shared.is_leaving.load(Ordering::Relaxed);
        let heartbeat = if is_leaving { Duration::ZERO } else { self.shared.lease.heartbeat() };
        let due = self.shared.published.lock().due(&me, self.now(), heartbeat);
        let mut writing = std::pin::pin!(stream::iter(due).map(put).buffer_unordered(AT_ONCE));
        while let Some((record, put, found)) = writing.next().await {
            match (put, found) {
                (Ok(revision), _) => self.shared.published.lock().wrote(record, revision, self.now()),
                (_, Some(Ok(Some((found, revision))))) => {
                    if found.node_id != me.id {
                        tracing::warn!(session = %record.session, node = %found.node, "another node owns this session");
                    }
                    self.found(&found, revision);
                }
                (_, Some(Ok(None))) => self.shared.published.lock().missing(&record.session),
                // The engine does not answer: it is tried again when this node is heard again.
                (Err(error), _) => {
                    tracing::debug!(session = %record.session, %error, "the directory is behind");
                    return;
                }
            }
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
