//! Errors over HTTP: `application/problem+json` (RFC 9457).
//!
//! One table of kinds, and the document that a client reads. Not here: which error is of which kind.

use acpd_record::{Json, TerminationInfo};
use serde::{Serialize, Serializer};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What an error is: the closed list of its `type`s.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ProblemKind {
            $($(#[$doc])* $kind,)*
        }

        impl ProblemKind {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// As an operator reads it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// As clients read it.
            pub const fn urn(self) -> &'static str {
                match self {
                    $(Self::$kind => concat!("urn:sandbox-agent:error:", $name),)*
                }
            }
        }
    };
}

kinds! {
    /// Neither the request nor the configuration says which sessions are not to be kept.
    AllKept = "all_kept",
    /// A process of an agent of this daemon called, or one that is gone.
    AgentProcess = "agent_process",
    /// The agent did not start, broke, or did not do what it was asked.
    AgentFailed = "agent_failed",
    /// No agent of that name.
    AgentNotFound = "agent_not_found",
    /// The agent wants a login first.
    AuthenticationRequired = "authentication_required",
    /// Something in the request is wrong.
    BadRequest = "bad_request",
    /// Too much is under way.
    Busy = "busy",
    /// The daemon's configuration cannot be read, or is wrong.
    ConfigurationInvalid = "configuration_invalid",
    /// A request without the connection that it is for.
    ConnectionIdMissing = "connection_id_missing",
    /// A connection that is not there, or not for this caller.
    ConnectionNotFound = "connection_not_found",
    /// A place in the log that is not written yet.
    CursorInTheFuture = "cursor_in_the_future",
    /// A place in another session's log.
    CursorOfAnotherSession = "cursor_of_another_session",
    /// A place in another stream.
    CursorOfAnotherStream = "cursor_of_another_stream",
    /// A place that is not kept any more.
    CursorTooOld = "cursor_too_old",
    /// No place at all.
    CursorUnreadable = "cursor_unreadable",
    /// The node takes no new sessions.
    Draining = "draining",
    /// The scope of the token does not include it.
    Forbidden = "forbidden",
    /// Another node may take the session up now.
    Fenced = "fenced",
    /// acpd was called by a name that is not its.
    ForeignHost = "foreign_host",
    /// A page of another origin called.
    ForeignOrigin = "foreign_origin",
    /// A process of another user called.
    ForeignUser = "foreign_user",
    /// The binary that is on disk now would not start.
    HandoverRefused = "handover_refused",
    /// The log of the session cannot be read.
    HistoryUnreadable = "history_unreadable",
    /// A key that belongs to another request.
    IdempotencyKeyReused = "idempotency_key_reused",
    /// acpd failed.
    Internal = "internal",
    /// The query has a parameter that the operation does not have.
    InvalidRequest = "invalid_request",
    /// The path is there, the method is not.
    MethodNotAllowed = "method_not_allowed",
    /// The daemon is in no fleet, or not known in it.
    NoFleet = "no_fleet",
    /// No node of the fleet takes it.
    NoNode = "no_node",
    /// The node is reachable.
    NodeReachable = "node_reachable",
    /// The node that has it does not answer.
    NodeUnreachable = "node_unreachable",
    /// Nothing that the client takes can be given.
    NotAcceptable = "not_acceptable",
    /// Nothing is at the path.
    NotFound = "not_found",
    /// Another node has it.
    NotHere = "not_here",
    /// A connection that did not come about.
    NotInitialized = "not_initialized",
    /// The agent, or acpd, cannot do that.
    NotSupported = "not_supported",
    /// The session cannot be taken up again; it can be read.
    NotResumable = "not_resumable",
    /// An answer that is not among those that the agent takes.
    NotOffered = "not_offered",
    /// A prompt whose turn is over, or one that there is not.
    PromptOver = "prompt_over",
    /// A question that was answered, or is none.
    QuestionClosed = "question_closed",
    /// As many prompts wait as may.
    QueueFull = "queue_full",
    /// A body that did not come in time.
    RequestTimeout = "request_timeout",
    /// The configuration turns search off.
    SearchOff = "search_off",
    /// The session is over, or was terminated.
    SessionEnded = "session_ended",
    /// The header and the message name different sessions.
    SessionId = "session_id",
    /// A session of that id is here.
    SessionExists = "session_exists",
    /// Another process has the session.
    SessionLiveElsewhere = "session_live_elsewhere",
    /// No such session, for this caller.
    SessionNotFound = "session_not_found",
    /// acpd is about to stop.
    ShuttingDown = "shutting_down",
    /// The token was good until a time that is past.
    TokenExpired = "token_expired",
    /// What the token is limited to does not include it.
    TokenLimit = "token_limit",
    /// A body beyond the limit.
    TooLarge = "too_large",
    /// More connections and streams than the token may have.
    TooManyConnections = "too_many_connections",
    /// More requests than the token may send.
    TooManyRequests = "too_many_requests",
    /// As many live sessions as the token may have.
    TooManySessions = "too_many_sessions",
    /// More streams than the connection may have.
    TooManyStreams = "too_many_streams",
    /// No token, or an unknown one.
    Unauthorized = "unauthorized",
    /// A body of a type that is not read here.
    UnsupportedMediaType = "unsupported_media_type",
    /// A version of WebSocket that is not spoken.
    WebsocketVersion = "websocket_version",
}

impl Serialize for ProblemKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.urn())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ProblemKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProblemType".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let urns: Vec<&str> = Self::ALL.iter().map(|kind| kind.urn()).collect();
        let words = "What an error is: these and no others.";
        schemars::json_schema!({"description": words, "type": "string", "enum": urns})
    }
}

/// An error: `application/problem+json`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProblemDocument {
    /// A URN that names the kind of error.
    #[serde(rename = "type")]
    pub kind: ProblemKind,
    /// The status in words.
    pub title: String,
    /// The status code, again.
    pub status: u16,
    /// What happened and what to do about it.
    pub detail: String,
    /// The session that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The node of the fleet that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How the agent or the session ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_info: Option<Box<TerminationInfo>>,
    /// The ways in which the agent can be logged in to, as in ACP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>")
    )]
    pub auth_methods: Option<Json>,
    /// The limit of the token that it is beyond, as the configuration calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// What that limit allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
}
