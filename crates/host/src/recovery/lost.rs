//! What is recorded of a run that was lost with its host, or ended while there was none: what the log knows of it.
//!
//! Not here: which runs those are.

use super::Recovery;
use crate::agent_end::AgentEnd;
use crate::chain::chain;
use crate::clock;
use crate::error::HostError;
use crate::recording::ended_batch;
use crate::termination::{self, RequestedEnd, SessionFacts};
use acpd_eventlog::{Batch, SessionRow};
use acpd_record::{RunNumber, SessionId, SessionMeta, Tally, TerminationInfo};
use acpd_supervisor::{ExitReport, StderrExcerpt};
use std::sync::Arc;

/// A run that was lost with its host.
pub(crate) struct LostRun {
    pub(super) end: TerminationInfo,
    pub(super) tally: Tally,
}

impl LostRun {
    /// Has the index say so. Gives the record of the end.
    pub(crate) fn describe(self, meta: &mut SessionMeta) -> TerminationInfo {
        meta.ended(&self.end);
        meta.tally = self.tally;
        self.end
    }
}

impl Recovery {
    /// The end of a run whose host died, as the log and the index get it.
    pub(super) async fn lost_batch(&self, row: &SessionRow, owner: &str) -> Batch {
        let mut meta = SessionMeta::read(&row.info);
        let lost = self.lost_run(row, &meta, clock::now_ms()).await;
        // Others of that host may go on.
        let process = meta.keeper.as_ref().map(|keeper| keeper.mark.clone());
        meta.lost_with = Some(process.unwrap_or_else(|| owner.to_owned()));
        let end = lost.describe(&mut meta);
        ended_batch(&end, &meta)
    }

    /// A run whose host died, with what the log knows of it.
    pub(super) async fn lost_run(&self, row: &SessionRow, meta: &SessionMeta, at_ms: i64) -> LostRun {
        let (facts, tally) = self.last_facts(row, meta).await;
        let end = match meta.ending.clone().map(RequestedEnd::from) {
            Some(requested) => termination::interrupted_end(&requested, &facts, at_ms),
            None => termination::daemon_lost(&facts, at_ms),
        };
        LostRun { end, tally }
    }

    /// A run whose agent ended while no host was there, with what its keeper says of it.
    pub(super) async fn ended_run(
        &self,
        row: &SessionRow,
        meta: &SessionMeta,
        mut report: ExitReport,
        at_ms: i64,
    ) -> LostRun {
        let (facts, tally) = self.last_facts(row, meta).await;
        // It is shown when it is recorded, without secrets.
        report.stderr = StderrExcerpt::default();
        let agent = AgentEnd { report: Arc::new(report), fault: None };
        let end = match meta.ending.clone().map(RequestedEnd::from) {
            Some(requested) => termination::of_agent(&agent, Some(&requested), &facts, at_ms),
            None => termination::in_the_gap(&agent, &facts, at_ms),
        };
        LostRun { end, tally }
    }

    /// What is known of a run whose host died.
    pub(super) async fn last_facts(&self, row: &SessionRow, meta: &SessionMeta) -> (SessionFacts, Tally) {
        self.facts_in_log(row, meta).await.unwrap_or_else(|error| {
            tracing::warn!(
                parent: None,
                session = row.id,
                error = chain(&error),
                "the history of a lost session cannot be read"
            );
            let (started_ms, last_event_seq) = (Some(row.created_ms), Some(row.last_seq));
            let facts = SessionFacts { started_ms, last_event_seq, ..SessionFacts::default() };
            (facts, Tally { open_questions: 0, ..meta.tally.clone() })
        })
    }

    /// Whether a turn was running when the log broke off, how the last one ended, and when the run began.
    async fn facts_in_log(
        &self,
        row: &SessionRow,
        meta: &SessionMeta,
    ) -> Result<(SessionFacts, Tally), HostError> {
        let unknown = || HostError::UnknownSession { id: row.id.clone() };
        let id = SessionId::parse(&row.id).ok_or_else(unknown)?;
        let projection = self.store.recall(&id, meta, row.last_seq).await?;
        let began = (projection.runs() != RunNumber(0)).then(|| projection.run_started_ms());
        let facts = SessionFacts {
            turn_active: projection.running_turn().is_some(),
            last_stop_reason: projection.last_stop_reason().map(str::to_owned),
            started_ms: Some(began.unwrap_or(row.created_ms)),
            last_event_seq: Some(row.last_seq),
        };
        Ok((facts, projection.lost_tally()))
    }
}
