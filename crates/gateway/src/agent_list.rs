//! The agents as `GET /v1/agents` and `acpd agents list --json` tell them: how each stands, and what is found of it on its machine.
//!
//! What is found comes from the composition ([`AgentSight`]), with a daemon and without one. Not here: how it is found.

use acpd_host::{AgentHealth, AgentSpec, Pending};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// All agents.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentList {
    /// Those that sessions can have, by name.
    agents: Vec<ListedAgent>,
    /// The other known agents: none of them is installed where acpd runs.
    not_installed: Vec<NotInstalled>,
}

/// An agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Agent"))]
struct ListedAgent {
    /// It serves clients that name none.
    default: bool,
    #[serde(flatten)]
    health: AgentHealth,
    #[serde(flatten)]
    facts: AgentFacts,
}

/// What is found of an agent on its machine.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentFacts {
    /// What its makers call it, if it is a known one.
    pub title: Option<String>,
    /// Where it comes from.
    pub origin: AgentOrigin,
    /// Its program, as it is configured or known.
    pub command: String,
    /// The arguments of that.
    pub args: Vec<String>,
    /// The program is there, and can be run.
    pub installed: bool,
    /// The program's file.
    pub program: Option<String>,
    /// The version of what is installed, where that can be told.
    pub version: Option<String>,
    /// Whether it is logged in, as far as variables and files show; absent where that cannot be told.
    pub logged_in: Option<bool>,
}

/// Where an agent comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum AgentOrigin {
    /// It has an entry in the configuration.
    #[default]
    Configured,
    /// It is known to acpd, and its program was found in `PATH`.
    Found,
    /// It is in acpd itself.
    Builtin,
}

/// A known agent that is not installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotInstalled {
    /// Its name.
    pub name: String,
    /// What its makers call it.
    pub title: String,
    /// The command that installs it, on the machine of acpd.
    pub install: String,
}

/// What is found on this machine.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of agents that sessions can have, by name.
    pub agents: BTreeMap<String, AgentFacts>,
    /// Known ones that are not installed.
    pub not_installed: Vec<NotInstalled>,
}

/// Looks for what is found of agents on this machine.
pub trait AgentSight: Debug + Send + Sync {
    /// What is found of these, and which known ones are not there, within a bound of seconds.
    fn look(&self, agents: Vec<Arc<AgentSpec>>) -> Pending<'_, Seen>;
}

impl AgentList {
    /// All agents, as they stand; one that nothing was found out of has come since.
    pub fn new(default: &str, health: Vec<AgentHealth>, seen: Seen) -> Self {
        let Seen { mut agents, not_installed } = seen;
        let listed = health.into_iter().filter_map(|health| {
            let facts = agents.remove(&health.name)?;
            Some(ListedAgent { default: health.name == default, health, facts })
        });
        Self { agents: listed.collect(), not_installed }
    }
}
