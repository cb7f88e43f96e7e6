//! Activating an ended session: a new run of the same session (contract 1, "Runs", and 1.4).
//!
//! The agent is asked to resume the session, or else to load it, and what it replays then is dropped, because acpd
//! has the history already. One that can do neither is asked for a new session, where its entry says so, and given a
//! transcript with the next prompt. The session is claimed before the agent is asked, so that no two agents, here or
//! in another process, go on with it.

use crate::acp::method;
use crate::agent::{AgentAnswer, AgentHandle, Claim, History};
use crate::anew::{NEVER_NAMED, first_events, why_anew};
use crate::attempts::Attempt;
use crate::beforehand::{neither, tried_enough};
use crate::chain::chain;
use crate::clock;
use crate::error::HostError;
use crate::fork::with_session;
use crate::host::Host;
use crate::journal;
use crate::named::NamedSession;
use crate::refusal::{AgentError, named_otherwise};
use crate::session::SessionHandle;
use crate::setup::{permission_mode, session_setup, stored_setup};
use crate::transcript::{Transcript, TranscriptRecorder};
use acpd_eventlog::{Appender, Batch, IndexUpdate, SessionRow, WriteError};
use acpd_record::{
    AgentState, Event, Json, NativeSessionId, PermissionMode, Projection, Reason, RunStarted, SessionId,
    SessionMeta, TerminationInfo,
};
use acpd_supervisor::Pending;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::Instant;

/// How an agent goes on with a session.
struct Restored {
    /// The method that it answered.
    method: &'static str,
    answer: AgentAnswer,
    /// The new session of its own, if it could not go on with the old one.
    named: Option<NamedSession>,
}

/// Why an agent does not go on with a session.
enum Refusal {
    /// It says so, or offers no way.
    Agent(String),
    /// It says that it wants a login.
    Login(String),
    /// It could not be asked.
    Host(HostError),
}

impl From<HostError> for Refusal {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

/// A session that was activated, or found live.
#[derive(Debug)]
pub struct Activated {
    /// Speaks to it.
    pub session: SessionHandle,
    /// Its run began now, on the process that was given.
    pub fresh: bool,
    /// How the run before ended, as `terminationInfo`, if this one began now.
    pub earlier: Option<Json>,
}

/// What a run begins with once its agent has the session.
struct NextRun<'a> {
    ended: Ended,
    restored: Restored,
    claim: Claim,
    mode: Option<PermissionMode>,
    setup: Bytes,
    client: &'a str,
}

/// The stored facts of an ended session on which its activation depends.
#[derive(Debug)]
pub(crate) struct Ended {
    row: SessionRow,
    pub(crate) meta: SessionMeta,
    /// The agent's own session id; none of one that was imported, which it does not know.
    native: Option<NativeSessionId>,
    /// Its last run ended with an error; one that ended in good order is no crash loop.
    pub(crate) failed: bool,
}

impl Ended {
    /// The client's parameters, completed, with the agent's session id; or such parameters from what is stored.
    pub(crate) fn agent_params(&self, params: Option<Bytes>) -> Result<Bytes, HostError> {
        // An agent that does not know it is not told an id.
        let native = self.native.clone().unwrap_or_else(|| NativeSessionId::of_text(&self.row.id));
        let (_, params) =
            session_setup(Some(params.unwrap_or_else(|| stored_setup(&native, &self.row.cwd))))?;
        with_session(&params, native.as_json().as_bytes())
            .ok_or_else(|| HostError::InvalidParams { message: "sessionId: a string is required".to_owned() })
    }

    /// What an agent says of it, for those who do not know the agent's own id.
    fn under_own_id(&self, said: &str) -> String {
        let native = self.meta.native_session_id.as_ref().map(NativeSessionId::text).unwrap_or_default();
        named_otherwise(said, &native, &self.row.id)
    }
}

impl Host {
    /// Begins an attempt to activate a session, unless it is ended from now on.
    pub fn attempt(&self, id: &SessionId) -> Attempt {
        self.shared.sessions.attempts.begin(id)
    }

    /// Activates a session on an agent process that has none, unless it is live already. To be called inside its
    /// [span](crate::session_span).
    ///
    /// # Errors
    /// Unknown session; not resumable, with the reason; the agent is gone. The stored session is untouched then.
    pub fn activate(
        &self,
        attempt: Attempt,
        id: &SessionId,
        agent: &AgentHandle,
        params: Option<Bytes>,
        client: &str,
    ) -> Pending<'_, Result<Activated, HostError>> {
        let (host, id, agent, client) = (self.clone(), id.clone(), agent.clone(), client.to_owned());
        Box::pin(
            self.complete(async move { host.begin_next_run(attempt, &id, &agent, params, &client).await }),
        )
    }

    async fn begin_next_run(
        &self,
        mut attempt: Attempt,
        id: &SessionId,
        agent: &AgentHandle,
        given: Option<Bytes>,
        client: &str,
    ) -> Result<Activated, HostError> {
        if let Some(session) = self.shared.sessions.live.get(id) {
            return Ok(Activated { session, fresh: false, earlier: None });
        }
        let checked = attempt.checked.take();
        let was_checked = checked.is_some();
        let ended = match checked {
            Some(ended) => *ended,
            None => self.ended_session(id, agent.name()).await?,
        };
        let params = ended.agent_params(given.clone())?;
        let setup = params.clone();
        let mode = permission_mode(&params)?.or(ended.meta.permission_mode);
        if ended.failed {
            let counted = self.shared.sessions.attempts.count(id, Instant::now());
            counted.map_err(|wait| HostError::not_resumable(id, tried_enough(wait)))?;
        }
        // Claimed before the agent is asked, so that no other process asks another one.
        let store = &self.shared.store;
        let appender = match store.log.reopen(id.as_str(), store.host_file.id()).await {
            Err(WriteError::Live { owner, .. }) => Err(self.live_elsewhere(&owner, &ended.row).await)?,
            claimed => claimed?,
        };
        if was_checked && appender.next_seq() != ended.row.last_seq + 1 {
            // Another process has gone on with it since.
            self.give_back(appender, &SessionRow { updated_ms: clock::now_ms(), ..ended.row }).await;
            return Box::pin(self.begin_next_run(attempt, id, agent, given, client)).await;
        }
        let restored = attempt.unless_stopped(self.ask_to_go_on(id, agent, &ended, params)).await;
        match restored {
            Ok((restored, claim)) => {
                let next = NextRun { ended, restored, claim, mode, setup, client };
                self.record_next_run(id, agent, appender, next).await
            }
            Err(error) => {
                journal::not_activated(agent, &error, client);
                self.give_back(appender, &ended.row).await;
                Err(error)
            }
        }
    }

    /// Asks the agent to go on with a session that is claimed here.
    async fn ask_to_go_on(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        ended: &Ended,
        params: Bytes,
    ) -> Result<(Restored, Claim), HostError> {
        self.shared.recovery.wait_for_the_lost(&ended.meta, agent.spec().timeouts.graces).await;
        // Before the agent is asked, which may tell the history then: it is not for another session.
        let in_use = || format!("agent {} uses its id for another live session", agent.name());
        let claim = ended.native.as_ref().map(|native| {
            agent.claim(native.as_json()).ok_or_else(|| HostError::not_resumable(id, in_use()))
        });
        let claim = claim.transpose()?;
        let restored = match &claim {
            Some(_) => self.restore(agent, params).await,
            None => {
                let why = why_anew(&ended.meta).unwrap_or(NEVER_NAMED);
                self.begin_anew(agent, &params, why.to_owned()).await
            }
        };
        let restored = restored.map_err(|error| match error {
            Refusal::Host(error) => error,
            Refusal::Agent(reason) => HostError::not_resumable(id, ended.under_own_id(&reason)),
            Refusal::Login(why) => HostError::login_required(id, agent.name(), ended.under_own_id(&why)),
        })?;
        let claim = match (&restored.named, claim) {
            (Some(named), claim) => {
                // Some agents give each session of a process of its own the same id, this one again.
                drop(claim);
                named.claim(restored.method, agent)?
            }
            (None, claim) => claim.ok_or_else(|| HostError::not_resumable(id, NEVER_NAMED))?,
        };
        Ok((restored, claim))
    }

    /// The session stays as it was, without an owner.
    async fn give_back(&self, appender: Appender, row: &SessionRow) {
        let index = IndexUpdate { updated_ms: row.updated_ms, owner: Some(None), ..IndexUpdate::default() };
        if let Err(error) = appender.append_final(Batch::index_only(index)).await {
            tracing::error!(error = chain(&error), "a session could not be given back");
        }
    }

    async fn record_next_run(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        mut appender: Appender,
        next: NextRun<'_>,
    ) -> Result<Activated, HostError> {
        let NextRun { mut ended, restored, claim, mode, setup, client } = next;
        let Restored { method, answer, named } = restored;
        let last = appender.next_seq() - 1;
        let (mut projection, transcript) = self.rebuild(id, &ended.meta, last, named.is_some()).await?;
        let (state, agent_info) = (AgentState::of_lifecycle(&answer.body), agent.info().own_info());
        let started = Event::RunStarted(RunStarted {
            pid: agent.pid(),
            agent_info: Some(agent_info.raw()),
            by: Some(client.into()),
            method: Some(method.into()),
            transcript: transcript.as_ref().map(Transcript::facts),
            state: Some(state).filter(|state| !state.is_empty()),
        });
        let now = clock::now_ms();
        let mut batch = first_events(id, &ended.meta, &mut projection, (&started, now));
        if let Some(named) = &named {
            ended.meta.native_session_id = Some(named.native.clone());
            ended.native = Some(named.native.clone());
        }
        let native = ended.native.ok_or_else(|| HostError::not_resumable(id, NEVER_NAMED))?;
        let earlier = ended.meta.run_started(projection.runs());
        (ended.meta.permission_mode, ended.meta.keeper) = (mode, agent.keeper());
        ended.meta.tell(&projection);
        batch.update_index(IndexUpdate {
            updated_ms: now,
            ended: Some(false),
            info: Some(ended.meta.write()),
            ..IndexUpdate::default()
        });
        appender.append_durable(batch).await?;
        journal::activated(agent, method, transcript.is_some(), client);
        let run = crate::run::Run {
            created_by: ended.row.created_by.map(Arc::from),
            native,
            position: 0,
            projection: Box::new(projection),
            transcript,
            meta: ended.meta,
            cwd: ended.row.cwd,
            created_ms: ended.row.created_ms,
            setup,
            client: client.into(),
        };
        let history = match named {
            // It knows nothing that it could replay.
            Some(_) => History::Keep,
            None => History::Drop(Box::new(run.projection.snapshot().clone()), answer.position),
        };
        let session = self.begin_run(id, agent, appender, run, (claim, history)).await?;
        Ok(Activated { session, fresh: true, earlier })
    }

    /// Asks the agent to go on with a session: by `session/resume`, else by `session/load`, else by a new one, if that is
    /// wanted, also when it has a method and refuses the session: it may have lost it. A method that it turns out not to
    /// have is remembered and not tried again (contract 1.4).
    async fn restore(&self, agent: &AgentHandle, params: Bytes) -> Result<Restored, Refusal> {
        let mut refused = neither(agent.name());
        for method in agent.downgrade().activation_methods() {
            let answer = self.shared.agents.ask_for_session(agent, method, params.clone()).await?;
            if !answer.is_error {
                return Ok(Restored { method, answer, named: None });
            }
            let error = AgentError::read(&answer.body);
            refused = refusal(agent, method, &error);
            if !error.is_missing() {
                // An agent that wants a login has not lost the session.
                if error.wants_login() {
                    return Err(Refusal::Login(refused));
                }
                // It knows the method, but not the session.
                break;
            }
            agent.methods().remember_missing(method);
        }
        match agent.spec().resume_with_transcript {
            true => self.begin_anew(agent, &params, refused).await,
            // What is wrong is not for acpd to hide (SE-9).
            false => Err(Refusal::Agent(refused)),
        }
    }

    /// Asks for a new session of the agent's in place of the one with which it cannot go on.
    async fn begin_anew(
        &self,
        agent: &AgentHandle,
        params: &[u8],
        refused: String,
    ) -> Result<Restored, Refusal> {
        let mut params: Map<String, Value> = acpd_wire::read(params).unwrap_or_default();
        params.remove("sessionId");
        let params = serde_json::to_vec(&params).expect("it is JSON");
        let method = method::SESSION_NEW;
        let answer = self.shared.agents.ask_for_session(agent, method, params.into()).await?;
        if answer.is_error {
            let anew = refusal(agent, method, &AgentError::read(&answer.body));
            return Err(Refusal::Agent(format!("{refused}; with a transcript: {anew}")));
        }
        let named = NamedSession::read(method, &answer.body)?;
        journal::begun_anew(agent, &refused);
        Ok(Restored { method, answer, named: Some(named) })
    }

    /// The stored facts of a session that is to be activated on `agent`.
    pub(crate) async fn ended_session(&self, id: &SessionId, agent: &str) -> Result<Ended, HostError> {
        let row = self.shared.recovery.recovered(id).await?;
        if let Some(owner) = row.owner.as_deref().filter(|owner| *owner != self.shared.store.host_file.id()) {
            return Err(self.live_elsewhere(owner, &row).await);
        }
        if row.agent != agent {
            return Err(HostError::not_resumable(id, format!("it belongs to agent {}", row.agent)));
        }
        let meta = self.shared.store.whole_meta(id, &row).await;
        let end: Option<TerminationInfo> = meta.termination().ok();
        if let Some(end) = end.as_ref().filter(|end| end.reason == Reason::Terminated) {
            return Err(HostError::Terminated { id: id.to_string(), info: Arc::new(end.clone()) });
        }
        self.shared.fleet.fence.pass(meta.partition)?;
        let reason = end.map(|end| end.reason);
        let native = meta.native_session_id.clone();
        if native.is_none() {
            self.check_without_native(id, agent, &meta)?;
        }
        Ok(Ended { row, meta, native, failed: reason == Some(Reason::Error) })
    }

    /// What the history says of the session, and a transcript if one is needed and anything was said. That needs each event.
    async fn rebuild(
        &self,
        id: &SessionId,
        meta: &SessionMeta,
        last: u64,
        with_transcript: bool,
    ) -> Result<(Projection, Option<Transcript>), HostError> {
        let store = &self.shared.store;
        if !with_transcript {
            return Ok((store.recall(id, meta, last).await?, None));
        }
        let mut transcript = TranscriptRecorder::default();
        let projection = store.recall_each(id, meta, last, |event| transcript.see(event)).await?;
        Ok((projection, transcript.finish()))
    }
}

fn refusal(agent: &AgentHandle, method: &str, error: &AgentError) -> String {
    format!("agent {} refused {method}: {}", agent.name(), error.sentence())
}
