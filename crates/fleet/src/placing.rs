//! On which node a new session begins: a pure function of what the directory says.

use crate::directory::{Directory, Reach};
use crate::name::NodeName;
use crate::record::NodeRecord;
use std::fmt;

/// What a new session needs of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its agent; None: whichever a node starts by default.
    pub agent: Option<String>,
    /// Labels that the node must have.
    pub labels: Vec<String>,
    /// The node itself.
    pub node: Option<NodeName>,
}

/// Why no node takes a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Each node that was asked for, and why.
    Each(Vec<(NodeName, &'static str)>),
    /// No node has the name that is wanted; those that there are.
    NoSuchNode(NodeName, Vec<NodeName>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(nodes) if nodes.is_empty() => f.write_str("the fleet has no nodes"),
            Self::Each(nodes) => {
                let each = nodes.iter().map(|(node, why)| format!("{node} {why}"));
                f.write_str(&each.collect::<Vec<_>>().join(", "))
            }
            Self::NoSuchNode(wanted, nodes) => {
                let names: Vec<&str> = nodes.iter().map(NodeName::as_str).collect();
                write!(f, "no node is called {wanted}; the fleet has {}", names.join(", "))
            }
        }
    }
}

/// The nodes that can take a session, the best first: the one with the most room, and of those with the same the one that is
/// asked, so that a session goes elsewhere for a reason only. What that one, `me`, says of itself may not have been told yet.
///
/// # Errors
/// When none can; with the reason of each.
pub(crate) fn place(
    directory: &Directory,
    wanted: &Wanted,
    me: &NodeRecord,
    is_gone: impl Fn(Reach) -> bool,
) -> Result<Vec<NodeName>, Refused> {
    let (mut nodes, mut refused) = (Vec::new(), Vec::new());
    let is_meant = |name: &NodeName| wanted.node.as_ref().is_none_or(|wanted| wanted == name);
    for (node, reach) in directory.nodes().filter(|(node, _)| is_meant(&node.name)) {
        let node = if node.id == me.id { me } else { &**node };
        let why = if is_gone(reach) {
            "cannot be reached"
        } else if node.draining {
            "takes no new sessions"
        } else if wanted.labels.iter().any(|label| !node.labels.contains(label)) {
            "has not all the labels"
        } else if wanted.agent.as_ref().is_some_and(|agent| !node.agents.contains(agent)) {
            "does not have the agent"
        } else if node.room == 0 {
            "has no room"
        } else {
            nodes.push(node);
            continue;
        };
        refused.push((node.name.clone(), why));
    }
    nodes.sort_by_key(|node| (std::cmp::Reverse(node.room), node.name != me.name, node.name.clone()));
    match (&wanted.node, nodes.is_empty()) {
        (_, false) => Ok(nodes.into_iter().map(|node| node.name.clone()).collect()),
        (Some(name), true) if refused.is_empty() => {
            let there = directory.nodes().map(|(node, _)| node.name.clone());
            Err(Refused::NoSuchNode(name.clone(), there.collect()))
        }
        (_, true) => Err(Refused::Each(refused)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Change, Revision};
    use crate::record::{NodeId, NodeRecord};
    use std::time::Duration;

    fn name(text: &str) -> NodeName {
        NodeName::try_from(text.to_owned()).expect("a name")
    }

    // design fleet, placement: by labels, agent and room; a node that drains or is gone takes none
    #[test]
    fn sessions_go_where_they_can() {
        let mut directory = Directory::new();
        for (revision, (node, labels, agents, room, draining)) in [
            ("a", "gpu", "x", 1, false),
            ("b", "gpu big", "x y", 5, false),
            ("c", "", "x", 5, false),
            ("d", "gpu", "x", 9, true),
            ("e", "gpu", "x", 9, false),
            ("f", "gpu", "z", 0, false),
        ]
        .into_iter()
        .enumerate()
        {
            let list = |words: &str| words.split_whitespace().map(str::to_owned).collect();
            let mut record = NodeRecord::new(name(node), NodeId(node.to_owned()), "1");
            (record.labels, record.agents, record.room, record.draining) =
                (list(labels), list(agents), room, draining);
            directory.apply(Change::Node(Box::new(record), Revision(revision as u64)), Duration::ZERO);
        }
        directory.apply(Change::NodeGone(name("e")), Duration::ZERO);
        let wanted = |agent: &str, labels: &[&str], node: Option<&str>| Wanted {
            agent: (!agent.is_empty()).then(|| agent.to_owned()),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            node: node.map(name),
        };
        let is_gone = |reach| matches!(reach, Reach::Gone(_));
        let (c, _) = directory.node(&name("c")).expect("it is there");
        let mut asked = NodeRecord::clone(c);
        let place_of = |wanted: &Wanted, asked: &NodeRecord| match place(&directory, wanted, asked, is_gone) {
            Ok(nodes) => nodes.iter().map(NodeName::as_str).collect::<Vec<_>>().join(" "),
            Err(refused) => refused.to_string(),
        };
        let of = |wanted: &Wanted| place_of(wanted, &asked);
        assert_eq!(of(&wanted("", &[], None)), "c b a");
        assert_eq!(of(&wanted("x", &["gpu"], None)), "b a");
        assert_eq!(of(&wanted("x", &["gpu", "big"], None)), "b");
        assert_eq!(of(&wanted("x", &[], Some("a"))), "a");
        assert_eq!(
            of(&wanted("z", &["gpu"], None)),
            "a does not have the agent, b does not have the agent, c has not all the labels, d takes no new sessions, \
             e cannot be reached, f has no room"
        );
        let none = place(&Directory::new(), &Wanted::default(), &asked, is_gone);
        assert_eq!(none.map_err(|why| why.to_string()), Err("the fleet has no nodes".to_owned()));
        assert_eq!(of(&wanted("", &[], Some("x"))), "no node is called x; the fleet has a, b, c, d, e, f");
        assert_eq!(of(&wanted("", &[], Some("d"))), "d takes no new sessions");
        // It drains, which its entry does not say yet.
        asked.draining = true;
        assert_eq!(place_of(&wanted("", &[], None), &asked), "b a");
    }
}
