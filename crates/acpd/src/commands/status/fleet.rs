//! How the fleet of a daemon stands, as that sees it.

use crate::clean::line;
use crate::daemon::{Daemon, DaemonError, Nodes};
use http::StatusCode;
use serde::Serialize;

/// A fleet, as one of its nodes sees it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetState {
    /// The name of the daemon in it.
    node: String,
    /// What it says beyond that; not there for callers that may not see it.
    #[serde(flatten)]
    seen: Option<Seen>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Seen {
    /// Whether the engine does not answer.
    stale: bool,
    /// Why the fleet does not know of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What is wrong, in words.
    #[serde(skip)]
    trouble: Option<String>,
    /// How many there are.
    nodes: usize,
    /// Those of them that cannot be reached.
    unreachable: Vec<String>,
    /// Whether the daemon takes no new sessions.
    draining: bool,
}

impl FleetState {
    /// Looks, at a daemon that calls itself `here` in lists. None for one that is in no fleet.
    pub(crate) async fn of(daemon: &Daemon, here: Option<String>) -> Result<Option<Self>, DaemonError> {
        let Some(node) = here else { return Ok(None) };
        let seen = match daemon.nodes().await {
            Ok(nodes) => Some(Seen::of(&nodes)),
            Err(DaemonError::Refused { problem }) if problem.status == StatusCode::FORBIDDEN => None,
            Err(error) => return Err(error),
        };
        Ok(Some(Self { node, seen }))
    }

    /// In words.
    pub(crate) fn told(&self) -> String {
        let node = line(&self.node, 64);
        let Some(seen) = &self.seen else {
            return format!("node {node}; more is not told: that needs a token with the scope admin");
        };
        let mut told = match seen.nodes {
            0 | 1 => format!("node {node}, the only one"),
            count => format!("node {node}, one of {count}"),
        };
        if seen.draining {
            told.push_str(", draining");
        }
        let names: Vec<String> = seen.unreachable.iter().map(|name| line(name, 64)).collect();
        if !names.is_empty() {
            told.push_str(&format!("; unreachable: {}", names.join(", ")));
        }
        match &seen.trouble {
            Some(trouble) => told.push_str(&format!("; {trouble}")),
            None => told.push_str("; its engine answers"),
        }
        told
    }
}

impl Seen {
    fn of(nodes: &Nodes) -> Self {
        Self {
            stale: nodes.stale,
            reason: nodes.reason.clone(),
            trouble: nodes.trouble(),
            nodes: nodes.nodes.len(),
            unreachable: nodes.unreachable().map(|node| node.name.clone()).collect(),
            draining: nodes.here().is_some_and(|node| node.draining),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::Node;

    fn told(nodes: Nodes) -> String {
        FleetState { node: "a".to_owned(), seen: Some(Seen::of(&nodes)) }.told()
    }

    // design fleet, operations: as which node a daemon is in its fleet, which others are away, and whether the engine answers
    #[test]
    fn a_fleet_is_told_in_a_line() {
        let node = |name: &str| Node {
            name: name.to_owned(),
            here: name == "a",
            reachable: true,
            ..Node::default()
        };
        let alone = Nodes { nodes: vec![node("a")], ..Nodes::default() };
        assert_eq!(told(alone), "node a, the only one; its engine answers");
        let here = Node { draining: true, ..node("a") };
        let gone = Node { reachable: false, ..node("c") };
        let nodes = vec![here, node("b"), gone];
        let reason = Some("no server answers\u{1b}[2J".to_owned());
        assert_eq!(
            told(Nodes { nodes, stale: true, reason, raw: None }),
            "node a, one of 3, draining; unreachable: c; the fleet does not know of this node: no server answers␛[2J"
        );
        let unknown = FleetState { node: "a".to_owned(), seen: None };
        assert!(unknown.told().contains("scope admin"));
        assert_eq!(serde_json::to_string(&unknown).expect("JSON"), r#"{"node":"a"}"#);
    }
}
