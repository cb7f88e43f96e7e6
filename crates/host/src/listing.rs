//! Listing and inspecting sessions from the store (contract 1.3): live and ended, across restarts, without starting
//! anything. What of a session is not in its row is asked of its task, or read from its log.

use crate::ends::Found;
use crate::error::HostError;
use crate::history_summary::summarise;
use crate::host::{Host, Shared};
use crate::listed::{Listing, Matching};
use crate::search::Findings;
use crate::session::{Glimpse, SessionHandle};
use acpd_api::{
    AgentSummary, HistorySummary, LastTurnSummary, Metadata, OfNode, Session, SessionInfo, SessionState,
};
use acpd_eventlog::{ListQuery, SearchQuery, SessionRow};
use acpd_record::{Json, NativeSessionId, SessionId, SessionMeta, ShownUsage};
use serde::Serialize;
use serde_json::{Map, Value};

/// A session, as a list shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct SessionSummary {
    /// The session, as clients see it.
    pub session: Session,
    /// The name of the token under which it was created; None without one (contract 1.7).
    #[serde(skip)]
    pub created_by: Option<String>,
    /// When it was created, in milliseconds since 1970.
    #[serde(skip)]
    pub created_ms: i64,
    /// Until when its agent waits for the next daemon, in milliseconds since 1970.
    #[serde(skip)]
    pub detached_until_ms: Option<i64>,
    /// Its place in a list.
    #[serde(skip)]
    pub position: (i64, String),
}

/// The state that a live session says of itself in the index, for other processes.
pub(crate) fn stored_state(state: SessionState) -> u8 {
    match state {
        SessionState::Running => 1,
        SessionState::Waiting => 2,
        SessionState::Starting | SessionState::Idle | SessionState::Ended => 0,
    }
}

/// The state that it says there; a word that is not known here is a later version's.
pub(crate) fn state_of_stored(stored: u8) -> SessionState {
    [SessionState::Running, SessionState::Waiting]
        .into_iter()
        .find(|state| stored_state(*state) == stored)
        .unwrap_or(SessionState::Idle)
}

impl SessionSummary {
    /// As in a list (contract 7.3).
    pub(crate) fn without_stderr(mut self) -> Self {
        self.session.termination = self.session.termination.map(|info| {
            // Most records have none: there is no such name in their text.
            if !info.get().contains("\"stderr\"") {
                return info;
            }
            let mut members: Map<String, Value> = serde_json::from_str(info.get()).unwrap_or_default();
            // Whether there is some does not matter here.
            match members.remove("stderr") {
                Some(_stderr) => Json::new(&members),
                None => info,
            }
        });
        self
    }

    /// acpd's own part of an ACP list entry.
    pub fn meta(&self) -> impl Serialize {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Meta<'a> {
            agent: &'a str,
            created_at: &'a str,
            ended: bool,
            event_count: u64,
            state: SessionState,
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<&'a ShownUsage>,
            #[serde(skip_serializing_if = "Option::is_none")]
            last_turn: Option<&'a LastTurnSummary>,
            open_questions: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            detached_since: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            termination_info: Option<&'a Json>,
            #[serde(flatten, skip_serializing_if = "Option::is_none")]
            node: Option<&'a OfNode>,
        }
        let Session { agent, ended, state, history, by_agent, termination, .. } = &self.session;
        let HistorySummary { created_at, event_count, usage, last_turn, open_questions, .. } = history;
        Meta {
            agent,
            created_at,
            ended: *ended,
            event_count: *event_count,
            state: *state,
            usage: usage.as_ref(),
            last_turn: last_turn.as_ref(),
            open_questions: *open_questions,
            detached_since: by_agent.detached_since.as_deref(),
            termination_info: termination.as_ref(),
            node: history.node.as_ref(),
        }
    }
}

impl Host {
    /// A page of sessions, the latest change first. Their `terminationInfo` is without `stderr`, which can be a hundred
    /// lines of each; [`Host::inspect`] has it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionSummary>, HostError> {
        self.listing().page(query).await
    }

    /// The same of those only that match.
    ///
    /// # Errors
    /// As [`Host::list`].
    pub async fn list_matching(
        &self,
        query: ListQuery,
        matching: Matching,
    ) -> Result<Vec<SessionSummary>, HostError> {
        self.listing().matching(query, matching).await
    }

    /// A page of turns in which all the words stand.
    ///
    /// # Errors
    /// When search is turned off, or the log cannot be read.
    pub async fn search(&self, query: SearchQuery) -> Result<Findings, HostError> {
        self.shared.store.search(query).await
    }

    fn listing(&self) -> Listing<'_> {
        let Shared { store, recovery, sessions, .. } = &*self.shared;
        Listing { store, recovery, live: &sessions.live }
    }

    /// One session; `found` is what was found of it just now.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn inspect(&self, id: &SessionId, found: Option<Found>) -> Result<SessionSummary, HostError> {
        let row = match found.and_then(|found| found.row) {
            Some(row) => row,
            None => self.shared.store.row(id).await?,
        };
        Ok(self.listing().whole(id, row).await)
    }

    /// One session, with its state; as it was at its end, if it has ended. `found` is what was found of it just now.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn session_info(&self, id: &SessionId, found: Found) -> Result<SessionInfo, HostError> {
        let live = self.shared.sessions.live.get(id);
        let glimpse = live.as_ref().and_then(SessionHandle::look);
        let info = match (live, glimpse, found.row) {
            (Some(session), Some(glimpse), _) => self.live_info(&session, glimpse),
            (_, _, Some(row)) => self.listing().info(id, row).await?,
            (_, _, None) => self.listing().info(id, self.shared.store.row(id).await?).await?,
        };
        let agent_capabilities = self.shared.agents.capabilities_of(&info.summary.agent);
        Ok(SessionInfo { agent_capabilities, ..info })
    }

    /// A live session, from memory.
    fn live_info(&self, session: &SessionHandle, glimpse: Glimpse) -> SessionInfo {
        let Glimpse { mut meta, state, waiting, title, tally, last_seq, updated_ms, snapshot } = glimpse;
        (meta.title, meta.tally) = (title, tally);
        let row = SessionRow {
            id: session.id().to_string(),
            agent: session.agent().spec().name.clone(),
            cwd: session.cwd().to_owned(),
            owner: Some(self.shared.store.host_file.id().to_owned()),
            created_by: session.created_by().map(|token| token.to_string()),
            created_ms: session.created_ms(),
            updated_ms,
            ended: false,
            last_seq,
            state: stored_state(state),
            position: 0,
            info: Vec::new(),
        };
        SessionInfo {
            summary: summary_of(row, meta, state, Some(session)).session,
            prompts_waiting: waiting,
            agent_capabilities: None,
            snapshot,
        }
    }
}

/// What clients are shown of a session.
pub(crate) fn summary_of(
    row: SessionRow,
    mut meta: SessionMeta,
    state: SessionState,
    session: Option<&SessionHandle>,
) -> SessionSummary {
    let termination = meta.termination_info.take().filter(|info| info.get().starts_with('{'));
    let in_this_run = session.map(SessionHandle::permission_mode);
    let metadata = Metadata {
        client: meta.client,
        runs: meta.runs,
        forked_from: meta.forked_from,
        set_aside_from: meta.set_aside.map(|session| session.id),
        permission_mode: in_this_run.or(meta.permission_mode),
        created_by: row.created_by.clone(),
        agent_pid: session.map(|session| session.agent().pid()),
    };
    let history = summarise(&row, meta.tally, meta.partition);
    let position = (row.updated_ms, row.id.clone());
    let session = Session {
        id: row.id,
        agent: row.agent,
        cwd: row.cwd,
        title: meta.title,
        ended: state == SessionState::Ended,
        state,
        history,
        by_agent: AgentSummary {
            model: meta.model,
            mode: meta.mode,
            native_session_id: meta.native_session_id.as_ref().map(NativeSessionId::text),
            detached_since: None,
        },
        termination,
        metadata,
    };
    let (created_by, created_ms) = (row.created_by, row.created_ms);
    SessionSummary { session, created_by, created_ms, detached_until_ms: None, position }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.3: what one process says in the index, another reads
    #[test]
    fn a_state_survives_the_index() {
        for state in [SessionState::Running, SessionState::Waiting, SessionState::Idle] {
            assert_eq!(state_of_stored(stored_state(state)), state);
        }
        assert_eq!(state_of_stored(9), SessionState::Idle);
    }
}
