//! The caller, as it is known here (contract 7.3).

use super::super::settings::Shared;
use crate::identity::Identity;
use acpd_api::{Limits, Scope, Sees, Whoami};
use axum::extract::State;
use axum::{Extension, Json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sessions that exist for a caller.
pub(super) fn sees(identity: &Identity) -> Sees {
    if identity.sees_all() { Sees::All } else { Sees::Own }
}

/// `GET /v1/whoami`: what the caller may do, and sees.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Json<Whoami> {
    let limits = identity.limits();
    let default = &shared.settings().default_agent;
    let known = shared.host.agents().specs();
    let mut agents: Vec<String> =
        known.iter().map(|spec| spec.name.clone()).filter(|agent| identity.may_use(agent)).collect();
    agents.sort_by_key(|agent| agent != default);
    let cwd = identity.may(Scope::Control).then(|| some_directory(limits.as_deref())).flatten();
    Json(Whoami {
        name: identity.name().map(|name| name.to_string()),
        scope: identity.scope(),
        sees: sees(&identity),
        limits: limits.map(Arc::unwrap_or_clone),
        agents,
        cwd,
    })
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
