//! The headers of the transport, and what a client sends.

use super::super::problem::Problem;
use acpd_api::ProblemKind;
use http::{HeaderMap, HeaderName, StatusCode};

/// Names a connection.
pub(super) const CONNECTION: HeaderName = HeaderName::from_static("acp-connection-id");
/// Names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("acp-session-id");
/// Names the last event that a reader has seen.
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Bytes of an id at most (HT-12).
const LONGEST_ID: usize = 1024;

/// The connection that a request is of.
pub(super) fn connection_id(headers: &HeaderMap) -> Result<&str, Problem> {
    id(headers, &CONNECTION)?.ok_or_else(|| {
        let detail = "the header Acp-Connection-Id is missing: the answer to initialize has it";
        Problem::new(StatusCode::BAD_REQUEST, ProblemKind::ConnectionIdMissing, detail)
    })
}

/// The id in a header, if it is there.
pub(super) fn id<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut all = headers.get_all(name).into_iter();
    let Some(value) = all.next() else { return Ok(None) };
    let wrong = |why: &str| Problem::bad_request(format!("the header {name} {why}"));
    if all.next().is_some() {
        return Err(wrong("is there more than once"));
    }
    match value.to_str() {
        Ok(id) if id.is_empty() || id.len() > LONGEST_ID => {
            Err(wrong(&format!("must have 1 to {LONGEST_ID} bytes")))
        }
        Ok(id) => Ok(Some(id)),
        Err(_) => Err(wrong("must be ASCII")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    // HT-12
    #[test]
    fn an_id_has_a_length() {
        let long: String = "x".repeat(LONGEST_ID + 1);
        let of = |value: &str| {
            HeaderMap::from_iter([(SESSION, HeaderValue::from_str(value).expect("a header's value"))])
        };
        assert!(id(&of(&long), &SESSION).is_err() && id(&of(""), &SESSION).is_err());
        assert!(matches!(id(&of(&long[1..]), &SESSION), Ok(Some(_))));
        assert!(matches!(id(&HeaderMap::new(), &SESSION), Ok(None)));
    }
}
