//! The headers of the transport, and what a client accepts.

use super::super::problem::Problem;
use http::{HeaderMap, HeaderName, StatusCode, header};

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
        Problem::new(StatusCode::BAD_REQUEST, "connection_id_missing", detail)
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

/// Whether the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    given.and_then(|given| given.split(';').next()).is_some_and(|kind| {
        let kind = kind.trim();
        kind.eq_ignore_ascii_case("application/json")
    })
}

/// Whether the client takes one of these kinds; None if it does not say.
pub(super) fn accepts(headers: &HeaderMap, kinds: &[&str]) -> Option<bool> {
    let mut said = headers.get_all(header::ACCEPT).into_iter().peekable();
    said.peek()?;
    let ranges = said.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut ranges = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
    Some(ranges.any(|range| kinds.iter().any(|kind| matches(range, kind))))
}

fn matches(range: &str, kind: &str) -> bool {
    let of_its_type = range.strip_suffix("/*").filter(|of| kind.split('/').next() == Some(of));
    range == "*/*" || range.eq_ignore_ascii_case(kind) || of_its_type.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    // HT-2
    #[test]
    fn what_a_client_accepts_is_found_in_a_list() {
        let takes = |value| accepts(&headers(header::ACCEPT, value), &["text/event-stream"]);
        for good in
            ["text/event-stream", "a/b, text/event-stream;q=0.5", "*/*", "text/*", "Text/Event-Stream"]
        {
            assert_eq!(takes(good), Some(true), "{good}");
        }
        for bad in ["application/json", "text/html, a/*", "text", ""] {
            assert_eq!(takes(bad), Some(false), "{bad}");
        }
        assert_eq!(accepts(&HeaderMap::new(), &["text/event-stream"]), None);
        for (kind, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/jsonp", false),
            ("text/plain", false),
        ] {
            assert_eq!(is_json(&headers(header::CONTENT_TYPE, kind)), json, "{kind}");
        }
    }

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
