//! Errors over HTTP: `application/problem+json` (RFC 9457; contract 1.3).

use crate::limits::Beyond;
use acpd_fleet::NodeName;
use acpd_host::{HostError, TerminationInfo, told_by_agent};
use acpd_record::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What an error is: the closed list of its `type`s.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All of them, in order.
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$kind),*];

            /// As an operator reads it.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// As clients read it.
            pub(super) const fn urn(self) -> &'static str {
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

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.urn())
    }
}

/// An error as it goes to a client.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: Kind,
    detail: String,
    session: Option<Box<str>>,
    node: Option<Box<str>>,
    /// How the agent ended.
    ended: Option<Arc<TerminationInfo>>,
    /// How to log in.
    auth_methods: Option<Json>,
    /// What limits the token, and what it allows.
    beyond: Option<Box<Beyond>>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// An error: `application/problem+json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemDocument {
    /// A URN that names the kind of error.
    #[serde(rename = "type")]
    kind: Kind,
    /// The status in words.
    title: String,
    /// The status code, again.
    status: u16,
    /// What happened and what to do about it.
    detail: String,
    /// The session that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The node of the fleet that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// How the agent or the session ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<TerminationInfo>"))]
    termination_info: Option<Arc<TerminationInfo>>,
    /// The ways in which the agent can be logged in to, as in ACP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<serde_json::Map<String, serde_json::Value>>>"))]
    auth_methods: Option<Json>,
    /// The limit of the token that it is beyond, as the configuration calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'static str>,
    /// What that limit allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Vec<String>>,
}

impl Problem {
    /// What happened and what to do about it.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// An error of this kind.
    pub(crate) fn new(status: StatusCode, kind: Kind, detail: impl Into<String>) -> Self {
        let (detail, headers) = (detail.into(), Vec::new());
        let (session, node, ended, auth_methods, beyond) = (None, None, None, None, None);
        Self { status, kind, detail, session, node, ended, auth_methods, beyond, headers }
    }

    /// And that is how it ended.
    fn with_end(mut self, info: &Arc<TerminationInfo>) -> Self {
        self.ended = Some(Arc::clone(info));
        self
    }

    /// An agent that wants a login tells how: `methods` is what it said, null when nothing.
    pub(crate) fn with_logins(mut self, methods: impl FnOnce() -> Option<Json>) -> Self {
        if self.kind == Kind::AuthenticationRequired {
            self.auth_methods = methods().filter(|methods| methods.get().starts_with('['));
        }
        self
    }

    /// Beyond a limit of the caller's token.
    pub(crate) fn beyond(beyond: Box<Beyond>) -> Self {
        let detail = beyond.message.clone();
        Self { beyond: Some(beyond), ..Self::new(StatusCode::FORBIDDEN, Kind::TokenLimit, detail) }
    }

    /// And it is about this session.
    pub(crate) fn about(mut self, session: &str) -> Self {
        self.session = Some(session.into());
        self
    }

    /// And this node has it.
    pub(crate) fn on(mut self, node: &NodeName) -> Self {
        self.node = Some(node.as_str().into());
        self
    }

    /// With a header.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Too much is under way; it may be sent again in a moment.
    pub(crate) fn busy(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Busy, detail)
            .with(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// No such session, for this caller.
    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, Kind::SessionNotFound, "there is no session of that id")
            .about(session)
    }

    /// Something in the request is wrong.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Kind::BadRequest, detail)
    }

    fn login_required(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FAILED_DEPENDENCY, Kind::AuthenticationRequired, detail)
    }

    fn agent_failed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, Kind::AgentFailed, detail)
    }

    /// The one table from the host's errors to HTTP.
    pub(crate) fn of_host(error: &HostError) -> Self {
        let detail = crate::wire_error::one_line(error);
        match error {
            HostError::UnknownSession { id } => Self::session_not_found(id),
            HostError::SessionEnded { id, info } => {
                Self::new(StatusCode::CONFLICT, Kind::SessionEnded, detail).about(id).with_end(info)
            }
            HostError::Terminated { id, info } => {
                Self::new(StatusCode::CONFLICT, Kind::NotResumable, detail).about(id).with_end(info)
            }
            HostError::NotResumable { id, .. } => {
                Self::new(StatusCode::CONFLICT, Kind::NotResumable, detail).about(id)
            }
            HostError::LoginRequired { id, .. } => Self::login_required(detail).about(id),
            HostError::Agent { error } => match told_by_agent(error) {
                (true, said) => Self::login_required(said),
                (false, said) => Self::agent_failed(format!("{detail}: {said}")),
            },
            HostError::Start { info, .. } | HostError::AgentGone { info } => {
                Self::agent_failed(detail).with_end(info)
            }
            HostError::Timeout { .. } | HostError::BadAnswer { .. } | HostError::AgentNotReading { .. } => {
                Self::agent_failed(detail)
            }
            HostError::MethodNotFound { .. } => Self::new(StatusCode::CONFLICT, Kind::NotSupported, detail),
            HostError::TooManySessions { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, Kind::TooManySessions, detail)
            }
            HostError::LiveElsewhere { id, .. } | HostError::Detached { id, .. } => {
                Self::new(StatusCode::CONFLICT, Kind::SessionLiveElsewhere, detail).about(id)
            }
            HostError::QueueFull { .. } => Self::new(StatusCode::TOO_MANY_REQUESTS, Kind::QueueFull, detail),
            HostError::KeyReused { key } => {
                let detail = format!(
                    "Idempotency-Key: {key:?} belongs to another request; give each a key of its own"
                );
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, Kind::IdempotencyKeyReused, detail)
            }
            HostError::InvalidParams { .. }
            | HostError::UnknownAgent { .. }
            | HostError::NotInstalled { .. } => Self::bad_request(detail),
            HostError::SearchOff => Self::new(StatusCode::CONFLICT, Kind::SearchOff, detail),
            HostError::Fenced => Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Fenced, detail)
                .with(header::RETRY_AFTER, HeaderValue::from_static("5")),
            HostError::OnNode { id, node } => {
                let problem = Self::new(StatusCode::MISDIRECTED_REQUEST, Kind::NotHere, detail);
                Self { node: Some(node.as_str().into()), ..problem }.about(id)
            }
            HostError::Draining => Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Draining, detail),
            HostError::ShuttingDown => Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::ShuttingDown, detail),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Internal, detail),
        }
    }
}

/// A request whose work panics is answered all the same.
pub(super) async fn answer_panics(request: Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!("the work for an HTTP request ended badly");
            Problem::of_host(&HostError::Broken).into_response()
        }
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        Self::of_host(&error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (limit, allowed) = self.beyond.map(|beyond| (beyond.limit, beyond.allowed)).unzip();
        let document = ProblemDocument {
            kind: self.kind,
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            session_id: self.session.map(String::from),
            node: self.node.map(String::from),
            termination_info: self.ended,
            auth_methods: self.auth_methods,
            limit,
            allowed,
        };
        let mut response = (self.status, axum::Json(document)).into_response();
        response.extensions_mut().insert(self.kind);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        for (name, value) in self.headers {
            headers.insert(name, value);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;

    // contract 1.3: whatever happens in acpd, a request is answered, and with a problem
    #[tokio::test]
    async fn a_panic_is_a_problem() {
        async fn bad() -> &'static str {
            panic!("on purpose")
        }
        let router =
            axum::Router::new().route("/bad", get(bad)).layer(axum::middleware::from_fn(answer_panics));
        let request = Request::builder().uri("/bad").body(Body::empty()).expect("a request");
        let answer = router.oneshot(request).await.expect("it answers");
        assert_eq!(answer.status(), 500);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/problem+json");
    }

    // contract 7.3: a session that another node may take up is refused for a while, and nothing was done
    #[test]
    fn what_is_fenced_can_be_sent_again() {
        let answer = Problem::of_host(&HostError::Fenced).into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "5");
        assert_eq!(Kind::Fenced.urn(), "urn:sandbox-agent:error:fenced");
        let acp = crate::wire_error::wire_error(&HostError::Fenced);
        let crate::wire_error::WireError::Own { code, message, data: None } = acp else { panic!("{acp:?}") };
        assert_eq!(code, acpd_wire::codes::INTERNAL_ERROR);
        assert!(message.contains("nothing was done: try again, or at another node"), "{message}");
    }
}
