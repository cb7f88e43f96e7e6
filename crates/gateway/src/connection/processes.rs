//! The agent processes of a connection: the one that the client knows, and one that waits for a session.

use super::tasks::Process;
use acpd_host::{AgentHandle, AgentRef};
use std::path::Path;

/// What a connection knows of processes.
#[derive(Default)]
pub(super) struct Processes {
    /// The last one, for requests that belong to no session.
    pub(super) known: Option<AgentRef>,
    /// An initialized one that has no session yet.
    spare: Option<AgentHandle>,
    /// The host ends, and with it every process.
    is_closed: bool,
}

impl Processes {
    /// One that has no session may serve the next one. One that may have a session is stopped instead: no other client may
    /// learn of that session.
    pub(super) fn keep(&mut self, process: Process) {
        let (Process::Started(agent) | Process::Unused(agent)) = &process;
        if let Process::Started(agent) = &process {
            self.known = Some(agent.downgrade());
        }
        if !self.is_closed && !agent.is_gone() && agent.is_unused() {
            self.spare.get_or_insert_with(|| agent.clone());
        }
    }

    /// The one that waits, if it may serve a session that works in `cwd`.
    pub(super) fn take_spare(&mut self, cwd: Option<&Path>) -> Option<AgentHandle> {
        let taken = self.spare.take_if(|spare| spare.is_gone() || spare.may_work_in(cwd));
        taken.filter(|spare| !spare.is_gone())
    }

    /// One that runs.
    pub(super) fn any(&self) -> Option<AgentHandle> {
        let spare = self.spare.clone().filter(|agent| !agent.is_gone());
        spare.or_else(|| self.known.as_ref().and_then(AgentRef::upgrade))
    }

    /// Keeps none from now on.
    pub(super) fn close(&mut self) {
        (self.spare, self.is_closed) = (None, true);
    }
}
