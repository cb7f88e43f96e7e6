//! The sessions of this node, as the fleet's directory gets them.

use acpd_eventlog::ListQuery;
use acpd_fleet::{Creator, Local, Partition, Pending, Row};
use acpd_host::{Host, SessionSummary, chain};
use acpd_record::SessionId;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Sessions that are read at a time.
const PAGE: u32 = 200;

/// The fingerprints of this node's tokens by their names.
pub(super) type Fingerprints = Arc<RwLock<BTreeMap<String, String>>>;

/// The log of this node.
pub(super) struct OwnSessions {
    pub(super) host: Host,
    pub(super) fingerprints: Fingerprints,
    /// Live sessions that the node takes.
    pub(super) most: Arc<AtomicU32>,
}

impl std::fmt::Debug for OwnSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnSessions").finish_non_exhaustive()
    }
}

impl OwnSessions {
    /// Sessions from the latest change on, while `goes_on`.
    async fn read(
        &self,
        goes_on: impl Fn(&SessionSummary) -> bool,
        mut take: impl FnMut(SessionSummary),
    ) -> Result<(), String> {
        let mut after = None;
        loop {
            let query = ListQuery { after, limit: Some(PAGE), ..ListQuery::default() };
            let page = self.host.list(query).await.map_err(|error| chain(&error))?;
            let is_last = page.len() < PAGE as usize;
            after = page.last().map(|last| last.position.clone());
            for summary in page {
                if !goes_on(&summary) {
                    return Ok(());
                }
                take(summary);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn row(&self, summary: &SessionSummary) -> Option<Row> {
        let creator = summary.created_by.clone().and_then(|name| {
            let fingerprint = self.fingerprints.read().get(&name)?.clone();
            Some(Creator { name, fingerprint })
        });
        Some(Row {
            session: SessionId::parse(&summary.id)?,
            creator,
            partition: Partition::Local,
            seq: summary.history.event_count,
            ended: summary.ended,
            changed_ms: summary.position.0,
            info: serde_json::to_value(summary).ok()?,
        })
    }
}

impl Local for OwnSessions {
    fn changed(&self, since_ms: i64) -> Pending<'_, Result<Vec<Row>, String>> {
        Box::pin(async move {
            let mut rows = Vec::new();
            let read = self
                .read(|summary| summary.position.0 >= since_ms, |summary| rows.extend(self.row(&summary)));
            read.await?;
            Ok(rows)
        })
    }

    fn room(&self) -> u32 {
        let live = u32::try_from(self.host.live_sessions()).unwrap_or(u32::MAX);
        self.most.load(Ordering::Relaxed).saturating_sub(live)
    }

    fn all(&self) -> Pending<'_, Result<BTreeSet<SessionId>, String>> {
        Box::pin(async move {
            let mut all = BTreeSet::new();
            self.read(|_| true, |summary| all.extend(SessionId::parse(&summary.id))).await?;
            Ok(all)
        })
    }
}
