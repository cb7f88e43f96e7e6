//! Creating sessions.

use crate::acp::method;
use crate::agent::{AgentAnswer, AgentHandle, Claim, History};
use crate::clock;
use crate::error::HostError;
use crate::host::Host;
use crate::journal;
use crate::named::NamedSession;
use crate::recording;
use crate::refusal::with_login_command;
use crate::run::Run;
use crate::session::SessionHandle;
use crate::setup::{Creator, chosen_title, permission_mode, session_setup};
use crate::spans;
use acpd_eventlog::{Appender, Batch};
use acpd_record::{
    AgentState, Created, Event, Glance, Position, Projection, RawMessage, RunNumber, RunStarted, SessionId,
    SessionMeta,
};
use acpd_supervisor::Pending;
use bytes::Bytes;
use tracing::{Instrument, Span};

/// A session that was just created.
#[derive(Debug)]
pub struct NewSession {
    /// Speaks to it.
    pub session: SessionHandle,
    /// The agent's result, with acpd's session id.
    pub result: Bytes,
    /// The number of its first events: those of its creation, and for a fork the copied history.
    pub initial_events: u64,
}

/// What the first run of a session begins with.
pub(crate) struct FirstRun {
    pub(crate) named: NamedSession,
    pub(crate) claim: Claim,
    pub(crate) meta: SessionMeta,
    pub(crate) cwd: String,
    pub(crate) setup: Bytes,
    pub(crate) projection: Projection,
}

impl Host {
    /// Creates a session on an agent process that has none.
    ///
    /// # Errors
    /// Bad parameters, the agent's own error, or its silence. The process is left as it is.
    pub fn new_session(
        &self,
        agent: &AgentHandle,
        params: Option<Bytes>,
        creator: Creator,
    ) -> Pending<'_, Result<NewSession, HostError>> {
        let (host, agent) = (self.clone(), agent.clone());
        Box::pin(self.complete(async move { host.create_session(&agent, params, creator).await }))
    }

    /// Runs `work` to its end though its caller may be gone: a session that was recorded gets its task, or
    /// its end.
    ///
    /// # Errors
    /// Those of the work; it panicked; the host shuts down.
    pub async fn complete<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, HostError>> + Send + 'static,
    ) -> Result<T, HostError> {
        match self.shared.scope.within(Span::current()).spawn("session start", work).await {
            Ok(Some(done)) => done,
            Ok(None) => Err(HostError::Broken),
            Err(_) => Err(HostError::ShuttingDown),
        }
    }

    async fn create_session(
        &self,
        agent: &AgentHandle,
        params: Option<Bytes>,
        creator: Creator,
    ) -> Result<NewSession, HostError> {
        let (cwd, params) = session_setup(params)?;
        let (mode, title) = (permission_mode(&params)?, chosen_title(&params)?);
        let policy = self.policy_of_new(&params)?;
        let setup = params.clone();
        let answer = self.shared.agents.ask_for_session(agent, method::SESSION_NEW, params).await?;
        if answer.is_error {
            return Err(HostError::Agent { error: with_login_command(answer.body, agent.name()) });
        }
        let named = NamedSession::read(method::SESSION_NEW, &answer.body)?;
        let claim = named.claim(method::SESSION_NEW, agent)?;
        let id = creator.session_id();
        let state = AgentState::of_lifecycle(&answer.body);
        let mut meta = SessionMeta::default();
        meta.native_session_id = Some(named.native.clone());
        meta.permission_mode = mode;
        meta.partition = policy;
        meta.title = title;
        meta.created_under.clone_from(&creator.key);
        let begun = async {
            let (appender, projection) =
                self.create_record(&id, agent, (&cwd, state), &mut meta, &creator).await?;
            let first = FirstRun { named, claim, meta, cwd, setup, projection };
            self.begin_first_run(&id, agent, appender, first, creator, &answer).await
        };
        begun.instrument(spans::of_session(&id)).await
    }

    /// Begins the run of a session that was just recorded.
    pub(crate) async fn begin_first_run(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        appender: Appender,
        first: FirstRun,
        creator: Creator,
        answer: &AgentAnswer,
    ) -> Result<NewSession, HostError> {
        let FirstRun { named, claim, meta, cwd, setup, projection } = first;
        // What the agent replays for a fork is in the copy of its history.
        let history = match meta.forked_from {
            Some(_) => History::Drop(Box::new(projection.snapshot().clone()), answer.position),
            None => History::Keep,
        };
        let run = Run {
            created_by: creator.token,
            native: named.native.clone(),
            position: 0,
            transcript: None,
            meta,
            cwd,
            created_ms: projection.run_started_ms(),
            projection: Box::new(projection),
            setup,
            client: creator.client,
        };
        let initial_events = appender.next_seq() - 1;
        let session = self.begin_run(id, agent, appender, run, (claim, history)).await?;
        Ok(NewSession { session, result: named.result_for(&answer.body, id), initial_events })
    }

    /// Records a new session that works in `cwd`, and its first run, which begins with `state`.
    pub(crate) async fn create_record(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        (cwd, state): (&str, AgentState),
        meta: &mut SessionMeta,
        creator: &Creator,
    ) -> Result<(Appender, Projection), HostError> {
        let started_ms = clock::now_ms();
        meta.client = Some((*creator.client).to_owned());
        meta.runs = Some(RunNumber(1));
        meta.keeper = agent.keeper();
        // The environment and headers of MCP servers may hold secrets (SE-3), so parameters are not recorded.
        let created = Event::Created(Created {
            agent: agent.name().into(),
            cwd: cwd.into(),
            by: Some((&*creator.client).into()),
            forked_from: meta.forked_from.clone(),
        });
        let agent_info = agent.info().own_info();
        let started = Event::RunStarted(RunStarted {
            pid: agent.pid(),
            agent_info: Some(agent_info.raw()),
            state: Some(state).filter(|state| !state.is_empty()),
            ..RunStarted::default()
        });
        let (mut events, mut projection) = (Batch::new(), Projection::default());
        // The title of a fork is that of its source, whose history has it.
        let title = meta.title.take();
        let chosen = title.as_deref().filter(|_| meta.forked_from.is_none());
        let chosen = chosen.map(|title| acpd_record::chosen_title(id, title));
        let chosen = chosen.as_deref().map(|line| Event::Update(RawMessage::stored(line)));
        for (seq, event) in (1..).zip([&created, &started].into_iter().chain(&chosen)) {
            projection.apply(Position { seq, at_ms: started_ms }, event);
            recording::push(&mut events, started_ms, event);
        }
        meta.describe(Glance { title, ..projection.snapshot().glance() });
        let new = acpd_eventlog::NewSession {
            id: id.to_string(),
            agent: agent.name().to_owned(),
            cwd: cwd.to_owned(),
            owner: self.shared.store.host_file.id().to_owned(),
            created_by: creator.token.as_deref().map(str::to_owned),
            created_ms: started_ms,
            info: meta.write(),
            events,
        };
        let appender = self.shared.store.log.create(new).await.inspect_err(|error| {
            journal::session_not_recorded(agent.name(), cwd, creator, error);
            self.shared.store.doubt();
        })?;
        journal::session_created(agent.name(), cwd, creator);
        Ok((appender, projection))
    }
}
