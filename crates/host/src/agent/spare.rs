//! A process that is kept ready, so that a session need not wait for a slow start (contract 1).
//!
//! One task per agent owns the process that waits. It gives it away at the first request and starts the next. One that
//! dies while it waits is replaced, but not for ever: one that keeps dying is not replaced before the next request. One
//! that does not start is not tried again before that either. Invariant: a process that is given away was alive a moment
//! before, and has no other user.
//!
//! A spare starts where acpd runs, like the process that answers a client's `initialize`; the directory of a session
//! reaches its agent in the parameters. Not here: shared processes, which need no spare.

use super::{AgentHandle, AgentStarter};
use crate::error::HostError;
use crate::rate_limit::RateLimit;
use crate::spec::AgentSpec;
use acpd_supervisor::TaskScope;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Those who ask wait here for a task that never waits for long. Full: they wait, as they would for a start.
const TAKES: usize = 8;

/// Where the answer goes: a process, or why there is none; at None the caller starts one.
type Take = oneshot::Sender<Option<Result<AgentHandle, HostError>>>;

/// The spares of a host, by their agents' names.
#[derive(Debug)]
pub(crate) struct Spares {
    scope: TaskScope,
    kept: Mutex<BTreeMap<String, Kept>>,
}

/// The spare of one agent.
#[derive(Debug)]
struct Kept {
    /// What it is started with.
    spec: Arc<AgentSpec>,
    /// When this is dropped, what waits is stopped.
    takes: mpsc::Sender<Take>,
}

impl Spares {
    /// `scope` ends with the host, or before it.
    pub(crate) fn new(scope: TaskScope) -> Self {
        Self { scope, kept: Mutex::default() }
    }

    /// Keeps one process of an agent ready from now on, started in `cwd`.
    pub(crate) fn keep(&self, starter: AgentStarter, spec: &Arc<AgentSpec>, cwd: PathBuf) {
        let mut kept = self.kept.lock();
        if kept.contains_key(&spec.name) {
            return;
        }
        let (sender, takes) = mpsc::channel(TAKES);
        kept.insert(spec.name.clone(), Kept { spec: Arc::clone(spec), takes: sender });
        let task = SpareTask::new(starter, Arc::clone(spec), cwd, takes);
        self.scope.spawn("spare", task.run(self.scope.token().clone()));
    }

    /// The process that waits, or the one that is being started, or why it did not start; None when none is kept or
    /// it has a waiter already.
    pub(crate) async fn take(&self, agent: &str) -> Option<Result<AgentHandle, HostError>> {
        let takes = self.kept.lock().get(agent)?.takes.clone();
        let (take, answer) = oneshot::channel();
        takes.send(take).await.ok()?;
        answer.await.ok().flatten()
    }

    /// Keeps only those spares that are `as_wanted`; the others are stopped.
    pub(crate) fn retain(&self, as_wanted: impl Fn(&AgentSpec) -> bool) {
        self.kept.lock().retain(|_, kept| as_wanted(&kept.spec));
    }

    /// Stops what waits, by the stop ladder, and keeps none any more.
    pub(crate) fn stop(&self) {
        self.scope.token().cancel();
    }
}

struct SpareTask {
    starter: AgentStarter,
    spec: Arc<AgentSpec>,
    cwd: PathBuf,
    takes: mpsc::Receiver<Take>,
    state: State,
    /// Gets the process that is being started.
    waiter: Option<Take>,
    /// How often one that died was replaced.
    replaced: RateLimit,
}

type Start = Pin<Box<dyn Future<Output = Result<AgentHandle, HostError>> + Send>>;

enum State {
    /// One is being started.
    Starting(Start),
    /// One waits.
    Ready(AgentHandle),
    /// None is kept until the next request, and not before this.
    Resting(Instant),
}

enum Change {
    Started(Result<AgentHandle, HostError>),
    Died,
}

impl State {
    /// Waits for what happens by itself.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    async fn changed(&mut self) -> Change {
        match self {
            Self::Starting(start) => Change::Started(start.await),
            Self::Ready(agent) => {
                agent.ended().await;
                Change::Died
            }
            Self::Resting(_) => std::future::pending().await,
        }
    }
}

impl SpareTask {
    fn new(starter: AgentStarter, spec: Arc<AgentSpec>, cwd: PathBuf, takes: mpsc::Receiver<Take>) -> Self {
        let state = State::Resting(Instant::now());
        let replaced = RateLimit::default();
        let mut task = Self { starter, spec, cwd, takes, state, waiter: None, replaced };
        task.state = task.start();
        task
    }

    /// Dropping the state stops what it holds.
    async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                take = self.takes.recv() => match take {
                    Some(take) => self.give(take),
                    None => return,
                },
                change = self.state.changed() => match change {
                    Change::Started(started) => self.started(started),
                    Change::Died => self.died(),
                },
            }
        }
    }

    /// Nothing happens before the state is waited for.
    fn start(&self) -> State {
        let (starter, spec, cwd) = (self.starter.clone(), self.spec.clone(), self.cwd.clone());
        State::Starting(Box::pin(async move { starter.start(&spec, &cwd).await }))
    }

    fn give(&mut self, take: Take) {
        if matches!(&self.state, State::Ready(agent) if agent.is_gone()) {
            self.died();
        }
        let now = Instant::now();
        self.state = match std::mem::replace(&mut self.state, State::Resting(now)) {
            State::Ready(agent) => match take.send(Some(Ok(agent))) {
                // The caller has left meanwhile.
                Err(Some(Ok(agent))) => State::Ready(agent),
                _ => self.start(),
            },
            State::Starting(start) => {
                match &self.waiter {
                    Some(waiter) if !waiter.is_closed() => drop(take.send(None)),
                    _ => self.waiter = Some(take),
                }
                State::Starting(start)
            }
            State::Resting(until) if now < until => {
                drop(take.send(None));
                State::Resting(until)
            }
            State::Resting(_) => {
                self.waiter = Some(take);
                self.start()
            }
        };
    }

    fn started(&mut self, started: Result<AgentHandle, HostError>) {
        let failed = started.is_err();
        let left = match self.waiter.take() {
            Some(waiter) => waiter.send(Some(started)).err().flatten(),
            None => Some(started),
        };
        self.state = match left {
            Some(Ok(agent)) => State::Ready(agent),
            Some(Err(error)) => {
                let detail = crate::chain::chain(&error);
                tracing::warn!(agent = self.spec.name, detail, "a spare process did not start");
                State::Resting(Instant::now())
            }
            // The waiter was told.
            None if failed => State::Resting(Instant::now()),
            None => self.start(),
        };
    }

    fn died(&mut self) {
        let now = Instant::now();
        self.state = match self.replaced.count(now) {
            Ok(()) => self.start(),
            Err(wait) => {
                tracing::warn!(agent = self.spec.name, "spare processes keep dying, none is kept for now");
                State::Resting(now + wait)
            }
        };
    }
}
