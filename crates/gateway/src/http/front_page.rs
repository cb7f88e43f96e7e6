//! `GET /` in a browser: what acpd is, and where to look. It shows nothing that a token protects, and runs no script.

use super::accept;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, header};

const PAGE: &str = include_str!("front_page.html");
/// The page loads nothing and is shown in no other.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Shows the page to those who want one at `/`; for everything else there is the rest.
pub(super) async fn show(request: Request, next: Next) -> Response {
    let is_asked_for = matches!(*request.method(), Method::GET | Method::HEAD) && request.uri().path() == "/";
    if !is_asked_for || !accept::prefers(request.headers(), "text/html", "application/json") {
        return next.run(request).await;
    }
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), PAGE).into_response()
}
