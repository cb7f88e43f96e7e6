//! What a request of REST brings along: a body of JSON, and a key under which it may be sent again (contract 7.3).

use super::super::body;
use super::super::problem::Problem;
use super::super::settings::Shared;
use acpd_record::RequestKey;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};
use serde::Deserialize;

/// The path below a version at which bodies are exports.
pub(super) const IMPORT: &str = "/import";
/// Names a request that may come again.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Reads a whole body, which must be JSON.
pub(super) async fn read(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    if !body::is_json(headers) {
        return Err(body::not_json("the body is sent as application/json"));
    }
    let most = shared.settings().message_bytes;
    let read = body::read(body, body::announced(headers), most, (&shared.bodies, &shared.pulse)).await?;
    Ok(acpd_wire::without_halves(read))
}

/// Refuses a POST that is sent as something else than JSON, whatever it asks for: forms of pages cannot send that. An export
/// is lines of it.
pub(super) async fn check_kind(request: Request, next: Next) -> Response {
    let kinds: &[&str] = match request.uri().path().ends_with(IMPORT) {
        true => &[body::JSON, "application/x-ndjson"],
        false => &[body::JSON],
    };
    let has_body = !request.body().is_end_stream();
    let checked = match request.method() {
        &Method::POST => body::check_kind(request.headers(), has_body, kinds),
        _ => Ok(()),
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Reads a body that need not be there.
pub(super) async fn read_if_any(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<Bytes>, Problem> {
    let most = shared.settings().message_bytes;
    let read = body::read(body, body::announced(headers), most, (&shared.bodies, &shared.pulse)).await?;
    Ok((!read.is_empty()).then(|| acpd_wire::without_halves(read)))
}

/// What a body says; a member that is not known is an error.
pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a Bytes) -> Result<T, Problem> {
    let wrong = |why: &dyn std::fmt::Display| Problem::bad_request(format!("the body: {why}"));
    // An array would be taken for the members in their order.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(wrong(&"an object is required"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        match path.as_str() {
            "." | "?" => wrong(&error),
            path => Problem::bad_request(format!("{path}: {error}")),
        }
    })?;
    deserializer.end().map_err(|error| wrong(&error))?;
    Ok(read)
}

/// The key of a request, if it has one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut all = headers.get_all(KEY).into_iter();
    let Some(value) = all.next() else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| RequestKey::is_valid(key));
    match (key, all.next()) {
        (Some(key), None) => Ok(Some(key)),
        _ => {
            let longest = RequestKey::LONGEST;
            let detail =
                format!("Idempotency-Key: one key of 1 to {longest} visible ASCII characters is required");
            Err(Problem::bad_request(detail))
        }
    }
}
