//! Sessions: lists of them, and one with its state.

use crate::operation::{Answer, ELSEWHERE, FORBIDDEN, Operation, Spec, Tag, Verb, json, nothing};
use acpd_record::{Json, Partition, PermissionMode, RunNumber, SessionId, ShownUsage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which sessions are asked for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionsQuery {
    /// Only those in this directory, an absolute path.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^/")))]
    pub cwd: Option<String>,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those that have ended, or only those that have not.
    #[cfg_attr(feature = "schema", schemars(with = "Option<bool>"))]
    pub ended: Option<String>,
    /// Only those that are doing this.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["starting", "idle", "running", "waiting", "ended"])))]
    pub state: Option<String>,
    /// Only those of which the title, the directory or the agent's name has each of these words, also as a part of a longer
    /// one, or the id begins or ends with it; case and diacritics do not count.
    pub q: Option<String>,
    /// Only those of this node, in a fleet.
    pub node: Option<String>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// Sessions of a page at most, 1 to 500. Default 50.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1, max = 500)))]
    pub limit: Option<String>,
}

/// A page of sessions, the latest change first.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionsPage", bound = ""))]
#[serde(rename_all = "camelCase")]
pub struct SessionsPage<Row = Session> {
    /// The sessions; in a fleet those of all nodes.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Session>"))]
    pub sessions: Vec<Row>,
    /// Where the next page begins; not there on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether what it has of other nodes may be old, or lack some: the fleet's engine does not answer, a node is not heard, or has not told
    /// all that it has; not there without a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// The name of the node that has answered, for `node`; not there without a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub here: Option<String>,
}

/// A session, as a list shows it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
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
}

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
    /// The name that clients see.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a list shows of a session's log.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistorySummary {
    /// When it was created, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub created_at: String,
    /// When it last changed, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub updated_at: String,
    /// Events in its log.
    pub event_count: u64,
    /// What its turns have used, as far as its agent tells; those of the source of a fork do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ShownUsage>,
    /// The words that it began with: at most 80 characters of its first prompt's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub first_prompt: Option<Box<str>>,
    /// When the turn that runs began, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub turn_started_at: Option<String>,
    /// How its last turn ended, if one has; that of the source of a fork does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<LastTurnSummary>,
    /// Permission requests and elicitations of its agent that wait for an answer.
    pub open_questions: u64,
    /// What becomes of it when its node is cut off, in a fleet; absent: it belongs to its node.
    #[serde(skip_serializing_if = "Partition::is_local")]
    pub partition: Partition,
    /// The node that has it, in a fleet.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub node: Option<OfNode>,
}

/// Where a session is, in a fleet.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfNode {
    /// The name of its node.
    pub node: String,
    /// Whether its node is there.
    pub reachable: bool,
    /// Since when it is not, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub unreachable_since: Option<String>,
}

/// How the last turn of a session ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LastTurn"))]
pub struct LastTurnSummary {
    /// Why; absent when it failed, or when its run ended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Box<str>>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub ended_at: String,
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
    pub summary: Session,
    /// Prompts that wait behind the one whose turn runs.
    pub prompts_waiting: usize,
    /// `agentCapabilities` of its agent's last answer to `initialize`, if it gave one since this process began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_capabilities: Option<Map<String, Value>>,
    /// The latest of what its agent said of its state, and what is open.
    #[cfg_attr(feature = "schema", schemars(with = "acpd_record::schema::ShownSnapshot"))]
    pub snapshot: Json,
}

/// Lists sessions.
#[derive(Clone, Copy, Debug)]
pub struct ListSessions;

impl Operation for ListSessions {
    type Input<'a> = SessionsQuery;
    type Answer = SessionsPage;
    const SPEC: Spec = Spec {
        path: "/sessions",
        id: "listSessions",
        tag: Tag::Sessions,
        summary: "those that exist for the caller.",
        answers: &[json(200, "a page of sessions")],
        ..Spec::NEW
    };
}

/// Returns a session with its snapshot.
#[derive(Clone, Copy, Debug)]
pub struct GetSession;

impl Operation for GetSession {
    type Input<'a> = ();
    type Answer = SessionInfo;
    const SPEC: Spec = Spec {
        path: "/sessions/{id}",
        id: "getSession",
        summary: "one, with its snapshot.",
        answers: &[json(200, "the session")],
        ..Spec::OF_SESSION
    };
}

/// Deletes a session.
#[derive(Clone, Copy, Debug)]
pub struct DeleteSession;

impl Operation for DeleteSession {
    type Input<'a> = ();
    type Answer = ();
    const SPEC: Spec = Spec {
        verb: Verb::Delete,
        path: "/sessions/{id}",
        id: "deleteSession",
        summary: "closes it and removes it with its history.",
        answers: &[nothing(204, "it is gone"), FORBIDDEN, ELSEWHERE],
        ..Spec::OF_SESSION
    };
}

/// Closes a session.
#[derive(Clone, Copy, Debug)]
pub struct CloseSession;

impl Operation for CloseSession {
    type Input<'a> = ();
    type Answer = ();
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/close",
        id: "closeSession",
        summary: "stops it; it can be taken up again.",
        answers: &[ENDED, FORBIDDEN, ELSEWHERE],
        ..Spec::OF_SESSION
    };
}

/// Terminates a session.
#[derive(Clone, Copy, Debug)]
pub struct TerminateSession;

impl Operation for TerminateSession {
    type Input<'a> = ();
    type Answer = ();
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/terminate",
        id: "terminateSession",
        summary: "ends it for good.",
        answers: &[ENDED, FORBIDDEN, ELSEWHERE],
        ..Spec::OF_SESSION
    };
}

const ENDED: Answer = nothing(204, "it has ended, or had before");
