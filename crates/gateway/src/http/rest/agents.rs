//! The configured agents and how they stand (contract 6).

use super::super::problem::Problem;
use super::super::settings::Shared;
use crate::identity::{Identity, Scope};
use acpd_host::AgentHealth;
use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use std::sync::Arc;

/// All agents.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Agents {
    /// By name.
    agents: Vec<Agent>,
}

/// An agent.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Agent {
    /// It serves clients that name none.
    default: bool,
    #[serde(flatten)]
    health: AgentHealth,
}

/// `GET /v1/agents`: how each configured agent stands.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Agents>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let default = &shared.settings().default_agent;
    let agents = shared.host.agents().health().into_iter();
    let agents = agents.map(|health| Agent { default: health.name == *default, health }).collect();
    Ok(Json(Agents { agents }))
}
