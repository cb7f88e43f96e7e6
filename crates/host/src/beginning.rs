//! From a request of a client to a live session: what cannot be is refused first, then a process is found or started, then
//! its agent is asked. One order of steps for every way in which clients ask.
//!
//! Not here: what is asked of the agent, and what becomes of the answer.

use crate::activate::Activated;
use crate::agent::{AgentHandle, AgentRef};
use crate::attempts::Attempt;
use crate::create::NewSession;
use crate::error::HostError;
use crate::host::Host;
use crate::session::{Attached, SessionHandle, check_content};
use crate::setup::{Creator, closes_after_turn};
use acpd_record::{Json, Partition, Reason, SessionId};
use acpd_supervisor::Pending;
use bytes::Bytes;
use serde_json::value::RawValue;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Where a session is to run.
#[derive(Debug, Default)]
pub struct Place {
    /// The name of its agent.
    pub agent: String,
    /// A process of that agent that has told what it can do.
    pub known: Option<AgentRef>,
    /// Where a process is started.
    pub cwd: Option<PathBuf>,
    /// A process that waits for a session.
    pub spare: Option<AgentHandle>,
}

/// A live session that a client joins.
#[derive(Debug)]
pub struct Joined {
    /// Speaks to it.
    pub live: SessionHandle,
    /// What the client has to know.
    pub attached: Attached,
    /// What is history to the client; all that follows it sees as it comes.
    pub until: u64,
    /// How the run before ended, as `terminationInfo`, if this one began for the client.
    pub earlier: Option<Json>,
}

/// A session that is to begin.
#[derive(Debug)]
pub struct Beginning<'a> {
    /// The session whose history it begins with.
    pub source: Option<&'a SessionId>,
    /// Those of `session/new`, or of `session/fork`.
    pub params: Option<Bytes>,
    /// The content of its first prompt, which the agent has to take.
    pub prompt: Option<&'a RawValue>,
    /// Who creates it.
    pub creator: Creator,
}

/// Why no session came of a request, and the process that was found for it and has none.
type Unused = (HostError, Option<AgentHandle>);

impl Host {
    /// Creates a session.
    ///
    /// # Errors
    /// Content that the agent does not take, and those of [`new_session`](Self::new_session) and [`fork_session`](Self::fork_session). The process comes back: a refused
    /// session says nothing against it, and the next attempt may follow a login.
    pub fn begin<'a>(
        &'a self,
        place: Place,
        Beginning { source, params, prompt, creator }: Beginning<'a>,
    ) -> Pending<'a, Result<NewSession, Unused>> {
        Box::pin(async move {
            if self.shared.drains.load(Ordering::Relaxed) {
                return Err((HostError::Draining, place.spare));
            }
            let known = place.known.as_ref();
            let checked = match source {
                None => self.check_new(params.as_ref()),
                Some(source) => self.check_fork(source, &place.agent, known, params.as_ref()).await,
            };
            let policy = match checked.and_then(|policy| closes_after_turn(params.as_ref()).map(|_| policy)) {
                Ok(policy) => policy,
                Err(error) => return Err((error, place.spare)),
            };
            let agent = self.process_for(place, policy).await.map_err(|error| (error, None))?;
            if let Some(Err(error)) = prompt.map(|prompt| check_content(prompt, agent.info().prompt)) {
                return Err((error, Some(agent)));
            }
            let created = match source {
                None => self.new_session(&agent, params, creator).await,
                Some(source) => self.fork_session(source, &agent, params, creator).await,
            };
            if let Ok(created) = &created {
                self.shared.fleet.begun(created.session.id()).await;
            }
            created.map_err(|error| (error, Some(agent)))
        })
    }

    /// Finds a session live, or activates it. The process that was not needed comes back. To be called inside the
    /// session's [span](crate::session_span).
    pub fn join<'a>(
        &'a self,
        id: &'a SessionId,
        mut attempt: Attempt,
        place: Place,
        params: Option<Bytes>,
        client: &'a str,
    ) -> Pending<'a, (Result<Joined, HostError>, Option<AgentHandle>)> {
        Box::pin(async move {
            match self.find_live(id).await {
                Ok(Some(joined)) => return (Ok(joined), place.spare),
                Ok(None) => attempt.wait_for_turn().await,
                Err(error) => return (Err(error), place.spare),
            }
            // Another client may have activated it meanwhile.
            if self.is_live(id)
                && let Ok(Some(joined)) = self.find_live(id).await
            {
                return (Ok(joined), place.spare);
            }
            // What cannot be starts nothing.
            let known = place.known.as_ref();
            let checked = self.check_activation(&mut attempt, id, &place.agent, known, params.as_ref()).await;
            if let Err(error) = checked.and_then(|()| closes_after_turn(params.as_ref())) {
                return (Err(error), place.spare);
            }
            let policy = attempt.checked.as_ref().map(|ended| ended.meta.partition).unwrap_or_default();
            let agent = match attempt.unless_stopped(self.process_for(place, policy)).await {
                Ok(agent) => agent,
                Err(error) => return (Err(error), None),
            };
            match self.activate(attempt, id, &agent, params, client).await {
                Ok(Activated { session: live, fresh, earlier }) => {
                    let joined = live.attach().await.map(|attached| {
                        // What the new run says of itself is no history, even if it has said it already.
                        let until = if fresh { live.began_after() } else { attached.seq };
                        Joined { live, attached, until, earlier }
                    });
                    (joined, (!fresh).then_some(agent))
                }
                Err(error) => (Err(error), Some(agent)),
            }
        })
    }

    /// A session that is live; None when it may be activated.
    ///
    /// # Errors
    /// When there is none of that id, it was terminated, another process has it, or it may not run now.
    pub async fn find_live(&self, id: &SessionId) -> Result<Option<Joined>, HostError> {
        match self.session_now(id).await {
            // Else it has ended just now.
            Ok(Some(live)) => {
                live.pass_fence()?;
                Ok(live.attach().await.ok().map(|attached| {
                    let until = attached.seq;
                    Joined { live, attached, until, earlier: None }
                }))
            }
            // Final, so no process is started to find that out.
            Err(HostError::SessionEnded { id, info }) if info.reason == Reason::Terminated => {
                Err(HostError::Terminated { id, info })
            }
            // Or its next run is recorded, and live in a moment: what takes it up as well waits for that.
            Ok(None) | Err(HostError::SessionEnded { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The process that waits for a session, unless its entry has changed since or it serves others, or else one that is started.
    async fn process_for(&self, place: Place, policy: Partition) -> Result<AgentHandle, HostError> {
        let agents = self.agents();
        match place.spare.filter(|agent| agents.still_offers(agent) && agents.serves(agent, policy)) {
            Some(agent) => Ok(agent),
            None => agents.connect(&place.agent, place.cwd.as_deref(), policy).await,
        }
    }
}
