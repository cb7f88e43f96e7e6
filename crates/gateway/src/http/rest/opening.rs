//! Letting a browser in: the owner of the daemon asks for a code over the Unix socket, and a page changes it for a token.

use super::super::Peer;
use super::super::codes::GOOD_FOR;
use super::super::problem::Problem;
use super::super::settings::Shared;
use super::super::tokens::BROWSER_GOOD_FOR;
use super::body;
use crate::identity::Identity;
use acpd_api::{Code, OpenBody, Opened, ProblemKind, Scope};
use acpd_host::{iso8601, now_ms};
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::Duration;

/// `POST /v1/codes`: a code for a browser of the daemon's owner.
pub(super) async fn issue(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    peer: Option<Extension<Peer>>,
) -> Result<(StatusCode, Json<Code>), Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    // Over TCP a caller has a token that it can give to a page itself, or none is needed.
    let is_owner = peer.is_some_and(|Extension(peer)| peer == Peer::Unix) && identity.name().is_none();
    if !is_owner {
        let detail = "a code is given over the Unix socket only, to a caller without a token: acpd open";
        return Err(Problem::new(StatusCode::FORBIDDEN, ProblemKind::Forbidden, detail));
    }
    let code = shared.inspector.codes.issue();
    Ok((StatusCode::CREATED, Json(Code { code, expires_at: iso8601(in_ms(GOOD_FOR)) })))
}

/// When a span from now on is over, in milliseconds since 1970.
fn in_ms(span: Duration) -> i64 {
    now_ms().saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
}

/// `POST /v1/open`: a token for a code.
pub(super) async fn open(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Opened>, Problem> {
    let read = body::read(&shared, &headers, body).await?;
    let OpenBody { code } = body::parse(&read)?;
    if !shared.inspector.codes.take(&code) {
        let detail = "code: it is none of this daemon's, or was used, or is more than a minute old; \
                      acpd open gives another";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, ProblemKind::Unauthorized, detail));
    }
    let expires_ms = in_ms(BROWSER_GOOD_FOR);
    let owner = Identity::local(shared.settings().local).expiring(Some(expires_ms));
    let token = shared.tokens.admit(owner);
    tracing::info!("a browser of the owner's was let in");
    Ok(Json(Opened { token, expires_at: iso8601(expires_ms) }))
}
