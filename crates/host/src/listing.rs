//! Listing and inspecting sessions from the store (contract 1.3): live and ended, across restarts, without starting
//! anything. What of a session is not in its row is asked of its task, or read from its log.

use crate::ends::Found;
use crate::error::HostError;
use crate::history_summary::{HistorySummary, LastTurnSummary, OfNode};
use crate::host::{Host, Shared};
use crate::listed::{Listing, Matching};
use crate::search::Findings;
use crate::session::{Glimpse, SessionHandle};
use acpd_eventlog::{ListQuery, SearchQuery, SessionRow};
use acpd_record::{Json, NativeSessionId, PermissionMode, RunNumber, SessionId, SessionMeta, ShownUsage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a session is doing.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::EnumString, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SessionState {
    /// Its agent has it, and it is about to be there for clients.
    Starting,
    /// Nothing; it waits for a prompt.
    Idle,
    /// A turn is running.
    Running,
    /// A question of the agent is to be answered first.
    Waiting,
    /// Its run is over.
    Ended,
}

impl SessionState {
    /// What a live session says of itself in the index, for other processes.
    pub(crate) fn stored(self) -> u8 {
        match self {
            Self::Running => 1,
            Self::Waiting => 2,
            Self::Starting | Self::Idle | Self::Ended => 0,
        }
    }

    /// What it says there; a word that is not known here is a later version's.
    pub(crate) fn from_stored(stored: u8) -> Self {
        [Self::Running, Self::Waiting]
            .into_iter()
            .find(|state| state.stored() == stored)
            .unwrap_or(Self::Idle)
    }

    /// The name that clients see.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

// Contract 1.3's SessionInfo, when it is serialized.
/// A session, as a list shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Session"))]
pub struct SessionSummary {
    /// Its id.
    #[serde(rename = "sessionId")]
    #[cfg_attr(feature = "schema", schemars(with = "SessionId"))]
    pub id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// Its title, if its agent gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether its last run is over.
    pub ended: bool,
    /// What it is doing.
    pub state: SessionState,
    /// The name of the token under which it was created; None without one (contract 1.7).
    #[serde(skip)]
    pub created_by: Option<String>,
    /// Its log.
    #[serde(flatten)]
    pub history: HistorySummary,
    /// Its agent, and what that says of it.
    #[serde(flatten)]
    pub by_agent: AgentSummary,
    /// How its last run ended; in a list without `stderr`.
    #[serde(rename = "terminationInfo", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<acpd_record::TerminationInfo>"))]
    pub termination: Option<Json>,
    /// What else acpd knows: the `client` and the token (`createdBy`) that created it, `permissionMode`, `runs`,
    /// `forkedFrom`, `setAsideFrom`, and of a live one `agentPid`.
    #[cfg_attr(feature = "schema", schemars(with = "Map<String, Value>"))]
    pub metadata: Metadata,
    /// Its place in a list.
    #[serde(skip)]
    pub position: (i64, String),
}

/// What a list shows of the agent of a session, and of what that says of it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentSummary {
    /// The model that it works with, if its agent names it.
    pub model: Option<String>,
    /// The id of its mode, if its agent has modes.
    pub mode: Option<String>,
    /// The agent's own id of it.
    pub native_session_id: Option<String>,
    /// Since when the agent has no daemon and waits for the next one, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub detached_since: Option<String>,
    /// Until when it waits, in milliseconds since 1970.
    #[serde(skip)]
    pub detached_until_ms: Option<i64>,
}

/// What acpd knows of a session beside all else, and is no secret.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metadata {
    /// The client that created it.
    pub client: Option<String>,
    /// Its runs so far.
    pub runs: Option<RunNumber>,
    /// The session whose history it began with.
    pub forked_from: Option<SessionId>,
    /// The session of which it is a copy, which this node had until another one took it up.
    pub set_aside_from: Option<SessionId>,
    /// How the permission requests of its agent are answered.
    pub permission_mode: Option<PermissionMode>,
    /// The name of the token under which it was created.
    pub created_by: Option<String>,
    /// The process of a live one.
    pub agent_pid: Option<u32>,
}

/// One session, with everything that a late viewer needs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// As in a list.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// Prompts that wait behind the one whose turn runs.
    pub prompts_waiting: usize,
    /// `agentCapabilities` of its agent's last answer to `initialize`, if it gave one since this process began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_capabilities: Option<Map<String, Value>>,
    // Contract 1.5.
    /// The latest of what its agent said of its state, and what is open.
    #[cfg_attr(feature = "schema", schemars(with = "acpd_record::schema::ShownSnapshot"))]
    pub snapshot: Json,
}

impl SessionSummary {
    /// As in a list (contract 7.3).
    pub(crate) fn without_stderr(mut self) -> Self {
        self.termination = self.termination.map(|info| {
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
        let HistorySummary { created_at, event_count, usage, last_turn, open_questions, .. } = &self.history;
        Meta {
            agent: &self.agent,
            created_at,
            ended: self.ended,
            event_count: *event_count,
            state: self.state,
            usage: usage.as_ref(),
            last_turn: last_turn.as_ref(),
            open_questions: *open_questions,
            detached_since: self.by_agent.detached_since.as_deref(),
            termination_info: self.termination.as_ref(),
            node: self.history.node.as_ref(),
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
            state: state.stored(),
            position: 0,
            info: Vec::new(),
        };
        SessionInfo {
            summary: summary_of(row, meta, state, Some(session)),
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
    let history = HistorySummary::of(&row, meta.tally, meta.partition);
    SessionSummary {
        position: (row.updated_ms, row.id.clone()),
        id: row.id,
        agent: row.agent,
        cwd: row.cwd,
        title: meta.title,
        ended: state == SessionState::Ended,
        state,
        created_by: row.created_by,
        history,
        by_agent: AgentSummary {
            model: meta.model,
            mode: meta.mode,
            native_session_id: meta.native_session_id.as_ref().map(NativeSessionId::text),
            detached_since: None,
            detached_until_ms: None,
        },
        termination,
        metadata,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.3: what one process says in the index, another reads
    #[test]
    fn a_state_survives_the_index() {
        for state in [SessionState::Running, SessionState::Waiting, SessionState::Idle] {
            assert_eq!(SessionState::from_stored(state.stored()), state);
        }
        assert_eq!(SessionState::from_stored(9), SessionState::Idle);
    }
}
