//! The tokens that are known, without anything secret (contract 7.3).

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::whoami::Sees;
use crate::identity::{Identity, Scope};
use crate::limits::Limits;
use acpd_host::{iso8601, now_ms};
use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use std::sync::Arc;

/// All tokens that are known.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct KnownTokens {
    /// By name.
    tokens: Vec<KnownToken>,
}

/// A token, without anything secret.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct KnownToken {
    /// Its name.
    name: String,
    /// What its bearer may do.
    scope: Scope,
    /// Which sessions exist for its bearer.
    sees: Sees,
    /// What its bearer may use with that scope; not there without limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Limits>"))]
    limits: Option<Arc<Limits>>,
    /// When it is refused from, if ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    expires: Option<String>,
    /// Whether it is refused for that already.
    expired: bool,
    /// When a request last came with it, up to a minute early after a crash of the daemon; not there before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    last_used: Option<String>,
}

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
            sees: Sees::of(bearer),
            limits: bearer.limits(),
            expires: bearer.expires_ms().map(iso8601),
            expired: bearer.has_expired(now),
            last_used: bearer.used_ms().map(iso8601),
        })
        .collect();
    tokens.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(KnownTokens { tokens }))
}
