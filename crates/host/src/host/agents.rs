//! Which agents a host can start, and which process it gives for a session: a spare, the shared one, or one
//! that it starts.
//!
//! Invariant: a process goes on with the entry that it was started with; what is asked for now is started, or given,
//! by the entry that stands now.

use super::Host;
use crate::agent::{
    AgentHandle, AgentHealth, AgentInfo, AgentRef, AgentStartError, AgentStarter, MethodMemory, start_agent,
};
use crate::clock;
use crate::error::HostError;
use crate::metrics;
use crate::spec::AgentSpec;
use acpd_record::TerminationInfo;
use acpd_supervisor::{Supervisor, TaskScope};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError, RwLockReadGuard};
use tokio_util::sync::CancellationToken;

/// The entries that stand, and for which a spare is wanted if its entry says so.
#[derive(Debug)]
pub(super) struct Entries {
    specs: BTreeMap<String, Arc<AgentSpec>>,
    spared: BTreeSet<String>,
}

impl Entries {
    pub(super) fn new(specs: BTreeMap<String, AgentSpec>) -> Self {
        Self { specs: shared(specs), spared: BTreeSet::new() }
    }
}

fn shared(specs: BTreeMap<String, AgentSpec>) -> BTreeMap<String, Arc<AgentSpec>> {
    let known = |(name, spec): (String, AgentSpec)| {
        metrics::agent_known(&name);
        (name, Arc::new(spec))
    };
    specs.into_iter().map(known).collect()
}

impl Host {
    /// The agents that can be started, by name.
    pub fn agents(&self) -> Vec<Arc<AgentSpec>> {
        self.entries().specs.values().cloned().collect()
    }

    /// The health of all, by name.
    pub fn agents_health(&self) -> Vec<AgentHealth> {
        let names: Vec<String> = self.entries().specs.keys().cloned().collect();
        names.iter().map(|name| self.shared.starter.health().of(name)).collect()
    }

    /// Replaces the entries. What runs goes on with the entry that it was started with; what is started from now on
    /// has the new one, and what has none any more is not started. Spares of entries that changed are stopped, and
    /// kept anew where one is wanted. To be called in a runtime.
    pub fn set_agents(&self, agents: BTreeMap<String, AgentSpec>) {
        // Held to the end, so that no spare of an old entry is kept after this.
        let mut entries = self.shared.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.specs = shared(agents);
        let stands = |spec: &AgentSpec| entries.specs.get(&spec.name).is_some_and(|now| **now == *spec);
        self.shared.spares.retain(|spec| stands(spec) && wants_spare(spec));
        self.shared_agents().retain(|_, agent| stands(agent.spec()));
        for spec in entries.spared.iter().filter_map(|name| entries.specs.get(name)) {
            self.keep_spare_of(spec);
        }
    }

    /// Whether a process may serve another session: its entry still stands.
    pub fn still_offers(&self, agent: &AgentHandle) -> bool {
        self.stands(agent.spec())
    }

    /// Whether an entry is as it was.
    pub(crate) fn stands(&self, spec: &Arc<AgentSpec>) -> bool {
        self.entries().specs.get(&spec.name).is_some_and(|now| now == spec)
    }

    /// An initialized agent process without a session: one that was kept ready, or one that is started, in `cwd` or
    /// where acpd runs; or the one that all sessions of this agent share.
    ///
    /// # Errors
    /// When there is no such agent, or it does not start.
    pub async fn connect(&self, agent: &str, cwd: Option<&Path>) -> Result<AgentHandle, HostError> {
        let spec = self.entry(agent)?;
        if self.is_closing() {
            return Err(HostError::ShuttingDown);
        }
        if !spec.share_process {
            if let Some(spare) = self.shared.spares.take(agent).await {
                return spare;
            }
            let started = self.shared.starter.start(&spec, cwd.unwrap_or(&self.shared.cwd)).await?;
            return Ok(match cwd {
                Some(cwd) => started.started_for(cwd),
                None => started,
            });
        }
        // Requests while it starts get the same process.
        let _one_at_a_time = self.shared.starting.lock(agent).await;
        let running = self.shared_agents().get(agent).and_then(AgentRef::upgrade);
        if let Some(running) = running {
            return Ok(running);
        }
        // It may have taken long to get here.
        let spec = self.entry(agent)?;
        let started = self.shared.starter.start(&spec, &self.shared.cwd).await?;
        let entries = self.entries();
        if entries.specs.get(agent) == Some(&spec) {
            self.shared_agents().insert(agent.to_owned(), started.downgrade());
        }
        Ok(started)
    }

    /// Keeps a process of `agent` ready from now on, whenever its entry says so: for those who will serve more than
    /// one session of it.
    pub fn keep_spare(&self, agent: &str) {
        let mut entries = self.shared.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.spared.insert(agent.to_owned());
        if let Some(spec) = entries.specs.get(agent) {
            self.keep_spare_of(spec);
        }
    }

    fn keep_spare_of(&self, spec: &Arc<AgentSpec>) {
        if wants_spare(spec) && !self.is_closing() {
            self.shared.spares.keep(self.shared.starter.clone(), spec, self.shared.cwd.clone());
        }
    }

    /// What an agent last said of itself, if it has run yet; nothing is started for it.
    ///
    /// # Errors
    /// When there is no such agent.
    pub fn known_agent(&self, agent: &str) -> Result<Option<Arc<AgentInfo>>, HostError> {
        self.entry(agent).map(|_| self.shared.starter.health().info(agent))
    }

    fn entry(&self, agent: &str) -> Result<Arc<AgentSpec>, HostError> {
        let entries = self.entries();
        entries.specs.get(agent).cloned().ok_or_else(|| HostError::UnknownAgent {
            name: agent.to_owned(),
            known: entries.specs.keys().cloned().collect(),
        })
    }

    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.shared.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared_agents(&self) -> MutexGuard<'_, BTreeMap<String, AgentRef>> {
        self.shared.shared_agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wants_spare(spec: &AgentSpec) -> bool {
    spec.spare && !spec.share_process
}

/// Starts one agent without a host, to see whether it works. The caller stops it.
///
/// # Errors
/// Why it does not work, also as a record.
pub async fn check_agent(
    supervisor: &Supervisor,
    scope: &TaskScope,
    spec: &AgentSpec,
    cwd: &Path,
) -> Result<AgentHandle, (AgentStartError, TerminationInfo)> {
    let starter = AgentStarter::new(
        supervisor.clone(),
        scope.clone(),
        MethodMemory::unrecorded(),
        CancellationToken::new(),
    );
    start_agent(&starter, &Arc::new(spec.clone()), cwd).await.map_err(|error| {
        let info = crate::termination::of_start(&error, clock::now_ms());
        (error, info)
    })
}
