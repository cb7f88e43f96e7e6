//! The nodes of a fleet: who is there, and which take new sessions (contract 7.3).

use super::super::forwarding::fingerprint_there;
use super::super::problem::Problem;
use super::super::settings::Shared;
use super::daemon::{Asked, ask};
use crate::fleet::{Fleet, gone_since};
use crate::identity::Identity;
use acpd_api::{Node, Nodes, ProblemKind, RemovedNode, Scope};
use acpd_fleet::{NodeName, NotRemoved, Owned, Removed, Sight};
use axum::extract::{Path, State};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::sync::Arc;

/// `GET /v1/nodes`: the nodes of the fleet.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Nodes>, Problem> {
    super::check_scope(&identity, Scope::Admin)?;
    let fleet = fleet(&shared)?;
    let me = fleet.member.me().name;
    let own_live = shared.host.live_sessions();
    let nodes = fleet.member.nodes().into_iter().map(|sight| node(sight, &me, own_live)).collect();
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
        return Err(Problem::new(StatusCode::FORBIDDEN, ProblemKind::Forbidden, detail).on(&name));
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
            Err(Problem::new(StatusCode::CONFLICT, ProblemKind::NodeReachable, detail).on(&name))
        }
        Err(NotRemoved::Engine(reason)) => {
            let detail = format!("the fleet does not answer: {reason}");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::NoFleet, detail)
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
    Problem::new(StatusCode::NOT_FOUND, ProblemKind::NotFound, detail)
}

/// Those of other nodes do not come here: they are sent on.
async fn set(shared: &Shared, identity: &Identity, name: &str, drains: bool) -> Result<Json<Node>, Problem> {
    super::check_scope(identity, Scope::Admin)?;
    let fleet = fleet(shared)?;
    let me = fleet.member.me();
    if me.name.as_str() != name {
        return Err(unknown());
    }
    let failed = |reason| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, ProblemKind::Internal, reason);
    ask(shared, |answer| Asked::Drain(drains, answer)).await?.map_err(failed)?;
    let sessions = fleet.member.node(&me.name).map_or(0, |sight| sight.sessions);
    let sight = Sight { record: fleet.member.me(), gone_for: None, sessions, live: 0 };
    Ok(Json(node(sight, &me.name, shared.host.live_sessions())))
}

/// Describes a node. The directory learns a moment later which of the own sessions are live.
fn node(sight: Sight, me: &NodeName, own_live: usize) -> Node {
    let unreachable_since = gone_since(&sight);
    let Sight { record, sessions, live, .. } = sight;
    let here = record.name == *me;
    Node {
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

fn fleet(shared: &Shared) -> Result<&Fleet, Problem> {
    shared.fleet().ok_or_else(|| {
        let detail = "this daemon is in no fleet; `url` and `node` in [fleet] of its configuration make it a node of one";
        Problem::new(StatusCode::CONFLICT, ProblemKind::NoFleet, detail)
    })
}
