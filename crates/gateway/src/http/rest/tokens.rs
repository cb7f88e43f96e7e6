//! The tokens that are known, without anything secret (contract 7.3).

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::whoami::sees;
use crate::identity::Identity;
use acpd_api::{KnownToken, KnownTokens, Scope};
use acpd_host::{iso8601, now_ms};
use axum::extract::State;
use axum::{Extension, Json};
use std::sync::Arc;

/// `GET /v1/tokens`: the tokens that are known, and when they were last used; never a secret.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<KnownTokens>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let now = now_ms();
    let mut tokens: Vec<KnownToken> = shared
        .tokens
        .bearers()
        .iter()
        .map(|bearer| KnownToken {
            name: bearer.name().map(|name| name.to_string()).unwrap_or_default(),
            scope: bearer.scope(),
            sees: sees(bearer),
            limits: bearer.limits().map(Arc::unwrap_or_clone),
            expires: bearer.expires_ms().map(iso8601),
            expired: bearer.has_expired(now),
            last_used: bearer.used_ms().map(iso8601),
        })
        .collect();
    tokens.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(KnownTokens { tokens }))
}
