//! One agent process and the JSON-RPC connection to it.
//!
//! [`AgentHandle`] sends; the task behind it owns the process, the request tables of this hop and the routes from
//! the agent's own session ids to session tasks. Requests of a session are answered through the session's own
//! queue, in the order in which the agent spoke, so that an answer never overtakes the updates before it.
//!
//! Not here: what any message means to a session.

mod ask;
mod callers;
mod claim;
mod core;
mod health;
mod held;
mod methods;
mod pool;
mod read;
mod spare;
mod start;
mod task;

pub use callers::CallerRefused;
pub(crate) use claim::Claim;
pub(crate) use health::HealthRecords;
pub use health::{AgentHealth, AgentStatus};
pub(crate) use methods::{AgentMethods, MethodMemory};
pub use pool::{Agents, check_agent};
pub(crate) use spare::Spares;
pub use start::{AgentInfo, AgentStartError, PromptCapabilities};
pub(crate) use start::{AgentStarter, start as start_agent};

use crate::acp::method;
use crate::secrets::Secrets;
use crate::session::ClientRequest;
use crate::spec::AgentSpec;
use acpd_record::{Snapshot, TurnNumber};
use acpd_supervisor::{ExitReport, ProcessHandle};
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, oneshot, watch};

/// Commands wait here for the agent task, which never waits for anything but its select. Full: the sender waits.
const COMMANDS: usize = 64;

/// Batches wait here for a session task that is busy with its log. Full: the agent is not read, so its own pipe
/// fills and slows it.
pub(crate) const SESSION_INPUTS: usize = 4;

/// What the agent answered to one request: the raw `result` or `error`.
#[derive(Clone, Debug)]
pub struct AgentAnswer {
    /// The raw value.
    pub body: Bytes,
    /// It is an error object.
    pub is_error: bool,
    /// Its place among the lines that the agent wrote.
    pub(crate) position: u64,
}

/// What an agent says to one session.
#[derive(Debug)]
pub(crate) enum FromAgent {
    /// A `session/update` or another notification; `session` is where the agent's own session id stands.
    Notification { line: Bytes, session: Option<Range<usize>>, is_update: bool },
    /// A request; it has to be answered with [`AgentHandle::answer`].
    Request { line: Bytes, session: Option<Range<usize>>, id: OwnedId, method: String },
    /// The answer to a request of the session.
    Answer { ticket: Ticket, answer: AgentAnswer },
    /// The agent takes a request of its own back. Which session it belongs to is not said, so each is told.
    Withdrawn { id: OwnedId },
    /// A request of the session could not be passed on.
    NotReading { ticket: Ticket, waiting: usize },
}

/// What reaches a session from its agent.
#[derive(Debug)]
pub(crate) enum SessionInput {
    /// Updates of the conversation that came before the answer with which the agent took the session up: first of all.
    Replayed(Box<[Bytes]>),
    /// Some messages, in order.
    Messages(Vec<FromAgent>),
    /// The process is gone; nothing follows.
    Gone(Arc<AgentEnd>),
}

/// Names a request of a session until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Ticket {
    /// The prompt of a turn.
    Turn(TurnNumber),
    /// Another request of a client.
    Client(ClientRequest),
    /// The session's own request that the agent close it.
    Close,
}

/// Why the connection failed though the process did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentFault(pub(crate) String);

/// The end of an agent process, as its task saw it.
#[derive(Clone, Debug)]
pub struct AgentEnd {
    /// How the process ended.
    pub report: Arc<ExitReport>,
    /// What was wrong with the connection before, if anything.
    pub(crate) fault: Option<AgentFault>,
}

/// Where the answer to a request goes.
#[derive(Debug)]
enum ReplyTo {
    /// To the session that is bound to this route.
    Session { route: RouteId, ticket: Ticket },
    /// To the caller that waits.
    Caller(oneshot::Sender<AgentAnswer>),
}

/// A session that is bound to an agent process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteId(u64);

#[derive(Debug)]
enum Command {
    Request {
        method: String,
        params: Option<Bytes>,
        reply: ReplyTo,
    },
    Notify {
        method: String,
        params: Option<Bytes>,
    },
    Answer {
        frame: Bytes,
    },
    Withdraw {
        route: RouteId,
        ticket: Ticket,
    },
    Claim {
        claim: Weak<str>,
        /// Whether the id is free.
        free: oneshot::Sender<bool>,
    },
    Bind {
        claim: Claim,
        inputs: mpsc::Sender<SessionInput>,
        history: History,
        route: oneshot::Sender<RouteId>,
    },
    /// The session has given its route back; what is still said of it is dropped.
    Unbind(RouteId),
    /// What is said of this session is dropped.
    Disown(Arc<str>),
    Fault(AgentFault),
}

/// What the conversation is that an agent told of a session before it was bound.
#[derive(Debug)]
pub(crate) enum History {
    /// It is new.
    Keep,
    /// Up to the answer at this place it is a replay of what acpd has stored, and so is what it says of the state, as
    /// far as that is known (SE-7).
    Drop(Box<Snapshot>, u64),
}

/// The agent is gone; how is known from [`AgentHandle::ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Speaks to one agent process. When the last handle is dropped the process is stopped, so each holder of one
/// counts as a user of the process.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    known: AgentRef,
    commands: mpsc::Sender<Box<Command>>,
}

/// Knows an agent process without keeping it alive.
#[derive(Clone, Debug)]
pub struct AgentRef {
    /// The entry that it was started with, whatever became of the configuration since.
    spec: Arc<AgentSpec>,
    info: Arc<AgentInfo>,
    methods: AgentMethods,
    commands: mpsc::WeakSender<Box<Command>>,
    process: ProcessHandle,
    end: watch::Receiver<Option<Arc<AgentEnd>>>,
    /// What the record of its end must not tell.
    secrets: watch::Sender<Secrets>,
    /// The directory that it was started for; None for one that was started before any session said where it works.
    directory: Option<Arc<Path>>,
    /// It was asked for a session, and has not refused.
    used: Arc<AtomicBool>,
}

impl AgentRef {
    /// A handle, if the process has not ended and is still in use.
    pub fn upgrade(&self) -> Option<AgentHandle> {
        let commands = self.commands.upgrade()?;
        self.end.borrow().is_none().then(|| AgentHandle { known: self.clone(), commands })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The entry that it was started with.
    pub(crate) fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// Whether it can fork a session, as far as is known.
    pub(crate) fn can_fork(&self) -> bool {
        self.info.has_fork() && !self.methods.lacks(method::SESSION_FORK)
    }

    /// Whether it can go on with a session in some way, as far as is known.
    pub(crate) fn can_go_on(&self) -> bool {
        self.spec.resume_with_transcript || !self.activation_methods().is_empty()
    }

    /// The methods by which it activates a session, the best first.
    pub(crate) fn activation_methods(&self) -> Vec<&'static str> {
        let ways =
            [(method::SESSION_RESUME, self.info.has_resume()), (method::SESSION_LOAD, self.info.has_load())];
        let has = |(method, offered): &(&'static str, bool)| *offered && !self.methods.lacks(method);
        ways.into_iter().filter(has).map(|(method, _)| method).collect()
    }
}

impl AgentHandle {
    /// The name of its configuration entry.
    pub fn name(&self) -> &str {
        &self.known.spec.name
    }

    /// What it said of itself.
    pub fn info(&self) -> &Arc<AgentInfo> {
        &self.known.info
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.known.pid()
    }

    /// Knows the same agent without keeping it alive.
    pub fn downgrade(&self) -> AgentRef {
        self.known.clone()
    }

    /// Whether one process serves all sessions of this agent.
    pub(crate) fn is_shared(&self) -> bool {
        self.known.spec.share_process
    }

    /// It serves sessions of this directory only.
    pub(crate) fn started_for(mut self, directory: &Path) -> Self {
        self.known.directory = Some(directory.into());
        self
    }

    /// Whether it may serve a session that works in this directory: it was started there, or before any was known.
    pub fn may_work_in(&self, directory: Option<&Path>) -> bool {
        self.known.directory.is_none() || self.known.directory.as_deref() == directory
    }

    /// Whether no session can be in it. A shared one takes any number.
    pub fn is_unused(&self) -> bool {
        self.is_shared() || !self.known.used.load(Ordering::SeqCst)
    }

    /// A session may be in it from now on; true if none could before.
    pub(crate) fn use_for_session(&self) -> bool {
        !self.known.used.swap(true, Ordering::SeqCst)
    }

    /// It refused the only session that it was asked for.
    pub(crate) fn is_unused_again(&self) {
        self.known.used.store(false, Ordering::SeqCst);
    }

    /// The entry that it was started with.
    pub(crate) fn spec(&self) -> &Arc<AgentSpec> {
        &self.known.spec
    }

    /// Keeps more secrets out of the record of its end.
    pub(crate) fn hide(&self, secrets: Secrets) {
        self.known.secrets.send_if_modified(|known| known.extend(secrets));
    }

    /// Which optional methods it has turned out to lack.
    pub(crate) fn methods(&self) -> &AgentMethods {
        &self.known.methods
    }

    /// Whether an optional method may be tried: false once it was answered -32601 (contract 1.4).
    pub fn offers(&self, method: &str) -> bool {
        !self.methods().lacks(method)
    }

    /// How it closes a session, as far as is known.
    pub(crate) fn close_method(&self) -> Option<&'static str> {
        self.info().close_method().filter(|method| !self.methods().lacks(method))
    }

    /// Whether its process has ended.
    pub fn is_gone(&self) -> bool {
        self.known.end.borrow().is_some()
    }

    /// Starts the stop ladder; asked again, jumps to SIGKILL.
    pub fn stop(&self) {
        self.known.process.stop();
    }

    /// Waits for the end of the process.
    pub async fn ended(&self) -> Arc<AgentEnd> {
        wait_for_end(self.known.end.clone(), &self.known.process, &self.known.secrets).await
    }

    /// Sends a request that belongs to no session and waits for its answer.
    ///
    /// # Errors
    /// [`HostError::AgentGone`](crate::HostError::AgentGone) when the agent ends first.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Bytes>,
    ) -> Result<AgentAnswer, crate::HostError> {
        let answer = self.try_request(method, params).await;
        match answer {
            Ok(answer) => Ok(answer),
            Err(Gone) => Err(crate::HostError::AgentGone { info: Arc::new(self.termination().await) }),
        }
    }

    /// How the process ended, as a record for those who waited for an answer.
    pub(crate) async fn termination(&self) -> acpd_record::TerminationInfo {
        let end = self.ended().await;
        let facts = crate::termination::SessionFacts { turn_active: true, ..Default::default() };
        crate::termination::of_agent(&end, None, &facts, crate::clock::now_ms())
    }

    pub(crate) async fn try_request(&self, method: &str, params: Option<Bytes>) -> Result<AgentAnswer, Gone> {
        let (reply, answer) = oneshot::channel();
        let reply = ReplyTo::Caller(reply);
        self.send(Command::Request { method: method.to_owned(), params, reply }).await?;
        answer.await.map_err(|_| Gone)
    }

    /// Sends a request of a session; its answer comes as [`FromAgent::Answer`].
    pub(crate) async fn request_for(
        &self,
        route: RouteId,
        ticket: Ticket,
        method: String,
        params: Option<Bytes>,
    ) -> Result<(), Gone> {
        self.send(Command::Request { method, params, reply: ReplyTo::Session { route, ticket } }).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the agent is gone.
    pub(crate) async fn notify(&self, method: &str, params: Option<Bytes>) -> Result<(), Gone> {
        self.send(Command::Notify { method: method.to_owned(), params }).await
    }

    /// Sends the answer to a request of the agent; `frame` is a whole line.
    pub(crate) async fn answer(&self, frame: Bytes) -> Result<(), Gone> {
        self.send(Command::Answer { frame }).await
    }

    /// Sends `$/cancel_request` for a request of a session, with this hop's id.
    pub(crate) async fn withdraw(&self, route: RouteId, ticket: Ticket) -> Result<(), Gone> {
        self.send(Command::Withdraw { route, ticket }).await
    }

    /// Claims the agent's session id `native` (as JSON text) for one session of acpd's; None when another one has it. Of
    /// a process that is gone there is none to have it: [`bind`](Self::bind) says so.
    pub(crate) async fn claim(&self, native: &str) -> Option<Claim> {
        let claim = Claim::new(native);
        let (free, is_free) = oneshot::channel();
        let sent = self.send(Command::Claim { claim: claim.known(), free }).await;
        let taken = sent.is_ok() && is_free.await == Ok(false);
        (!taken).then_some(claim)
    }

    /// From now on, what the agent says of the session that was claimed goes to `inputs`; what it said already goes
    /// first.
    pub(crate) async fn bind(
        &self,
        claim: Claim,
        inputs: mpsc::Sender<SessionInput>,
        history: History,
    ) -> Result<RouteId, Gone> {
        let (route, bound) = oneshot::channel();
        self.send(Command::Bind { claim, inputs, history, route }).await?;
        bound.await.map_err(|_| Gone)
    }

    /// What the agent says of its session `native` (as JSON text) is dropped, unless it is bound later.
    pub(crate) async fn disown(&self, native: Arc<str>) {
        // A process that is gone says nothing.
        let _gone = self.send(Command::Disown(native)).await;
    }

    /// The session has ended while the process goes on.
    pub(crate) async fn unbind(&self, route: RouteId) {
        // A process that is gone has no routes.
        let _gone = self.send(Command::Unbind(route)).await;
    }

    /// Gives up on the connection: the process is stopped and its end has `fault`.
    pub(crate) async fn fail(&self, fault: AgentFault) {
        if self.send(Command::Fault(fault)).await.is_err() {
            self.known.process.stop();
        }
    }

    async fn send(&self, command: Command) -> Result<(), Gone> {
        self.commands.send(Box::new(command)).await.map_err(|_| Gone)
    }
}

async fn wait_for_end(
    mut end: watch::Receiver<Option<Arc<AgentEnd>>>,
    process: &ProcessHandle,
    secrets: &watch::Sender<Secrets>,
) -> Arc<AgentEnd> {
    loop {
        if let Some(end) = &*end.borrow_and_update() {
            return Arc::clone(end);
        }
        if end.changed().await.is_err() {
            // The agent task panicked. Its process handle is gone with it, so the keeper ends the process.
            process.stop();
            let fault = Some(AgentFault("acpd's own connection to the agent failed".to_owned()));
            let report = process.exited().await;
            let report = secrets.borrow().redact_report(&report);
            return Arc::new(AgentEnd { report, fault });
        }
    }
}
