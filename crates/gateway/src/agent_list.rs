//! The agents as `GET /v1/agents` and `acpd agents list --json` tell them: how each stands, and what is found of it on its machine.
//!
//! What is found comes from the composition ([`AgentSight`]), with a daemon and without one. Not here: how it is found.

use acpd_api::{Agent, AgentFacts, AgentHealth, AgentList, NotInstalled};
use acpd_host::{AgentSpec, Pending};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

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

/// Lists all agents, as they stand; one that nothing was found out of has come since.
pub fn list_agents(default: &str, health: Vec<AgentHealth>, seen: Seen) -> AgentList {
    let Seen { mut agents, not_installed } = seen;
    let listed = health.into_iter().filter_map(|health| {
        let facts = agents.remove(&health.name)?;
        Some(Agent { default: health.name == default, health, facts })
    });
    AgentList { agents: listed.collect(), not_installed }
}
