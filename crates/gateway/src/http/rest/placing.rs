//! On which node of a fleet a new session begins: here, unless the request says what its node must have, or this one takes none.

use super::super::forwarding;
use super::super::problem::Problem;
use super::super::settings::Shared;
use crate::fleet::{FORWARDED_BY, exists_for, of_node};
use crate::identity::Identity;
use acpd_api::{OfNode, ProblemKind};
use acpd_fleet::{NodeName, NodeRecord, Wanted};
use acpd_host::{Creator, HostError};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// What a request says of its node.
pub(super) struct Asked<'a> {
    pub(super) agent: Option<&'a str>,
    pub(super) node: Option<&'a str>,
    pub(super) labels: Option<&'a [String]>,
}

/// Whose the session is that a request creates under its key.
pub(super) enum Keyed {
    /// Of no node that this one knows of.
    New,
    /// Of this one: it was created before.
    Here,
    /// Of another one, whose answer this is.
    There(Result<Response, Problem>),
}

/// Finds the session that the same request has created before. A request that another node has sent here is judged there.
pub(super) async fn created_before(
    shared: &Shared,
    identity: &Identity,
    headers: &HeaderMap,
    creator: &Creator,
    body: &Bytes,
) -> Keyed {
    let (Some(fleet), Some(key)) = (shared.fleet(), &creator.key) else { return Keyed::New };
    if headers.contains_key(&FORWARDED_BY) {
        return Keyed::New;
    }
    let id = creator.session_id();
    // Where that cannot be found out, the fleet is asked once more when the session begins.
    let _is_sure = fleet.is_sure(&shared.host, &id, identity).await;
    let Some(owned) = fleet.member.elsewhere(&id) else {
        let is_here = shared.host.find(&id, |_| true).await.is_ok();
        return if is_here { Keyed::Here } else { Keyed::New };
    };
    if !exists_for(&owned, identity) {
        return Keyed::There(Err(Problem::of_host(&HostError::KeyReused { key: key.as_str().to_owned() })));
    }
    let OfNode { node, unreachable_since, .. } = of_node(&owned);
    Keyed::There(match (owned.node, unreachable_since) {
        (Some(node), None) => forwarding::create(fleet, NodeRecord::clone(&node), headers, body.clone())
            .await
            .map_err(Problem::from),
        (_, since) => {
            let since = since.map(|since| format!(" since {since}")).unwrap_or_default();
            let detail = format!(
                "this was asked of node {node} under this key, and that cannot be reached{since}; nothing was done"
            );
            Err(forwarding::unreachable(&owned.session.node, detail).about(id.as_str()))
        }
    })
}

/// The answer of another node, if one is to create the session. A node that refuses, or to which there is no connection, is followed by
/// the next; one that does not answer is not, since it may have created the session.
pub(super) async fn elsewhere(
    shared: &Shared,
    headers: &HeaderMap,
    asked: &Asked<'_>,
    body: &Bytes,
) -> Option<Result<Response, Problem>> {
    let is_placed = asked.node.is_some() || asked.labels.is_some();
    let Some(fleet) = shared.fleet() else {
        let detail = "node, labels: this daemon is in no fleet; leave them out";
        return is_placed.then(|| Err(Problem::bad_request(detail)));
    };
    fleet.member.told().await;
    let me = fleet.member.me();
    // Another node has chosen this one.
    if headers.contains_key(&FORWARDED_BY) || !(is_placed || me.draining) {
        return None;
    }
    let node = match asked.node.map(|name| NodeName::try_from(name.to_owned())).transpose() {
        Ok(node) => node,
        Err(error) => return Some(Err(Problem::bad_request(format!("node: {error}")))),
    };
    let (agent, labels) = (asked.agent.map(str::to_owned), asked.labels.unwrap_or_default().to_vec());
    let nodes = match fleet.member.place(&Wanted { agent, labels, node }) {
        Ok(nodes) => nodes,
        Err(refused) => return Some(Err(none(&refused))),
    };
    let mut last = None;
    for node in nodes {
        if node.id == me.id {
            return None;
        }
        match forwarding::create(fleet, node, headers, body.clone()).await {
            Ok(answer) if answer.status() != StatusCode::SERVICE_UNAVAILABLE => return Some(Ok(answer)),
            Ok(refused) => last = Some(Ok(refused)),
            Err(why) if why.is_undone => last = Some(Err(why.problem)),
            Err(why) => return Some(Err(why.problem)),
        }
    }
    last.or_else(|| Some(Err(none(&"no node is left"))))
}

fn none(why: &dyn std::fmt::Display) -> Problem {
    let detail = format!("no node of the fleet takes this session: {why}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, ProblemKind::NoNode, detail)
}
