//! The nodes of a fleet: who is there, and which take new sessions (contract 7.3).

use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use super::daemon::{Asked, ask};
use crate::fleet::{Fleet, gone_since};
use crate::identity::{Identity, Scope};
use acpd_fleet::{NodeName, Sight};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;

/// The nodes of a fleet.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Nodes {
    /// All that were heard of since this daemon began, by name.
    nodes: Vec<Node>,
    /// Whether this may be old, because the engine does not answer.
    stale: bool,
    /// Why the fleet does not know of this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A node.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    /// Its name.
    name: String,
    /// Whether it is the one that answers.
    here: bool,
    /// Where other nodes reach it.
    address: Option<String>,
    /// Its version of acpd.
    version: String,
    /// What its operator says of it.
    labels: Vec<String>,
    /// The names of its agents.
    agents: Vec<String>,
    /// Live sessions that it has room for.
    room: u32,
    /// Whether it takes no new sessions.
    draining: bool,
    /// Sessions in its log.
    sessions: usize,
    /// Those that have not ended.
    live: usize,
    /// Whether it is there.
    reachable: bool,
    /// Since when it is not, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    unreachable_since: Option<String>,
}

/// `GET /v1/nodes`: the nodes of the fleet.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Nodes>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let fleet = fleet(&shared)?;
    let me = fleet.member.me().name;
    let own_live = shared.host.live_sessions();
    let nodes = fleet.member.nodes().into_iter().map(|sight| Node::of(sight, &me, own_live)).collect();
    Ok(Json(Nodes { nodes, stale: fleet.member.is_stale(), reason: fleet.member.trouble() }))
}

/// `POST /v1/nodes/{name}/drain`: it takes no new sessions from now on; those that it has go on.
pub(super) async fn drain(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
) -> Result<Json<Node>, Problem> {
    set(&shared, &identity, &name, true).await
}

/// `POST /v1/nodes/{name}/undrain`: it takes new sessions again.
pub(super) async fn undrain(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    Path(name): Path<String>,
) -> Result<Json<Node>, Problem> {
    set(&shared, &identity, &name, false).await
}

/// Those of other nodes do not come here: they are sent on.
async fn set(shared: &Shared, identity: &Identity, name: &str, drains: bool) -> Result<Json<Node>, Problem> {
    super::check_scope(identity, Scope::Admin)?;
    let fleet = fleet(shared)?;
    let me = fleet.member.me();
    if me.name.as_str() != name {
        let detail = "there is no node of that name; GET /v1/nodes lists them";
        return Err(Problem::new(StatusCode::NOT_FOUND, Kind::NotFound, detail));
    }
    let failed = |reason| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Internal, reason);
    ask(shared, |answer| Asked::Drain(drains, answer)).await?.map_err(failed)?;
    let sessions = fleet.member.node(&me.name).map_or(0, |sight| sight.sessions);
    let sight = Sight { record: fleet.member.me(), gone_for: None, sessions, live: 0 };
    Ok(Json(Node::of(sight, &me.name, shared.host.live_sessions())))
}

impl Node {
    /// The directory learns a moment later which of the own sessions are live.
    fn of(sight: Sight, me: &NodeName, own_live: usize) -> Self {
        let unreachable_since = gone_since(&sight);
        let Sight { record, sessions, live, .. } = sight;
        let here = record.name == *me;
        Self {
            here,
            name: record.name.to_string(),
            address: record.address,
            version: record.version,
            labels: record.labels,
            agents: record.agents,
            room: record.room,
            draining: record.draining,
            sessions,
            live: if here { own_live } else { live },
            reachable: unreachable_since.is_none(),
            unreachable_since,
        }
    }
}

fn fleet(shared: &Shared) -> Result<&Fleet, Problem> {
    shared.fleet().ok_or_else(|| {
        let detail = "this daemon is in no fleet; `url` and `node` in [fleet] of its configuration make it a node of one";
        Problem::new(StatusCode::CONFLICT, Kind::NoFleet, detail)
    })
}
