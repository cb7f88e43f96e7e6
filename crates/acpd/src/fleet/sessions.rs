//! The sessions of this node, as the fleet's directory gets them.

use acpd_eventlog::{Block, ListQuery};
use acpd_fleet::{Creator, Local, MOST_BYTES, Pending, Row, Run};
use acpd_host::{Host, HostError, SessionSummary, chain};
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

    /// The next blocks of a session, about as many as a piece of the archive holds.
    async fn blocks(&self, session: &SessionId, after: u64) -> Result<Vec<Block>, HostError> {
        let mut cursor = self.host.cursor(session, after).await?;
        let (mut blocks, mut bytes) = (Vec::new(), 0);
        while cursor.position() < cursor.last() && bytes < MOST_BYTES {
            let Some(block) = cursor.next().await? else { break };
            bytes += block.bytes();
            blocks.push(block);
        }
        Ok(blocks)
    }

    fn row(&self, summary: &SessionSummary) -> Option<Row> {
        let creator = summary.created_by.clone().and_then(|name| {
            let fingerprint = self.fingerprints.read().get(&name)?.clone();
            Some(Creator { name, fingerprint })
        });
        Some(Row {
            session: SessionId::parse(&summary.id)?,
            creator,
            partition: summary.history.partition,
            seq: summary.history.event_count,
            ended: summary.ended,
            created_ms: summary.history.created_ms,
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

    fn run<'a>(&'a self, session: &'a SessionId, after: u64) -> Pending<'a, Result<Option<Run>, String>> {
        Box::pin(async move {
            match self.blocks(session, after).await {
                Ok(blocks) => Ok(run(&blocks)),
                Err(HostError::UnknownSession { .. }) => Ok(None),
                Err(error) => Err(chain(&error)),
            }
        })
    }
}

/// Blocks that follow one another as one run.
fn run(blocks: &[Block]) -> Option<Run> {
    let (first, last) = (blocks.first()?.first(), blocks.last()?.last());
    Some(Run { first, last, bytes: Block::pack_run(blocks) })
}
