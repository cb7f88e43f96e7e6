//! Whether the fleet of a daemon is well, as that sees it.

use super::DaemonFacts;
use crate::checks::{Check, finding, fine};
use crate::commands::shown;
use crate::daemon::Node;
use crate::view::age;
use jiff::Timestamp;

/// A check for each matter; none of a daemon that is in no fleet.
pub(in super::super) fn fleet(facts: &DaemonFacts, now: Timestamp) -> Vec<Check> {
    const ABOUT: &str = "fleet";
    let DaemonFacts::There { fleet: Some(known), .. } = facts else { return Vec::new() };
    let mut checks = Vec::new();
    checks.extend(known.trouble().map(|trouble| {
        let remedy =
            "see that a server at url in [fleet] runs and takes this node; the daemon's log says more";
        finding(ABOUT, trouble, remedy)
    }));
    checks.extend(known.unreachable().map(|node| {
        let since = node.unreachable_since.map(|since| format!(" for {}", age(since, now)));
        let says = format!("node {} cannot be reached{}", node.shown(), since.unwrap_or_default());
        finding(
            ABOUT,
            says,
            "start its daemon, or see to its address in [fleet] there and the network between",
        )
    }));
    let draining = |node: &&Node| node.draining && node.reachable;
    checks.extend(known.nodes.iter().filter(draining).map(|node| {
        let name = shown(&node.name);
        fine(ABOUT, format!("node {name} is drained; acpd nodes undrain {name} has it take new sessions"))
    }));
    if let Some(here) = known.here().filter(|_| checks.iter().all(|check| check.ok)) {
        let (node, count) = (here.shown(), known.nodes.len());
        let of = if count == 1 { "the only one".to_owned() } else { format!("one of {count}") };
        checks.insert(0, fine(ABOUT, format!("node {node}, {of}, and all answer")));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::Nodes;

    fn told(nodes: Vec<Node>, stale: bool) -> Vec<(bool, String)> {
        let fleet = Some(Nodes { nodes, stale, ..Nodes::default() });
        let (at, version) = ("there".to_owned(), "1".to_owned());
        let facts = DaemonFacts::There { at, version, unwell: None, stale: None, fleet };
        let now = "2026-11-21T12:00:00Z".parse().expect("a time");
        fleet_of(&facts, now)
    }

    fn fleet_of(facts: &DaemonFacts, now: Timestamp) -> Vec<(bool, String)> {
        fleet(facts, now).into_iter().map(|check| (check.ok, check.says)).collect()
    }

    // contract 7.1: an engine and nodes that do not answer are findings, a drained node is none
    #[test]
    fn a_fleet_is_judged() {
        let node = |name: &str| Node {
            name: name.to_owned(),
            here: name == "a",
            reachable: true,
            ..Node::default()
        };
        let well = told(vec![node("a"), node("b")], false);
        assert_eq!(well, [(true, "node a, one of 2, and all answer".to_owned())]);
        let drained = Node { draining: true, ..node("b") };
        let told_drained = told(vec![node("a"), drained], false);
        assert!(told_drained.iter().all(|(ok, _)| *ok), "{told_drained:?}");
        assert!(told_drained[1].1.contains("acpd nodes undrain b"), "{told_drained:?}");
        let gone =
            Node { reachable: false, unreachable_since: Some("2026-11-21T11:58:00Z".into()), ..node("b") };
        assert_eq!(
            told(vec![node("a"), gone], true),
            [
                (false, "the engine of the fleet does not answer".to_owned()),
                (false, "node b cannot be reached for 2m".to_owned()),
            ]
        );
        let none = DaemonFacts::None("/s".to_owned(), None);
        assert_eq!(fleet_of(&none, Timestamp::UNIX_EPOCH), []);
    }
}
