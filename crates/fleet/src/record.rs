//! What stands in the directory: the nodes, and the sessions with their owners.

use crate::name::NodeName;
use acpd_record::{Partition, SessionId};
use serde::{Deserialize, Serialize};

/// Which claim of a session it is. Later claims have greater ones: it is the engine's revision of the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// What tells two nodes of the same name apart: the id of a state directory, which stays over restarts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub String);

/// A node, as it says it is. It is gone when it has not said so for a lease.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NodeRecord {
    /// Its name.
    pub name: NodeName,
    /// Which one of that name it is.
    pub id: NodeId,
    /// Which life of it this is: another one at each start.
    #[serde(default)]
    pub run: String,
    /// Where other nodes reach it; None where they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its version of acpd.
    pub version: String,
    /// What its operator says of it, for placement.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The agents that it has.
    #[serde(default)]
    pub agents: Vec<String>,
    /// Sessions that it has room for.
    pub room: u32,
    /// The directory does not have all of its sessions yet.
    #[serde(default)]
    pub incomplete: bool,
    /// It leaves, and the directory has all of its sessions as they are.
    #[serde(default)]
    pub left: bool,
    /// It takes no new sessions.
    #[serde(default)]
    pub draining: bool,
    /// It is gone for good: an operator has removed it, and all nodes forget it.
    #[serde(default)]
    pub removed: bool,
    /// Fingerprints of the tokens that see all its sessions, also while it is gone.
    #[serde(default)]
    pub seers: Vec<String>,
}

impl NodeRecord {
    /// A node without an address, labels, agents and room.
    pub fn new(name: NodeName, id: NodeId, version: &str) -> Self {
        Self {
            name,
            id,
            run: String::new(),
            address: None,
            version: version.to_owned(),
            labels: Vec::new(),
            agents: Vec::new(),
            room: 0,
            incomplete: false,
            left: false,
            draining: false,
            removed: false,
            seers: Vec::new(),
        }
    }
}

/// Who created a session: only both together are one caller, since each node has tokens of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Creator {
    /// The token's name.
    pub name: String,
    /// A fingerprint of the hash of the token.
    pub fingerprint: String,
}

/// A session and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionRecord {
    /// Its id.
    pub session: SessionId,
    /// Its owner.
    pub node: NodeName,
    /// Which one of that name.
    pub node_id: NodeId,
    /// The owner's claim. None in the claim itself: the engine gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
    /// What becomes of it without its owner.
    #[serde(default)]
    pub partition: Partition,
    /// By whom it was created; None for a caller without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creator: Option<Creator>,
    /// Its owner has claimed it, and is still to take it up from the archive.
    #[serde(default)]
    pub taking_up: bool,
    /// Its last event.
    pub seq: u64,
    /// Whether its last run is over.
    #[serde(default)]
    pub ended: bool,
    /// When it was created, in milliseconds since 1970.
    #[serde(default)]
    pub created_ms: i64,
    /// When it changed, in milliseconds since 1970.
    #[serde(default)]
    pub changed_ms: i64,
    /// Its last event that is in the archive.
    pub archived: u64,
    /// What REST says of it, as its owner wrote it (contract 1.3).
    pub info: serde_json::Value,
}

/// Members without which information of a session says nothing.
const REQUIRED: [&str; 2] = ["sessionId", "state"];

/// Information of a session within so many bytes of JSON: the longest members are left out, as long as it is more.
pub(crate) fn fitted(mut info: serde_json::Value, most_bytes: usize) -> serde_json::Value {
    let length = |value: &serde_json::Value| serde_json::to_vec(value).unwrap_or_default().len();
    while length(&info) > most_bytes {
        let serde_json::Value::Object(members) = &mut info else { break };
        let left_out = members.iter().filter(|(name, _)| !REQUIRED.contains(&name.as_str()));
        let longest = left_out.max_by_key(|(_, value)| length(value)).map(|(name, _)| name.clone());
        let Some(longest) = longest else { break };
        members.shift_remove(&longest);
    }
    info
}

impl SessionRecord {
    /// Whether it says no more than whose the id is: the session is still to begin.
    pub fn is_claim(&self) -> bool {
        self.info.is_null()
    }

    /// A session that `node` owns.
    pub fn new(session: SessionId, node: &NodeRecord, info: serde_json::Value) -> Self {
        Self {
            session,
            node: node.name.clone(),
            node_id: node.id.clone(),
            epoch: None,
            partition: Partition::default(),
            creator: None,
            taking_up: false,
            seq: 0,
            ended: false,
            created_ms: 0,
            changed_ms: 0,
            archived: 0,
            info,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // design fleet, sessions: what of a session is too long for the directory is left out, the longest first
    #[test]
    fn information_fits() {
        let info = json!({"sessionId": "s", "cwd": "/w", "nativeSessionId": "n".repeat(5_000), "model": "m".repeat(900), "state": "idle"});
        assert_eq!(fitted(info.clone(), 10_000), info);
        let kept = |most| {
            let serde_json::Value::Object(members) = fitted(info.clone(), most) else { panic!("an object") };
            members.keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kept(1_000), "sessionId cwd model state");
        assert_eq!(kept(100), "sessionId cwd state");
        assert_eq!(kept(1), "sessionId state");
    }
}
