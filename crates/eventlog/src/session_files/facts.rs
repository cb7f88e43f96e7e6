//! What a session is, as the first batch of each of its segments says it.

use serde::{Deserialize, Serialize};

/// The name of one who removes a session or looks for one and is no host.
pub(crate) const NO_HOST: &str = "none";

/// What does not change in a session while one host has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Its id, which its directory's name is made of.
    pub id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// The host that claimed the segment.
    pub host: String,
    /// The token that created it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
}

impl Facts {
    /// Their bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        // Strings and numbers alone cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What is in these bytes, if it is facts. What a later acpd adds is passed over.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}
