//! Beginning a run: a session's task on an agent that has the session.

use crate::agent::{AgentHandle, Claim, Gone, History, Inbox, RouteId, SessionInputs};
use crate::chain::chain;
use crate::continuity::KeptRun;
use crate::error::HostError;
use crate::files::{Files, FilesSpec};
use crate::host::Host;
use crate::journal::RunJournal;
use crate::recording::ended_batch;
use crate::services::Services;
use crate::session::{
    AboutRun, AfterTurn, EndRequest, Handover, Limits, LiveSession, Past, Performer, RunFacts, RunParts,
    SessionCore, SessionHandle, SessionTask,
};
use crate::setup::closes_after_turn;
use crate::termination::{Complete, SessionFacts};
use crate::transcript::Transcript;
use crate::viewers::Viewers;
use acpd_eventlog::Appender;
use acpd_record::{NativeSessionId, PermissionMode, Projection, RunNumber, SessionId, SessionMeta};
use acpd_supervisor::{TaskScope, outcome};
use bytes::Bytes;
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;
use tracing::Instrument;

/// The longest wait of a session that ends for the agent's own close.
const SETTLE: Duration = Duration::from_millis(300);

/// What a run of a session begins with.
pub(crate) struct Run {
    /// The token that owns the session, if one does.
    pub(crate) created_by: Option<Arc<str>>,
    /// The agent's own id of it.
    pub(crate) native: NativeSessionId,
    /// How far the agent was heard in it, in bytes of what it wrote.
    pub(crate) position: u64,
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
    /// The params of `session/new`, `load`, `resume` or `fork`: where the session works.
    pub(crate) setup: Bytes,
    /// What the client calls itself that began it.
    pub(crate) client: Arc<str>,
}

/// A session, where it runs, and its task.
pub(crate) type Assembled = (SessionHandle, TaskScope, SessionTask);

/// How a session hears its agent.
pub(crate) struct Bound {
    pub(crate) route: RouteId,
    pub(crate) inputs: SessionInputs,
    /// What the agent says may be a replay.
    pub(crate) sifts: bool,
    /// It is closed behind a turn.
    pub(crate) after_turn: Option<AfterTurn>,
}

impl Host {
    /// Starts the task of a session whose agent has it.
    pub(crate) async fn begin_run(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        appender: Appender,
        run: Run,
        (claim, history): (Claim, History),
    ) -> Result<SessionHandle, HostError> {
        let sifts = matches!(history, History::Drop(..));
        let turns = run.projection.turns();
        let after_turn = closes_after_turn(Some(&run.setup))?;
        let after_turn = after_turn.then(|| AfterTurn { client: Arc::clone(&run.client), turns });
        let native = run.native.clone();
        let (inbox, inputs) = Inbox::new();
        let bound = match agent.bind(claim, inbox, appender.committed(), history) {
            Ok(route) => Bound { route, inputs, sifts, after_turn },
            Err(Gone) => {
                let span = agent.span_of_run(id, run.meta.runs.unwrap_or(RunNumber(1)));
                let facts = facts_before(&run.projection, appender.next_seq() - 1);
                let failed = self.record_failed_start(appender, agent, run.meta, &facts);
                return Err(failed.instrument(span).await);
            }
        };
        if let Ok(setup) = serde_json::from_slice(&run.setup) {
            agent.keep(native.as_json(), &KeptRun { setup, client: (&*run.client).into(), turns: turns.0 });
        }
        let (session, scope, task) = self.assemble(id, agent, appender, run, bound).await;
        let session = self.start(session, &scope, task).await?;
        if session.is_movable() {
            self.shared.fleet.deadlines.begin(session.agent());
        }
        Ok(session)
    }

    /// Puts a run together whose session is bound to its agent.
    pub(crate) async fn assemble(
        &self,
        id: &SessionId,
        agent: &AgentHandle,
        appender: Appender,
        run: Run,
        bound: Bound,
    ) -> Assembled {
        let Bound { route, inputs, sifts, after_turn } = bound;
        let (publish, ended) = outcome();
        let spec = Arc::clone(agent.spec());
        let span = agent.span_of_run(id, run.meta.runs.unwrap_or(RunNumber(1)));
        let began_after = appender.next_seq() - 1;
        let permission_mode = run.meta.permission_mode.unwrap_or(spec.permission_mode);
        let setup = FilesSpec::of_session(&run.setup, spec.files.clone());
        let about = about(id, &run, (began_after, permission_mode), &setup);
        let doubts = self.shared.store.check_cache.doubts.clone();
        let (mut journal, now) = (span.in_scope(|| RunJournal::started(agent, doubts)), Performer::now());
        if let Some(began_ms) = run.projection.turn_began_ms() {
            journal.turn_goes_on(began_ms, now.ms);
        }
        let past =
            sifts.then(|| Box::new(Past::new(self.shared.store.log.clone(), id.to_string(), began_after)));
        let viewers = Viewers::default();
        let facts = RunFacts { after_turn, ..facts_of(id, agent, run.native, permission_mode, &setup) };
        let handover = Handover::new(run.transcript);
        let mut core = SessionCore::new(facts, *run.projection, run.meta, viewers.clone(), handover, now);
        core.heard(run.position);
        let services = self.services_of(id, &spec.name, setup).await;
        let (committed, room) = (appender.committed(), appender.room());
        let scope = self.shared.scope.child(span);
        let parts = RunParts {
            journal,
            agent: agent.clone(),
            route,
            appender: Some(appender),
            ended: publish,
            services,
            scope: scope.clone(),
            unsearched: self.shared.store.unsearched.clone(),
        };
        let live = LiveSession::begin(core, parts, room, past.is_some(), &inputs);
        let (agent, seen) = (agent.downgrade(), committed.clone());
        let fence = self.shared.fleet.fence.clone();
        let session =
            SessionHandle::new(about, agent, Arc::clone(&live), (ended, seen), viewers.clone(), fence);
        let log = self.shared.store.log.clone();
        let task = SessionTask::new(live, inputs, past, viewers, (log, committed));
        (session, scope, task)
    }

    /// Starts a session's task; the session counts as live until it ends.
    pub(crate) async fn start(
        &self,
        session: SessionHandle,
        scope: &TaskScope,
        task: SessionTask,
    ) -> Result<SessionHandle, HostError> {
        let live = self.shared.sessions.live.clone();
        live.insert(session.clone());
        // What it begins with may not be indexed: the history of a fork, or of an earlier version.
        self.shared.store.unsearched.note(session.id(), session.began_after());
        let (id, began_after) = (session.id().clone(), session.began_after());
        let running = Box::new(task).run().map(move |()| live.remove(&id, began_after));
        scope.spawn_lasting("session", running);
        // Either this sees the shutdown, or the shutdown sees this session among the live ones; a fence likewise.
        if self.is_closing() {
            session.end(EndRequest::Shutdown, "daemon".into()).await;
            return Err(HostError::ShuttingDown);
        }
        if session.is_fenced() {
            session.end_fenced().await;
            return Err(HostError::Fenced);
        }
        Ok(session)
    }

    /// What acpd serves the agent in a session.
    async fn services_of(&self, id: &SessionId, agent: &str, setup: FilesSpec) -> Services {
        let sessions = &self.shared.sessions;
        Services {
            cwd: setup.directories.first().cloned().unwrap_or_else(|| self.shared.agents.cwd().to_owned()),
            files: Files::open(setup, &sessions.file_slots).await,
            terminals: Arc::clone(&sessions.terminals),
            owner: id.to_string(),
            agent: agent.into(),
            told_outside: Arc::default(),
        }
    }

    /// The agent died between its answer and the start of the session's task; gives the error that says so.
    async fn record_failed_start(
        &self,
        appender: Appender,
        agent: &AgentHandle,
        mut meta: SessionMeta,
        facts: &SessionFacts,
    ) -> HostError {
        let termination = agent.termination().await.with_facts(facts);
        let doubts = self.shared.store.check_cache.doubts.clone();
        RunJournal::started(agent, doubts).ended(&termination, 0);
        meta.ended(&termination);
        if let Err(error) = appender.append_final(ended_batch(&termination, &meta)).await {
            tracing::error!(error = chain(&error), "the end of a session could not be recorded");
        }
        HostError::AgentGone { info: Arc::new(termination) }
    }
}

/// What is known of a run that did not get as far as its task.
fn facts_before(log: &Projection, last: u64) -> SessionFacts {
    SessionFacts {
        turn_active: false,
        last_stop_reason: log.last_stop_reason().map(str::to_owned),
        started_ms: Some(log.run_started_ms()),
        last_event_seq: Some(last),
    }
}

/// What others know of a run, as long as it lasts.
fn about(
    id: &SessionId,
    run: &Run,
    (began_after, permission_mode): (u64, PermissionMode),
    setup: &FilesSpec,
) -> AboutRun {
    let others = setup.directories.iter().filter(|directory| **directory != *run.cwd);
    AboutRun {
        id: id.clone(),
        created_by: run.created_by.clone(),
        began_after,
        permission_mode,
        chosen_mode: run.meta.permission_mode,
        partition: run.meta.partition,
        additional_directories: others.cloned().collect(),
        cwd: run.cwd.as_str().into(),
        created_ms: run.created_ms,
    }
}

/// What does not change in a run on `agent`.
fn facts_of(
    id: &SessionId,
    agent: &AgentHandle,
    native: NativeSessionId,
    permission_mode: PermissionMode,
    setup: &FilesSpec,
) -> RunFacts {
    let spec = agent.spec();
    let stdin = spec.timeouts.graces.stdin;
    RunFacts {
        id: id.clone(),
        native,
        permission_mode,
        prompt: agent.info().prompt,
        is_kept: agent.is_kept(),
        is_shared: agent.is_shared(),
        after_turn: None,
        offered: spec.offered,
        forwards_files: setup.rules.forward,
        limits: Limits {
            cancel: spec.timeouts.cancel,
            permission: spec.timeouts.permission,
            idle: spec.timeouts.idle,
            stall: spec.timeouts.stall,
            settle_turn: stdin.min(SETTLE.max(stdin / 2)),
            settle: stdin.min(SETTLE),
        },
    }
}
