//! Speaks to one agent process, or only knows it.

use super::connection::AgentConnection;
use super::{
    AgentAnswer, AgentEnd, AgentFault, AgentInfo, AgentMethods, Claim, Gone, History, Inbox, ReplyTo,
    RouteId, Ticket, marks,
};
use crate::acp::method;
use crate::continuity::{KeptProcess, KeptRun};
use crate::error::HostError;
use crate::secrets::Secrets;
use crate::spans;
use crate::spec::AgentSpec;
use crate::termination::SessionFacts;
use acpd_eventlog::Committed;
use acpd_record::{KeeperAddress, RunNumber, SessionId, TerminationInfo};
use acpd_supervisor::{Outcome, ProcessHandle};
use acpd_wire::OwnedId;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::oneshot;
use tracing::Span;

/// Speaks to one agent process. When the last handle is dropped the process is stopped, so each holder of one
/// counts as a user of the process.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    pub(super) known: AgentRef,
    pub(super) _user: Arc<InUse>,
}

/// Held by those that use a process; it is stopped when none does.
#[derive(Debug)]
pub(super) struct InUse(pub(super) ProcessHandle);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Knows an agent process without keeping it alive.
#[derive(Clone, Debug)]
pub struct AgentRef {
    /// The entry that it was started with, whatever became of the configuration since.
    pub(super) spec: Arc<AgentSpec>,
    pub(super) info: Arc<AgentInfo>,
    pub(super) methods: AgentMethods,
    pub(super) connection: Arc<AgentConnection>,
    pub(super) user: Weak<InUse>,
    pub(super) process: ProcessHandle,
    pub(super) end: Outcome<Arc<AgentEnd>>,
    /// What the record of its end must not tell.
    pub(super) secrets: Arc<Mutex<Secrets>>,
    /// Its keeper, if it can outlive this host.
    pub(super) kept: Option<Arc<KeptProcess>>,
    /// The directory that it was started for; None for one that was started before any session said where it works.
    pub(super) directory: Option<Arc<Path>>,
    /// It was asked for a session, and has not refused.
    pub(super) used: Arc<AtomicBool>,
}

impl AgentRef {
    /// A handle, if the process has not ended and is still in use.
    pub fn upgrade(&self) -> Option<AgentHandle> {
        let user = self.user.upgrade()?;
        self.end.get().is_none().then(|| AgentHandle { known: self.clone(), _user: user })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Whether its process outlives this host: it can, and a session of it is in the log.
    pub(crate) fn outlives_host(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.is_asked())
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

    /// The span of a session's run on it.
    pub(crate) fn span_of_run(&self, session: &SessionId, run: RunNumber) -> Span {
        let span = match self.is_shared() {
            true => spans::of_run(),
            false => self.known.connection.span().clone(),
        };
        spans::name_run(&span, session, run);
        span
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
        self.known.secrets.lock().extend(secrets);
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
        self.known.end.get().is_some()
    }

    /// Starts the stop ladder; asked again, jumps to SIGKILL.
    pub fn stop(&self) {
        self.known.process.stop();
    }

    /// Waits for the end of the process.
    pub async fn ended(&self) -> Arc<AgentEnd> {
        if let Some(end) = self.known.end.wait().await {
            return Arc::clone(end);
        }
        // The agent task panicked. Its process handle is gone with it, so the keeper ends the process.
        self.known.process.stop();
        let fault = Some(AgentFault::Broken("acpd's own connection to the agent failed".to_owned()));
        let report = self.known.process.exited().await;
        let report = self.known.secrets.lock().redact_report(&report);
        Arc::new(AgentEnd { report, fault })
    }

    /// Sends a request that belongs to no session and waits for its answer.
    ///
    /// # Errors
    /// [`HostError::AgentGone`] when the agent ends first.
    pub async fn request(&self, method: &str, params: Option<Bytes>) -> Result<AgentAnswer, HostError> {
        match self.try_request(method, params).await {
            Ok(answer) => Ok(answer),
            Err(Gone) => Err(HostError::AgentGone { info: Arc::new(self.termination().await) }),
        }
    }

    /// How the process ended, as a record for those who waited for an answer.
    pub(crate) async fn termination(&self) -> TerminationInfo {
        let end = self.ended().await;
        let facts = SessionFacts { turn_active: true, ..Default::default() };
        crate::termination::of_agent(&end, None, &facts, crate::clock::now_ms())
    }

    pub(crate) async fn try_request(&self, method: &str, params: Option<Bytes>) -> Result<AgentAnswer, Gone> {
        let (caller, answer) = oneshot::channel();
        self.send_request(ReplyTo::Caller(caller), method, params.as_deref())?;
        answer.await.map_err(|_| Gone)
    }

    /// Sends a request of a session; its answer comes as [`FromAgent::Answer`](super::FromAgent::Answer).
    pub(crate) fn request_for(
        &self,
        route: RouteId,
        ticket: Ticket,
        method: &str,
        params: Option<&[u8]>,
    ) -> Result<(), Gone> {
        self.send_request(ReplyTo::Session { route, ticket }, method, params)
    }

    fn send_request(&self, reply: ReplyTo, method: &str, params: Option<&[u8]>) -> Result<(), Gone> {
        self.known.connection.send(|core, recipients, out| {
            let whom = recipients.whom(reply);
            core.request(whom, method, params, out);
        })
    }

    /// Sends a notification of a session, which stands behind an event of it or behind none.
    ///
    /// # Errors
    /// When the agent is gone.
    pub(crate) fn notify(
        &self,
        route: RouteId,
        method: &str,
        params: Option<&[u8]>,
        behind: Option<u64>,
    ) -> Result<(), Gone> {
        let mut frame = BytesMut::new();
        acpd_wire::write_notification(&mut frame, method, params);
        self.known.connection.send(|core, _, _| core.pass(route, &frame, None, behind))
    }

    /// Sends the answer to request `id` of the agent; `frame` is a whole line.
    pub(crate) fn answer(
        &self,
        route: RouteId,
        id: &OwnedId,
        frame: &[u8],
        behind: Option<u64>,
    ) -> Result<(), Gone> {
        self.known.connection.send(|core, _, _| core.pass(route, frame, Some(id), behind))
    }

    /// Request `id` of the agent, which is `line` up to `position` of what it wrote, is being served.
    pub(crate) fn serve(&self, route: RouteId, id: &OwnedId, line: &[u8], position: u64) {
        if self.known.connection.is_kept() {
            let _gone = self.known.connection.send(|core, _, _| core.serve(route, id, line, position));
        }
    }

    /// A session has taken up the agent's lines up to `position`; what came of them are events up to `seq`.
    pub(crate) fn handled(&self, route: RouteId, position: u64, seq: u64) {
        self.known.connection.handled(route, position, seq);
    }

    /// Whether its process can outlive this host.
    pub(crate) fn is_kept(&self) -> bool {
        self.known.connection.is_kept()
    }

    /// Where its keeper is found, if it can outlive this host.
    pub(crate) fn keeper(&self) -> Option<KeeperAddress> {
        self.known.kept.as_ref().map(|kept| kept.address.clone())
    }

    /// A session of it is in the log, with what only the keeper may know of the run: from now on it outlives this host.
    pub(crate) fn keep(&self, native: &str, run: &KeptRun<'_>) {
        let Some(kept) = &self.known.kept else { return };
        let run = serde_json::to_string(run).expect("it is JSON");
        self.known.connection.put(&marks::run(native), Some(&run));
        kept.keep(&self.known.process, self.spec().line_limit);
    }

    /// The first line that was dropped while an answer of the agent is awaited.
    pub(super) fn dropped_line(&self) -> Option<String> {
        self.known.connection.see(|core, _| core.dropped_line())
    }

    /// What it answered to `initialize`, for a host that takes it over.
    pub(super) fn put_initialized(&self, answer: &[u8]) {
        if let (true, Ok(answer)) = (self.is_kept(), std::str::from_utf8(answer)) {
            self.known.connection.put(marks::INITIALIZED, Some(answer));
        }
    }

    /// Sends `$/cancel_request` for a request of a session, with this hop's id.
    pub(crate) fn withdraw(&self, route: RouteId, ticket: Ticket) -> Result<(), Gone> {
        self.known.connection.send(|core, _, _| core.withdraw(route, ticket))
    }

    /// Claims the agent's session id `native` (as JSON text) for one session of acpd's; None when another one has it. Of
    /// a process that is gone there is none to have it: [`bind`](Self::bind) says so.
    pub(crate) fn claim(&self, native: &str) -> Option<Claim> {
        let claim = Claim::new(native);
        let free = self.known.connection.send(|core, recipients, _| {
            // A session that is gone without a word has its id no more.
            for route in recipients.drop_closed() {
                core.unbind(route);
            }
            core.claim(claim.known())
        });
        (free != Ok(false)).then_some(claim)
    }

    /// From now on, what the agent says of the session that was claimed goes to `inbox`; what it said already goes
    /// first.
    pub(crate) fn bind(
        &self,
        claim: Claim,
        inbox: Arc<Inbox>,
        committed: Committed,
        history: History,
    ) -> Result<RouteId, Gone> {
        self.known.connection.send(|core, recipients, out| {
            let route = match history {
                History::Taken { position, turn } => core.bind_again(claim, position, turn),
                history => core.bind(claim, history, out),
            };
            recipients.add(route, inbox, committed);
            route
        })
    }

    /// What the agent says of its session `native` (as JSON text) is dropped, unless it is bound later.
    pub(crate) fn disown(&self, native: Arc<str>) {
        // A process that is gone says nothing.
        let _gone = self.known.connection.send(|core, _, _| core.disown(native));
    }

    /// The session has ended while the process goes on.
    pub(crate) fn unbind(&self, route: RouteId) {
        self.known.connection.unbind(route);
    }

    /// Gives up on the connection: the process is stopped and its end has `fault`.
    pub(crate) fn fail(&self, fault: AgentFault) {
        if self.known.connection.send(|core, _, out| core.fail(fault.message().to_owned(), out)).is_err() {
            self.known.process.stop();
        }
    }
}
