//! What a request of REST brings along: a body of JSON, and a key under which it may be sent again (contract 7.3).

use super::super::body;
use super::super::problem::Problem;
use super::super::settings::Shared;
use acpd_record::RequestKey;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use serde::Deserialize;

/// Names a request that may come again.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Reads a whole body.
pub(super) async fn read(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let most = shared.settings().message_bytes;
    let read = body::read(body, body::announced(headers), most, (&shared.bodies, &shared.pulse)).await?;
    Ok(acpd_wire::without_halves(read))
}

/// Reads a body that need not be there.
pub(super) async fn read_if_any(
    shared: &Shared,
    headers: &HeaderMap,
    body: Body,
) -> Result<Option<Bytes>, Problem> {
    let read = read(shared, headers, body).await?;
    Ok((!read.is_empty()).then_some(read))
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
