//! How far acpd reaches on the system where it runs (contract 7.3).

use serde::{Deserialize, Serialize};

/// What of the processes that an agent starts acpd sees, and ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Containment {
    /// All of them.
    Subreaper,
    /// Those that stay in the agent's process group.
    Group,
}

/// How far a run can be carried on when its daemon is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Continuity {
    /// However the daemon ends, nothing that the agent writes is lost or doubled.
    Exact,
    /// The same where the daemon ends in good order.
    Graceful,
    /// Agents end with their daemon.
    None,
}
