//! The inspector's pages for browsers. They need no token and show nothing that one protects: what they do, they do by REST
//! and ACP, as every other client.
//!
//! Invariant: they load and call nothing but this daemon, and no other page shows them in itself.

use super::accept;
use super::problem::Problem;
use super::settings::Shared;
use acpd_api::ProblemKind;
use acpd_inspector::{FIRST, Page};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::sync::Arc;

/// Scripts and styles are files of ours. Pictures may be what a user attaches to a prompt.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' blob:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::VARY, "Accept, Accept-Encoding"),
];
/// A year: what never changes.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// It is asked each time whether it is still the same.
const ASK: &str = "no-cache";

/// Answers with a page where there is one; for everything else there is the rest. At `/` a page is for clients that want HTML.
pub(super) async fn show(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (path, headers) = (request.uri().path(), request.headers());
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_wanted = path != FIRST || accept::prefers(headers, "text/html", "application/json");
    let page = if is_read && is_wanted { shared.inspector.pages.get(path) } else { None };
    match page {
        Some(page) => answer(page, headers),
        None => next.run(request).await,
    }
}

fn answer(page: Page, headers: &HeaderMap) -> Response {
    if page.is_compressed && !accept::takes_encoding(headers, "gzip") {
        let detail = "this is there compressed with gzip only: Accept-Encoding: gzip";
        return Problem::new(StatusCode::NOT_ACCEPTABLE, ProblemKind::NotAcceptable, detail).into_response();
    }
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| names(known, &page.etag));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let mut whole = Body::from(page.body).into_response();
            whole.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(page.media_type));
            if page.is_compressed {
                whole.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            whole
        }
    };
    let told = response.headers_mut();
    for (name, value) in ALWAYS {
        told.insert(name, HeaderValue::from_static(value));
    }
    let kept = if page.is_immutable { IMMUTABLE } else { ASK };
    told.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    if let Ok(etag) = HeaderValue::from_str(&page.etag) {
        told.insert(header::ETAG, etag);
    }
    response
}

/// Whether `If-None-Match` names this tag. It compares weakly (RFC 9110, 13.1.2).
fn names(known: &HeaderValue, etag: &str) -> bool {
    let known = known.to_str().unwrap_or_default();
    known.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_known_is_not_sent_again() {
        for (known, same) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            assert_eq!(names(&HeaderValue::from_static(known), "\"a\""), same, "{known}");
        }
    }
}
