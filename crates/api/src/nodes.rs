//! The nodes of a fleet.

use crate::operation::{Answer, FORBIDDEN, Operation, Spec, Target, Verb, json, problem};
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

const NO_FLEET: Answer = problem(409, "the daemon is in no fleet");
const THERE: Answer = problem(409, "the node is there, or the daemon is in no fleet");
const NO_ANSWER: Answer = problem(503, "the fleet does not answer");
const GONE: Answer = problem(503, "the node cannot be reached");

/// Lists the nodes of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct ListNodes;

impl Operation for ListNodes {
    type Input<'a> = ();
    type Answer = Nodes;
    const SPEC: Spec = Spec {
        path: "/nodes",
        id: "listNodes",
        summary: "the nodes of the fleet.",
        answers: &[json(200, "all nodes"), FORBIDDEN, NO_FLEET],
        ..Spec::NEW
    };
}

/// Removes a node.
#[derive(Clone, Copy, Debug)]
pub struct RemoveNode;

impl Operation for RemoveNode {
    type Input<'a> = ();
    type Answer = RemovedNode;
    const SPEC: Spec = Spec {
        verb: Verb::Delete,
        path: "/nodes/{name}",
        id: "removeNode",
        target: Some(Target::Node),
        summary: "removes a node that is gone for good, with its sessions and their archive.",
        answers: &[json(200, "what was removed"), FORBIDDEN, THERE, NO_ANSWER],
        ..Spec::NEW
    };
}

/// Drains a node.
#[derive(Clone, Copy, Debug)]
pub struct DrainNode;

impl Operation for DrainNode {
    type Input<'a> = ();
    type Answer = Node;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/nodes/{name}/drain",
        id: "drainNode",
        target: Some(Target::Node),
        summary: "a node takes no new sessions from now on, also after a restart; those that it has go on.",
        answers: &[json(200, "the node"), FORBIDDEN, NO_FLEET, GONE],
        ..Spec::NEW
    };
}

/// Ends the drain of a node.
#[derive(Clone, Copy, Debug)]
pub struct UndrainNode;

impl Operation for UndrainNode {
    type Input<'a> = ();
    type Answer = Node;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/nodes/{name}/undrain",
        id: "undrainNode",
        target: Some(Target::Node),
        summary: "a node takes new sessions again.",
        answers: &[json(200, "the node"), FORBIDDEN, NO_FLEET, GONE],
        ..Spec::NEW
    };
}
