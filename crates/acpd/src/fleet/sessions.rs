//! The sessions of this node, as the fleet's directory gets them.

use acpd_eventlog::{Block, ListQuery};
use acpd_fleet::{Creator, Fence, History, Local, MOST_BYTES, NodeName, Pending, Row, Run, SessionRecord};
use acpd_host::{Host, HostError, SessionSummary, TakeUpError, TakenUp, chain};
use acpd_record::SessionId;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::time::Instant;

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

    async fn taken_up(&self, record: &SessionRecord, mut history: History) -> Result<(), TakeUpError> {
        let is_here = |creator: &&Creator| {
            self.fingerprints.read().get(&creator.name).is_some_and(|here| *here == creator.fingerprint)
        };
        let creator = record.creator.as_ref().filter(is_here).map(|creator| creator.name.clone());
        let unread = |detail: String| HostError::History { detail };
        let mut taking = self.host.take_up(taken_up(record, creator)).await?;
        while let Some(run) = history.next().await.map_err(|error| unread(error.to_string()))? {
            let block = Block::unpack_run(run.first, run.last, &run.bytes, taking.position());
            let damaged =
                || unread(format!("events {} to {} in the archive cannot be read", run.first, run.last));
            taking.push(&block.ok_or_else(damaged)?).await?;
        }
        taking.finish().await.map(drop)
    }

    fn row(&self, summary: &SessionSummary) -> Option<Row> {
        let session = &summary.session;
        let creator = summary.created_by.as_deref().and_then(|name| creator(&self.fingerprints, name));
        Some(Row {
            session: SessionId::parse(&session.id)?,
            creator,
            partition: session.history.partition,
            seq: session.history.event_count,
            ended: session.ended,
            created_ms: summary.created_ms,
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

    fn run<'a>(&'a self, session: &'a SessionId, after: u64) -> Pending<'a, Result<Option<Run>, String>> {
        Box::pin(async move {
            match self.blocks(session, after).await {
                Ok(blocks) => Ok(run(&blocks)),
                Err(HostError::UnknownSession { .. }) => Ok(None),
                Err(error) => Err(chain(&error)),
            }
        })
    }

    fn fence(&self, fence: Fence) {
        match fence {
            Fence::Down => self.host.fence(false),
            Fence::ForNew => self.host.fence_new(),
            Fence::ForAll => self.host.fence(true),
        }
    }

    fn counts_until(&self, until: Instant) {
        self.host.counts_until(until);
    }

    fn supersede<'a>(&'a self, session: &'a SessionId, by: &'a NodeName) -> Pending<'a, Result<(), String>> {
        Box::pin(async move {
            match self.host.set_aside(session, by.as_str()).await {
                Ok(_) | Err(HostError::UnknownSession { .. }) => Ok(()),
                Err(error) => Err(chain(&error)),
            }
        })
    }

    fn take_up<'a>(&'a self, record: &'a SessionRecord, history: History) -> Pending<'a, Result<(), String>> {
        Box::pin(async move {
            match self.taken_up(record, history).await {
                // It was taken up, and this node died before it could say so.
                Ok(()) | Err(TakeUpError::Known { .. }) => Ok(()),
                Err(error) => Err(chain(&error)),
            }
        })
    }
}

/// The token of this name, as other nodes know it.
pub(super) fn creator(fingerprints: &Fingerprints, name: &str) -> Option<Creator> {
    let fingerprint = fingerprints.read().get(name)?.clone();
    Some(Creator { name: name.to_owned(), fingerprint })
}

/// What a session is made of again, out of what its node said of it.
fn taken_up(record: &SessionRecord, created_by: Option<String>) -> TakenUp {
    let told = record.told();
    TakenUp {
        id: record.session.clone(),
        agent: told.agent,
        cwd: told.cwd,
        created_ms: record.created_ms,
        title: told.title,
        forked_from: told.metadata.forked_from,
        created_by,
        native_session_id: told.native_session_id,
        partition: record.partition,
    }
}

/// Blocks that follow one another as one run.
fn run(blocks: &[Block]) -> Option<Run> {
    let (first, last) = (blocks.first()?.first(), blocks.last()?.last());
    Some(Run { first, last, bytes: Block::pack_run(blocks) })
}
