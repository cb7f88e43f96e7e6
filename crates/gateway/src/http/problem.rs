//! Errors over HTTP: `application/problem+json` (RFC 9457; contract 1.3).

use crate::limits::Beyond;
use acpd_api::{ProblemDocument, ProblemKind};
use acpd_fleet::NodeName;
use acpd_host::{HostError, TerminationInfo, told_by_agent};
use acpd_record::Json;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// An error as it goes to a client.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    kind: ProblemKind,
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

impl Problem {
    /// What happened and what to do about it.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// An error of this kind.
    pub(crate) fn new(status: StatusCode, kind: ProblemKind, detail: impl Into<String>) -> Self {
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
        if self.kind == ProblemKind::AuthenticationRequired {
            self.auth_methods = methods().filter(|methods| methods.get().starts_with('['));
        }
        self
    }

    /// Beyond a limit of the caller's token.
    pub(crate) fn beyond(beyond: Box<Beyond>) -> Self {
        let detail = beyond.message.clone();
        Self { beyond: Some(beyond), ..Self::new(StatusCode::FORBIDDEN, ProblemKind::TokenLimit, detail) }
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
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::Busy, detail)
            .with(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// No such session, for this caller.
    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, ProblemKind::SessionNotFound, "there is no session of that id")
            .about(session)
    }

    /// Something in the request is wrong.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ProblemKind::BadRequest, detail)
    }

    fn login_required(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FAILED_DEPENDENCY, ProblemKind::AuthenticationRequired, detail)
    }

    fn agent_failed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, ProblemKind::AgentFailed, detail)
    }

    /// The one table from the host's errors to HTTP.
    pub(crate) fn of_host(error: &HostError) -> Self {
        let detail = crate::wire_error::one_line(error);
        match error {
            HostError::UnknownSession { id } => Self::session_not_found(id),
            HostError::SessionEnded { id, info } => {
                Self::new(StatusCode::CONFLICT, ProblemKind::SessionEnded, detail).about(id).with_end(info)
            }
            HostError::Terminated { id, info } => {
                Self::new(StatusCode::CONFLICT, ProblemKind::NotResumable, detail).about(id).with_end(info)
            }
            HostError::NotResumable { id, .. } => {
                Self::new(StatusCode::CONFLICT, ProblemKind::NotResumable, detail).about(id)
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
            HostError::MethodNotFound { .. } => {
                Self::new(StatusCode::CONFLICT, ProblemKind::NotSupported, detail)
            }
            HostError::TooManySessions { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, ProblemKind::TooManySessions, detail)
            }
            HostError::LiveElsewhere { id, .. } | HostError::Detached { id, .. } => {
                Self::new(StatusCode::CONFLICT, ProblemKind::SessionLiveElsewhere, detail).about(id)
            }
            HostError::QueueFull { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, ProblemKind::QueueFull, detail)
            }
            HostError::KeyReused { key } => {
                let detail = format!(
                    "Idempotency-Key: {key:?} belongs to another request; give each a key of its own"
                );
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, ProblemKind::IdempotencyKeyReused, detail)
            }
            HostError::InvalidParams { .. }
            | HostError::UnknownAgent { .. }
            | HostError::NotInstalled { .. } => Self::bad_request(detail),
            HostError::SearchOff => Self::new(StatusCode::CONFLICT, ProblemKind::SearchOff, detail),
            HostError::Fenced => Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::Fenced, detail)
                .with(header::RETRY_AFTER, HeaderValue::from_static("5")),
            HostError::OnNode { id, node } => {
                let problem = Self::new(StatusCode::MISDIRECTED_REQUEST, ProblemKind::NotHere, detail);
                Self { node: Some(node.as_str().into()), ..problem }.about(id)
            }
            HostError::Draining => Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::Draining, detail),
            HostError::ShuttingDown => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::ShuttingDown, detail)
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemKind::Internal, detail),
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
        let (limit, allowed) = self.beyond.map(|beyond| (beyond.limit.to_owned(), beyond.allowed)).unzip();
        let document = ProblemDocument {
            kind: self.kind,
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            session_id: self.session.map(String::from),
            node: self.node.map(String::from),
            termination_info: self.ended.map(|info| Box::new(Arc::unwrap_or_clone(info))),
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
        assert_eq!(ProblemKind::Fenced.urn(), "urn:sandbox-agent:error:fenced");
        let acp = crate::wire_error::wire_error(&HostError::Fenced);
        let crate::wire_error::WireError::Own { code, message, data: None } = acp else { panic!("{acp:?}") };
        assert_eq!(code, acpd_wire::codes::INTERNAL_ERROR);
        assert!(message.contains("nothing was done: try again, or at another node"), "{message}");
    }
}
