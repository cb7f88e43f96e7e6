//! Hooks: programs and servers outside that are told of questions, ends of turns and runs, and stalls (contract 7.2).
//!
//! The daemon has one [`Hooks`], and each hook one task, which reads the log's outbox as a viewer reads a session: it holds
//! up no session, no commit and no other hook. Invariants: an event is told at least once, under one id; those of one
//! session in their order; no secret of acpd reaches a command, no redirect is followed. Not here: what an event is, and
//! how it is noted (`crates/eventlog`, `outbox.rs`).

mod body;
mod command;
mod content;
mod metrics;
mod post;
mod schedule;
mod spec;
mod task;

pub(crate) use spec::{HookSpec, specs};

use acpd_eventlog::{EventLog, Subscriber};
use acpd_host::{TaskScope, chain};
use acpd_supervisor::Supervisor;
use task::HookTask;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the tasks of hooks need.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) log: EventLog,
    pub(crate) supervisor: Supervisor,
    pub(crate) scope: TaskScope,
}

/// The hooks of a daemon.
pub(crate) struct Hooks {
    means: Means,
    running: Vec<Running>,
}

struct Running {
    spec: HookSpec,
    stop: CancellationToken,
    task: JoinHandle<Option<()>>,
}

/// What the log notes for hooks.
pub(crate) fn subscribers(specs: &[HookSpec]) -> Vec<Subscriber> {
    specs.iter().map(HookSpec::subscriber).collect()
}

impl Hooks {
    /// Begins to tell what the log has noted for them ([`subscribers`]); what was noted for others is forgotten.
    pub(crate) async fn begin(means: Means, specs: Vec<HookSpec>) -> Self {
        metrics::describe();
        let mut hooks = Self { means, running: Vec::new() };
        hooks.forget_others().await;
        hooks.start(specs);
        hooks
    }

    /// Other hooks are configured. One that stays as it is goes on undisturbed.
    pub(crate) async fn set(&mut self, specs: Vec<HookSpec>) {
        if self.running.iter().map(|running| &running.spec).eq(&specs) {
            return;
        }
        if let Err(error) = self.means.log.subscribe(subscribers(&specs)).await {
            tracing::error!(error = chain(&error), "the hooks stay as they were");
            return;
        }
        let (stay, go): (Vec<_>, Vec<_>) =
            self.running.drain(..).partition(|running| specs.contains(&running.spec));
        self.running = stay;
        for Running { stop, task, .. } in go {
            stop.cancel();
            // It ends at once: what it was telling is told again by the one that takes its place.
            let _ended = task.await;
        }
        self.forget_others().await;
        let is_new = |spec: &HookSpec| self.running.iter().all(|running| running.spec != *spec);
        let new = specs.into_iter().filter(is_new).collect();
        self.start(new);
    }

    async fn forget_others(&self) {
        if let Err(error) = self.means.log.forget_others().await {
            tracing::warn!(error = chain(&error), "what is noted for hooks that are gone stays for now");
        }
    }

    fn start(&mut self, specs: Vec<HookSpec>) {
        for spec in specs {
            let stop = self.means.scope.token().child_token();
            let task = HookTask::new(self.means.clone(), spec.clone());
            let run = {
                let stop = stop.clone();
                async move {
                    let _stopped = stop.run_until_cancelled(task.run()).await;
                }
            };
            let task = self.means.scope.spawn("hook", run);
            self.running.push(Running { spec, stop, task });
        }
    }
}
