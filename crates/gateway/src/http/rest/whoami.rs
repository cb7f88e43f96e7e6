//! The caller, as it is known here (contract 7.3).

use crate::identity::{Identity, Scope};
use crate::limits::Limits;
use axum::{Extension, Json};
use serde::Serialize;
use std::sync::Arc;

/// The caller.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Whoami {
    /// The name of its token; not there for a caller that needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    name: Option<Arc<str>>,
    /// What it may do.
    scope: Scope,
    /// Which sessions exist for it.
    sees: Sees,
    /// What it may use with that scope; not there for a caller without limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Limits>"))]
    limits: Option<Arc<Limits>>,
}

/// Which sessions exist for a caller.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum Sees {
    /// Those that were created under its token.
    Own,
    /// All.
    All,
}

impl Sees {
    /// Those of a caller.
    pub(super) fn of(identity: &Identity) -> Self {
        if identity.sees_all() { Self::All } else { Self::Own }
    }
}

/// `GET /v1/whoami`: what the caller may do, and sees.
pub(super) async fn show(Extension(identity): Extension<Identity>) -> Json<Whoami> {
    let (sees, limits) = (Sees::of(&identity), identity.limits());
    Json(Whoami { name: identity.name().cloned(), scope: identity.scope(), sees, limits })
}
