//! The host: creates sessions, ends everything.

mod agents;
mod ask;
mod callers;

use agents::Entries;
pub use agents::check_agent;
pub use callers::CallerRefused;

use crate::acp::method;
use crate::agent::{
    self, AgentHandle, AgentRef, AgentStarter, Claim, History, MethodMemory, SESSION_INPUTS, SessionInput,
    Spares,
};
use crate::attempts::Attempts;
use crate::check::CheckCache;
use crate::clock;
use crate::error::HostError;
use crate::files::{FileSlots, Files, FilesSpec};
use crate::host_file::HostFile;
use crate::journal::{self, RunJournal};
use crate::keyed_locks::KeyedLocks;
use crate::named::NamedSession;
use crate::recording;
use crate::registry::Registry;
use crate::services::Services;
use crate::session::{
    AboutRun, COMMANDS, EndOutcome, EndRequest, Handover, Limits, Past, RunFacts, SessionCore, SessionHandle,
    SessionParts, SessionTask, SharedCore,
};
use crate::setup::{Creator, permission_mode, session_setup};
use crate::spec::AgentSpec;
use crate::termination::chain;
use crate::transcript::Transcript;
use crate::viewers::Viewers;
use acpd_eventlog::{Appender, Batch, Cursor, CursorError, EventLog, IndexUpdate, SessionRow, WriteError};
use acpd_record::{
    AgentState, Created, Event, Glance, NativeSessionId, PermissionMode, Position, Projection, RunNumber,
    RunStarted, SessionId, SessionMeta, TerminationInfo,
};
use acpd_supervisor::{Pending, Supervisor, TaskScope};
use acpd_terminal::{TerminalSettings, Terminals};
use bytes::Bytes;
use futures_util::FutureExt;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How long at most a session that ends waits for its cancelled turn, and for the agent's own close: together with the
/// ladder's graces an end stays below their sum and a second (contract 1.1.6).
const SETTLE: Duration = Duration::from_millis(300);

/// Histories that are read at once for those who look at a session that is not live here; the others wait. One is read
/// block by block, so what it takes is time.
const READINGS: usize = 2;

/// What a host is made of.
#[derive(Debug)]
pub struct HostOptions {
    /// The agents that can be started, by name.
    pub agents: BTreeMap<String, AgentSpec>,
    /// Where agents are started before a session says where it works.
    pub cwd: PathBuf,
    /// Times and bounds of the terminals that agents are given.
    pub terminal: TerminalSettings,
}

/// Hosts sessions. Cheap to clone; [`Host::shutdown`] ends it.
#[derive(Clone)]
pub struct Host {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    /// Where agents are started before a session says where it works.
    cwd: PathBuf,
    entries: RwLock<Entries>,
    pub(crate) log: EventLog,
    starter: AgentStarter,
    terminals: Arc<Terminals>,
    file_slots: FileSlots,
    spares: Spares,
    pub(crate) scope: TaskScope,
    pub(crate) registry: Registry,
    pub(crate) attempts: Attempts,
    /// Processes that serve all sessions of their agent, by the agent's name.
    shared_agents: Mutex<BTreeMap<String, AgentRef>>,
    starting: KeyedLocks,
    /// Cancelled when the host shuts down: no run begins any more, and what is being started is not waited for.
    pub(crate) closing: CancellationToken,
    pub(crate) host_file: HostFile,
    /// Histories that are read at once, for those who look at a session.
    pub(crate) readings: Semaphore,
    pub(crate) check_cache: CheckCache,
    /// Held while a dead host is recovered.
    pub(crate) recovering: tokio::sync::Mutex<()>,
}

/// What a run of a session begins with.
pub(crate) struct Run {
    /// The token that owns the session, if one does.
    pub(crate) created_by: Option<Arc<str>>,
    /// The agent's own id of it.
    pub(crate) native: NativeSessionId,
    /// No other session on its process has that id.
    pub(crate) claim: Claim,
    /// What its log says of it, up to the start of the run.
    pub(crate) projection: Box<Projection>,
    /// What its agent is given with the next prompt, because it cannot know it.
    pub(crate) transcript: Option<Transcript>,
    /// What the index knows of it.
    pub(crate) meta: SessionMeta,
    /// Its working directory.
    pub(crate) cwd: String,
    /// When the session was created, in milliseconds since 1970.
    pub(crate) created_ms: i64,
    pub(crate) mode: Option<PermissionMode>,
    /// The params of `session/new`, `load`, `resume` or `fork`: where the session works.
    pub(crate) setup: Bytes,
}

/// A session that was found.
#[derive(Debug)]
pub struct Found {
    /// The name of the token under which it was created, or None.
    pub created_by: Option<Arc<str>>,
    /// What is stored of it, if that had to be read.
    pub(crate) row: Option<SessionRow>,
}

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

impl Host {
    /// Makes a host, and recovers those that died in the same state directory: their processes are ended
    /// and their live sessions are recorded as lost.
    pub async fn open(
        options: HostOptions,
        log: EventLog,
        supervisor: Supervisor,
        scope: TaskScope,
        host_file: HostFile,
        state_dir: &Path,
    ) -> Self {
        let (memory, closing) = (MethodMemory::open(state_dir), CancellationToken::new());
        let terminals = Terminals::new(
            supervisor.clone(),
            scope.child(tracing::Span::current()),
            std::env::vars_os(),
            options.terminal,
        );
        let shared = Arc::new(Shared {
            cwd: options.cwd,
            entries: RwLock::new(Entries::new(options.agents)),
            log,
            starter: AgentStarter::new(supervisor, scope.clone(), memory, closing.clone()),
            terminals: Arc::new(terminals),
            file_slots: FileSlots::default(),
            spares: Spares::new(scope.child(tracing::Span::current())),
            scope,
            registry: Registry::default(),
            attempts: Attempts::default(),
            shared_agents: Mutex::default(),
            starting: KeyedLocks::default(),
            closing,
            host_file,
            check_cache: CheckCache::default(),
            readings: Semaphore::new(READINGS),
            recovering: tokio::sync::Mutex::default(),
        });
        let host = Self { shared };
        host.recover_dead_hosts().await;
        host.keep_recovering();
        host
    }

    /// The scope in which connections run their tasks.
    pub fn scope(&self) -> &TaskScope {
        &self.shared.scope
    }

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
    pub(crate) async fn complete<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, HostError>> + Send + 'static,
    ) -> Result<T, HostError> {
        match self.shared.scope.spawn("session start", work).await {
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
        let mode = permission_mode(&params)?;
        let setup = params.clone();
        let answer = self.ask_for_session(agent, method::SESSION_NEW, params).await?;
        if answer.is_error {
            return Err(HostError::Agent { error: answer.body });
        }
        let named = NamedSession::read(method::SESSION_NEW, &answer.body)?;
        let claim = named.claim(method::SESSION_NEW, agent).await?;
        let id = crate::ids::fresh_session_id();
        let state = AgentState::of_lifecycle(&answer.body);
        let mut meta = SessionMeta::default();
        meta.native_session_id = Some(named.native.clone());
        meta.permission_mode = mode;
        let (appender, projection) =
            self.create_record(&id, agent, (&cwd, state), &mut meta, &creator).await?;
        let run = Run {
            created_by: creator.token,
            native: named.native.clone(),
            claim,
            transcript: None,
            meta,
            cwd,
            created_ms: projection.run_started_ms(),
            projection: Box::new(projection),
            mode,
            setup,
        };
        let initial_events = appender.next_seq() - 1;
        let session = self.begin_run(&id, agent, appender, run, History::Keep).await?;
        Ok(NewSession { session, result: named.result_for(&answer.body, &id), initial_events })
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
        for (seq, event) in (1..).zip([&created, &started]) {
            projection.apply(Position { seq, at_ms: started_ms }, event);
            recording::push(&mut events, started_ms, event);
        }
        // The title of a fork is that of its source.
        let title = meta.title.take();
        meta.describe(Glance { title, ..projection.snapshot().glance() });
        let new = acpd_eventlog::NewSession {
            id: id.to_string(),
            agent: agent.name().to_owned(),
            cwd: cwd.to_owned(),
            owner: self.shared.host_file.id().to_owned(),
            created_by: creator.token.as_deref().map(str::to_owned),
            created_ms: started_ms,
            info: meta.write(),
            events,
        };
        let appender = self.shared.log.create(new).await.inspect_err(|error| {
            journal::session_not_recorded(agent.name(), cwd, creator, error);
            self.doubt();
        })?;
        journal::session_created(id, agent.name(), cwd, creator);
        Ok((appender, projection))
    }

    /// Starts the task of a session whose agent has it.
    pub(crate) async fn begin_run(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        appender: Appender,
        run: Run,
        history: History,
    ) -> Result<SessionHandle, HostError> {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (inputs_in, inputs) = mpsc::channel::<SessionInput>(SESSION_INPUTS);
        let (publish, ended) = watch::channel(None);
        let spec = Arc::clone(agent.spec());
        let is_activated = matches!(history, History::Drop(..));
        let route = match agent.bind(run.claim, inputs_in, history).await {
            Ok(route) => route,
            Err(agent::Gone) => {
                self.record_failed_start(id, appender, agent, run.meta).await;
                return Err(HostError::AgentGone { info: Arc::new(agent.termination().await) });
            }
        };
        let doubts = self.shared.check_cache.doubts();
        let journal = RunJournal::started(id.clone(), agent, run.meta.runs, doubts);
        let began_after = appender.next_seq() - 1;
        let past =
            is_activated.then(|| Box::new(Past::new(self.shared.log.clone(), id.to_string(), began_after)));
        let viewers = Viewers::default();
        let permission_mode = run.mode.unwrap_or(spec.permission_mode);
        let about = AboutRun {
            id: id.clone(),
            created_by: run.created_by,
            began_after,
            permission_mode,
            cwd: run.cwd.into(),
            created_ms: run.created_ms,
        };
        let agent_ref = agent.downgrade();
        let setup = FilesSpec::of_session(&run.setup, spec.files);
        let facts = RunFacts {
            id: id.clone(),
            native: run.native,
            permission_mode,
            prompt: agent.info().prompt,
            is_shared: agent.is_shared(),
            offered: spec.offered,
            forwards_files: setup.rules.forward,
            limits: Limits {
                cancel: spec.cancel_timeout,
                permission: spec.permission_timeout,
                idle: spec.idle_timeout,
                settle: spec.graces.stdin.min(SETTLE),
            },
        };
        let services = Services {
            cwd: setup.directories.first().cloned().unwrap_or_else(|| self.shared.cwd.clone()),
            files: Files::open(setup, &self.shared.file_slots).await,
            terminals: Arc::clone(&self.shared.terminals),
            owner: id.to_string(),
            agent: spec.name.as_str().into(),
        };
        let handover = Handover::new(run.transcript);
        let core =
            SessionCore::new(facts, *run.projection, run.meta, viewers.clone(), handover, SessionTask::now());
        let core = SharedCore::new(core);
        let seen = (core.clone(), appender.committed());
        let session = SessionHandle::new(about, agent_ref, commands, ended, seen, viewers.clone());
        let parts = SessionParts {
            journal,
            agent: agent.clone(),
            route,
            appender,
            commands: inbox,
            inputs,
            ended: publish,
            viewers,
            services,
            scope: self.shared.scope.child(tracing::Span::current()),
        };
        self.shared.registry.insert(session.clone());
        let (registry, key) = (self.shared.registry.clone(), id.clone());
        let running = Box::new(SessionTask::new(core, parts, past))
            .run()
            .map(move |()| registry.remove(&key, began_after));
        self.shared.scope.spawn_lasting("session", running);
        // Either this sees the shutdown, or the shutdown sees this session in the registry.
        if self.is_closing() {
            session.end(EndRequest::Shutdown, "daemon".into()).await;
            return Err(HostError::ShuttingDown);
        }
        Ok(session)
    }

    /// Whether it shuts down, or has.
    pub fn is_closing(&self) -> bool {
        self.shared.closing.is_cancelled()
    }

    /// The agent died between its answer and the start of the session's task.
    async fn record_failed_start(
        &self,
        id: &SessionId,
        appender: Appender,
        agent: &AgentHandle,
        mut meta: SessionMeta,
    ) {
        let termination = agent.termination().await;
        let doubts = self.shared.check_cache.doubts();
        RunJournal::started(id.clone(), agent, meta.runs, doubts).ended(&termination, 0);
        meta.ended(&termination);
        if let Err(error) = appender.append_final(ended_batch(&termination, &meta)).await {
            tracing::error!(error = chain(&error), "the end of a session could not be recorded");
        }
    }

    /// A live session, by id.
    ///
    /// # Errors
    /// When it has ended, with how, and when there is none.
    pub async fn session(&self, id: &SessionId) -> Result<SessionHandle, HostError> {
        if let Some(session) = self.shared.registry.get(id) {
            return Ok(session);
        }
        let row = self.recovered(id).await?;
        match &row.owner {
            Some(owner) if owner != self.shared.host_file.id() => return Err(self.live_elsewhere(id, owner)),
            // It is just being created, and no client knows its id yet.
            Some(_) if !row.ended => return Err(HostError::UnknownSession { id: id.to_string() }),
            _ => {}
        }
        let info = SessionMeta::read(&row.info).termination();
        let unreadable = |error: serde_json::Error| HostError::History {
            detail: format!("how the session ended cannot be read: {error}"),
        };
        Err(HostError::SessionEnded { id: id.to_string(), info: Arc::new(info.map_err(unreadable)?) })
    }

    /// Finds a session and its owner (contract 1.7): the token under which it was created, or None. `sees` says of which
    /// owners the caller may see sessions.
    ///
    /// # Errors
    /// When there is no such session for the caller, or the log cannot be read.
    pub async fn find(
        &self,
        id: &SessionId,
        sees: impl Fn(Option<&str>) -> bool,
    ) -> Result<Found, HostError> {
        let live = self.shared.registry.get(id).map(|session| session.created_by().map(Arc::clone));
        if let Some(created_by) = live.filter(|creator| sees(creator.as_deref())) {
            return Ok(Found { created_by, row: None });
        }
        // A live one of another owner takes as long as one that never was: the time must not tell them apart.
        let row = self.row(id).await?;
        match sees(row.created_by.as_deref()) {
            true => Ok(Found { created_by: row.created_by.as_deref().map(Arc::from), row: Some(row) }),
            false => Err(HostError::UnknownSession { id: id.to_string() }),
        }
    }

    /// Whether a session is live here.
    pub fn is_live(&self, id: &SessionId) -> bool {
        self.shared.registry.get(id).is_some()
    }

    /// How many sessions are live here.
    pub fn live_sessions(&self) -> usize {
        self.shared.registry.all().len()
    }

    /// How many sessions are live here that were created under this token, or under none.
    pub fn live_sessions_of(&self, token: Option<&Arc<str>>) -> usize {
        self.shared.registry.all().iter().filter(|session| session.created_by() == token).count()
    }

    /// The error for a session that another process has (contract 6).
    pub(crate) fn live_elsewhere(&self, id: &SessionId, owner: &str) -> HostError {
        let pid = self.shared.host_file.pid_of(owner);
        HostError::LiveElsewhere { id: id.to_string(), pid }
    }

    /// Ends a live session, or finds how it has ended.
    ///
    /// # Errors
    /// When there is none of that id, or another process has it.
    pub async fn end_session(
        &self,
        id: &SessionId,
        request: EndRequest,
        client: &str,
    ) -> Result<EndOutcome, HostError> {
        if let Some(session) = self.shared.registry.get(id) {
            return Ok(session.end(request, client.into()).await);
        }
        let _nobody_tries = self.shared.attempts.stop(id).await;
        match self.session(id).await {
            // It was activated a moment before.
            Ok(session) => Ok(session.end(request, client.into()).await),
            Err(HostError::SessionEnded { info, .. }) => {
                Ok(EndOutcome { after: info.seq(), already: true, info })
            }
            Err(error) => Err(error),
        }
    }

    /// Removes a session and its history; a live one is closed first. One that is not there is as good as removed
    /// (SE-16).
    ///
    /// # Errors
    /// When another process has it, or the log cannot be written.
    pub async fn delete_session(&self, id: &SessionId, client: &str) -> Result<(), HostError> {
        match self.end_session(id, EndRequest::Close, client).await {
            Ok(_) => {}
            Err(HostError::UnknownSession { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        let _nobody_tries = self.shared.attempts.stop(id).await;
        match self.shared.log.delete(id.as_str()).await {
            Ok(()) => {
                journal::session_deleted(id, client);
                Ok(())
            }
            Err(WriteError::Unknown { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a session's events from after a sequence number on, and follows.
    ///
    /// # Errors
    /// When there is no such session or no such place in it.
    pub async fn cursor(&self, id: &SessionId, after: u64) -> Result<Cursor, CursorError> {
        self.shared.log.cursor(id.as_str(), after).await
    }

    /// Ends every session and every agent in good order and closes the log. Bounded by the stop ladder.
    pub async fn shutdown(self, initiator: &str) {
        let initiator: Arc<str> = initiator.into();
        self.shared.closing.cancel();
        // Beside the sessions: each has its own ladder.
        self.shared.spares.stop();
        // Sessions end side by side; the ladder bounds each.
        let mut ends = tokio::task::JoinSet::new();
        for session in self.shared.registry.all() {
            let initiator = Arc::clone(&initiator);
            ends.spawn(async move { drop(session.end(EndRequest::Shutdown, initiator).await) });
        }
        while ends.join_next().await.is_some() {}
        self.shared.scope.token().cancel();
    }

    /// Waits for every task and closes the log; for the owner of the process, after [`shutdown`](Self::shutdown)
    /// and after every connection was dropped.
    pub async fn finished(self) {
        self.shared.scope.finished().await;
        self.shared.log.clone().close().await;
    }

    /// Jumps to the end of the stop ladder for every agent, for good: one that starts later gets no graces either.
    pub fn kill_all(&self) {
        self.shared.starter.kill_all();
    }
}

/// The last event of a run, and what the index says from then on.
pub(crate) fn ended_batch(end: &TerminationInfo, meta: &SessionMeta) -> Batch {
    let now = clock::now_ms();
    let mut batch = Batch::new();
    recording::push(&mut batch, now, &Event::Ended(Box::new(end.clone())));
    batch.update_index(IndexUpdate {
        updated_ms: now,
        ended: Some(true),
        owner: Some(None),
        info: Some(meta.write()),
        ..IndexUpdate::default()
    });
    batch
}
