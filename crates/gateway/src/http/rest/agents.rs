//! The configured agents and how they stand (contract 6).

use super::super::problem::Problem;
use super::super::settings::Shared;
use crate::agent_list::list_agents;
use crate::identity::Identity;
use acpd_api::{AgentCheck, AgentList, ProblemKind, Scope};
use acpd_host::HostError;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::StatusCode;
use std::sync::Arc;

/// `GET /v1/agents`: how each agent stands, what is found of it on this machine, and which known ones are not installed.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<AgentList>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let agents = shared.host.agents();
    let seen = shared.daemon.sight.look(agents.specs()).await;
    Ok(Json(list_agents(&shared.settings().default_agent, agents.health(), seen)))
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
        HostError::UnknownAgent { .. } | HostError::NotInstalled { .. } => {
            Problem::new(StatusCode::NOT_FOUND, ProblemKind::AgentNotFound, error.to_string())
        }
        error => Problem::of_host(error),
    })
}
