//! The nodes of a daemon's fleet, as it knows them.

use super::error::DaemonError;
use super::request::Daemon;
use crate::clean::line;
use crate::moment::Moment;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What a daemon says of its fleet.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<Node>,
    /// It may be old, because the engine does not answer.
    #[serde(default)]
    pub(crate) stale: bool,
    /// Why the fleet does not know of the daemon.
    pub(crate) reason: Option<String>,
    /// The object as the daemon wrote it.
    #[serde(skip)]
    pub(crate) raw: Option<Box<RawValue>>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// It is the daemon that says this.
    pub(crate) here: bool,
    pub(crate) address: Option<String>,
    pub(crate) version: String,
    pub(crate) labels: Vec<String>,
    pub(crate) draining: bool,
    pub(crate) sessions: u64,
    pub(crate) live: u64,
    pub(crate) reachable: bool,
    pub(crate) unreachable_since: Option<Moment>,
}

impl Node {
    /// Its name for a person.
    pub(crate) fn shown(&self) -> String {
        line(&self.name, 64)
    }
}

impl Nodes {
    /// What is wrong with the fleet as the daemon sees it, beside nodes that are away.
    pub(crate) fn trouble(&self) -> Option<String> {
        match &self.reason {
            Some(reason) => Some(format!("the fleet does not know of this node: {}", line(reason, 300))),
            None => self.stale.then(|| "the engine of the fleet does not answer".to_owned()),
        }
    }

    /// The daemon itself.
    pub(crate) fn here(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.here)
    }

    /// The names of those that cannot be reached.
    pub(crate) fn unreachable(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.reachable)
    }

    /// Their names, in words.
    pub(crate) fn names(&self) -> String {
        self.nodes.iter().map(Node::shown).collect::<Vec<_>>().join(", ")
    }
}

impl Daemon {
    /// The nodes of its fleet.
    pub(crate) async fn nodes(&self) -> Result<Nodes, DaemonError> {
        let raw: Box<RawValue> = self.get("/v1/nodes").await?;
        let nodes: Nodes = serde_json::from_str(raw.get()).map_err(|error| self.unreadable(&error))?;
        Ok(Nodes { raw: Some(raw), ..nodes })
    }
}
