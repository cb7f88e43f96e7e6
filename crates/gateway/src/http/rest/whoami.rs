//! The caller, as it is known here (contract 7.3).

use super::super::settings::Shared;
use crate::identity::{Identity, Scope};
use crate::limits::Limits;
use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The caller.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Whoami {
    /// The name of its token; not there for a caller that needs none.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    name: Option<Arc<str>>,
    /// What it may do.
    scope: Scope,
    /// Which sessions exist for it.
    sees: Sees,
    /// What it may use with that scope; not there for a caller without limits.
    #[cfg_attr(test, schemars(with = "Option<Limits>"))]
    limits: Option<Arc<Limits>>,
    /// The names of the agents that it may use, the default one first.
    agents: Vec<String>,
    /// A directory where acpd runs in which a session of its may work; not there for a caller that may begin none.
    cwd: Option<String>,
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
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Json<Whoami> {
    let (sees, limits) = (Sees::of(&identity), identity.limits());
    let default = &shared.settings().default_agent;
    let known = shared.host.agents().specs();
    let mut agents: Vec<String> =
        known.iter().map(|spec| spec.name.clone()).filter(|agent| identity.may_use(agent)).collect();
    agents.sort_by_key(|agent| agent != default);
    let cwd = identity.may(Scope::Control).then(|| some_directory(limits.as_deref())).flatten();
    Json(Whoami { name: identity.name().cloned(), scope: identity.scope(), sees, limits, agents, cwd })
}

/// The first root of a caller that has some; else where acpd was started, unless that is nowhere in particular, or its home.
fn some_directory(limits: Option<&Limits>) -> Option<String> {
    if let Some(roots) = limits.and_then(|limits| limits.roots.as_ref()) {
        return roots.iter().find(|root| Path::new(root).is_dir()).cloned();
    }
    let started = std::env::current_dir().ok().filter(|place| place.parent().is_some());
    let home =
        || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute() && home.is_dir());
    started.or_else(home)?.into_os_string().into_string().ok()
}
