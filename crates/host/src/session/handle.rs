//! What others hold of a live session.

use super::core::{Input, SessionCore};
use super::owed::Inherited;
use super::{
    AnswerRefused, Attached, ClientRef, ClientRequest, EndOutcome, EndRequest, LiveSession, Performer,
    Prompted, ReplyTo,
};
use crate::acp::method;
use crate::agent::AgentRef;
use crate::error::HostError;
use crate::fleet_part::Fence;
use crate::services::Services;
use crate::viewers::{ViewerGuard, ViewerInfo, Viewers};
use acpd_api::SessionState;
use acpd_eventlog::Committed;
use acpd_record::{
    Json, Partition, PermissionMode, QuestionNumber, SessionId, SessionMeta, Tally, TerminationInfo,
};
use acpd_supervisor::Outcome;
use acpd_terminal::TerminalEvent;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// What does not change while a run lasts.
#[derive(Debug)]
pub(crate) struct AboutRun {
    pub(crate) id: SessionId,
    /// The name of the token under which the session was created.
    pub(crate) created_by: Option<Arc<str>>,
    /// The last event before anything that this run says.
    pub(crate) began_after: u64,
    pub(crate) permission_mode: PermissionMode,
    /// The one that a client chose.
    pub(crate) chosen_mode: Option<PermissionMode>,
    /// What becomes of it when its node is cut off.
    pub(crate) partition: Partition,
    /// The session's working directory.
    pub(crate) cwd: Arc<str>,
    /// Where else it works.
    pub(crate) additional_directories: Box<[PathBuf]>,
    /// When the session was created, in milliseconds since 1970.
    pub(crate) created_ms: i64,
}

/// A live session as a reader sees it.
#[derive(Debug)]
pub(crate) struct Glimpse {
    /// What the index knows of it.
    pub(crate) meta: SessionMeta,
    pub(crate) state: SessionState,
    /// Prompts behind the one whose turn runs.
    pub(crate) waiting: usize,
    pub(crate) title: Option<String>,
    pub(crate) tally: Tally,
    /// Its last event that can be read.
    pub(crate) last_seq: u64,
    /// When its last event happened, in milliseconds since 1970.
    pub(crate) updated_ms: i64,
    /// Everything of contract 1.5.
    pub(crate) snapshot: Json,
}

/// A live session as a list shows it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) state: SessionState,
    pub(crate) title: Option<String>,
    pub(crate) tally: Tally,
    /// When its last event happened, in milliseconds since 1970.
    pub(crate) updated_ms: i64,
}

/// Speaks to one session. When the last handle is dropped the session is ended.
#[derive(Clone, Debug)]
pub struct SessionHandle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    about: AboutRun,
    agent: AgentRef,
    live: Arc<LiveSession>,
    ended: Outcome<Arc<TerminationInfo>>,
    committed: Committed,
    viewers: Viewers,
    fence: Fence,
    /// Requests so far.
    requests: AtomicU64,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.live.abandon();
    }
}

impl SessionHandle {
    pub(crate) fn new(
        about: AboutRun,
        agent: AgentRef,
        live: Arc<LiveSession>,
        (ended, committed): (Outcome<Arc<TerminationInfo>>, Committed),
        viewers: Viewers,
        fence: Fence,
    ) -> Self {
        let requests = AtomicU64::new(0);
        Self(Arc::new(Shared { about, agent, live, ended, committed, viewers, fence, requests }))
    }

    /// Goes on in place of a host that is gone: its agent is told what that had decided and not sent.
    pub(crate) fn go_on(&self, inherited: Inherited) {
        // Numbers of prompts that wait are not used again.
        let next = inherited.waiting.iter().map(|(request, _)| request.0 + 1).max().unwrap_or(0);
        self.0.requests.fetch_max(next, Ordering::Relaxed);
        self.0.live.with(|run| run.go_on(inherited));
    }

    /// Where terminals that outlived that host are taken over, and where they speak to. None: it has ended.
    pub(crate) fn inherits_terminals(&self) -> Option<(Services, mpsc::Sender<TerminalEvent>)> {
        self.0.live.with(Performer::inherits_terminals)
    }

    /// Its viewers come back to the next host.
    pub(crate) fn keep_viewers(&self) {
        self.0.viewers.keep();
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.0.about.id
    }

    /// Its owner: the name of the token under which it was created, or None (contract 1.7).
    pub fn created_by(&self) -> Option<&Arc<str>> {
        self.0.about.created_by.as_ref()
    }

    /// The last event before anything that this run says. No two runs of a session have the same.
    pub fn began_after(&self) -> u64 {
        self.0.about.began_after
    }

    /// How the agent's permission requests are answered in this run.
    pub fn permission_mode(&self) -> PermissionMode {
        self.0.about.permission_mode
    }

    /// The mode that a client chose for the session.
    pub(crate) fn chosen_mode(&self) -> Option<PermissionMode> {
        self.0.about.chosen_mode
    }

    /// Whether another node may take it up.
    pub(crate) fn is_movable(&self) -> bool {
        !self.0.about.partition.is_local()
    }

    /// Whether it may not run here now.
    pub(crate) fn is_fenced(&self) -> bool {
        self.0.fence.holds(self.0.about.partition)
    }

    /// Ends it because another node may take it up.
    pub(crate) async fn end_fenced(&self) {
        self.end(EndRequest::Fence, "daemon".into()).await;
    }

    /// Lets a client go on, unless the session may not run here now.
    pub(crate) fn pass_fence(&self) -> Result<(), HostError> {
        self.0.fence.pass(self.0.about.partition)
    }

    /// The directories that it works in beside its working directory.
    pub(crate) fn additional_directories(&self) -> &[PathBuf] {
        &self.0.about.additional_directories
    }

    /// The agent it runs on.
    pub fn agent(&self) -> &AgentRef {
        &self.0.agent
    }

    /// How its run ended, if it has.
    pub fn ended_with(&self) -> Option<Arc<TerminationInfo>> {
        self.0.ended.get().cloned()
    }

    /// Waits for the end of its run; the record is durable then.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn ended(&self) -> Arc<TerminationInfo> {
        if let Some(info) = self.0.ended.wait().await {
            return Arc::clone(info);
        }
        // It was lost to a panic; the record of that is made when the session is found at the next start.
        let facts = crate::termination::SessionFacts::default();
        let message = "acpd failed inside this session".to_owned();
        Arc::new(crate::termination::of_failure(message, &facts, crate::clock::now_ms()))
    }

    /// Passes a request to the session, in order with the requests before it; its answer goes to `reply`.
    ///
    /// # Errors
    /// When the session has ended, or a prompt comes to one that may not run now; otherwise the answer itself says what failed.
    pub async fn request(
        &self,
        method: String,
        params: Option<Bytes>,
        client: ClientRef,
        reply: ReplyTo,
    ) -> Result<ClientRequest, HostError> {
        if method == method::SESSION_PROMPT {
            self.pass_fence()?;
        }
        self.ask(|request| Input::Request { request, method, params, client }, reply).await
    }

    /// Passes on a prompt that its client has withdrawn: one that came before under its key is cancelled, and `reply` takes
    /// the end of its turn; another is not begun. `params` are those of `session/prompt`.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn withdrawn_prompt(
        &self,
        params: Bytes,
        client: ClientRef,
        reply: ReplyTo,
    ) -> Result<ClientRequest, HostError> {
        self.ask(|request| Input::Withdrawn { request, params, client }, reply).await
    }

    async fn ask(
        &self,
        asked: impl FnOnce(ClientRequest) -> Input,
        reply: ReplyTo,
    ) -> Result<ClientRequest, HostError> {
        let request = ClientRequest(self.0.requests.fetch_add(1, Ordering::Relaxed));
        self.0.live.room_for_command().await;
        match self.0.live.with(|run| run.request(request, asked(request), reply)) {
            Some(()) => Ok(request),
            None => Err(self.ended_error().await),
        }
    }

    /// Prompts, without waiting for the end of the turn: for its beginning, which is committed then, or for a place in
    /// line. `params` are those of `session/prompt`.
    ///
    /// # Errors
    /// When the session has ended, as many prompts wait as may, or the params are wrong.
    pub async fn prompt(&self, params: Bytes, client: ClientRef) -> Result<Prompted, HostError> {
        self.pass_fence()?;
        let request = ClientRequest(self.0.requests.fetch_add(1, Ordering::Relaxed));
        self.0.live.room_for_command().await;
        match self.0.live.with(|run| run.prompt(request, params, client)).flatten() {
            None => Err(self.ended_error().await),
            Some(Ok(prompted @ Prompted::Began { seq, .. })) => {
                self.0.committed.wait_for(seq).await?;
                Ok(prompted)
            }
            Some(Ok(waits)) => {
                self.0.live.flushed().await;
                self.0.committed.failure().map_or(Ok(waits), |failure| Err(failure.into()))
            }
            Some(Err(refused)) => Err(refused),
        }
    }

    /// Passes a notification to the session; one that has ended hears nothing. What it leads to is committed then.
    pub async fn notify(&self, method: String, params: Option<Bytes>, client: ClientRef) {
        self.committing(|run| run.handle([Input::Notify { method, params, client }])).await;
    }

    /// Lets a client act, and waits until the events that came of it are committed: what the client is told then is not lost
    /// with this host. None when the session has ended, or ends because that cannot be.
    async fn committing<T>(&self, act: impl FnOnce(&mut Performer) -> T) -> Option<T> {
        self.0.live.room_for_command().await;
        let (done, seq) = self.0.live.with(|run| {
            let before = run.core().log().last_seq();
            let done = act(run);
            (done, Some(run.core().log().last_seq()).filter(|seq| *seq > before))
        })?;
        match seq {
            Some(seq) => self.0.committed.wait_for(seq).await.ok()?,
            // A prompt that waits no more is no event.
            None => self.0.live.flushed().await,
        }
        Some(done)
    }

    /// Lists a viewer, which may be asked while the guard lives.
    pub fn add_viewer(&self, viewer: ViewerInfo) -> ViewerGuard {
        self.0.viewers.add(viewer)
    }

    /// Passes a client's answer to question `number` on, in order with its requests, and says whether it counts. Without
    /// a result it answered an error. None when the session has ended.
    pub async fn answer(
        &self,
        number: QuestionNumber,
        result: Option<Bytes>,
        client: ClientRef,
    ) -> Option<Result<(), AnswerRefused>> {
        self.committing(|run| run.answer(number, result, client)).await.flatten()
    }

    /// Withdraws a request; it is answered all the same, once.
    pub async fn withdraw(&self, request: ClientRequest) {
        self.0.live.room_for_command().await;
        // An ended session has answered it already.
        self.0.live.with(|run| run.handle([Input::Withdraw { request }]));
    }

    /// Ends the prompt under a key, whichever client sent it: one that waits leaves the line, the turn of one that runs is
    /// cancelled. False when there is none, or its turn is over.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn take_back(&self, key: String, client: ClientRef) -> Result<bool, HostError> {
        match self.committing(|run| run.take_back(key, client)).await.flatten() {
            Some(was_there) => Ok(was_there),
            None => Err(self.ended_error().await),
        }
    }

    /// Ends the session and waits until it has ended, which the stop ladder bounds.
    pub async fn end(&self, request: EndRequest, initiator: Arc<str>) -> EndOutcome {
        self.0.live.idle().await;
        let after = match self.0.live.with(|run| run.end(request, &initiator)).flatten() {
            Some(ended) => ended.await.ok(),
            None => None,
        };
        let info = self.ended().await;
        EndOutcome { after: after.unwrap_or_else(|| info.seq()), already: after.is_none(), info }
    }

    /// What a client that attaches now has to know.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn attach(&self) -> Result<Attached, HostError> {
        self.0.live.idle().await;
        match self.0.live.with(|run| run.attached()).flatten() {
            Some(attached) => Ok(attached),
            None => Err(self.ended_error().await),
        }
    }

    /// What it is now, for a reader, without waiting for its task. Not in order with what clients have asked. `None` once its
    /// end is decided: how it ended can be read when that is recorded.
    pub(crate) fn look(&self) -> Option<Glimpse> {
        let last_seq = self.0.committed.seq();
        let look = |core: &SessionCore| {
            core.log().is_live().then(|| Glimpse {
                meta: core.meta().clone(),
                state: core.state(),
                waiting: core.waiting(),
                title: core.log().snapshot().title().map(str::to_owned),
                tally: core.log().tally(last_seq),
                last_seq,
                updated_ms: core.log().last_at_ms(),
                snapshot: core.log().shown(last_seq),
            })
        };
        self.0.live.with_soon(|run| look(run.core())).flatten()
    }

    /// What a list shows of it that its row learns a moment later. None once its end is recorded.
    pub(crate) fn standing(&self) -> Option<Standing> {
        let standing = |core: &SessionCore| {
            let log = core.log();
            Standing {
                state: core.state(),
                title: log.snapshot().title().map(str::to_owned),
                tally: log.tally(u64::MAX),
                updated_ms: log.last_at_ms(),
            }
        };
        self.0.live.with_soon(|run| standing(run.core()))
    }

    /// Its working directory.
    pub(crate) fn cwd(&self) -> &str {
        &self.0.about.cwd
    }

    /// When it was created, in milliseconds since 1970.
    pub(crate) fn created_ms(&self) -> i64 {
        self.0.about.created_ms
    }

    /// The error for requests after the end.
    pub async fn ended_error(&self) -> HostError {
        HostError::SessionEnded { id: self.0.about.id.to_string(), info: self.ended().await }
    }
}
