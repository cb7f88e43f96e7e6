//! Seeing whether an agent works: it is started as for a session, asked what it is, and stopped.

use super::{AgentHandle, AgentStartError, AgentStarter, Agents, MethodMemory, start_agent};
use crate::agent_end::InitializeFailure;
use crate::chain::chain;
use crate::clock;
use crate::error::HostError;
use crate::reach;
use crate::spec::AgentSpec;
use acpd_record::{Containment, Continuity, TerminationInfo};
use acpd_supervisor::{StderrLine, Supervisor, TaskScope};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a check of an agent has shown.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentCheck {
    /// The name of its entry.
    pub name: String,
    /// It started and said what it is.
    pub ok: bool,
    /// What acpd saw of the processes that it started; absent when it could not be started.
    pub containment: Option<Containment>,
    /// How far its runs could be carried on, by what the system allows.
    pub continuity: Continuity,
    /// How long that took, in milliseconds.
    pub start_ms: Option<u64>,
    /// Its answer to `initialize`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Map<String, Value>>"))]
    pub initialize: Option<Value>,
    /// How it ended when it was stopped.
    pub end: Option<String>,
    /// Why it does not work.
    pub error: Option<String>,
    /// The same as a record, with what it wrote to stderr.
    pub termination_info: Option<Arc<TerminationInfo>>,
    /// What it calls itself, for people.
    #[serde(skip)]
    pub title: Option<String>,
    /// It runs, and answered `initialize` with an error of its own.
    #[serde(skip)]
    pub refused: bool,
}

impl AgentCheck {
    async fn of_agent(agent: AgentHandle, took: std::time::Duration) -> Self {
        agent.stop();
        let report = Arc::clone(&agent.ended().await.report);
        Self {
            name: agent.name().to_owned(),
            ok: true,
            containment: Some(reach::containment(report.containment)),
            continuity: reach::continuity_here(),
            start_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            initialize: Some(agent.info().result.clone()),
            end: Some(report.status.to_string()),
            error: None,
            termination_info: None,
            title: agent.info().title(),
            refused: false,
        }
    }

    fn of_failure(name: &str, error: &AgentStartError, info: Arc<TerminationInfo>) -> Self {
        Self {
            name: name.to_owned(),
            ok: false,
            containment: info.containment,
            continuity: reach::continuity_here(),
            start_ms: None,
            initialize: None,
            end: None,
            error: Some(chain(error)),
            termination_info: Some(info),
            title: None,
            refused: matches!(
                error,
                AgentStartError::Uninitialized { failure: InitializeFailure::Refused(_), .. }
            ),
        }
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
            Ok(started) => Ok(AgentCheck::of_agent(started, begun.elapsed()).await),
            Err(HostError::Start { source, info, .. }) => Ok(AgentCheck::of_failure(agent, &source, info)),
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
) -> AgentCheck {
    let begun = Instant::now();
    match start_apart(supervisor, scope, spec, cwd, None).await {
        Ok(agent) => AgentCheck::of_agent(agent, begun.elapsed()).await,
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
) -> Result<AgentHandle, Box<AgentCheck>> {
    let mut starter = AgentStarter::new(
        supervisor.clone(),
        scope.clone(),
        MethodMemory::unrecorded(),
        None,
        CancellationToken::new(),
    );
    starter.shown = shown;
    start_agent(&starter, &Arc::new(spec.clone()), cwd).await.map_err(|error| {
        let info = Arc::new(crate::termination::of_start(&error, clock::now_ms()));
        Box::new(AgentCheck::of_failure(&spec.name, &error, info))
    })
}
