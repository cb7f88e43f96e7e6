//! A connection: one client, speaking ACP to acpd as its agent.
//!
//! One task reads the client's lines in order; [`ConnectionCore`] decides what each leads to, and this shell performs it.
//! What takes time runs in a task of its own, so that nothing waits behind it, and a prompt and the cancel right after it
//! still reach the session in their order. Losing the client ends the connection and its viewers, and nothing else, unless
//! the host lives for this client alone.

mod call;
mod coming_back;
mod core;
mod effects;
mod ending;
mod input;
mod journal;
mod listing;
mod passing;
mod processes;
mod tasks;
mod watching;
mod work;

use crate::capabilities::ClientCapabilities;
use crate::fleet::Fleet;
use crate::identity::Identity;
use crate::outbox::Outbox;
use crate::owed::Owed;
use crate::viewer::{Attachment, COMMANDS};
use crate::wire_error::wire_error;
use acpd_host::{ClientRef, ClientRequest, Host, HostError, Pending, SessionHandle};
use acpd_record::SessionId;
use acpd_wire::OwnedId;
use bytes::{Bytes, BytesMut};
use coming_back::connection_id;
use core::ConnectionCore;
use effects::{Effect, Effects};
pub use ending::LAST_EVENTS;
use futures_util::FutureExt;
use input::{Input, Outcome};
use journal::ConnectionJournal;
use processes::Processes;
use serde::Serialize;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tasks::{Done, Tasks};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use watching::{Watching, write_answer};

/// Requests that may be open at once. At the limit the client is not read until one is answered.
const OPEN_REQUESTS: usize = COMMANDS;

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
    /// How long viewers may write what is left when acpd ends, before the requests that are open are answered: less than the
    /// transport then waits.
    pub last_events: Duration,
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
    /// The fleet of which this is a door, if it is: lists have the sessions of all nodes.
    pub fleet: Option<Fleet>,
}

/// Serves a client until it is gone.
pub fn serve(host: Host, options: ConnectionOptions, io: ConnectionIo) -> Pending<'static, ()> {
    Box::pin(serve_until_gone(host, options, io))
}

async fn serve_until_gone(host: Host, options: ConnectionOptions, io: ConnectionIo) {
    let client = ClientRef { name: options.transport.into(), connection: acpd_host::fresh_id().into() };
    let span = journal::span(&client, &options);
    let (identity, agent) = (options.identity.clone(), options.agent.clone());
    let connection = Connection {
        core: ConnectionCore::new(identity, agent, options.ends_host),
        journal: span.in_scope(|| ConnectionJournal::opened(&options)),
        client,
        host,
        options,
        outbox: io.outbox,
        capabilities: ClientCapabilities::default(),
        processes: Processes::default(),
        watching: Watching::new(io.last_events),
        requests: Requests::default(),
        joining: None,
        tasks: Tasks::default(),
    };
    connection.run(io.arrivals, io.gone).instrument(span).await;
}

struct Connection {
    core: ConnectionCore,
    host: Host,
    options: ConnectionOptions,
    outbox: Outbox,
    client: ClientRef,
    capabilities: ClientCapabilities,
    journal: ConnectionJournal,
    processes: Processes,
    watching: Watching,
    requests: Requests,
    /// Where the client joins a session, until it is attached.
    joining: Option<Box<Attachment>>,
    tasks: Tasks,
}

/// What the client has asked.
#[derive(Default)]
struct Requests {
    /// Those that have no answer so far.
    owed: Owed,
    /// Those that a session has.
    passed: HashMap<OwnedId, (SessionHandle, ClientRequest)>,
}

enum Event {
    Arrival(Option<Arrival>),
    Done(Box<Done>),
    Gone,
}

impl Connection {
    async fn run(mut self, mut arrivals: mpsc::Receiver<Arrival>, gone: CancellationToken) {
        while !self.core.is_over() {
            let reads = self.core.reads(self.tasks.len());
            let event = tokio::select! {
                biased;
                done = self.tasks.next(), if !self.tasks.is_empty() => match done {
                    Some(done) => Event::Done(done),
                    None => continue,
                },
                arrival = arrivals.recv(), if reads => Event::Arrival(arrival),
                () = gone.cancelled(), if !reads => Event::Gone,
            };
            match event {
                Event::Arrival(Some(arrival)) => {
                    let input = self.read(arrival);
                    self.step(input).await;
                }
                Event::Done(done) => self.done(*done).await,
                Event::Arrival(None) | Event::Gone => {
                    if self.options.ends_host {
                        self.take_late(&mut arrivals).await;
                    }
                    let is_revoked = self.options.identity.revoked().is_cancelled();
                    let host_closes = self.host.is_closing();
                    self.step(Input::Gone { is_revoked, host_closes }).await;
                }
            }
        }
    }

    fn read(&self, arrival: Arrival) -> Input {
        match arrival {
            Arrival::Line(line) => {
                // What only some readers take is not passed on to an agent, nor recorded.
                let line = acpd_wire::without_halves(line);
                input::read(&line, |id| self.watching.asked(id))
            }
            Arrival::TooLong { limit } => Input::too_long(limit),
        }
    }

    /// Takes one input. What follows from an effect comes before the effects behind it. A panic is that of one request, which
    /// is answered, and of no other.
    async fn step(&mut self, input: Input) {
        let mut effects = Effects::default();
        self.decide(input, &mut effects);
        while let Some(effect) = effects.next() {
            let request = effect.request().cloned();
            let performed = AssertUnwindSafe(self.perform(effect)).catch_unwind().await;
            let next = performed.unwrap_or_else(|_| {
                tracing::error!("what a connection does for its client was lost to a panic");
                request.map(Input::lost)
            });
            if let Some(input) = next {
                let mut first = Effects::default();
                self.decide(input, &mut first);
                effects.put_first(first);
            }
        }
    }

    fn decide(&mut self, input: Input, effects: &mut Effects) {
        let request = match &input {
            Input::Request(call) | Input::LateRequest(call) => Some(call.id.clone()),
            _ => None,
        };
        if let Some(request) = &request {
            self.requests.owed.add(request.clone());
        }
        let decided = std::panic::catch_unwind(AssertUnwindSafe(|| self.core.handle(input, effects)));
        if decided.is_err() {
            tracing::error!("a decision of a connection was lost to a panic");
            if let Some(request) = request {
                self.core.handle(Input::lost(request), effects);
            }
        }
    }

    /// A task has ended.
    async fn done(&mut self, Done { request, outcome, process, attachment }: Done) {
        if let Some(request) = &request {
            self.requests.passed.remove(request);
        }
        if let Some(live) = attachment.as_ref().and_then(|attachment| attachment.live.as_ref()) {
            self.processes.known = Some(live.agent().clone());
        }
        if let Some(process) = process {
            self.processes.keep(process);
        }
        self.joining = attachment;
        self.step(Input::Done { request, outcome }).await;
    }

    /// Performs one effect; what is found out is the next input.
    async fn perform(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Find(call) => return Some(self.find(call).await),
            Effect::Count(call) => return Some(self.count(call)),
            Effect::Reach(message) => return Some(self.reach(message).await),
            Effect::Pass(message) => self.pass(message).await,
            Effect::Start(work, call) => self.start(work, *call),
            Effect::Answer { request, session, after, body } => {
                let line = match body {
                    Ok(result) => result_line(&request, &result),
                    Err(error) => error.to_line(&request),
                };
                self.answer(request, session, after, line);
            }
            Effect::Send(line) => self.send(None, self.outbox.clone(), line),
            Effect::RecordRefusal { method, session, error } => {
                self.journal.refused(&method, session.as_deref(), &error);
            }
            Effect::PassAnswer { id, position, result } => self.pass_answer(id, position, result).await,
            Effect::Withdraw(request) => {
                if let Some((session, request)) = self.requests.passed.get(&request) {
                    session.withdraw(*request).await;
                }
            }
            Effect::Introduce(params) => {
                self.capabilities = params.capabilities();
                if !self.options.identity.may_use(&self.options.agent) {
                    self.capabilities.only_watch();
                }
                if let Some(secret) = params.secret() {
                    self.client.connection = connection_id(self.options.identity.name(), secret);
                }
                if let Some(name) = params.client_info.name.as_deref() {
                    self.client.name = name.into();
                }
                self.journal.introduced(&params.client_info);
            }
            Effect::Attach(session) => return Some(self.attach(session).await),
            Effect::Forget(session) => self.watching.forget(&session),
            Effect::Leave { request, session } => self.leave(request, session).await,
            Effect::Close(why) => self.journal.closed(why),
            Effect::EndViewers => self.watching.gone.cancel(),
            Effect::ShutDown => self.shut_down().await,
            Effect::Drain => return Some(self.drain().await),
            Effect::SendLast(error) => self.send_last(error),
        }
        None
    }

    async fn attach(&mut self, session: SessionId) -> Input {
        if let Some(attachment) = self.joining.take() {
            self.journal.attached(&session, attachment.history_until);
            let outbox = self.outbox.viewer(&session, attachment.answer.delivery.on_connection);
            let client = (self.capabilities, self.client.connection.clone());
            self.watching.attach(&self.host, (session.clone(), *attachment), client, outbox).await;
        }
        Input::Over(self.watching.over(&session))
    }

    async fn leave(&mut self, request: OwnedId, session: SessionId) {
        let line = result_line(&request, b"{}");
        let owing = self.requests.owed.to(request.clone());
        let left = self.watching.leave(&session, owing.clone(), line.clone()).await;
        let outbox = self.outbox.about(&session);
        self.tasks.spawn(Some(&request.clone()), async move {
            let is_written = match left {
                Some(told) => told.await.is_ok(),
                None => false,
            };
            if !is_written {
                let _gone = outbox.answer(&owing, line).await;
            }
            Done::new(Some(request), Outcome::Answered)
        });
    }

    /// Answers a request, behind event `after` of its session if the client is shown that.
    fn answer(&mut self, request: OwnedId, session: Option<SessionId>, after: u64, line: Bytes) {
        let outbox =
            session.as_ref().map_or_else(|| self.outbox.clone(), |session| self.outbox.about(session));
        let viewer = session.filter(|_| after > 0).and_then(|session| self.watching.viewer(&session));
        if viewer.is_none() {
            return self.send(Some(request), outbox, line);
        }
        let owing = self.requests.owed.to(request.clone());
        self.tasks.spawn(Some(&request.clone()), async move {
            write_answer(&outbox, viewer.as_ref(), owing, after, line).await;
            Done::new(Some(request), Outcome::Answered)
        });
    }

    /// Sends a line beside everything else; it answers the request, if there is one.
    fn send(&mut self, request: Option<OwnedId>, outbox: Outbox, line: Bytes) {
        let owing = request.clone().map(|request| self.requests.owed.to(request));
        self.tasks.spawn(request.clone().as_ref(), async move {
            let _gone = match owing {
                Some(owing) => outbox.answer(&owing, line).await,
                None => outbox.send(line).await,
            };
            Done::new(request, Outcome::Answered)
        });
    }
}

fn answer_line(id: &OwnedId, body: &Result<Bytes, HostError>) -> Bytes {
    match body {
        Ok(result) => result_line(id, result),
        Err(error) => wire_error(error).to_line(id),
    }
}

fn result_line(id: &OwnedId, result: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(result.len() + 64);
    acpd_wire::write_result(&mut line, id.as_id(), result);
    line.freeze()
}

/// What is sent, as JSON.
fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("it is JSON").into()
}
