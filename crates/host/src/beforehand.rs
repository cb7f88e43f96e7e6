//! What can be said of a request for a session before an agent is started for it: nothing is started for one that
//! cannot succeed.
//!
//! What is found wrong here is found wrong again, with the same words, by what does the work: in between, things change.

use crate::acp::method;
use crate::agent::AgentRef;
use crate::attempts::Attempt;
use crate::error::HostError;
use crate::host::Host;
use crate::setup::{chosen_title, partition, permission_mode, session_setup};
use acpd_record::{Partition, SessionId};
use acpd_supervisor::Pending;
use bytes::Bytes;
use tokio::time::Instant;

impl Host {
    /// Whether a session can be created, as far as its parameters tell.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn check_new(&self, params: Option<&Bytes>) -> Result<Partition, HostError> {
        let (_, params) = session_setup(params.cloned())?;
        chosen_title(&params)?;
        permission_mode(&params)?;
        self.policy_of_new(&params)
    }

    /// What becomes of a session with these params when its node is cut off.
    ///
    /// # Errors
    /// When they do not say it right, or no such session may run now.
    pub(crate) fn policy_of_new(&self, params: &[u8]) -> Result<Partition, HostError> {
        let fleet = &self.shared.fleet;
        let policy = fleet.policy(partition(params)?)?;
        fleet.fence.pass(policy).map(|()| policy)
    }

    /// Whether the session `source` can be forked on `agent`; `known` is a process of it that told what it can do.
    ///
    /// # Errors
    /// Those of [`fork_session`](Self::fork_session).
    pub(crate) fn check_fork<'a>(
        &'a self,
        source: &'a SessionId,
        agent: &'a str,
        known: Option<&'a AgentRef>,
        params: Option<&'a Bytes>,
    ) -> Pending<'a, Result<Partition, HostError>> {
        Box::pin(async move {
            let policy = self.fork_of(source, agent, params.cloned()).await?.meta.partition;
            match self.as_it_stands(agent, known) {
                Some(known) if !known.can_fork() => {
                    Err(HostError::MethodNotFound { method: method::SESSION_FORK.to_owned() })
                }
                _ => Ok(policy),
            }
        })
    }

    /// Whether the ended session `id` can be activated on `agent`; `known` is a process of it that has declared its methods.
    /// What is read for that need not be read again in this attempt.
    ///
    /// # Errors
    /// Those of [`activate`](Self::activate).
    pub(crate) fn check_activation<'a>(
        &'a self,
        attempt: &'a mut Attempt,
        id: &'a SessionId,
        agent: &'a str,
        known: Option<&'a AgentRef>,
        params: Option<&'a Bytes>,
    ) -> Pending<'a, Result<(), HostError>> {
        Box::pin(async move {
            let ended = self.ended_session(id, agent).await?;
            permission_mode(&ended.agent_params(params.cloned())?)?;
            if ended.failed {
                let may = self.shared.sessions.attempts.may(id, Instant::now());
                may.map_err(|wait| HostError::not_resumable(id, tried_enough(wait)))?;
            }
            match self.as_it_stands(agent, known) {
                Some(known) if !known.can_go_on() => Err(HostError::not_resumable(id, neither(agent))),
                _ => {
                    attempt.checked = Some(Box::new(ended));
                    Ok(())
                }
            }
        })
    }

    /// What a process has told counts only while its entry stands: another program may have other methods.
    fn as_it_stands<'a>(&self, agent: &str, known: Option<&'a AgentRef>) -> Option<&'a AgentRef> {
        known.filter(|known| known.spec().name == agent && self.shared.agents.stands(known.spec()))
    }
}

/// Why a session that keeps failing is not activated now.
pub(crate) fn tried_enough(wait: std::time::Duration) -> String {
    use crate::rate_limit::{ATTEMPTS, WINDOW};
    format!(
        "it was taken up {ATTEMPTS} times within {} s; try again in {} s",
        WINDOW.as_secs(),
        wait.as_secs() + 1
    )
}

/// Why an agent without either method activates no session.
pub(crate) fn neither(agent: &str) -> String {
    format!("agent {agent} can neither resume nor load a session")
}
