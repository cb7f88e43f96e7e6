//! Who answers an agent's permission requests (contract 2.1).

use serde::{Deserialize, Serialize};

/// Who answers an agent's permission requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PermissionMode {
    /// Ask the viewers.
    #[default]
    Default,
    /// Allow edits, deletions and moves, ask for the rest.
    AcceptEdits,
    /// Allow whatever can be allowed.
    BypassPermissions,
    /// Reject.
    Deny,
}

impl PermissionMode {
    /// The name that clients and configuration use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
