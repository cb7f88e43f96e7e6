//! The configured agents and how they stand (contract 6).

use super::super::problem::{Forbidden, Problem, Refused};
use super::super::settings::Shared;
use crate::identity::{Identity, Scope};
use acpd_host::AgentStanding;
use axum::extract::State;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// All agents.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Agents {
    /// By name.
    #[schema(value_type = Vec<AgentDocument>)]
    agents: Vec<Agent>,
}

#[derive(Serialize)]
struct Agent {
    default: bool,
    #[serde(flatten)]
    standing: AgentStanding,
}

/// An agent.
#[derive(utoipa::ToSchema)]
#[schema(as = Agent)]
#[expect(dead_code, reason = "the host writes this; here it is described")]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentDocument {
    /// The name of its entry.
    name: String,
    /// It serves clients that name none.
    default: bool,
    /// Whether it works.
    status: AgentStatus,
    /// How long its oldest process has been running, in milliseconds.
    #[schema(nullable = false)]
    uptime_ms: Option<u64>,
    /// Processes that were started after one that had ended though nobody had asked it to.
    restart_count: u64,
    /// What went wrong last.
    #[schema(nullable = false)]
    last_error: Option<String>,
    /// When that was.
    #[schema(nullable = false, format = DateTime)]
    last_error_at: Option<String>,
    /// Its processes that run.
    processes: u64,
    /// `agentCapabilities` of its last answer to `initialize`.
    #[schema(value_type = Option<Object>, nullable = false)]
    capabilities: Option<Value>,
}

/// `error`: none runs, and the last start failed or the last process crashed.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "the host writes this; here it is described")]
#[serde(rename_all = "lowercase")]
pub(super) enum AgentStatus {
    Running,
    Stopped,
    Error,
}

/// `GET /v1/agents`: how each configured agent stands.
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "listAgents", tag = "agents",
    responses(
        (status = 200, body = Agents),
        Forbidden, Refused,
    )
)]
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Agents>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let default = &shared.settings().default_agent;
    let standings = shared.host.agents_standing().into_iter();
    let agents = standings.map(|standing| Agent { default: standing.name == *default, standing }).collect();
    Ok(Json(Agents { agents }))
}
