//! Forking a session: a new one that begins with the history of another (SE-18).
//!
//! The agent forks its own session; acpd copies what it has recorded of the conversation up to now. The source is not
//! touched. What the agent replays for the new session is dropped, because the copy has it.

mod history_copy;
mod live_source;

use crate::acp::method;
use crate::agent::{AgentAnswer, AgentHandle};
use crate::chain::chain;
use crate::checkpoints;
use crate::clock;
use crate::create::{FirstRun, NewSession};
use crate::error::HostError;
use crate::host::Host;
use crate::journal;
use crate::named::NamedSession;
use crate::refusal::{AgentError, advising, under_own_id};
use crate::setup::{Creator, permission_mode, session_setup, stored_setup};
use crate::spans;
use acpd_eventlog::{Appender, Batch, IndexUpdate, SessionRow};
use acpd_record::{AgentState, NativeSessionId, PermissionMode, Projection, SessionId, SessionMeta};
use acpd_supervisor::Pending;
use acpd_wire::{member, span_of};
use bytes::{Bytes, BytesMut};
use history_copy::HistoryCopy;
use serde_json::value::RawValue;
use std::sync::Arc;
use tracing::Instrument;

/// A session that is to be forked.
pub(crate) struct ForkOf {
    source: SessionId,
    row: SessionRow,
    pub(crate) meta: SessionMeta,
    /// The agent's own id of it.
    native: NativeSessionId,
    /// Where the fork works.
    cwd: String,
    /// What the agent is asked with.
    params: Bytes,
    mode: Option<PermissionMode>,
}

/// The outcome of activating the source of a fork in another process.
enum Brought {
    /// It is there now.
    Now,
    /// The agent refuses it, with this error.
    Refused(AgentAnswer),
    /// It was there, or the agent has no way to it.
    No,
}

fn missing() -> HostError {
    HostError::MethodNotFound { method: method::SESSION_FORK.to_owned() }
}

fn is_missing(answer: &AgentAnswer) -> bool {
    answer.is_error && AgentError::read(&answer.body).is_missing()
}

impl Host {
    /// Forks the session `source` on an agent process: its own if it is shared, else one that has no session.
    ///
    /// # Errors
    /// Unknown source; an agent that cannot fork; the agent's own error. Nothing is left behind then.
    pub fn fork_session(
        &self,
        source: &SessionId,
        agent: &AgentHandle,
        params: Option<Bytes>,
        creator: Creator,
    ) -> Pending<'_, Result<NewSession, HostError>> {
        let (host, source, agent) = (self.clone(), source.clone(), agent.clone());
        Box::pin(self.complete(async move { host.create_fork(&source, &agent, params, creator).await }))
    }

    async fn create_fork(
        &self,
        source: &SessionId,
        agent: &AgentHandle,
        params: Option<Bytes>,
        creator: Creator,
    ) -> Result<NewSession, HostError> {
        let asked = async {
            let fork = self.fork_of(source, agent.name(), params).await?;
            if !agent.downgrade().can_fork() {
                return Err(missing());
            }
            self.ask_to_fork(&fork, agent).await.map(|answer| (fork, answer))
        };
        let (fork, answer) = asked.instrument(spans::of_session(source)).await?;
        let id = crate::ids::fresh_session_id();
        let begun = self.begin_fork(&id, fork, answer, agent, creator);
        begun.instrument(spans::of_session(&id)).await
    }

    /// Records the fork `id`, which `agent` has made, and begins its run.
    async fn begin_fork(
        &self,
        id: &SessionId,
        fork: ForkOf,
        answer: AgentAnswer,
        agent: &AgentHandle,
        creator: Creator,
    ) -> Result<NewSession, HostError> {
        let ForkOf { source, row, meta: source_meta, cwd, mode, params: setup, .. } = fork;
        let named = NamedSession::read(method::SESSION_FORK, &answer.body)?;
        let claim = named.claim(method::SESSION_FORK, agent)?;
        let mut meta = SessionMeta::default();
        meta.native_session_id = Some(named.native.clone());
        meta.forked_from = Some(source);
        meta.permission_mode = mode;
        meta.partition = source_meta.partition;
        meta.title.clone_from(&source_meta.title);
        let (mut appender, projection) =
            self.create_record(id, agent, (&cwd, AgentState::default()), &mut meta, &creator).await?;
        let copy = HistoryCopy::new(id, source_meta.forked_from.is_some(), projection);
        let filled = self.copy_history(&row, copy, &answer.body, &mut meta, &mut appender);
        let projection = match filled.await {
            Ok(filled) => filled,
            Err(error) => {
                self.discard_partial_fork(appender).await;
                return Err(error);
            }
        };
        let first = FirstRun { named, claim, meta, cwd, setup, projection };
        self.begin_first_run(id, agent, appender, first, creator, &answer).await
    }

    /// What is stored of the session `source`, and what is asked of `agent` to fork it.
    pub(crate) async fn fork_of(
        &self,
        source: &SessionId,
        agent: &str,
        params: Option<Bytes>,
    ) -> Result<ForkOf, HostError> {
        let row = self.shared.recovery.recovered(source).await?;
        if row.agent != agent {
            let reason = format!("it belongs to agent {}; fork it on a connection to that agent", row.agent);
            return Err(HostError::not_resumable(source, reason));
        }
        let meta = SessionMeta::read(&row.info);
        self.shared.fleet.fence.pass(meta.partition)?;
        let native = meta.native_session_id.clone();
        let native = native.ok_or_else(|| HostError::not_resumable(source, "the agent never named it"))?;
        let (cwd, params) = session_setup(params)?;
        let mode = permission_mode(&params)?.or(meta.permission_mode);
        let params = with_session(&params, native.as_json().as_bytes());
        let params = params.ok_or_else(|| HostError::InvalidParams {
            message: "sessionId: the id of the session to fork is required".to_owned(),
        })?;
        Ok(ForkOf { source: source.clone(), row, meta, native, cwd, params, mode })
    }

    /// Asks an agent to fork one of its sessions. Some know only those that are in their process: that of a live source is
    /// asked first; a process that refuses is given the source, and asked again.
    async fn ask_to_fork(&self, fork: &ForkOf, agent: &AgentHandle) -> Result<AgentAnswer, HostError> {
        let ask = || self.shared.agents.ask_for_session(agent, method::SESSION_FORK, fork.params.clone());
        let mut answer = match self.fork_where_it_lives(fork, agent).await {
            Some(answer) => answer,
            None => ask().await?,
        };
        if answer.is_error && !is_missing(&answer) {
            match self.bring_source(fork, agent).await? {
                Brought::Now => answer = ask().await?,
                // A process that does not let another one have its session says so, and not why there is no fork.
                Brought::Refused(refused) if self.is_live(&fork.source) => {
                    answer.body = advising(&refused.body, "close the session first");
                }
                Brought::Refused(_) | Brought::No => {}
            }
        }
        match answer.is_error {
            false => Ok(answer),
            true if is_missing(&answer) => {
                agent.methods().remember_missing(method::SESSION_FORK);
                Err(missing())
            }
            // The client knows the source by acpd's id only.
            true => Err(HostError::Agent {
                error: under_own_id(&answer.body, &fork.native.text(), fork.source.as_str()),
            }),
        }
    }

    /// Activates the source in an agent process that does not have it. What it says of it there is dropped.
    async fn bring_source(&self, fork: &ForkOf, agent: &AgentHandle) -> Result<Brought, HostError> {
        let live = self.shared.sessions.live.get(&fork.source);
        if live.is_some_and(|session| session.agent().pid() == agent.pid()) {
            return Ok(Brought::No);
        }
        let params = stored_setup(&fork.native, &fork.row.cwd);
        let mut brought = Brought::No;
        for method in agent.downgrade().activation_methods() {
            let answer = self.shared.agents.ask_for_session(agent, method, params.clone()).await?;
            if !answer.is_error {
                agent.disown(Arc::clone(fork.native.as_json()));
                return Ok(Brought::Now);
            }
            if is_missing(&answer) {
                agent.methods().remember_missing(method);
            } else {
                brought = Brought::Refused(answer);
            }
        }
        Ok(brought)
    }

    /// No client knows of this session, and it does not come to be: it leaves the log as if it had never been there.
    async fn discard_partial_fork(&self, appender: Appender) {
        let id = appender.id().to_owned();
        let released = IndexUpdate {
            updated_ms: clock::now_ms(),
            ended: Some(true),
            owner: Some(None),
            ..IndexUpdate::default()
        };
        let forgotten = match appender.append_final(Batch::index_only(released)).await {
            Ok(_) => self.shared.store.log.delete(&id, self.shared.store.host_file.id()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = forgotten {
            tracing::error!(error = chain(&error), "a session that did not come to be is left");
        }
    }

    /// Copies the conversation of `source`, and records what it does not tell of the state that a fork begins with.
    async fn copy_history(
        &self,
        source: &SessionRow,
        mut copy: HistoryCopy,
        answer: &[u8],
        meta: &mut SessionMeta,
        appender: &mut Appender,
    ) -> Result<Projection, HostError> {
        let mut cursor = self.shared.store.log.cursor(&source.id, 0).await?;
        while cursor.position() < source.last_seq {
            let unknown = || HostError::UnknownSession { id: source.id.clone() };
            let block = cursor.next().await?.ok_or_else(unknown)?;
            let mut batch = Batch::of_history();
            for event in block.events().take_while(|event| event.seq <= source.last_seq) {
                copy.take(&event, clock::now_ms(), &mut batch);
            }
            if !batch.is_empty() {
                appender.append_durable(batch).await?;
            }
        }
        if let Some(id) = SessionId::parse(&source.id) {
            journal::history_read(&id, copy.source(), copy.source().last_seq());
            checkpoints::keep(&self.shared.store.log, &id, copy.source());
        }
        let (mut batch, now) = (Batch::of_history(), clock::now_ms());
        let projection = copy.finish(&AgentState::of_lifecycle(answer), now, &mut batch);
        // What was copied may say otherwise.
        meta.describe(projection.snapshot().glance());
        let info = Some(meta.write());
        batch.update_index(IndexUpdate { updated_ms: now, info, ..IndexUpdate::default() });
        appender.append_durable(batch).await?;
        if let Some(id) = SessionId::parse(appender.id()) {
            checkpoints::keep(&self.shared.store.log, &id, &projection);
        }
        Ok(projection)
    }
}

/// `params` with another `sessionId`.
pub(crate) fn with_session(params: &[u8], id_json: &[u8]) -> Option<Bytes> {
    let raw: &RawValue = serde_json::from_slice(params).ok()?;
    let span = span_of(params, member(raw, "sessionId")?)?;
    let mut out = BytesMut::new();
    acpd_wire::splice(&mut out, params, &[(span, id_json)]);
    Some(out.freeze())
}
