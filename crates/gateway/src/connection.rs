//! A connection: one client, speaking ACP to acpd as its agent.
//!
//! One task reads the client's lines in order and decides who each is for; every request that takes time runs in a
//! task of its own, so that nothing waits behind it, and a prompt and the cancel right after it still reach the
//! session in their order. Losing the client ends the connection and its viewers, and nothing else, unless the
//! host lives for this client alone.

mod access;
mod answers;
mod behind;
mod journal;
mod lifecycle;
mod listing;
mod open_request;
mod requests;
mod tasks;

use crate::capabilities::ClientCapabilities;
use crate::identity::{Identity, Scope};
use crate::methods;
use crate::outbox::Outbox;
use crate::questions::Questions;
use crate::viewer::{Answer, Attachment, Viewer, ViewerHandle};
use crate::wire_error::{WireError, wire_error};
use acpd_host::{AgentHandle, AgentRef, ClientRef, Host, HostError, Pending, SessionHandle, method};
use acpd_record::SessionId;
use acpd_wire::{Incoming, Message, OwnedId, RawId, codes, member};
use behind::Waiting;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use journal::ConnectionJournal;
use open_request::OpenRequest;
use requests::Call;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tasks::{Asking, Tasks};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Requests that may be open at once. At the limit the client is not read until one is answered.
pub(crate) const OPEN_REQUESTS: usize = 256;

/// How long requests of a client that is gone may still wait for their own answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// What comes from a client.
#[derive(Debug)]
pub enum Arrival {
    /// A line.
    Line(Bytes),
    /// A line over the limit, which was skipped.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

/// The ends of a transport.
#[derive(Debug)]
pub struct ConnectionIo {
    /// Lines of the client; closed at its end.
    pub arrivals: mpsc::Receiver<Arrival>,
    /// Cancelled when the client is gone, even while `arrivals` is not being read.
    pub gone: CancellationToken,
    /// Lines for the client.
    pub outbox: Outbox,
}

/// What a connection is bound to.
#[derive(Clone, Debug)]
pub struct ConnectionOptions {
    /// Who calls.
    pub identity: Identity,
    /// The agent that its sessions run on.
    pub agent: String,
    /// What the client came by, which it is also called by until it says its name.
    pub transport: &'static str,
    /// The host lives for this client alone and ends with it.
    pub ends_host: bool,
    /// Advertise close under its first draft's name in the root of the capabilities too, which the stable protocol
    /// forbids (contract 1.4).
    pub session_stop: bool,
}

/// Serves a client until it is gone.
pub fn serve(host: Host, options: ConnectionOptions, io: ConnectionIo) -> Pending<'static, ()> {
    Box::pin(serve_until_gone(host, options, io))
}

async fn serve_until_gone(host: Host, options: ConnectionOptions, io: ConnectionIo) {
    let client = ClientRef { name: options.transport.into(), connection: acpd_host::fresh_id().into() };
    let connection = Connection {
        journal: ConnectionJournal::opened(&client, &options),
        client,
        host,
        options,
        outbox: io.outbox,
        capabilities: ClientCapabilities::default(),
        initialized: None,
        agent: None,
        spare: None,
        viewers: HashMap::new(),
        joining: HashMap::new(),
        waiting: VecDeque::new(),
        unresumable: HashMap::new(),
        questions: Questions::default(),
        gone: CancellationToken::new(),
        open: Incoming::new(),
        tasks: Tasks::default(),
        initializing: false,
    };
    connection.run(io.arrivals, io.gone).await;
}

struct Connection {
    host: Host,
    options: ConnectionOptions,
    outbox: Outbox,
    client: ClientRef,
    journal: ConnectionJournal,
    capabilities: ClientCapabilities,
    /// The params of `initialize`, once it was answered.
    initialized: Option<Arc<Value>>,
    /// The last agent process of this connection, for requests that belong to no session.
    agent: Option<AgentRef>,
    /// An initialized process that has no session yet.
    spare: Option<AgentHandle>,
    viewers: HashMap<SessionId, Watched>,
    /// Sessions that the client asked to join, by the request.
    joining: HashMap<OwnedId, SessionId>,
    /// What it asked of such sessions meanwhile.
    waiting: VecDeque<Waiting>,
    /// Sessions whose history is shown but that cannot go on, with the reason.
    unresumable: HashMap<SessionId, HostError>,
    /// What the client was asked and has not answered.
    questions: Questions,
    /// Cancelled when the client is gone and its viewers have nothing to do any more.
    gone: CancellationToken,
    /// Requests of the client that are not answered yet.
    open: Incoming<OpenRequest>,
    tasks: Tasks,
    /// Nothing is read before the answer to `initialize`: everything else depends on it.
    initializing: bool,
}

/// A session that the client is attached to.
struct Watched {
    viewer: ViewerHandle,
    /// The run that it is attached to; None if it only reads, or has left.
    live: Option<SessionHandle>,
    /// How often the client attached.
    attachments: u64,
}

impl Watched {
    /// Its run is over, or the client has left, and all that was promised was written.
    fn is_over(&self) -> bool {
        let ended = self.live.as_ref().is_none_or(|live| live.ended_with().is_some());
        !self.viewer.is_there()
            || (ended && self.viewer.finished() == self.attachments && self.viewer.is_idle())
    }
}

/// A request was answered, or is about to be.
struct Done {
    /// None when it answered something that was no request, or not a new one.
    id: Option<OwnedId>,
    change: Change,
}

/// What an answered request changes for the connection.
enum Change {
    None,
    /// The client may go on; it has no agent if it only watches.
    Initialized {
        agent: Option<AgentHandle>,
        params: Arc<Value>,
    },
    /// It was answered this; the client may try again.
    NotInitialized(WireError),
    /// A request that belongs to no session had to start an agent.
    AgentStarted(AgentHandle),
    /// The client is attached to a session; its viewer writes the answer.
    Attached(Box<Attaching>),
    /// `session/new` failed; its process is still good.
    Returned(AgentHandle),
    /// The task of a request was lost; it is not answered yet.
    Lost(Asking),
}

/// A session that the client is about to be attached to.
struct Attaching {
    id: SessionId,
    attachment: Attachment,
    /// Why it can only be read, if so.
    unresumable: Option<HostError>,
    /// The process that was started for it and not needed.
    spare: Option<AgentHandle>,
}

enum Event {
    Arrival(Option<Arrival>),
    Done(Done),
    Gone,
}

impl Connection {
    async fn run(mut self, mut arrivals: mpsc::Receiver<Arrival>, gone: CancellationToken) {
        loop {
            let reading = !self.initializing && self.tasks.len() + self.waiting.len() < OPEN_REQUESTS;
            let event = tokio::select! {
                biased;
                done = self.tasks.next_done(), if !self.tasks.is_empty() => match done {
                    Some(done) => Event::Done(done),
                    None => continue,
                },
                arrival = arrivals.recv(), if reading => Event::Arrival(arrival),
                () = gone.cancelled(), if !reading => Event::Gone,
            };
            match event {
                Event::Arrival(Some(Arrival::Line(line))) => {
                    // Whatever a line does, the lines behind it are read.
                    if AssertUnwindSafe(self.line(line)).catch_unwind().await.is_err() {
                        tracing::error!("a line of a client was lost to a panic");
                    }
                }
                Event::Arrival(Some(Arrival::TooLong { limit })) => {
                    let message = format!("the line is longer than {limit} bytes");
                    self.refuse(RawId::NULL, codes::INVALID_REQUEST, &message);
                }
                Event::Arrival(None) | Event::Gone => break,
                Event::Done(done) => self.done(done).await,
            }
        }
        self.finish().await;
    }

    /// The client is gone, or the host is: what was asked for is still answered, to whoever may read it.
    async fn finish(mut self) {
        let why = match (self.options.identity.revoked().is_cancelled(), self.host.is_closing()) {
            (true, _) => "revoked",
            (false, true) => "shutdown",
            (false, false) => "left",
        };
        self.journal.closed(why);
        if self.options.ends_host {
            self.shut_down().await;
        } else if !self.host.is_closing() {
            self.gone.cancel();
            return;
        }
        // Agents that were still starting stop with the host, and answers are on their way to the viewers. What takes
        // longer is answered below, and only that: each request is answered once (FR-3).
        let answered = async {
            while !self.tasks.is_empty() {
                if let Some(done) = self.tasks.next_done().await {
                    self.done(done).await;
                }
            }
        };
        let _in_time = tokio::time::timeout(LAST_ANSWERS, answered).await;
        while !self.tasks.is_empty() {
            // Also what comes of the last ones: a client that does not read must not hold up the end.
            self.tasks.abort_all();
            if let Some(done) = self.tasks.next_done().await {
                self.done(done).await;
            }
        }
        let error = wire_error(&HostError::ShuttingDown);
        let lines: Vec<Bytes> = self.open.drain().map(|(id, _)| error.to_line(&id)).collect();
        let outbox = self.outbox.clone();
        // Beside the end, which a client that does not read must not hold up.
        self.host.scope().spawn("last answers", async move {
            for line in lines {
                if outbox.send(line).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Ends the host; what is answered meanwhile is passed on.
    async fn shut_down(&mut self) {
        let (host, client) = (self.host.clone(), Arc::clone(&self.client.name));
        // It stops beside the others.
        self.spare = None;
        let shutdown = host.shutdown(&client);
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                done = self.tasks.next_done(), if !self.tasks.is_empty() => {
                    if let Some(done) = done {
                        self.done(done).await;
                        self.spare = None;
                    }
                }
            }
        }
    }

    async fn done(&mut self, done: Done) {
        if let Some(id) = &done.id {
            self.open.close(id);
            self.joining.remove(id);
        }
        match done.change {
            Change::None => {}
            Change::Initialized { agent, params } => {
                self.initializing = false;
                self.set_client(params);
                if let Some(agent) = agent
                    && self.agent.replace(agent.downgrade()).is_none()
                {
                    self.spare = Some(agent);
                }
            }
            Change::NotInitialized(error) => {
                self.initializing = false;
                self.journal.refused(method::INITIALIZE, None, &error);
            }
            Change::AgentStarted(agent) => {
                self.agent = Some(agent.downgrade());
                self.keep_spare(agent);
            }
            Change::Returned(agent) => self.keep_spare(agent),
            Change::Attached(attaching) => self.attach(*attaching).await,
            Change::Lost(Asking { id, outbox, initializes }) => {
                self.initializing &= !initializes;
                self.answer_error(outbox, id, &broken());
            }
        }
        if !self.waiting.is_empty() {
            self.pass_on_waiting().await;
        }
    }

    /// A process that has no session may serve the next one. One that may have is stopped instead: no other
    /// client may hear of that session.
    fn keep_spare(&mut self, agent: AgentHandle) {
        if !agent.is_gone() && agent.is_unused() {
            self.spare.get_or_insert(agent);
        }
    }

    /// The process that waits, if it may serve a session that works in `cwd`.
    fn take_spare(&mut self, cwd: Option<&Path>) -> Option<AgentHandle> {
        let taken = self.spare.take_if(|spare| spare.is_gone() || spare.may_work_in(cwd));
        taken.filter(|spare| !spare.is_gone())
    }

    /// What the client said of itself.
    fn set_client(&mut self, params: Arc<Value>) {
        self.capabilities = ClientCapabilities::read(&params);
        if !self.options.identity.may(Scope::Control) {
            self.capabilities.only_watch();
        }
        if let Some(name) = params["clientInfo"]["name"].as_str() {
            self.client.name = name.into();
        }
        self.journal.introduced(&params);
        self.initialized = Some(params);
    }

    async fn attach(&mut self, attaching: Attaching) {
        let Attaching { id, attachment, unresumable, spare } = attaching;
        self.journal.attached(&id, attachment.history_until);
        let outbox = self.outbox.viewer(&id, attachment.answer.delivery.on_connection);
        if let Some(live) = &attachment.live {
            self.agent = Some(live.agent().clone());
        }
        if let Some(spare) = spare {
            self.keep_spare(spare);
        }
        match unresumable {
            Some(error) => drop(self.unresumable.insert(id.clone(), error)),
            None => drop(self.unresumable.remove(&id)),
        }
        let live = attachment.live.clone();
        let attachment = match self.viewers.get_mut(&id) {
            // Attached already: the same viewer goes on from another place, so that nothing is written twice.
            Some(watched) if watched.viewer.is_there() => {
                watched.live = live;
                watched.attachments += 1;
                let _gone = watched.viewer.follow(attachment).await;
                return;
            }
            _ => attachment,
        };
        // A session that is about to be joined again keeps its viewer, which knows what was told.
        let joining: HashSet<&SessionId> = self.joining.values().collect();
        self.viewers.retain(|id, watched| joining.contains(id) || !watched.is_over());
        let via = self.client.connection.clone();
        let questions = self.questions.clone();
        let (client, gone) = (self.capabilities, self.gone.clone());
        let (handle, viewer) = Viewer::new(&id, via, attachment, outbox, client, questions, gone);
        self.viewers.insert(id, Watched { viewer: handle, live, attachments: 1 });
        self.host.scope().spawn_lasting("viewer", Box::new(viewer).run());
    }

    async fn line(&mut self, line: Bytes) {
        match Message::parse(&line) {
            Ok(Message::Request { id, method, params }) => {
                let params = params.map(|params| slice_of(&line, params));
                self.request(id, &method, params).await;
            }
            Ok(Message::Notification { method, params }) => {
                let params = params.map(|params| slice_of(&line, params));
                self.notification(&method, params).await;
            }
            Ok(Message::Response { id, outcome }) => {
                let outcome = outcome.map(|result| slice_of(&line, result)).map_err(|_| ());
                self.answer(id, outcome).await;
            }
            Err(malformed) => {
                if let Some(code) = malformed.code() {
                    self.refuse(malformed.answer_id(), code, &malformed.to_string());
                }
            }
        }
    }

    /// The viewer of a session that the client is attached to.
    fn viewer_of(&self, session: &SessionId) -> Option<ViewerHandle> {
        self.viewers.get(session).map(|watched| watched.viewer.clone())
    }

    /// Answers something that is not even a request.
    fn refuse(&mut self, id: RawId<'_>, code: i64, message: &str) {
        let mut line = BytesMut::new();
        acpd_wire::write_error(&mut line, id, code, message, None);
        self.send(self.outbox.clone(), line);
    }

    /// Sends what answers no open request.
    fn send(&mut self, outbox: Outbox, lines: BytesMut) {
        self.tasks.spawn(async move {
            let _gone = outbox.send(lines.freeze()).await;
            Done { id: None, change: Change::None }
        });
    }

    async fn notification(&mut self, method: &str, params: Option<Bytes>) {
        if method == method::CANCEL_REQUEST {
            let Some(id) = params.and_then(|params| request_id(&params)) else { return };
            if !self.withdraw_waiting(&id)
                && let Some(request) = self.open.find(&id).cloned()
            {
                request.withdraw().await;
            }
            return;
        }
        if method.starts_with("$/") || self.initialized.is_none() {
            return;
        }
        // What is said of a session that is gone, or never was, is nobody's.
        let Some(Ok(id)) = session_id(params.as_ref()) else { return };
        if !self.notify_behind(&id, method, &params) {
            self.notify_session(&id, method, params).await;
        }
    }

    async fn notify_session(&mut self, id: &SessionId, method: &str, params: Option<Bytes>) {
        if let Ok(session) = self.host.session(id).await
            && self.may_notify(session.created_by().map(|creator| &**creator))
        {
            session.notify(method.to_owned(), params, self.client.clone()).await;
        }
    }

    async fn request(&mut self, id: RawId<'_>, method: &str, params: Option<Bytes>) {
        let request = OpenRequest::default();
        let owned = id.to_owned();
        if self.open.open(owned.clone(), request.clone()).is_err() {
            let message = format!("a request with the id {id} is open already");
            self.refuse(id, codes::INVALID_REQUEST, &message);
            return;
        }
        let outbox = match session_id(params.as_ref()) {
            Some(Ok(session)) => self.outbox.about(&session),
            Some(Err(_)) | None => self.outbox.clone(),
        };
        let initializes = method == method::INITIALIZE;
        self.tasks.are_for(Some(Asking { id: owned.clone(), outbox: outbox.clone(), initializes }));
        let work = async {
            let known = methods::find(method);
            match self.may(method, known, params.as_ref()).await {
                Ok(permitted) => {
                    let (id, open, params) = (owned.clone(), &request, params.clone());
                    let call = Call { id, method, params, open, permitted };
                    self.dispatch(known.handler, call).await.map_err(|error| wire_error(&error))
                }
                Err(error) => {
                    self.journal.refused(method, named_session(params.as_ref()).as_deref(), &error);
                    Err(error)
                }
            }
        };
        let done = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(broken()));
        self.tasks.are_for(None);
        if let Err(error) = done {
            self.answer_error(outbox, owned, &error);
        }
    }

    fn answer_error(&mut self, outbox: Outbox, id: OwnedId, error: &WireError) {
        let line = error.to_line(&id);
        self.tasks.spawn(async move {
            let _gone = outbox.send(line).await;
            Done { id: Some(id), change: Change::None }
        });
    }
}

/// The answer to a request whose work panicked.
fn broken() -> WireError {
    wire_error(&HostError::Broken)
}

/// Part of a line, without a copy.
fn slice_of(line: &Bytes, part: &RawValue) -> Bytes {
    let span = acpd_wire::span_of(line, part).expect("it was parsed from this line");
    line.slice(span)
}

/// `params.sessionId`, if it is a string; [`HostError::UnknownSession`] for text that is the id of no session.
fn session_id(params: Option<&Bytes>) -> Option<Result<SessionId, HostError>> {
    let named = named_session(params)?;
    Some(SessionId::parse(&named).ok_or(HostError::UnknownSession { id: named }))
}

/// `params.sessionId`, if it is a string, as the client wrote it.
fn named_session(params: Option<&Bytes>) -> Option<String> {
    let params: &RawValue = serde_json::from_slice(params?).ok()?;
    serde_json::from_str(member(params, "sessionId")?.get()).ok()
}

/// The request that a `$/cancel_request` names.
fn request_id(params: &Bytes) -> Option<OwnedId> {
    let params: &RawValue = serde_json::from_slice(params).ok()?;
    Some(RawId::new(member(params, "requestId")?)?.to_owned())
}

/// Writes an answer behind the events that precede it, through the viewer of its session if the client has one.
async fn write_answer(outbox: &Outbox, viewer: Option<&ViewerHandle>, after: u64, line: Bytes) {
    if let Some(viewer) = viewer
        && let Ok(slot) = viewer.reply_slot().await
    {
        let (answer, told) = Answer::new(after, line.clone()).told();
        slot.fill(answer);
        if told.await.is_ok() {
            return;
        }
    }
    // A client that is gone reads nothing.
    let _gone = outbox.send(line).await;
}

fn answer_line(id: &OwnedId, body: &Result<Bytes, HostError>) -> Bytes {
    match body {
        Ok(result) => {
            let mut line = BytesMut::with_capacity(result.len() + 64);
            acpd_wire::write_result(&mut line, id.as_id(), result);
            line.freeze()
        }
        Err(error) => wire_error(error).to_line(id),
    }
}
