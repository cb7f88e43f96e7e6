//! The connection to one agent process, as its task and all that speak to the agent share it.
//!
//! What is sent is written to the agent's stdin at once, by the task that sends it: no other task has to wake up for that.
//! What does not fit into the pipe, and what is for sessions, is left to the agent task. The lock is held for decisions of
//! the core and for writes that do not wait; no other lock is taken while it is held.

use super::core::{AgentCore, CallNumber, Delivery, Effects, For, Note};
use super::inbox::Inbox;
use super::{AgentAnswer, Gone, ReplyTo, RouteId, SessionInput};
use acpd_eventlog::Committed;
use acpd_supervisor::{ProcessHandle, Stdin};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};
use tracing::Span;

/// The connection to one agent process.
pub(super) struct AgentConnection {
    state: Mutex<State>,
    process: ProcessHandle,
    pub(super) stdin: Stdin,
    is_kept: bool,
    /// What its lines belong to, also those written in the tasks of senders.
    span: Span,
    /// The agent task has something to do.
    changed: Notify,
}

struct State {
    core: AgentCore,
    recipients: Recipients,
    stdin_open: bool,
    /// The process has ended, and all know.
    over: bool,
}

/// What the agent task has to wait for.
pub(super) struct Pending {
    /// Bytes for stdin wait, and it is open.
    pub(super) writes: bool,
    /// So many bytes wait that the agent is not read.
    pub(super) is_behind: bool,
    pub(super) stdin_open: bool,
}

/// Where the core's deliveries go.
#[derive(Default)]
pub(super) struct Recipients {
    sessions: Vec<Bound>,
    calls: HashMap<CallNumber, oneshot::Sender<AgentAnswer>>,
    next_call: u64,
    /// What is not handed over yet, in order.
    waiting: VecDeque<Delivery>,
}

/// A session that is bound.
struct Bound {
    route: RouteId,
    inbox: Arc<Inbox>,
    committed: Committed,
}

/// Something for a session.
pub(super) struct ForSession {
    pub(super) route: RouteId,
    pub(super) inbox: Arc<Inbox>,
    pub(super) input: SessionInput,
}

impl AgentConnection {
    pub(super) fn new(process: ProcessHandle, stdin: Stdin, core: AgentCore, span: Span) -> Self {
        let is_kept = core.is_kept();
        let state = State { core, recipients: Recipients::default(), stdin_open: true, over: false };
        Self { state: Mutex::new(state), process, stdin, is_kept, span, changed: Notify::new() }
    }

    /// Lets the core decide, for one that speaks to the agent.
    pub(super) fn send<T>(
        &self,
        act: impl FnOnce(&mut AgentCore, &mut Recipients, &mut Effects) -> T,
    ) -> Result<T, Gone> {
        let mut state = self.state();
        if state.over {
            return Err(Gone);
        }
        let (result, is_left) = self.act(&mut state, act);
        if is_left {
            self.changed.notify_one();
        }
        Ok(result)
    }

    /// Lets the core decide on what the agent task saw.
    pub(super) fn see<T>(&self, act: impl FnOnce(&mut AgentCore, &mut Effects) -> T) -> T {
        self.act(&mut self.state(), |core, _, out| act(core, out)).0
    }

    /// Performs what is decided; whether anything is left to the agent task.
    fn act<T>(
        &self,
        state: &mut State,
        act: impl FnOnce(&mut AgentCore, &mut Recipients, &mut Effects) -> T,
    ) -> (T, bool) {
        if self.is_kept {
            state.core.waits_for(self.stdin.undrained());
        }
        let mut out = Effects::default();
        let result = act(&mut state.core, &mut state.recipients, &mut out);
        let Effects { deliveries, stop, notes, .. } = out.complete();
        if !notes.is_empty() {
            self.span.in_scope(|| notes.iter().for_each(|note| note.log(self.process.pid())));
        }
        if stop {
            self.process.stop();
        }
        let is_left = !deliveries.is_empty();
        state.recipients.waiting.extend(deliveries);
        (result, self.write_now(state) || is_left)
    }

    /// Writes what the agent's stdin takes; whether anything is left, or it was found closed.
    fn write_now(&self, state: &mut State) -> bool {
        while state.stdin_open && !state.core.unwritten().is_empty() {
            match self.stdin.try_write(state.core.unwritten()) {
                Ok(written) => state.core.written(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => {
                    state.stdin_ended();
                    return true;
                }
            }
        }
        false
    }

    /// Has the keeper store a mark, or remove it; whether it was told.
    pub(super) fn put(&self, key: &str, value: Option<&str>) -> bool {
        let mut state = self.state();
        if state.over {
            return false;
        }
        let (_, is_left) = self.act(&mut state, |core, _, _| core.put(key, value));
        if is_left {
            self.changed.notify_one();
        }
        state.core.unwritten().is_empty()
    }

    /// The agent's stdin takes more.
    pub(super) fn write(&self) {
        self.write_now(&mut self.state());
    }

    /// The agent reads no more.
    pub(super) fn stdin_ended(&self) {
        self.state().stdin_ended();
    }

    /// The span of the process.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    /// A session has taken up the agent's lines up to `position`; what came of them are events up to `seq`.
    pub(super) fn handled(&self, route: RouteId, position: u64, seq: u64) {
        self.state().core.handled(route, position, seq);
    }

    /// How far what the agent wrote is settled; unknown while an answer may wait for its stdin.
    pub(super) fn settled(&self) -> Option<u64> {
        let State { core, recipients, .. } = &mut *self.state();
        let committed = |route| recipients.bound(route).map_or(u64::MAX, |bound| bound.committed.seq());
        core.unwritten().is_empty().then(|| core.settled(committed))
    }

    /// Whether the process can outlive this host.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// What the agent task has to wait for.
    pub(super) fn pending(&self) -> Pending {
        let state = self.state();
        let (waiting, stdin_open) = (!state.core.unwritten().is_empty(), state.stdin_open);
        Pending { writes: waiting && stdin_open, is_behind: state.core.is_behind(), stdin_open }
    }

    /// Waits until something is left to the agent task.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The next delivery to a session. Answers for callers that stand before it are handed over.
    pub(super) fn next_for_session(&self) -> Option<ForSession> {
        let mut state = self.state();
        loop {
            let Some(delivery) = state.recipients.waiting.pop_front() else {
                // An agent that says nothing keeps no room for what it said.
                state.recipients.waiting = VecDeque::new();
                return None;
            };
            match delivery {
                Delivery::Session(route, input) => {
                    if let Some(bound) = state.recipients.bound(route) {
                        return Some(ForSession { route, inbox: Arc::clone(&bound.inbox), input });
                    }
                }
                Delivery::Call(call, answer) => state.recipients.answer(call, answer),
            }
        }
    }

    /// The session is behind: its delivery is the next again. Answers for callers need not wait for it.
    pub(super) fn put_back(&self, route: RouteId, input: SessionInput) {
        let mut state = self.state();
        let waiting = std::mem::take(&mut state.recipients.waiting);
        state.recipients.waiting.push_back(Delivery::Session(route, input));
        for delivery in waiting {
            match delivery {
                Delivery::Call(call, answer) => state.recipients.answer(call, answer),
                delivery => state.recipients.waiting.push_back(delivery),
            }
        }
    }

    /// The session has ended, or its task is gone.
    pub(super) fn unbind(&self, route: RouteId) {
        let mut state = self.state();
        state.recipients.sessions.retain(|bound| bound.route != route);
        state.core.unbind(route);
    }

    /// The process has ended: nothing is sent any more. A caller that waits for an answer learns it from its closed
    /// channel; gives the sessions.
    pub(super) fn close(&self) -> Vec<Arc<Inbox>> {
        let mut state = self.state();
        state.over = true;
        let Recipients { sessions, .. } = std::mem::take(&mut state.recipients);
        sessions.into_iter().map(|bound| bound.inbox).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl fmt::Debug for AgentConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentConnection").field("pid", &self.process.pid()).finish_non_exhaustive()
    }
}

impl State {
    fn stdin_ended(&mut self) {
        self.stdin_open = false;
        self.core.stdin_ended();
    }
}

impl Recipients {
    /// What a request is for, as the core knows it.
    pub(super) fn whom(&mut self, reply: ReplyTo) -> For {
        match reply {
            ReplyTo::Session { route, ticket } => For::Session { route, ticket },
            ReplyTo::Caller(caller) => {
                let call = CallNumber(self.next_call);
                self.next_call += 1;
                self.calls.insert(call, caller);
                For::Call(call)
            }
        }
    }

    /// A session is bound.
    pub(super) fn add(&mut self, route: RouteId, inbox: Arc<Inbox>, committed: Committed) {
        self.sessions.push(Bound { route, inbox, committed });
    }

    fn bound(&self, route: RouteId) -> Option<&Bound> {
        self.sessions.iter().find(|bound| bound.route == route)
    }

    /// Forgets the sessions whose tasks are gone.
    pub(super) fn drop_closed(&mut self) -> Vec<RouteId> {
        self.sessions.extract_if(.., |bound| bound.inbox.is_closed()).map(|bound| bound.route).collect()
    }

    fn answer(&mut self, call: CallNumber, answer: AgentAnswer) {
        let caller = self.calls.remove(&call);
        if self.calls.is_empty() {
            // Most calls are made at the start.
            self.calls = HashMap::new();
        }
        // A caller that is gone does not wait.
        let _gone = caller.map(|caller| caller.send(answer));
    }
}

impl Note {
    fn log(&self, pid: u32) {
        match self {
            Self::Noise { line, first: true } => {
                tracing::warn!(
                    pid,
                    line,
                    "agent line dropped while an answer is awaited: it is not a message"
                );
            }
            Self::Noise { line, first: false } => {
                tracing::debug!(pid, line, "agent line dropped: it is not a message");
            }
            Self::StrayBytes(bytes) => tracing::debug!(pid, bytes, "stray bytes cut off around a message"),
            Self::Ambiguous(member) => {
                tracing::warn!(pid, member, "agent notification dropped: a member is there twice");
            }
            Self::OwnName { method, first: true } => {
                tracing::warn!(pid, method, "the agent speaks in acpd's own name; that is dropped");
            }
            Self::OwnName { method, first: false } => {
                tracing::debug!(pid, method, "the agent speaks in acpd's own name");
            }
            Self::Stray => tracing::debug!(pid, "the agent sent an update that names no session"),
            Self::Broken { line, detail } => {
                tracing::warn!(pid, detail, line, "the agent sent a broken message");
            }
            Self::Unasked => tracing::debug!(pid, "the agent answered a request that was not made"),
            Self::Dropped(bytes) => tracing::warn!(pid, bytes, "dropped a message of an unknown session"),
            Self::Failed(message) => tracing::warn!(pid, "{message}"),
        }
    }
}
