//! Starting an agent: the process, then `initialize`, once, within a bound (IN-4, IN-6).

use super::task::{AgentTask, RunRecorder};
use super::{AgentEnd, AgentFault, AgentHandle, AgentRef, Gone, HealthRecords, MethodMemory};
use crate::acp::{self, method};
use crate::clock;
use crate::error::HostError;
use crate::journal;
use crate::metrics;
use crate::secrets::Secrets;
use crate::spec::AgentSpec;
use crate::stderr_log::StderrLogTask;
use crate::termination::chain;
use acpd_record::Json;
use acpd_supervisor::{Pending, ProgramSpec, StartError, Supervisor, TaskScope, program_environment};
use bytes::Bytes;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AgentStartError {
    /// Its program does not run.
    #[error(transparent)]
    Spawn(#[from] StartError),
    /// It ended before it answered `initialize`.
    #[error("agent ended before it answered initialize: {}", end.report.status)]
    Exited {
        /// How it ended.
        end: Arc<AgentEnd>,
    },
    /// It broke the connection before it answered `initialize`, and was stopped.
    #[error("agent failed before it answered initialize: {fault}")]
    Broke {
        /// What it did.
        fault: String,
        /// How it was ended.
        end: Arc<AgentEnd>,
    },
    /// It did not answer `initialize` in time and was stopped.
    #[error("agent did not answer initialize within {} s", after.as_secs_f64())]
    InitializeTimeout {
        /// The bound.
        after: Duration,
        /// How it was ended.
        end: Arc<AgentEnd>,
    },
    /// It answered `initialize` with an error.
    #[error("agent answered initialize with an error: {}", String::from_utf8_lossy(error))]
    Refused {
        /// The raw error object.
        error: Bytes,
        /// How it was ended.
        end: Arc<AgentEnd>,
    },
    /// Its answer to `initialize` cannot be used, for example another protocol version.
    #[error("agent's answer to initialize is not usable: {detail}")]
    BadAnswer {
        /// What is wrong.
        detail: String,
        /// How it was ended.
        end: Arc<AgentEnd>,
    },
}

/// Kinds of content that a prompt may have beyond text and resource links (PR-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptCapabilities {
    /// Images.
    pub image: bool,
    /// Audio.
    pub audio: bool,
    /// Embedded resources.
    pub embedded_context: bool,
}

/// What an agent said of itself: its answer to `initialize`, cached for every client.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInfo {
    /// The whole result.
    pub result: Value,
    /// What prompts may contain.
    pub prompt: PromptCapabilities,
}

impl AgentInfo {
    fn read(result: &[u8]) -> Result<Self, String> {
        let result: Value = serde_json::from_slice(result).map_err(|error| error.to_string())?;
        match &result["protocolVersion"] {
            version if version.as_u64() == Some(acp::PROTOCOL_VERSION) => {}
            Value::Null => return Err("protocolVersion is missing".to_owned()),
            version => return Err(format!("it speaks protocol version {version}, acpd speaks 1")),
        }
        let prompt = &result["agentCapabilities"]["promptCapabilities"];
        let has = |name: &str| prompt[name].as_bool() == Some(true);
        let prompt = PromptCapabilities {
            image: has("image"),
            audio: has("audio"),
            embedded_context: has("embeddedContext"),
        };
        Ok(Self { result, prompt })
    }

    /// Whether the agent can forget its credentials.
    pub fn has_logout(&self) -> bool {
        self.result["agentCapabilities"]["auth"]["logout"].is_object()
    }

    /// How the agent closes a session, if it can: by the stable name or by its first draft's (contract 1.4).
    pub fn close_method(&self) -> Option<&'static str> {
        let capabilities = &self.result["agentCapabilities"];
        let has = |value: &Value| value.is_object();
        if has(&capabilities["sessionCapabilities"]["close"]) {
            return Some(method::SESSION_CLOSE);
        }
        has(&capabilities["session"]["stop"]).then_some(method::SESSION_STOP)
    }

    /// Whether the agent can fork a session.
    pub fn has_fork(&self) -> bool {
        self.result["agentCapabilities"]["sessionCapabilities"]["fork"].is_object()
    }

    /// Whether the agent resumes a session, without a replay.
    pub fn has_resume(&self) -> bool {
        self.result["agentCapabilities"]["sessionCapabilities"]["resume"].is_object()
    }

    /// Whether the agent loads a session, with a replay.
    pub fn has_load(&self) -> bool {
        self.result["agentCapabilities"]["loadSession"] == Value::Bool(true)
    }

    /// What it calls itself: null when it does not.
    pub(crate) fn own_info(&self) -> Json {
        Json::new(&self.result["agentInfo"])
    }

    /// Name and version, for people.
    pub fn title(&self) -> Option<String> {
        let info = &self.result["agentInfo"];
        let name = info["title"].as_str().or(info["name"].as_str())?;
        Some(match info["version"].as_str() {
            Some(version) => format!("{name} {version}"),
            None => name.to_owned(),
        })
    }
}

/// Starts the agents of one host.
#[derive(Clone, Debug)]
pub(crate) struct AgentStarter {
    supervisor: Supervisor,
    scope: TaskScope,
    memory: MethodMemory,
    health: HealthRecords,
    /// Cancelled when no process gets its graces any more.
    kill_all: CancellationToken,
    /// Cancelled when nothing is to be started any more.
    closing: CancellationToken,
}

impl AgentStarter {
    pub(crate) fn new(
        supervisor: Supervisor,
        scope: TaskScope,
        memory: MethodMemory,
        closing: CancellationToken,
    ) -> Self {
        let (health, kill_all) = (HealthRecords::default(), CancellationToken::new());
        Self { supervisor, scope, memory, health, kill_all, closing }
    }

    /// Jumps to the end of the stop ladder for every process: those that serve sessions, those that are about to, and
    /// those that do not start any more.
    pub(crate) fn kill_all(&self) {
        self.kill_all.cancel();
    }

    /// Starts their programs.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Whether nothing is to be started any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Cancelled when nothing is to be started any more.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// The health of the agents.
    pub(crate) fn health(&self) -> &HealthRecords {
        &self.health
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

async fn start_process(
    starter: &AgentStarter,
    spec: &Arc<AgentSpec>,
    cwd: &Path,
) -> Result<AgentHandle, AgentStartError> {
    let AgentStarter { supervisor, scope, memory, health, kill_all, closing: _ } = starter;
    let mut program = ProgramSpec::new(spec.command.clone(), cwd);
    program.args.clone_from(&spec.args);
    program.env = program_environment(std::env::vars_os(), &spec.env);
    program.graces = spec.graces;
    program.label = Some(spec.name.as_str().into());
    let (secrets, hidden) = watch::channel(Secrets::of_environment(&program.env, &spec.env));
    let log = spec.stderr_log.as_deref().map(StderrLogTask::new);
    program.stderr_lines = log.as_ref().map(|(_, lines)| lines.clone());
    let process = supervisor.start(program).await?;
    if let Some((log, _)) = log {
        scope.spawn_lasting("stderr log", log.run(process.handle.pid(), hidden.clone()));
    }

    let (commands, inbox) = mpsc::channel(super::COMMANDS);
    let (publish, end) = watch::channel(None);
    let handle = process.handle.clone();
    let running = health.process_started(&spec.name);
    let recorder = RunRecorder { secrets: hidden, running, kill: kill_all.clone() };
    let task = AgentTask::new(process, spec.line_limit, inbox, publish, recorder);
    scope.spawn_lasting("agent", Box::new(task).run());
    let placeholder = Arc::new(AgentInfo { result: Value::Null, prompt: PromptCapabilities::default() });
    let program = || spec.command.to_string_lossy().into_owned();
    let known = AgentRef {
        spec: Arc::clone(spec),
        info: placeholder,
        methods: memory.of(program()),
        commands: commands.downgrade(),
        process: handle,
        end,
        secrets,
        directory: None,
        used: Arc::default(),
    };
    let mut agent = AgentHandle { known, commands };

    let asked = agent.try_request(method::INITIALIZE, Some(acp::initialize_params(spec.offered).into()));
    let answer = match spec.initialize_timeout {
        Some(after) => match tokio::time::timeout(after, asked).await {
            Ok(answer) => answer,
            Err(_) => {
                agent.stop();
                return Err(AgentStartError::InitializeTimeout { after, end: agent.ended().await });
            }
        },
        None => asked.await,
    };
    match answer {
        Err(Gone) => {
            let end = agent.ended().await;
            Err(match &end.fault {
                Some(AgentFault(fault)) => AgentStartError::Broke { fault: fault.clone(), end },
                None => AgentStartError::Exited { end },
            })
        }
        Ok(answer) if answer.is_error => {
            agent.stop();
            Err(AgentStartError::Refused { error: answer.body, end: agent.ended().await })
        }
        Ok(answer) => match AgentInfo::read(&answer.body) {
            Ok(info) => {
                let version = info.title().unwrap_or_default();
                agent.known.methods = memory.of(format!("{} ({version})", program()));
                agent.known.info = Arc::new(info);
                Ok(agent)
            }
            Err(detail) => {
                // IN-5: an agent of another version is stopped, and it is said so.
                agent.fail(AgentFault(detail.clone())).await;
                Err(AgentStartError::BadAnswer { detail, end: agent.ended().await })
            }
        },
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
