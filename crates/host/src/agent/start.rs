//! Starting an agent: the process, then `initialize`, once, within a bound (IN-4, IN-6).

use super::handle::InUse;
use super::task::{AgentTask, RunRecorder, TakenOver};
use super::{AgentHandle, AgentInfo, AgentRef, Gone, HealthRecords, MethodMemory};
use crate::acp::{self, method};
use crate::agent_end::{AgentFault, AgentStartError, InitializeFailure};
use crate::chain::chain;
use crate::clock;
use crate::continuity::{Continuity, KeptProcess};
use crate::error::HostError;
use crate::journal;
use crate::metrics;
use crate::secrets::Secrets;
use crate::spans;
use crate::spec::AgentSpec;
use crate::stderr_log::StderrLogTask;
use acpd_supervisor::{
    Pending, ProgramSpec, StderrLine, Supervisor, TaskScope, outcome, program_environment,
};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Starts the agents of one host.
#[derive(Clone, Debug)]
pub(crate) struct AgentStarter {
    pub(super) supervisor: Supervisor,
    pub(super) scope: TaskScope,
    pub(super) memory: MethodMemory,
    pub(super) health: HealthRecords,
    /// Agents outlive the host; None: they end with it.
    pub(super) continuity: Option<Arc<Continuity>>,
    /// Cancelled when no process gets its graces any more: neither those that serve sessions, nor those that are about to, nor
    /// those that do not start any more.
    pub(super) kill_all: CancellationToken,
    /// Cancelled when nothing is to be started any more.
    pub(super) closing: CancellationToken,
    /// Who is shown what agents write to stderr, where they have no log of it.
    pub(super) shown: Option<mpsc::Sender<StderrLine>>,
}

impl AgentStarter {
    pub(crate) fn new(
        supervisor: Supervisor,
        scope: TaskScope,
        memory: MethodMemory,
        continuity: Option<Arc<Continuity>>,
        closing: CancellationToken,
    ) -> Self {
        let (health, kill_all) = (HealthRecords::default(), CancellationToken::new());
        Self { supervisor, scope, memory, health, continuity, kill_all, closing, shown: None }
    }

    /// Starts `spec` in `cwd`, with its failure as a record. A start in progress is given up when the host shuts down: its
    /// process is stopped beside the others, and what it has to say is not waited for.
    pub(crate) async fn start(&self, spec: &Arc<AgentSpec>, cwd: &Path) -> Result<AgentHandle, HostError> {
        let began = Instant::now();
        let Some(started) = self.closing.run_until_cancelled(start(self, spec, cwd)).await else {
            return Err(HostError::ShuttingDown);
        };
        match started {
            Ok(mut agent) => {
                metrics::agent_started(&spec.name, began.elapsed());
                agent.known.info = self.health.initialized(&spec.name, agent.info());
                Ok(agent)
            }
            Err(error) => {
                self.health.start_failed(&spec.name, chain(&error));
                let info = Arc::new(crate::termination::of_start(&error, clock::now_ms()));
                journal::agent_not_started(&spec.name, cwd, info.cause, &error);
                Err(HostError::Start { agent: spec.name.clone(), info, source: Arc::new(error) })
            }
        }
    }
}

/// Starts `spec` in `cwd`.
///
/// # Cancel safety
/// When the future is dropped, what was started is stopped by the ladder, in the scope of the starter.
pub(crate) fn start<'a>(
    starter: &'a AgentStarter,
    spec: &'a Arc<AgentSpec>,
    cwd: &'a Path,
) -> Pending<'a, Result<AgentHandle, AgentStartError>> {
    Box::pin(start_process(starter, spec, cwd))
}

fn program_of(spec: &AgentSpec, cwd: &Path) -> ProgramSpec {
    let mut program = ProgramSpec::new(spec.program.command.clone(), cwd);
    program.args.clone_from(&spec.program.args);
    program.env = program_environment(std::env::vars_os(), &spec.program.env);
    program.graces = spec.timeouts.graces;
    program.label = Some(spec.name.as_str().into());
    program
}

async fn start_process(
    starter: &AgentStarter,
    spec: &Arc<AgentSpec>,
    cwd: &Path,
) -> Result<AgentHandle, AgentStartError> {
    let AgentStarter { supervisor, scope, memory, health, continuity, kill_all, closing: _, shown } = starter;
    let mut program = program_of(spec, cwd);
    let continuity = continuity.as_ref().filter(|continuity| !continuity.keep.is_zero());
    program.kept = continuity.is_some();
    let secrets = Arc::new(Mutex::new(Secrets::of_environment(&program.env, &spec.program.env)));
    let log = spec.stderr_log.as_deref().map(StderrLogTask::new);
    program.stderr_lines = log.as_ref().map(|(_, lines)| lines.clone()).or_else(|| shown.clone());
    let span = spans::of_run();
    let scope = scope.within(span.clone());
    let process = supervisor.start(program).instrument(span.clone()).await?;
    if let Some((log, _)) = log {
        scope.spawn_lasting("stderr log", log.run(process.handle.pid(), Arc::clone(&secrets)));
    }

    let (publish, end) = outcome();
    let handle = process.handle.clone();
    let kept = continuity.map(|continuity| KeptProcess::new(&handle, Arc::clone(continuity)));
    let running = health.process_started(&spec.name);
    let user = Arc::new(InUse(handle.clone()));
    let recorder = RunRecorder::new(&secrets, running, kill_all, &user);
    let (connection, task) =
        AgentTask::new(process, spec.line_limit, TakenOver::default(), publish, recorder, span);
    scope.spawn_lasting("agent", Box::new(task).run());
    let known = AgentRef {
        spec: Arc::clone(spec),
        info: Arc::default(),
        methods: memory.of(String::new()),
        connection,
        user: Arc::downgrade(&user),
        process: handle,
        end,
        secrets,
        kept: kept.map(Arc::new),
        directory: None,
        used: Arc::default(),
    };
    let mut agent = AgentHandle { known, _user: user };
    match initialize(&agent).await {
        Ok(info) => {
            let (program, version) = (spec.program.command.to_string_lossy(), info.title());
            agent.known.methods = memory.of(format!("{program} ({})", version.unwrap_or_default()));
            agent.known.info = Arc::new(info);
            Ok(agent)
        }
        Err(failure) => {
            match &failure {
                // IN-5: an agent of another version is stopped, and it is said so.
                InitializeFailure::BadAnswer(detail) => agent.fail(AgentFault::Broken(detail.clone())),
                InitializeFailure::Timeout { .. } | InitializeFailure::Refused(_) => agent.stop(),
                InitializeFailure::Exited(_) | InitializeFailure::Broke(_) => {}
            }
            Err(AgentStartError::Uninitialized { end: agent.ended().await, failure })
        }
    }
}

/// Asks a process what it is (IN-4).
async fn initialize(agent: &AgentHandle) -> Result<AgentInfo, InitializeFailure> {
    let spec = agent.spec();
    let asked = agent.try_request(method::INITIALIZE, Some(acp::initialize_params(spec.offered).into()));
    let answer = match spec.timeouts.initialize {
        Some(after) => timeout(after, asked)
            .await
            .map_err(|_| InitializeFailure::Timeout { after, dropped: agent.dropped_line() })?,
        None => asked.await,
    };
    match answer {
        Err(Gone) => {
            let end = agent.ended().await;
            Err(match &end.fault {
                Some(fault) => InitializeFailure::Broke(fault.message().to_owned()),
                None => InitializeFailure::Exited(end.report.status.clone()),
            })
        }
        Ok(answer) if answer.is_error => Err(InitializeFailure::Refused(answer.body)),
        Ok(answer) => {
            agent.put_initialized(&answer.body);
            AgentInfo::read(&answer.body).map_err(InitializeFailure::BadAnswer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AgentInfo;

    // IN-5: an unsupported version is refused with words
    #[test]
    fn other_versions_are_refused() {
        let refused = |json: &str| AgentInfo::read(json.as_bytes()).expect_err("not usable");
        assert_eq!(refused(r#"{"protocolVersion":2}"#), "it speaks protocol version 2, acpd speaks 1");
        assert_eq!(refused(r#"{}"#), "protocolVersion is missing");
        assert_eq!(refused(r#"{"protocolVersion":"1"}"#), "it speaks protocol version \"1\", acpd speaks 1");
    }

    #[test]
    fn what_is_not_said_is_not_there() {
        let info = AgentInfo::read(br#"{"protocolVersion":1}"#).expect("usable");
        assert!(!info.prompt.image && !info.prompt.audio && !info.has_logout());
        assert_eq!(info.title(), None);
    }
}
