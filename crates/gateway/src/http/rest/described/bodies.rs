//! What the host writes, and what is written without a type: sessions, events, agents.

use serde::Serialize;
use serde_json::Value;

/// A session.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the host writes sessions; this describes them")]
#[serde(rename_all = "camelCase")]
pub(in crate::http::rest) struct Session {
    /// acpd's own id.
    session_id: String,
    /// The agent it runs on.
    agent: String,
    /// Its working directory.
    cwd: String,
    /// Its title, if its agent gave one.
    #[schema(nullable = false)]
    title: Option<String>,
    /// Its run is over.
    ended: bool,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it last changed.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Events in its log.
    event_count: u64,
    /// The model in use, if its agent says so.
    #[schema(nullable = false)]
    model: Option<String>,
    /// The mode in use, if its agent says so.
    #[schema(nullable = false)]
    mode: Option<String>,
    /// The agent's own id for it.
    #[schema(nullable = false)]
    native_session_id: Option<String>,
    /// What it is doing.
    state: SessionState,
    /// How its last run ended; in a list without `stderr`.
    #[schema(nullable = false)]
    termination_info: Option<TerminationInfo>,
    /// What else acpd knows of it.
    #[schema(value_type = Object)]
    metadata: Value,
    /// What a late viewer needs; only of one session.
    #[schema(value_type = Option<Object>, nullable = false)]
    snapshot: Option<Value>,
}

/// What a session is doing; `waiting` for an answer to its agent's question.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum SessionState {
    Starting,
    Idle,
    Running,
    Waiting,
    Ended,
}

/// The record of an end. It has more members than these.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the host writes records; this describes them")]
#[serde(rename_all = "camelCase")]
struct TerminationInfo {
    /// Why.
    reason: Reason,
    /// What ended it.
    terminated_by: TerminatedBy,
    /// The exact cause, where it has a name.
    #[schema(nullable = false)]
    cause: Option<Cause>,
}

/// Why a run ended.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Completed,
    Error,
    Terminated,
}

/// What ended a run.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum TerminatedBy {
    Agent,
    Daemon,
}

/// The exact cause of an end.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum Cause {
    AgentExit,
    AgentCrash,
    SpawnFailed,
    InitializeTimeout,
    ProtocolError,
    ClientClose,
    ClientTerminate,
    IdleTimeout,
    DaemonShutdown,
    DaemonLost,
    OutOfMemory,
}

/// A page of events.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "pages are written without it; it describes them")]
#[serde(rename_all = "camelCase")]
pub(in crate::http::rest) struct EventsPage {
    /// The events in order.
    events: Vec<Event>,
    /// Where the next page begins; not there on the last one.
    next_cursor: Option<String>,
}

/// An event. The members beyond these depend on `kind`.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "events are written without it; it describes them")]
pub(in crate::http::rest) struct Event {
    /// Its number in the session, from 1, without holes.
    #[schema(minimum = 1)]
    seq: u64,
    /// What it is: `update`, `prompt`, `turn_ended`, `ended` and more.
    kind: String,
    /// When it happened.
    #[schema(format = DateTime)]
    at: String,
    /// The raw ACP message, where there is one.
    #[schema(value_type = Option<Object>)]
    message: Option<Value>,
}

/// An agent.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the host writes this; here it is described")]
#[serde(rename_all = "camelCase")]
pub(in crate::http::rest) struct Agent {
    /// The name of its entry.
    name: String,
    /// It serves clients that name none.
    default: bool,
    /// Whether it works.
    status: AgentStatus,
    /// How long its oldest process has been running, in milliseconds.
    #[schema(nullable = false)]
    uptime_ms: Option<u64>,
    /// Processes that were started after one that had ended unasked.
    restart_count: u64,
    /// What went wrong last.
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// When that was.
    #[schema(nullable = false, format = DateTime)]
    last_error_at: Option<String>,
    /// Its processes that run.
    processes: u64,
    /// `agentCapabilities` of its last answer to `initialize`.
    #[schema(value_type = Option<Object>, nullable = false)]
    capabilities: Option<Value>,
}

/// `error`: none runs, and the last start failed or the last process crashed.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the host writes this; here it is described")]
#[serde(rename_all = "lowercase")]
enum AgentStatus {
    Running,
    Stopped,
    Error,
}

// contract 1.2: what the host may write is described, and nothing else is; a new value of its makes this fail to build
#[test]
fn the_closed_lists_are_the_hosts() {
    macro_rules! are_the_same {
        ($list:ident: $($value:ident)*) => {{
            let described = |value| match value { $(acpd_host::$list::$value => $list::$value,)* };
            for value in [$(acpd_host::$list::$value),*] {
                assert_eq!(serde_json::json!(described(value)), serde_json::json!(value));
            }
        }};
    }
    are_the_same!(SessionState: Starting Idle Running Waiting Ended);
    are_the_same!(Reason: Completed Error Terminated);
    are_the_same!(TerminatedBy: Agent Daemon);
    are_the_same!(Cause: AgentExit AgentCrash SpawnFailed InitializeTimeout ProtocolError ClientClose ClientTerminate
                  IdleTimeout DaemonShutdown DaemonLost OutOfMemory);
}
