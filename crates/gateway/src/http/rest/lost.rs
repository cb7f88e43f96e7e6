//! Sessions whose node is gone: what the directory and the archive have of them (contract 7.3).
//!
//! Only for reading. What exists for whom was decided before (`http/forwarding.rs`). Events that the node had not added to the
//! archive are shown when it is back.

use super::super::forwarding::{Lost, unreachable};
use super::super::problem::Problem;
use super::super::settings::Shared;
use crate::fleet::{Listed, of_node};
use acpd_eventlog::Block;
use acpd_fleet::{EngineError, History, Run};
use acpd_host::{ExportForm, HostError, SessionExport};
use acpd_record::ExportHead;
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The events of a lost session, as far as the archive has them.
pub(super) struct Archived {
    lost: Lost,
    history: History,
    position: u64,
    /// When it takes too long; None: an answer has begun.
    by: Option<Instant>,
}

/// How long all that is read for one answer may take: an engine that is slow is asked many times.
const PATIENCE: Duration = Duration::from_secs(4);

impl Lost {
    /// What REST says of it: as in a list, and that nothing is known to be open.
    pub(super) fn info(&self) -> impl Serialize {
        Info { listed: Listed::of(&self.0), prompts_waiting: 0, snapshot: Nothing::default() }
    }

    /// Its events behind one of them.
    pub(super) async fn events(self, shared: &Shared, after: u64) -> Result<Archived, Problem> {
        let Some(fleet) = shared.fleet() else { return Err(self.problem("this daemon is in no fleet")) };
        let by = Instant::now() + PATIENCE;
        let history = timeout_at(by, fleet.member.history(&self.0.session.session, after)).await;
        let history = history.map_err(|_| self.slow())?.map_err(|error| self.unread(&error))?;
        if after > history.last() {
            let last = history.last();
            return Err(
                self.problem(&format!("the archive has it up to event {last}, and no event behind {after}"))
            );
        }
        Ok(Archived { lost: self, history, position: after, by: Some(by) })
    }

    /// The same as a file.
    pub(super) async fn export(self, shared: &Shared, form: ExportForm) -> Result<SessionExport, Problem> {
        let session = self.0.session.clone();
        let told = session.told();
        let mut archived = self.events(shared, 0).await?;
        let Some(first) = archived.next().await? else {
            return Err(archived.lost.problem("the archive has nothing of it"));
        };
        if first.first() > 1 {
            let detail =
                format!("the archive has it from event {} on, which is no whole export", first.first());
            return Err(archived.lost.problem(&detail));
        }
        let head = ExportHead {
            session_id: session.session.clone(),
            agent: told.agent,
            cwd: told.cwd,
            created_ms: session.created_ms,
            title: told.title,
            forked_from: told.metadata.forked_from,
            events: archived.last(),
        };
        archived.has_time();
        let rest = stream::unfold(archived, async |mut archived| {
            let next = archived
                .next()
                .await
                .map_err(|problem| HostError::History { detail: problem.detail().to_owned() });
            Some((next.transpose()?, archived))
        });
        let blocks = stream::once(async { Ok(first) }).chain(rest).boxed();
        Ok(SessionExport::of_blocks(head, blocks, form))
    }

    fn unread(&self, error: &EngineError) -> Problem {
        self.problem(&format!("the archive cannot be read: {error}"))
    }

    fn slow(&self) -> Problem {
        self.problem("the archive does not answer in time")
    }

    /// Its node is gone, and so is this.
    fn problem(&self, detail: &str) -> Problem {
        unreachable(&self.0.session.node, format!("{}; {detail}", self.since()))
            .about(self.0.session.session.as_str())
    }

    /// That its node is gone, and since when.
    pub(super) fn since(&self) -> String {
        let node = of_node(&self.0);
        let since = node.unreachable_since.unwrap_or_default();
        format!("node {}, which has it, cannot be reached since {since}", node.node)
    }
}

impl Archived {
    /// The last event that was given, or where it began.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The last event in the archive.
    pub(super) fn last(&self) -> u64 {
        self.history.last()
    }

    /// The next events; None at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Block>, Problem> {
        let reading = self.history.next();
        let run = match self.by {
            Some(by) => timeout_at(by, reading).await.map_err(|_| self.lost.slow())?,
            None => reading.await,
        };
        let run = run.map_err(|error| self.lost.unread(&error))?;
        let Some(Run { first, last, bytes }) = run else { return Ok(None) };
        let block = Block::unpack_run(first, last, &bytes, self.position);
        let damaged = || format!("the events {first} to {last} in the archive cannot be read");
        let block = block.ok_or_else(|| self.lost.problem(&damaged()))?;
        self.position = block.last();
        Ok(Some(block))
    }

    /// An answer has begun, and takes as long as it takes.
    pub(super) fn has_time(&mut self) {
        self.by = None;
    }

    /// Why no more comes.
    pub(super) fn end(&self) -> String {
        format!("{}; these are its events in the archive", self.lost.since())
    }
}

/// As a session that is here is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    #[serde(flatten)]
    listed: Listed,
    prompts_waiting: u64,
    snapshot: Nothing,
}

/// A snapshot of which nothing is known.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Nothing {
    open_tool_calls: [(); 0],
    open_permission_requests: [(); 0],
}
