//! What becomes of a session whose node the engine of its fleet has lost (contract 7.2).

use serde::{Deserialize, Serialize};

/// What becomes of a session whose node the engine of its fleet has lost.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Partition {
    /// It belongs to its node, where it goes on.
    #[default]
    Local,
    /// Its node ends it in time, and another one takes it up.
    Failover,
}

impl Partition {
    /// The name that clients and configuration use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether no other node takes it up.
    pub fn is_local(&self) -> bool {
        *self == Self::Local
    }
}
