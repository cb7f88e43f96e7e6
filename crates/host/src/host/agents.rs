//! Which agent process a host gives to whoever needs one: a spare, the shared one, or one that it starts.

use super::Host;
use crate::agent::{AgentHandle, AgentRef};
use crate::error::HostError;
use crate::spec::AgentSpec;
use acpd_supervisor::Graces;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

impl Host {
    /// The agents that can be started.
    pub fn agents(&self) -> impl Iterator<Item = &AgentSpec> {
        self.shared.options.agents.values()
    }

    /// An initialized agent process without a session: one that was kept ready, or one that is started, in `cwd` or
    /// where acpd runs; or the one that all sessions of this agent share.
    ///
    /// # Errors
    /// When there is no such agent, or it does not start.
    pub async fn connect(&self, agent: &str, cwd: Option<&Path>) -> Result<AgentHandle, HostError> {
        let spec = self.shared.options.agents.get(agent).ok_or_else(|| HostError::UnknownAgent {
            name: agent.to_owned(),
            known: self.shared.options.agents.keys().cloned().collect(),
        })?;
        if self.is_closing() {
            return Err(HostError::ShuttingDown);
        }
        if !spec.share_process {
            return match self.shared.spares.take(agent).await {
                Some(spare) => spare,
                None => self.shared.starter.start(spec, cwd.unwrap_or(&self.shared.options.cwd)).await,
            };
        }
        // Whoever comes while it starts gets the same process.
        let _one_at_a_time = self.shared.starting.lock(agent).await;
        let running = self.shared_agents().get(agent).and_then(AgentRef::upgrade);
        if let Some(running) = running {
            return Ok(running);
        }
        let started = self.shared.starter.start(spec, &self.shared.options.cwd).await?;
        self.shared_agents().insert(agent.to_owned(), started.downgrade());
        Ok(started)
    }

    /// Keeps a process of `agent` ready from now on, if its entry says so: for those who will serve more than one
    /// session of it.
    pub fn keep_spare(&self, agent: &str) {
        let spec = self.shared.options.agents.get(agent).filter(|spec| spec.spare && !spec.share_process);
        if let Some(spec) = spec.filter(|_| !self.is_closing()) {
            self.shared.spares.keep(self.shared.starter.clone(), spec, self.shared.options.cwd.clone());
        }
    }

    /// The graces of an agent's stop ladder.
    pub(crate) fn graces_of(&self, agent: &str) -> Graces {
        self.shared.options.agents.get(agent).map_or_else(Graces::default, |spec| spec.graces)
    }

    /// Whether a session that an agent can neither resume nor load goes on with a transcript.
    pub(crate) fn resumes_with_transcript(&self, agent: &str) -> bool {
        self.shared.options.agents.get(agent).is_some_and(|spec| spec.resume_with_transcript)
    }

    fn shared_agents(&self) -> MutexGuard<'_, BTreeMap<String, AgentRef>> {
        self.shared.shared_agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
