//! One agent process: what its lines mean, whom they are for, and what it is told.
//!
//! Lines and commands come in; deliveries to sessions and callers, and bytes for its stdin, go out. No IO and no clock.
//! Invariant: every request of the agent gets one answer, and every request to it is delivered one.

use super::claim::{Claim, Claims};
use super::held::HeldMessages;
use super::read::{Line, read};
use super::{AgentAnswer, AgentFault, FromAgent, History, RouteId, SessionInput, Ticket};
use crate::acp::{error_code, method};
use acpd_wire::{Outgoing, OwnedId, RawId, codes};
use bytes::{Buf, Bytes, BytesMut};
use serde::Serialize;
use std::sync::{Arc, Weak};

/// Unwritten bytes for an agent that does not read. Over it requests are refused and the agent is not read.
const BACKLOG: usize = 16 * 1024 * 1024;
/// Lines of a replay that a session is told of at once; between them it hears its clients.
const REPLAYED: usize = 256;
/// How much of a line that is no message is told, in bytes.
const SHOWN: usize = 200;

/// A request to the agent that belongs to no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallNumber(pub(super) u64);

/// What a request to the agent is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// A session, which names it.
    Session { route: RouteId, ticket: Ticket },
    /// A caller that waits.
    Call(CallNumber),
}

/// Something for a session or a caller.
#[derive(Debug)]
pub(super) enum Delivery {
    Session(RouteId, SessionInput),
    Call(CallNumber, AgentAnswer),
}

/// What an operator is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// A line that is no message.
    Noise(String),
    /// It speaks in acpd's own name; whether for the first time.
    OwnName {
        method: String,
        first: bool,
    },
    /// An update that names no session.
    Stray,
    Broken(String),
    /// An answer to nothing.
    Unasked,
    /// A message of a session that is not known, of so many bytes, had to go.
    Dropped(usize),
    /// The connection failed.
    Failed(String),
}

/// What inputs lead to.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// In order.
    pub(super) deliveries: Vec<Delivery>,
    /// The process is stopped.
    pub(super) stop: bool,
    pub(super) notes: Vec<Note>,
    /// Messages that are not delivered yet, by session, in the order in which the sessions were first spoken of.
    batches: Vec<(RouteId, Vec<FromAgent>)>,
}

struct Route {
    id: RouteId,
    /// The agent's session id as JSON text.
    native: Arc<str>,
}

/// One agent process.
pub(super) struct AgentCore {
    /// Requests to it that are not answered.
    requests: Outgoing<For>,
    routes: Vec<Route>,
    next_route: u64,
    claims: Claims,
    held: HeldMessages,
    /// Lines that the agent has written.
    said: u64,
    /// Bytes for its stdin that are not written.
    backlog: BytesMut,
    fault: Option<AgentFault>,
    /// A line was lost. What follows is read and dropped: it must not pass for all that the agent said.
    torn: bool,
    /// It said something that only acpd says.
    spoke_as_acpd: bool,
}

impl Effects {
    fn add(&mut self, route: RouteId, message: FromAgent) {
        // Agents speak of one session for long stretches; the last one is nearly always it.
        match self.batches.iter_mut().rev().find(|(id, _)| *id == route) {
            Some((_, messages)) => messages.push(message),
            None => self.batches.push((route, vec![message])),
        }
    }

    /// What was said so far is delivered before what follows.
    fn flush(&mut self) {
        let batches = std::mem::take(&mut self.batches).into_iter();
        let deliveries =
            batches.map(|(route, batch)| Delivery::Session(route, SessionInput::Messages(batch)));
        self.deliveries.extend(deliveries);
    }

    /// All of it, in order.
    pub(super) fn complete(mut self) -> Self {
        self.flush();
        self
    }
}

impl AgentCore {
    pub(super) fn new() -> Self {
        Self {
            requests: Outgoing::new(),
            routes: Vec::new(),
            next_route: 0,
            claims: Claims::default(),
            held: HeldMessages::default(),
            said: 0,
            backlog: BytesMut::new(),
            fault: None,
            torn: false,
            spoke_as_acpd: false,
        }
    }

    /// Bytes for its stdin.
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.backlog
    }

    /// So many of them were written.
    pub(super) fn written(&mut self, bytes: usize) {
        self.backlog.advance(bytes);
        if self.backlog.is_empty() {
            // Most agents are asked now and then.
            self.backlog = BytesMut::new();
        }
    }

    /// It does not take any more.
    pub(super) fn stdin_ended(&mut self) {
        self.backlog = BytesMut::new();
    }

    /// Whether so much waits for it that it is not read: answers to its own requests must not pile up.
    pub(super) fn is_behind(&self) -> bool {
        self.backlog.len() >= BACKLOG
    }

    /// Whether a request to it is not answered.
    pub(super) fn owes_answers(&self) -> bool {
        !self.requests.is_empty()
    }

    /// What was wrong with the connection.
    pub(super) fn take_fault(&mut self) -> Option<AgentFault> {
        self.fault.take()
    }

    pub(super) fn fail(&mut self, message: String, out: &mut Effects) {
        out.notes.push(Note::Failed(message.clone()));
        self.fault.get_or_insert(AgentFault(message));
        out.stop = true;
    }

    /// Something is to be sent to it as it is.
    pub(super) fn answer(&mut self, frame: &[u8]) {
        self.backlog.extend_from_slice(frame);
    }

    pub(super) fn notify(&mut self, method: &str, params: Option<&[u8]>) {
        acpd_wire::write_notification(&mut self.backlog, method, params);
    }

    /// Sends a request, or answers it without the agent: more is not kept for one that does not read.
    pub(super) fn request(&mut self, whom: For, method: &str, params: Option<&[u8]>, out: &mut Effects) {
        if !self.is_behind() {
            let id = self.requests.open(whom);
            acpd_wire::write_request(&mut self.backlog, id, method, params);
            return;
        }
        let waiting = self.backlog.len();
        match whom {
            For::Session { route, ticket } => out.add(route, FromAgent::NotReading { ticket, waiting }),
            For::Call(call) => {
                let message =
                    format!("the agent does not read its input; {waiting} bytes are waiting for it");
                out.deliveries.push(Delivery::Call(call, self.internal_error(&message)));
            }
        }
    }

    /// Tells it that the answer to a request is not waited for any more.
    pub(super) fn withdraw(&mut self, route: RouteId, ticket: Ticket) {
        let whom = For::Session { route, ticket };
        let id = self.requests.iter().find(|(_, asked)| **asked == whom).map(|(id, _)| id);
        if let Some(id) = id {
            let params = format!("{{\"requestId\":{id}}}");
            self.notify(method::CANCEL_REQUEST, Some(params.as_bytes()));
        }
    }

    /// Claims a session id of the agent's; whether it is free.
    pub(super) fn claim(&mut self, claim: Weak<str>) -> bool {
        if let Some(native) = claim.upgrade() {
            self.held.own(&native);
        }
        self.claims.add(claim, self.routes.iter().map(|route| &*route.native))
    }

    /// From now on what it says of a session goes to the route; what it said already goes first.
    pub(super) fn bind(&mut self, claim: Claim, history: History, out: &mut Effects) -> RouteId {
        let native = claim.into_native();
        self.claims.bound(&native);
        let id = RouteId(self.next_route);
        self.next_route += 1;
        if let History::Drop(known, answered) = history {
            for lines in self.held.drop_replay(&native, &known, answered).chunks(REPLAYED) {
                out.deliveries.push(Delivery::Session(id, SessionInput::Replayed(lines.into())));
            }
        }
        self.held.own(&native);
        self.routes.push(Route { id, native });
        let Self { held, routes, .. } = self;
        for (route, message) in held.release(|native| route_of(routes, native)) {
            out.add(route, message);
        }
        id
    }

    /// The session has ended, or its task is gone.
    pub(super) fn unbind(&mut self, id: RouteId) {
        self.routes.retain(|route| route.id != id);
    }

    /// What is said of this session is dropped.
    pub(super) fn disown(&mut self, native: Arc<str>) {
        self.held.disown(native);
    }

    /// A line over the limit was lost.
    pub(super) fn line_too_long(&mut self, limit: usize, out: &mut Effects) {
        self.torn = true;
        self.fail(format!("agent wrote a line over the limit of {limit} bytes"), out);
    }

    /// The agent wrote a line.
    pub(super) fn line(&mut self, line: Bytes, out: &mut Effects) {
        if self.torn {
            return;
        }
        self.said += 1;
        let (line, kind) = read(line);
        match kind {
            Line::Blank => {}
            Line::Noise => {
                let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
                out.notes.push(Note::Noise(shown));
            }
            Line::Forbidden { method } => {
                let first = !std::mem::replace(&mut self.spoke_as_acpd, true);
                out.notes.push(Note::OwnName { method, first });
            }
            Line::Stray => out.notes.push(Note::Stray),
            Line::Broken { code, id, detail } => {
                let id = id.as_ref().map_or(RawId::NULL, OwnedId::as_id);
                acpd_wire::write_error(&mut self.backlog, id, code, &detail, None);
                out.notes.push(Note::Broken(detail));
            }
            Line::BrokenAnswer { id, detail } => {
                // FR-3: the wait for this answer has an end.
                let whom = self.requests.close(&id.as_id());
                let answer = self.internal_error(&detail);
                pass_answer(whom, answer, out);
            }
            Line::Answer { id, body, is_error } => {
                let whom = id.and_then(|id| self.requests.close(&id.as_id()));
                let answer = AgentAnswer { body: line.slice(body), is_error, position: self.said };
                pass_answer(whom, answer, out);
            }
            Line::Withdrawal { id } => {
                for route in &self.routes {
                    out.add(route.id, FromAgent::Withdrawn { id: id.clone() });
                }
            }
            Line::Notification { session, is_update } => {
                let (bytes, native) = (line.len(), session.clone().map(|span| line.slice(span)));
                let message = FromAgent::Notification { line, session, is_update };
                self.pass_on(native, message, bytes, out);
            }
            Line::Request { session, id, method } => {
                let (bytes, native) = (line.len(), session.clone().map(|span| line.slice(span)));
                self.pass_on(native, FromAgent::Request { line, session, id, method }, bytes, out);
            }
        }
    }

    /// Passes a message to its session; one without a session id goes to the only session there is.
    fn pass_on(&mut self, native: Option<Bytes>, message: FromAgent, bytes: usize, out: &mut Effects) {
        match (route_of(&self.routes, native.as_deref()), &message) {
            (Some(route), _) => out.add(route, message),
            // A request cannot wait: the answer that names the session may depend on it.
            (None, FromAgent::Request { id, method, .. }) => self.refuse(native, id, method),
            (None, _) => {
                let dropped = self.held.hold(native, message, bytes, self.said);
                out.notes.extend(dropped.into_iter().map(Note::Dropped));
            }
        }
    }

    fn refuse(&mut self, native: Option<Bytes>, id: &OwnedId, method: &str) {
        let (code, text, data) = match &native {
            // Not -32601: an agent may remember that for good.
            Some(native) => {
                let data = format!("{{\"sessionId\":{}}}", String::from_utf8_lossy(native));
                (error_code::NOT_FOUND, "session not found".to_owned(), Some(data))
            }
            None => (codes::METHOD_NOT_FOUND, format!("method not found: {method}"), None),
        };
        let data = data.as_ref().map(String::as_bytes);
        acpd_wire::write_error(&mut self.backlog, id.as_id(), code, &text, data);
    }

    fn internal_error(&self, message: &str) -> AgentAnswer {
        #[derive(Serialize)]
        struct Error<'a> {
            code: i64,
            message: &'a str,
        }
        let error = Error { code: codes::INTERNAL_ERROR, message };
        let body = serde_json::to_vec(&error).expect("it is JSON").into();
        AgentAnswer { body, is_error: true, position: self.said }
    }
}

fn route_of(routes: &[Route], native: Option<&[u8]>) -> Option<RouteId> {
    let route = match native {
        Some(native) => routes.iter().find(|route| route.native.as_bytes() == native),
        None => routes.first().filter(|_| routes.len() == 1),
    };
    route.map(|route| route.id)
}

fn pass_answer(whom: Option<For>, answer: AgentAnswer, out: &mut Effects) {
    match whom {
        Some(For::Session { route, ticket }) => out.add(route, FromAgent::Answer { ticket, answer }),
        Some(For::Call(call)) => {
            // What came before it must not come after it.
            out.flush();
            out.deliveries.push(Delivery::Call(call, answer));
        }
        None => out.notes.push(Note::Unasked),
    }
}

#[cfg(test)]
mod tests;
