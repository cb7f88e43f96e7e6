//! Seeing whether an agent works: it is started as for a session, asked what it is, and stopped.

use super::{AgentHandle, AgentStartError, AgentStarter, Agents, MethodMemory, start_agent};
use crate::agent_end::InitializeFailure;
use crate::chain::chain;
use crate::clock;
use crate::error::HostError;
use crate::reach;
use crate::spec::AgentSpec;
use acpd_api::AgentCheck;
use acpd_record::TerminationInfo;
use acpd_supervisor::{StderrLine, Supervisor, TaskScope};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A check of an agent, with what it has shown beside what is told of it.
#[derive(Clone, Debug)]
pub struct CheckedAgent {
    /// The check.
    pub check: AgentCheck,
    /// The name that the agent calls itself by, for people.
    pub title: Option<String>,
    /// It runs, and answered `initialize` with an error of its own.
    pub refused: bool,
}

impl CheckedAgent {
    async fn of_agent(agent: AgentHandle, took: std::time::Duration) -> Self {
        agent.stop();
        let report = Arc::clone(&agent.ended().await.report);
        let check = AgentCheck {
            name: agent.name().to_owned(),
            ok: true,
            containment: Some(reach::containment(report.containment)),
            continuity: reach::continuity_here(),
            start_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            initialize: Some(agent.info().result.clone()),
            end: Some(report.status.to_string()),
            error: None,
            termination_info: None,
        };
        Self { check, title: agent.info().title(), refused: false }
    }

    fn of_failure(name: &str, error: &AgentStartError, info: TerminationInfo) -> Self {
        let check = AgentCheck {
            name: name.to_owned(),
            ok: false,
            containment: info.containment,
            continuity: reach::continuity_here(),
            start_ms: None,
            initialize: None,
            end: None,
            error: Some(chain(error)),
            termination_info: Some(Box::new(info)),
        };
        let refused =
            matches!(error, AgentStartError::Uninitialized { failure: InitializeFailure::Refused(_), .. });
        Self { check, title: None, refused }
    }
}

impl Agents {
    /// Checks an agent of the configuration.
    ///
    /// # Errors
    /// There is no such agent, or the host shuts down.
    pub async fn check(&self, agent: &str) -> Result<AgentCheck, HostError> {
        let spec = self.entry(agent)?;
        let begun = Instant::now();
        match self.starter.start(&spec, self.cwd()).await {
            Ok(started) => Ok(CheckedAgent::of_agent(started, begun.elapsed()).await.check),
            Err(HostError::Start { source, info, .. }) => {
                Ok(CheckedAgent::of_failure(agent, &source, Arc::unwrap_or_clone(info)).check)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks an agent without a host.
pub async fn check_agent(
    supervisor: &Supervisor,
    scope: &TaskScope,
    spec: &AgentSpec,
    cwd: &Path,
) -> CheckedAgent {
    let begun = Instant::now();
    match start_apart(supervisor, scope, spec, cwd, None).await {
        Ok(agent) => CheckedAgent::of_agent(agent, begun.elapsed()).await,
        Err(failed) => *failed,
    }
}

/// Starts an agent without a host, for requests that belong to no session; `shown` is sent what it writes to stderr, unless that
/// is logged.
///
/// # Errors
/// The check that it has failed.
pub async fn start_apart(
    supervisor: &Supervisor,
    scope: &TaskScope,
    spec: &AgentSpec,
    cwd: &Path,
    shown: Option<mpsc::Sender<StderrLine>>,
) -> Result<AgentHandle, Box<CheckedAgent>> {
    let mut starter = AgentStarter::new(
        supervisor.clone(),
        scope.clone(),
        MethodMemory::unrecorded(),
        None,
        CancellationToken::new(),
    );
    starter.shown = shown;
    start_agent(&starter, &Arc::new(spec.clone()), cwd).await.map_err(|error| {
        let info = crate::termination::of_start(&error, clock::now_ms());
        Box::new(CheckedAgent::of_failure(&spec.name, &error, info))
    })
}
