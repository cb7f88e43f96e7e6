//! The nodes of a fleet: who is there, and which take new sessions (contract 7.3).

use super::super::forwarding::fingerprint_there;
use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use super::daemon::{Asked, ask};
use crate::fleet::{Fleet, gone_since};
use crate::identity::{Identity, Scope};
use acpd_fleet::{NodeName, NotRemoved, Owned, Removed, Sight};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use std::sync::Arc;

/// The nodes of a fleet.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Nodes {
    /// All that have joined the fleet and were not removed since, by name.
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
    /// Its version of acpd; empty where this daemon has not heard it.
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

/// What was removed with a node.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct RemovedNode {
    /// Its sessions that were.
    sessions: usize,
    /// Those that are still to be: the next request goes on.
    left: usize,
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

/// `DELETE /v1/nodes/{name}`: removes a node that is gone for good, with its sessions and their archive.
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result<Json<RemovedNode>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let fleet = fleet(&shared)?;
    let Ok(name) = NodeName::try_from(name) else { return Err(unknown()) };
    if !may_remove(fleet, &name, &identity, &headers) {
        let detail = format!(
            "node {name} has not said that this token sees all of its sessions; use one that is admin there, or has sees = \"all\": \
             set ACPD_TOKEN, or Acpd-Authorization: Bearer TOKEN"
        );
        return Err(Problem::new(StatusCode::FORBIDDEN, Kind::Forbidden, detail).on(&name));
    }
    match fleet.member.remove_node(&name).await {
        Ok(Removed { sessions, left }) => {
            let by = identity.name().map(|name| &**name);
            tracing::info!(node = %name, by, sessions, left, "a node was removed from the fleet");
            Ok(Json(RemovedNode { sessions, left }))
        }
        Err(NotRemoved::Unknown) => Err(unknown()),
        Err(NotRemoved::There) => {
            let detail = format!("node {name} is there; stop it, and wait until it is unreachable");
            Err(Problem::new(StatusCode::CONFLICT, Kind::NodeReachable, detail).on(&name))
        }
        Err(NotRemoved::Engine(reason)) => {
            let detail = format!("the fleet does not answer: {reason}");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, Kind::NoFleet, detail)
                .with(header::RETRY_AFTER, HeaderValue::from_static("5")))
        }
    }
}

/// Whether the caller has a right at a node that cannot say so itself: none of this node is one there.
fn may_remove(fleet: &Fleet, name: &NodeName, identity: &Identity, headers: &HeaderMap) -> bool {
    let seers = fleet.member.node(name).map(|sight| sight.record.seers).unwrap_or_default();
    let there = fingerprint_there(headers);
    let print = there.as_deref().or(identity.fingerprint());
    if print.is_some_and(|print| seers.iter().any(|seer| seer == print)) {
        return true;
    }
    let not_heard = |sight: &Sight| sight.record.version.is_empty();
    if fleet.member.node(name).is_none_or(|sight| not_heard(&sight)) {
        // Which tokens see its sessions is not known any more: those that see all at each node that is there.
        let mut there = fleet.member.nodes().into_iter().filter(|sight| sight.gone_for.is_none());
        let sees_all =
            |sight: Sight| sight.record.seers.iter().any(|seer| print.is_some_and(|print| seer == print));
        if there.all(sees_all) {
            return true;
        }
    }
    // It has no tokens.
    let is_a_token_s = |owned: &Owned| owned.session.node == *name && owned.session.creator.is_some();
    seers.is_empty() && fleet.member.sessions_elsewhere(is_a_token_s).is_empty()
}

fn unknown() -> Problem {
    let detail = "there is no node of that name; GET /v1/nodes lists them";
    Problem::new(StatusCode::NOT_FOUND, Kind::NotFound, detail)
}

/// Those of other nodes do not come here: they are sent on.
async fn set(shared: &Shared, identity: &Identity, name: &str, drains: bool) -> Result<Json<Node>, Problem> {
    super::check_scope(identity, Scope::Admin)?;
    let fleet = fleet(shared)?;
    let me = fleet.member.me();
    if me.name.as_str() != name {
        return Err(unknown());
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
