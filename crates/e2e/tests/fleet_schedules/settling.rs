//! When a fleet that is whole again has come to rest: all nodes know each other, and all is in the archive.

use crate::schedule::{COUNT, Pace};
use crate::world::{Node, World};
use acpd_e2e::{Deadline, PATIENCE};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a node shows of each session.
type Listed = BTreeMap<String, (Value, Value)>;

/// Waits for it; what it was waited for at the last.
///
/// # Errors
/// What it lacks after as long as a test waits, and two leases.
pub(crate) fn settle(world: &World, pace: Pace) -> Result<String, String> {
    let deadline = Deadline::after(PATIENCE + pace.lease * 2);
    let (mut before, mut lacked) = (None, String::new());
    loop {
        let now = rest(world);
        // Twice the same: what was just asked for has begun, and ended.
        if now.is_ok() && before.as_ref() == Some(&now) {
            return Ok(lacked);
        }
        if let (Err(why), true) = (&now, deadline.is_over()) {
            return Err(why.clone());
        }
        if deadline.is_over() {
            return Err(format!("it does not come to rest: {now:?}"));
        }
        lacked = now.as_ref().err().cloned().unwrap_or(lacked);
        before = Some(now);
    }
}

fn rest(world: &World) -> Result<Listed, String> {
    let mut all = Vec::new();
    for (at, node) in world.nodes.iter().enumerate() {
        all.push(listed(node).map_err(|why| format!("node {at}: {why}"))?);
    }
    let first = all[0].clone();
    match all.iter().position(|listed| *listed != first) {
        Some(other) => Err(format!("node {other} lists {:?}, and node 0 {first:?}", all[other])),
        None => Ok(first),
    }
}

fn listed(node: &Node) -> Result<Listed, String> {
    let nodes = node.get("/v1/nodes").json();
    let known =
        nodes["nodes"].as_array().map(|nodes| nodes.iter().filter(|node| node["reachable"] == true).count());
    if known != Some(COUNT) || nodes["stale"] == true {
        return Err(format!("it knows {nodes}"));
    }
    let metrics = node.get("/metrics").text();
    let lag = metrics.lines().find_map(|line| line.strip_prefix("acpd_fleet_lag_events "));
    if lag != Some("0") {
        return Err(format!("it lags by {lag:?} events"));
    }
    let list = node.get("/v1/sessions?limit=200").json();
    let sessions = list["sessions"].as_array().ok_or_else(|| format!("it lists {list}"))?;
    let mut listed = Listed::new();
    for session in sessions {
        if session["reachable"] == false || session["state"] == "running" {
            return Err(format!("it lists {session}"));
        }
        let id = session["sessionId"].as_str().unwrap_or_default().to_owned();
        listed.insert(id, (session["node"].clone(), session["eventCount"].clone()));
    }
    Ok(listed)
}
