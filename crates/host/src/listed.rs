//! The rows of the log as a list shows them, and what they are looked for by.
//!
//! What a session is doing is not all in its row: one that is live here is asked.

use crate::clock::iso8601;
use crate::error::HostError;
use crate::history_summary::fill_in;
use crate::known_by::known_by;
use crate::listing::{SessionSummary, state_of_stored, summary_of};
use crate::recovery::{Detached, LeftBehind, Recovery};
use crate::registry::Registry;
use crate::session::{SessionHandle, Standing};
use crate::store::{self, SessionStore};
use acpd_api::{HistorySummary, Session, SessionInfo, SessionState};
use acpd_eventlog::{ListQuery, SessionRow};
use acpd_record::{BriefEnd, SessionId, SessionMeta};

/// What sessions are looked for by, beside the filters of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Words that are each in the title, the directory or the agent's name, or begin or end the id, without regard to case and
    /// diacritics.
    pub text: Option<String>,
    /// What they are doing.
    pub state: Option<SessionState>,
}

/// Sessions that are looked at together when it counts what they are doing.
const LOOKED_AT: u32 = 100;

/// The stored sessions, with what is known of those that are live here.
pub(crate) struct Listing<'a> {
    pub(crate) store: &'a SessionStore,
    pub(crate) recovery: &'a Recovery,
    pub(crate) live: &'a Registry,
}

impl Listing<'_> {
    /// A page of sessions, the latest change first.
    pub(crate) async fn page(&self, query: ListQuery) -> Result<Vec<SessionSummary>, HostError> {
        let rows = self.store.log.list(query).await.map_err(|error| store::unreadable(&error))?;
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows {
            sessions.push(self.summary(row).await.without_stderr());
        }
        Ok(sessions)
    }

    /// The same of those only that match: as many as are asked for, if there are.
    pub(crate) async fn matching(
        &self,
        mut query: ListQuery,
        Matching { text, state }: Matching,
    ) -> Result<Vec<SessionSummary>, HostError> {
        query.matching = text.as_deref().and_then(known_by);
        let Some(state) = state else { return self.page(query).await };
        query.ended.get_or_insert(state == SessionState::Ended);
        // What a session is doing is not all in its row.
        let most = query.limit.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        query.limit = query.limit.map(|most| most.max(LOOKED_AT));
        let mut found = Vec::new();
        loop {
            let page = self.page(query.clone()).await?;
            let is_last = query.limit.is_none_or(|limit| page.len() < limit as usize);
            query.after = page.last().map(|last| last.position.clone());
            found.extend(page.into_iter().filter(|summary| summary.session.state == state));
            if is_last || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }

    /// What a table shows of sessions, the latest change first. Reads less of each row than [`page`](Self::page), for those
    /// that print all that there are.
    pub(crate) async fn brief(
        &self,
        query: ListQuery,
        matching: Matching,
    ) -> Result<Vec<SessionBrief>, HostError> {
        if matching.state.is_some() {
            let sessions = self.matching(query, matching).await?;
            return Ok(sessions.into_iter().map(SessionBrief::of).collect());
        }
        let query = ListQuery { matching: matching.text.as_deref().and_then(known_by), ..query };
        let rows = self.store.log.list(query).await.map_err(|error| store::unreadable(&error))?;
        let mut sessions = Vec::with_capacity(rows.len());
        for row in rows {
            sessions.push(match row.ended && self.live_handle(&row).is_none() {
                true => SessionBrief::of_ended(row),
                false => SessionBrief::of(self.summary(row).await),
            });
        }
        Ok(sessions)
    }

    /// What clients are shown of a row. One whose host has died is shown as it will be recorded.
    pub(crate) async fn summary(&self, mut row: SessionRow) -> SessionSummary {
        let mut meta = SessionMeta::read(&row.info);
        let mut waits = None;
        match self.recovery.left_behind(&row, &meta).await {
            Some(LeftBehind::Lost(lost)) => {
                lost.describe(&mut meta);
                row.ended = true;
            }
            Some(LeftBehind::Detached(detached)) => waits = Some(detached),
            None => {}
        }
        // The record of an end can be read a moment before its session knows that it was written.
        let session = self.live_handle(&row);
        let state = match &session {
            Some(session) => match session.standing() {
                Some(Standing { state, title, tally, updated_ms }) => {
                    // The row learns it a moment later.
                    row.updated_ms = row.updated_ms.max(updated_ms);
                    (meta.title, meta.tally) = (title, tally);
                    state
                }
                // It ended a moment after its row was read.
                None => SessionState::Idle,
            },
            None if row.ended => SessionState::Ended,
            None => match row.owner.as_deref() {
                Some(owner) if owner == self.store.host_file.id() => SessionState::Starting,
                Some(_) => state_of_stored(row.state),
                None => SessionState::Ended,
            },
        };
        let mut summary = summary_of(row, meta, state, session.as_ref());
        summary.session.by_agent.detached_since = waits.map(|detached| iso8601(detached.since_ms));
        summary.detached_until_ms = waits.map(Detached::until_ms);
        summary
    }

    /// The same with all that is known of its end.
    pub(crate) async fn whole(&self, id: &SessionId, row: SessionRow) -> SessionSummary {
        let mut summary = self.summary(row).await;
        if let Some(end) = summary.session.termination.take() {
            summary.session.termination = Some(self.store.whole_end(id, end).await);
        }
        summary
    }

    /// One that is not live here, with its state: as it was at its end, if it has ended.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) async fn info(&self, id: &SessionId, row: SessionRow) -> Result<SessionInfo, HostError> {
        let last = row.last_seq;
        let projection = {
            let _one_of_few = self.store.one_of_few().await;
            self.store.recall(id, &SessionMeta::read(&row.info), last).await?
        };
        let mut summary = self.whole(id, row).await.session;
        let snapshot = projection.shown(last);
        // The row has it too, unless an earlier version wrote it, or within a turn.
        let tally = match summary.ended {
            true => projection.lost_tally(),
            false => projection.tally(last),
        };
        fill_in(&mut summary.history, tally);
        Ok(SessionInfo { summary, prompts_waiting: 0, agent_capabilities: None, snapshot })
    }

    fn live_handle(&self, row: &SessionRow) -> Option<SessionHandle> {
        let id = SessionId::parse(&row.id).filter(|_| !row.ended)?;
        self.live.get(&id)
    }
}

/// A session in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionBrief {
    /// Its id.
    pub id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// Its title, else the words that it began with.
    pub known_as: Option<String>,
    /// What it is doing.
    pub state: SessionState,
    /// How its last run ended, in a word.
    pub reason: Option<String>,
    /// Questions of its agent that wait for an answer.
    pub open_questions: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: i64,
    /// Since when its agent waits for the next daemon, ISO 8601.
    pub detached_since: Option<String>,
    /// Until when it does, in milliseconds since 1970.
    pub detached_until_ms: Option<i64>,
}

impl SessionBrief {
    fn of_ended(row: SessionRow) -> Self {
        let mut brief = SessionMeta::brief(&row.info);
        let end = brief.termination_info.take();
        Self {
            known_as: brief.known_as().map(Into::into),
            reason: end.and_then(|end| end.reason).map(Into::into),
            id: row.id,
            agent: row.agent,
            cwd: row.cwd,
            state: SessionState::Ended,
            open_questions: 0,
            updated_ms: row.updated_ms,
            detached_since: None,
            detached_until_ms: None,
        }
    }

    fn of(summary: SessionSummary) -> Self {
        let SessionSummary { session, position, detached_until_ms, .. } = summary;
        let Session { id, agent, cwd, title, state, history, termination, by_agent, .. } = session;
        let end: Option<BriefEnd<'_>> =
            termination.as_ref().and_then(|info| serde_json::from_str(info.get()).ok());
        let reason = end.and_then(|end| end.reason).map(Into::into);
        let HistorySummary { open_questions, first_prompt, .. } = history;
        let known_as = title.or_else(|| first_prompt.map(Into::into));
        let (updated_ms, detached_since) = (position.0, by_agent.detached_since);
        Self {
            id,
            agent,
            cwd,
            known_as,
            state,
            reason,
            open_questions,
            updated_ms,
            detached_since,
            detached_until_ms,
        }
    }
}
