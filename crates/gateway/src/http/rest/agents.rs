//! The configured agents and how they stand (contract 6).

use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use crate::identity::{Identity, Scope};
use acpd_host::{AgentCheck, AgentHealth, HostError};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::StatusCode;
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

/// `POST /v1/agents/{name}/check`: starts an agent as a session would, and stops it.
pub(super) async fn check(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<AgentCheck>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    // What is no text is the name of no agent.
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let checked = shared.host.agents().check(&name).await;
    checked.map(Json).map_err(|error| match &error {
        HostError::UnknownAgent { .. } => {
            Problem::new(StatusCode::NOT_FOUND, Kind::AgentNotFound, error.to_string())
        }
        error => Problem::of_host(error),
    })
}
