//! The nodes of a fleet.

use serde::Serialize;

/// The nodes of a fleet.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nodes {
    /// All that have joined the fleet and were not removed since, by name.
    pub nodes: Vec<Node>,
    /// Whether this may be old, because the engine does not answer.
    pub stale: bool,
    /// Why the fleet does not know of this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A node.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether it is the one that answers.
    pub here: bool,
    /// Where other nodes reach it.
    pub address: Option<String>,
    /// Its version of acpd; empty where this daemon has not heard it.
    pub version: String,
    /// What its operator says of it.
    pub labels: Vec<String>,
    /// The names of its agents.
    pub agents: Vec<String>,
    /// Live sessions that it has room for.
    pub room: u32,
    /// Whether it takes no new sessions.
    pub draining: bool,
    /// Sessions in its log.
    pub sessions: usize,
    /// Those that have not ended.
    pub live: usize,
    /// Whether it is there.
    pub reachable: bool,
    /// Since when it is not, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub unreachable_since: Option<String>,
}

/// What was removed with a node.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemovedNode {
    /// Its sessions that were.
    pub sessions: usize,
    /// Those that are still to be: the next request goes on.
    pub left: usize,
}
