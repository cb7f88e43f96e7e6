//! Which processes of this machine may use the socket of the host's daemon: all but those of its own agents, unless the
//! entry of the agent lets them (contract 7.2).
//!
//! An agent could otherwise do as its user whatever a token keeps from the client that prompts it. The entry that stands
//! now counts, not the one that a process was started with. Not here: which user a process runs as.

use super::Agents;
use acpd_supervisor::Lineage;
use std::sync::Arc;

/// Why a process may not use the socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallerRefused {
    /// It was started by an agent.
    #[error(
        "process {pid} was started by the agent \"{agent}\" of this daemon, whose socket is not for its own agents; \
         control_daemon = true in [agents.{agent}] lets them in"
    )]
    OfAgent {
        /// The process.
        pid: u32,
        /// The name of the agent.
        agent: Arc<str>,
    },
    /// It was started by an agent that runs no more.
    #[error(
        "process {pid} was started by an agent of this daemon that runs no more; the socket is not for it, whatever \
         control_daemon says"
    )]
    Leftover {
        /// The process.
        pid: u32,
    },
    /// It may have been started by any.
    #[error(
        "process {pid}, which opened this connection, is gone, so that it cannot be told whether an agent of this \
         daemon started it; let the process that opens a connection live until it is answered"
    )]
    Gone {
        /// The process.
        pid: u32,
    },
}

impl Agents {
    /// Whether a process may use the socket.
    ///
    /// # Errors
    /// Why not.
    pub fn admits(&self, pid: u32) -> Result<(), CallerRefused> {
        match self.starter.supervisor.lineage(pid) {
            Lineage::Stranger => Ok(()),
            Lineage::Program(Some(agent)) => {
                match self.specs().iter().any(|entry| entry.name == *agent && entry.control_daemon) {
                    true => Ok(()),
                    false => Err(CallerRefused::OfAgent { pid, agent }),
                }
            }
            Lineage::Program(None) => Err(CallerRefused::Leftover { pid }),
            // A process that ends at once could hand its connection to one that is not let in.
            Lineage::Gone => Err(CallerRefused::Gone { pid }),
        }
    }
}
