//! One session: a handle for all others, a task that decides.

mod core;
mod effects;
mod prompt;
mod questions;
mod replay;
mod requests;
mod shared;
mod task;
mod transcribing;
mod turns;

pub(crate) use self::core::{Limits, RunFacts, SessionCore};
pub(crate) use effects::{Note, TurnEnd};
pub(crate) use shared::SharedCore;
pub(crate) use task::{Past, SessionParts, SessionTask};
pub(crate) use transcribing::Handover;

use crate::agent::AgentRef;
use crate::error::HostError;
use crate::listing::SessionState;
use crate::viewers::{ViewerGuard, ViewerInfo, Viewers};
use acpd_eventlog::Committed;
use acpd_record::{
    Cause, ConnectionId, Json, LifecycleState, PermissionMode, QuestionNumber, SessionId, SessionMeta,
    TerminationInfo, Topic, TranscriptFacts,
};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Commands of clients wait here. Full: the client's connection waits, which slows that client only.
pub(crate) const COMMANDS: usize = 32;

/// An answer to a client, and what has to reach the client before it.
#[derive(Debug)]
pub struct Reply {
    /// Every event up to this one precedes the answer. They may be on their way to the log still: an answer does not count
    /// if the run ends without them.
    pub after: u64,
    /// The end of the run, if the answer stands before it: not given before that can be read, since it may tell of it, and
    /// not behind it.
    pub before: Option<u64>,
    /// The raw result.
    pub body: Result<Bytes, HostError>,
}

/// Takes the answer to one request, once, at the moment at which the session gives it: before any event that follows
/// can be seen. Dropped when the session's task is lost.
pub struct ReplyTo(Box<dyn FnOnce(Reply) + Send + Sync>);

impl ReplyTo {
    /// `take` runs in the session's task, so it must neither wait nor take long.
    pub fn new(take: impl FnOnce(Reply) + Send + Sync + 'static) -> Self {
        Self(Box::new(take))
    }

    pub(crate) fn send(self, reply: Reply) {
        (self.0)(reply);
    }
}

impl std::fmt::Debug for ReplyTo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReplyTo")
    }
}

/// Why a session should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRequest {
    /// The daemon, or the front end with a host inside, shuts down.
    Shutdown,
    /// A client has no more use for it; it can be activated again.
    Close,
    /// A client ends it for good.
    Terminate,
}

/// What came of an [`EndRequest`].
#[derive(Clone, Debug)]
pub struct EndOutcome {
    /// How the run ended: as asked, or otherwise if something else came first.
    pub info: Arc<TerminationInfo>,
    /// The last event of the run; what is said after the end is said after this one.
    pub after: u64,
    /// It had ended before the request.
    pub already: bool,
}

impl EndRequest {
    fn cause(self) -> Cause {
        match self {
            Self::Shutdown => Cause::DaemonShutdown,
            Self::Close => Cause::ClientClose,
            Self::Terminate => Cause::ClientTerminate,
        }
    }
}

/// Sent in a box: a queue has room for many from the start, and thousands of sessions wait for none.
#[derive(Debug)]
pub(crate) enum SessionCommand {
    /// A request for the agent, the prompt among them. `params` has acpd's session id.
    Request {
        method: String,
        params: Option<Bytes>,
        client: ClientRef,
        request: ClientRequest,
        reply: ReplyTo,
    },
    /// A notification for the agent, `session/cancel` among them.
    Notify { method: String, params: Option<Bytes>, client: ClientRef },
    /// The client withdrew its request.
    Withdraw { request: ClientRequest },
    /// End the session; answered with its last event when it has ended.
    End { request: EndRequest, initiator: Arc<str>, done: oneshot::Sender<u64> },
    /// A client answers a question of the agent with a raw result, or with an error.
    Answer {
        number: QuestionNumber,
        result: Option<Bytes>,
        client: ClientRef,
        reply: oneshot::Sender<Result<(), AnswerRefused>>,
    },
    /// What a client that attaches now has to know.
    Attach { reply: oneshot::Sender<Attached> },
}

/// The client that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRef {
    /// What the client calls itself.
    pub name: Arc<str>,
    /// Its connection; no two connections have the same, in any process.
    pub connection: ConnectionId,
}

/// An open question of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its number: the event that shows it.
    pub number: QuestionNumber,
    /// It is an elicitation, for clients that can fill in forms; else a permission request, for all.
    pub form: bool,
    /// The only connection that is asked, if it is one only.
    pub only: Option<ConnectionId>,
    /// The raw request, under the session's own id and the agent's request id.
    pub message: Bytes,
}

impl OpenQuestion {
    pub(crate) fn new(number: QuestionNumber, question: &acpd_record::OpenQuestion) -> Self {
        Self {
            number,
            form: question.topic == Topic::Elicitation,
            only: question.only.clone(),
            message: Bytes::copy_from_slice(question.message.as_bytes()),
        }
    }
}

/// Why a client's answer does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRefused {
    /// For the client, with the fix.
    pub reason: String,
    /// The question, if it can still be answered.
    pub again: Option<OpenQuestion>,
}

/// What a client that attaches learns, and at which event.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The last event that can be read now.
    pub seq: u64,
    /// Members of the answer to `session/load` and `session/resume`: current modes and config options.
    pub result: LifecycleState,
    /// What it has to be asked.
    pub open: Vec<OpenQuestion>,
    /// A turn is running.
    pub turn_active: bool,
    /// How the last turn ended, whichever client had prompted it (PR-12).
    pub last_stop_reason: Option<String>,
    /// How much of the history the agent knows from a transcript, if it could not resume or load the session.
    pub transcript: Option<TranscriptFacts>,
}

/// Names a request of a client to its session, so that it can be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientRequest(u64);

impl ClientRequest {
    /// One whose connection was lost with an earlier host.
    pub(crate) const LOST: Self = Self(u64::MAX);
}

/// What does not change while a run lasts.
#[derive(Debug)]
pub(crate) struct AboutRun {
    pub(crate) id: SessionId,
    /// The name of the token under which the session was created.
    pub(crate) created_by: Option<Arc<str>>,
    /// The last event before anything that this run says.
    pub(crate) began_after: u64,
    pub(crate) permission_mode: PermissionMode,
    /// The session's working directory.
    pub(crate) cwd: Arc<str>,
    /// When the session was created, in milliseconds since 1970.
    pub(crate) created_ms: i64,
}

/// A live session as a reader sees it.
#[derive(Debug)]
pub(crate) struct Glimpse {
    /// What the index knows of it.
    pub(crate) meta: SessionMeta,
    pub(crate) state: SessionState,
    pub(crate) title: Option<String>,
    /// Its last event that can be read.
    pub(crate) last_seq: u64,
    /// When its last event happened, in milliseconds since 1970.
    pub(crate) updated_ms: i64,
    /// Everything of contract 1.5.
    pub(crate) snapshot: Json,
}

/// Speaks to one session.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    about: Arc<AboutRun>,
    agent: AgentRef,
    commands: mpsc::Sender<Box<SessionCommand>>,
    ended: watch::Receiver<Option<Arc<TerminationInfo>>>,
    core: SharedCore,
    committed: Committed,
    viewers: Viewers,
    requests: Arc<std::sync::atomic::AtomicU64>,
}

impl SessionHandle {
    pub(crate) fn new(
        about: AboutRun,
        agent: AgentRef,
        commands: mpsc::Sender<Box<SessionCommand>>,
        ended: watch::Receiver<Option<Arc<TerminationInfo>>>,
        (core, committed): (SharedCore, Committed),
        viewers: Viewers,
    ) -> Self {
        let (about, requests) = (Arc::new(about), Arc::default());
        Self { about, agent, commands, ended, core, committed, viewers, requests }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.about.id
    }

    /// Its owner: the name of the token under which it was created, or None (contract 1.7).
    pub fn created_by(&self) -> Option<&Arc<str>> {
        self.about.created_by.as_ref()
    }

    /// The last event before anything that this run says. No two runs of a session have the same.
    pub fn began_after(&self) -> u64 {
        self.about.began_after
    }

    /// How the agent's permission requests are answered in this run.
    pub fn permission_mode(&self) -> PermissionMode {
        self.about.permission_mode
    }

    /// The agent it runs on.
    pub fn agent(&self) -> &AgentRef {
        &self.agent
    }

    /// How its run ended, if it has.
    pub fn ended_with(&self) -> Option<Arc<TerminationInfo>> {
        self.ended.borrow().clone()
    }

    /// Waits for the end of its run; the record is durable then.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn ended(&self) -> Arc<TerminationInfo> {
        let mut ended = self.ended.clone();
        loop {
            if let Some(info) = &*ended.borrow_and_update() {
                return Arc::clone(info);
            }
            if ended.changed().await.is_err() {
                // The task panicked; the record of that is made when the session is found at the next start.
                let facts = crate::termination::SessionFacts::default();
                let message = "acpd failed inside this session".to_owned();
                return Arc::new(crate::termination::of_failure(message, &facts, crate::clock::now_ms()));
            }
        }
    }

    /// Passes a request to the session, in order with the requests before it; its answer goes to `reply`.
    ///
    /// # Errors
    /// When the session has ended; otherwise the answer itself says what failed.
    pub async fn request(
        &self,
        method: String,
        params: Option<Bytes>,
        client: ClientRef,
        reply: ReplyTo,
    ) -> Result<ClientRequest, HostError> {
        let request = ClientRequest(self.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        self.send(SessionCommand::Request { method, params, client, request, reply }).await?;
        Ok(request)
    }

    /// Passes a notification to the session.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn notify(
        &self,
        method: String,
        params: Option<Bytes>,
        client: ClientRef,
    ) -> Result<(), HostError> {
        self.send(SessionCommand::Notify { method, params, client }).await
    }

    /// Lists a viewer, which may be asked while the guard lives.
    pub fn add_viewer(&self, viewer: ViewerInfo) -> ViewerGuard {
        self.viewers.add(viewer)
    }

    /// Passes a client's answer to question `number` on, in order with its requests; whether it counts comes later.
    /// Without a result it answered an error.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn answer(
        &self,
        number: QuestionNumber,
        result: Option<Bytes>,
        client: ClientRef,
    ) -> Result<oneshot::Receiver<Result<(), AnswerRefused>>, HostError> {
        let (reply, counts) = oneshot::channel();
        self.send(SessionCommand::Answer { number, result, client, reply }).await?;
        Ok(counts)
    }

    /// Withdraws a request; it is answered all the same, once.
    pub async fn withdraw(&self, request: ClientRequest) {
        // An ended session has answered it already.
        let _ended = self.send(SessionCommand::Withdraw { request }).await;
    }

    /// Ends the session and waits until it has ended, which the stop ladder bounds.
    pub async fn end(&self, request: EndRequest, initiator: Arc<str>) -> EndOutcome {
        let (done, ended) = oneshot::channel();
        let sent = self.send(SessionCommand::End { request, initiator, done }).await.is_ok();
        let after = if sent { ended.await.ok() } else { None };
        let info = self.ended().await;
        EndOutcome { after: after.unwrap_or_else(|| info.seq()), already: after.is_none(), info }
    }

    /// What a client that attaches now has to know.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn attach(&self) -> Result<Attached, HostError> {
        let (reply, answer) = oneshot::channel();
        self.send(SessionCommand::Attach { reply }).await?;
        match answer.await {
            Ok(attached) => Ok(attached),
            Err(_) => Err(self.ended_error().await),
        }
    }

    /// What it is now, for a reader, without waiting for its task. Not in order with what clients have asked. `None` once its
    /// end is decided: how it ended can be read when that is recorded.
    pub(crate) fn look(&self) -> Option<Glimpse> {
        let last_seq = self.committed.seq();
        let core = self.core.lock();
        core.log().is_live().then(|| Glimpse {
            meta: core.meta().clone(),
            state: core.state(),
            title: core.log().snapshot().title().map(str::to_owned),
            last_seq,
            updated_ms: core.log().last_at_ms(),
            snapshot: core.log().shown(last_seq),
        })
    }

    /// What it is doing, and its title.
    pub(crate) fn state(&self) -> (SessionState, Option<String>) {
        let core = self.core.lock();
        (core.state(), core.log().snapshot().title().map(str::to_owned))
    }

    /// Its working directory.
    pub(crate) fn cwd(&self) -> &str {
        &self.about.cwd
    }

    /// When it was created, in milliseconds since 1970.
    pub(crate) fn created_ms(&self) -> i64 {
        self.about.created_ms
    }

    /// The error for requests after the end.
    pub async fn ended_error(&self) -> HostError {
        HostError::SessionEnded { id: self.about.id.to_string(), info: self.ended().await }
    }

    async fn send(&self, command: SessionCommand) -> Result<(), HostError> {
        match self.commands.send(Box::new(command)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.ended_error().await),
        }
    }
}
