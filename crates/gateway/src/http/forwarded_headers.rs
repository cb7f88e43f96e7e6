//! The headers of another node's answer that go back to the caller.
//!
//! Invariant: a node that is not what it says it is plants nothing at this door's origin: no cookie, no redirection, no page.

use acpd_record::SessionId;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// What goes back of another node's answer: what an answer of this node may say for itself. All else is between two neighbours, for this
/// door alone to say (cookies, redirections, what a page may do), or unknown.
const PASSED_BACK: [HeaderName; 10] = [
    header::ALLOW,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::DATE,
    header::ETAG,
    header::RETRY_AFTER,
    header::WWW_AUTHENTICATE,
    HeaderName::from_static("x-accel-buffering"),
];
/// What an answer of a session may be: no page, which a browser would run at this door's origin.
const DATA: [&str; 6] = [
    "application/json",
    "application/problem+json",
    "application/x-ndjson",
    "text/event-stream",
    "text/markdown",
    "text/plain",
];

/// The headers of another node's answer that the caller gets.
pub(super) fn passed_back(status: StatusCode, headers: &HeaderMap) -> HeaderMap {
    let of_a_session = |value: &HeaderValue| {
        let id = value.to_str().ok().and_then(|value| value.strip_prefix("/v1/sessions/"));
        id.is_some_and(|id| SessionId::parse(id).is_some())
    };
    let mut passed = HeaderMap::new();
    for name in PASSED_BACK {
        passed.extend(headers.get_all(&name).iter().map(|value| (name.clone(), value.clone())));
    }
    // Where a session is that was created is a path of this door, too.
    if let Some(created) = headers.get(header::LOCATION).filter(|_| status == StatusCode::CREATED)
        && of_a_session(created)
    {
        passed.insert(header::LOCATION, created.clone());
    }
    if let Some(kind) = passed.get(header::CONTENT_TYPE) {
        let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
        if !DATA.iter().any(|data| data.eq_ignore_ascii_case(kind)) {
            passed.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        }
    }
    passed.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: what goes back is on a short list; where a session is that was created is a path of this door
    #[test]
    fn only_a_short_list_goes_back() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            pairs.iter().map(pair).collect::<HeaderMap>()
        };
        let back = |status, pairs: &[(&'static str, &'static str)]| {
            let mut back = passed_back(status, &headers(pairs));
            assert_eq!(
                back.remove(header::X_CONTENT_TYPE_OPTIONS),
                Some(HeaderValue::from_static("nosniff"))
            );
            back
        };
        let kept =
            [("content-type", "application/json"), ("retry-after", "5"), ("etag", "\"1\""), ("allow", "GET")];
        assert_eq!(back(StatusCode::OK, &kept), headers(&kept));
        let dropped = [
            ("set-cookie", "a=1"),
            ("location", "/v1/sessions/s"),
            ("refresh", "0"),
            ("link", "<x>"),
            ("acpd-node", "a"),
        ];
        assert_eq!(back(StatusCode::OK, &dropped), HeaderMap::new());
        for (location, goes_back) in [
            ("/v1/sessions/01a21a46-3c7f-7706-9515-d59c3aaaeb7f", true),
            ("https://evil.example/v1/sessions/s", false),
            ("//evil.example", false),
            ("/v1/sessions/a/../../x", false),
            ("/v1/sessions/", false),
        ] {
            let back = back(StatusCode::CREATED, &[("location", location)]);
            assert_eq!(back.contains_key(header::LOCATION), goes_back, "{location}");
        }
        for (kind, shown) in [
            ("text/html", "application/octet-stream"),
            ("image/svg+xml", "application/octet-stream"),
            ("text/event-stream", "text/event-stream"),
            ("application/problem+json", "application/problem+json"),
            ("text/markdown; charset=utf-8", "text/markdown; charset=utf-8"),
        ] {
            assert_eq!(back(StatusCode::OK, &[("content-type", kind)])[header::CONTENT_TYPE], shown);
        }
    }
}
