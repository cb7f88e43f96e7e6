//! Errors over HTTP: `application/problem+json` (RFC 9457; contract 1.3).

use acpd_host::HostError;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::panic::AssertUnwindSafe;

/// What every error type begins with.
const URN: &str = "urn:sandbox-agent:error:";

/// An error as it goes to a client.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    name: &'static str,
    detail: String,
    session: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The document.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemDocument {
    /// A URN that names the kind of error.
    #[serde(rename = "type")]
    #[schema(example = "urn:sandbox-agent:error:session_not_found")]
    kind: String,
    /// The status in words.
    title: String,
    /// The status code, again.
    status: u16,
    /// What happened and what to do about it.
    detail: String,
    /// The session that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

/// What any request may be refused with.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(super) enum Refused {
    #[response(
        status = 401,
        description = "no token, or an unknown one",
        content_type = "application/problem+json"
    )]
    Unauthorized(ProblemDocument),
    #[response(
        status = 429,
        description = "more requests or connections than the token may have",
        content_type = "application/problem+json"
    )]
    TooMany(ProblemDocument),
}

/// As [`Refused`], where more than a token is needed.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(super) enum Forbidden {
    #[response(
        status = 403,
        description = "the scope of the token does not include this",
        content_type = "application/problem+json"
    )]
    Forbidden(ProblemDocument),
}

/// As [`Refused`], where a session is named.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(super) enum Unknown {
    #[response(status = 404, description = "no such session", content_type = "application/problem+json")]
    Session(ProblemDocument),
}

/// As [`Refused`], where a value of the query may be wrong.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(super) enum Unreadable {
    #[response(
        status = 400,
        description = "a value of the query is not readable",
        content_type = "application/problem+json"
    )]
    Query(ProblemDocument),
}

/// As [`Refused`], where a session is to end.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers; problems make them")]
pub(super) enum Elsewhere {
    #[response(
        status = 409,
        description = "another process has it",
        content_type = "application/problem+json"
    )]
    Session(ProblemDocument),
}

impl Problem {
    /// An error of the kind `name`.
    pub(crate) fn new(status: StatusCode, name: &'static str, detail: impl Into<String>) -> Self {
        Self { status, name, detail: detail.into(), session: None, headers: Vec::new() }
    }

    /// And it is about this session.
    pub(crate) fn about(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// With a header.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Too much is under way; it may be sent again in a moment.
    pub(crate) fn busy(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
            .with(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// No such session, for this caller.
    pub(crate) fn session_not_found(session: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "session_not_found", "there is no session of that id").about(session)
    }

    /// Something in the request is wrong.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    /// The one table from the host's errors to HTTP.
    pub(crate) fn of_host(error: &HostError) -> Self {
        let detail = crate::wire_error::one_line(error);
        match error {
            HostError::UnknownSession { id } => Self::session_not_found(id),
            HostError::SessionEnded { id, .. } | HostError::Terminated { id, .. } => {
                Self::new(StatusCode::CONFLICT, "session_ended", detail).about(id)
            }
            HostError::LiveElsewhere { id, .. } => {
                Self::new(StatusCode::CONFLICT, "session_live_elsewhere", detail).about(id)
            }
            HostError::InvalidParams { .. } | HostError::UnknownAgent { .. } => Self::bad_request(detail),
            HostError::ShuttingDown => Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail),
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail),
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
        let document = ProblemDocument {
            kind: format!("{URN}{}", self.name),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            session_id: self.session,
        };
        let mut response = (self.status, axum::Json(document)).into_response();
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
}
