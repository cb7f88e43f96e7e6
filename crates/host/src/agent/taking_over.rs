//! Taking over an agent process that another host began.

use super::handle::InUse;
use super::task::{AgentTask, RunRecorder, TakenOver};
use super::{AgentHandle, AgentInfo, AgentRef, AgentStarter, Marks};
use crate::continuity::{Continuity, KeptProcess};
use crate::secrets::Secrets;
use crate::spans;
use crate::spec::AgentSpec;
use crate::stderr_log::StderrLogTask;
use acpd_record::KeeperAddress;
use acpd_supervisor::{
    Adopting, AttachError, Attached, Graces, ProcessMark, TaskScope, outcome, program_environment,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The time in which a process had no host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) time: Duration,
    /// Bytes of its output that were held back.
    pub(crate) retained: u64,
    /// It was ended, since no host came in time.
    pub(crate) was_given_up: bool,
    /// The host before has handed it over.
    pub(crate) is_handed_over: bool,
}

/// A process that was taken over. Nothing is read of it before its sessions are bound.
pub(crate) struct TakenAgent {
    pub(crate) agent: AgentHandle,
    /// What its keeper remembers.
    pub(crate) marks: Arc<Marks>,
    /// How it was without a host.
    pub(crate) gap: Gap,
    task: Box<AgentTask>,
    scope: TaskScope,
}

impl AgentStarter {
    /// Takes over the process behind a keeper, which was started by the entry `spec`, or one before it.
    ///
    /// # Errors
    /// When the keeper is gone, or does not answer as it should. Nothing has changed then.
    pub(crate) async fn take_over(
        &self,
        spec: &Arc<AgentSpec>,
        address: &KeeperAddress,
    ) -> Result<TakenAgent, AttachError> {
        let Some(continuity) = &self.continuity else { return Err(AttachError::Gone) };
        let span = spans::of_run();
        let scope = self.scope.within(span.clone());
        let log = spec.stderr_log.as_deref().map(StderrLogTask::new);
        let lines = log.as_ref().map(|(_, lines)| lines.clone());
        let label = Some(spec.name.as_str().into());
        let end_bytes = Some(continuity.detached_bytes.saturating_add(spec.line_limit as u64));
        let adopting = Adopting { label, stderr_lines: lines, end_bytes };
        let attached = self.attach(continuity, address, adopting).await?;
        let environment = program_environment(std::env::vars_os(), &spec.program.env);
        let secrets = Arc::new(Mutex::new(Secrets::of_environment(&environment, &spec.program.env)));
        if let Some((log, _)) = log {
            scope.spawn_lasting("stderr log", log.run(attached.process.handle.pid(), Arc::clone(&secrets)));
        }
        let gap = Gap {
            time: attached.detached,
            retained: attached.retained,
            was_given_up: attached.was_given_up,
            is_handed_over: continuity.is_handed_over,
        };
        let marks = Marks::new(attached.marks);
        let info = marks.initialized().and_then(|answer| AgentInfo::read(answer.as_bytes()).ok());
        let info = info.unwrap_or_default();
        let (program, version) = (spec.program.command.to_string_lossy(), info.title());
        let methods = self.memory.of(format!("{program} ({})", version.unwrap_or_default()));

        let (publish, end) = outcome();
        let handle = attached.process.handle.clone();
        let running = self.health.process_started(&spec.name);
        let info = self.health.initialized(&spec.name, &Arc::new(info));
        let user = Arc::new(InUse(handle.clone()));
        let recorder = RunRecorder::new(&secrets, running, &self.kill_all, &user);
        let begun = TakenOver { position: attached.committed, lease: attached.lease };
        let (connection, task) =
            AgentTask::new(attached.process, spec.line_limit, begun, publish, recorder, span);
        let kept = KeptProcess::found(address.clone(), Arc::clone(continuity));
        // What holds from now on is what this host says.
        kept.keep_anew(&handle, spec.line_limit);
        let known = AgentRef {
            spec: Arc::clone(spec),
            info,
            methods,
            connection,
            user: Arc::downgrade(&user),
            process: handle,
            end,
            secrets,
            kept: Some(Arc::new(kept)),
            directory: None,
            used: Arc::new(AtomicBool::new(true)),
        };
        let agent = AgentHandle { known, _user: user };
        Ok(TakenAgent { agent, marks: Arc::new(marks), gap, task: Box::new(task), scope })
    }
}

impl AgentStarter {
    async fn attach(
        &self,
        continuity: &Continuity,
        address: &KeeperAddress,
        adopting: Adopting,
    ) -> Result<Attached, AttachError> {
        let mark = ProcessMark::parse(&address.mark).ok_or(AttachError::Gone)?;
        self.supervisor.attach(&continuity.directory, &mark, &address.key, adopting).await
    }

    /// Forgets these ends, but for those of processes that were taken over.
    pub(crate) async fn forget_ends(&self, marks: Vec<ProcessMark>) {
        let Some(continuity) = self.continuity.clone().filter(|_| !marks.is_empty()) else { return };
        let supervisor = self.supervisor.clone();
        let forgotten =
            tokio::task::spawn_blocking(move || supervisor.forget_ends(&continuity.directory, &marks));
        // The next look tries again.
        let _panic = forgotten.await;
    }

    /// Ends the process behind a keeper that cannot be spoken with.
    pub(crate) async fn end_unattached(&self, address: &KeeperAddress, graces: Graces) {
        if let (Some(continuity), Some(mark)) = (&self.continuity, ProcessMark::parse(&address.mark)) {
            self.supervisor.end_unattached(&continuity.directory, &mark, graces).await;
        }
    }
}

impl TakenAgent {
    /// Its sessions are bound: what it has said since is read.
    pub(crate) fn begin(self) -> AgentHandle {
        let Self { agent, marks, task, scope, .. } = self;
        // It has ended: its task says so.
        let _gone = agent.known.connection.send(|core, _, out| core.serve_again(&marks, out));
        scope.spawn_lasting("agent", task.run());
        agent
    }
}
