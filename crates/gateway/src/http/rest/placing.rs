//! On which node of a fleet a new session begins: here, unless the request says what its node must have, or this one takes none.

use super::super::forwarding;
use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use crate::fleet::FORWARDED_BY;
use acpd_fleet::{NodeName, Wanted};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// What a request says of its node.
pub(super) struct Asked<'a> {
    pub(super) agent: Option<&'a str>,
    pub(super) node: Option<&'a str>,
    pub(super) labels: Option<&'a [String]>,
}

/// The answer of another node, if one is to create the session. A node that refuses is followed by the next; one that does not
/// answer is not, since it may have created the session.
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
            Err(unknown) => return Some(Err(unknown)),
        }
    }
    last.or_else(|| Some(Err(none(&"no node is left"))))
}

fn none(why: &dyn std::fmt::Display) -> Problem {
    let detail = format!("no node of the fleet takes this session: {why}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, Kind::NoNode, detail)
}
