//! One agent process: what its lines mean, whom they are for, and what it is told.
//!
//! Lines and commands come in; deliveries to sessions and callers, and bytes for its stdin, go out. No IO and no clock.
//! Invariant: every request of the agent gets one answer, and every request to it is delivered one.

mod answered;
mod dropped;
mod going_on;
mod telling;

use super::claim::{Claim, Claims};
use super::held::HeldMessages;
use super::read::{Line, read};
use super::watermark::Watermark;
use super::{AgentAnswer, AgentFault, FromAgent, History, RouteId, SessionInput, Ticket, marks};
use crate::acp::error_code;
use acpd_supervisor::Framing;
use acpd_wire::{Outgoing, OwnedId, RawId, codes};
use bytes::Bytes;
use dropped::DroppedLines;
use serde::Serialize;
use std::sync::{Arc, Weak};
use telling::ForStdin;

/// Lines of a replay that a session is told of at once; between them it hears its clients.
const REPLAYED: usize = 256;
/// Each host of a process has so many bits of request ids for itself. Ids stay below 2^53, which is what JavaScript counts to.
const LEASE: u32 = 32;

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
    /// A line that is no message; whether it is the first one while an answer is awaited.
    Noise { line: String, first: bool },
    /// So many stray bytes stood around a message.
    StrayBytes(usize),
    /// A notification has this member twice, and is dropped.
    Ambiguous(&'static str),
    /// It speaks in acpd's own name; whether for the first time.
    OwnName { method: String, first: bool },
    /// An update that names no session.
    Stray,
    /// It was meant to be a message, and is none: the beginning of the line, and what is wrong.
    Broken { line: String, detail: String },
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
    /// The session has taken up its lines up to here, in this host or in the one before.
    known: u64,
}

/// One agent process.
pub(super) struct AgentCore {
    /// Requests to it that are not answered.
    requests: Outgoing<For>,
    routes: Vec<Route>,
    next_route: u64,
    claims: Claims,
    held: HeldMessages,
    /// Where the last line ends in what the agent has written.
    said: u64,
    /// How far that is settled.
    watermark: Watermark,
    stdin: ForStdin,
    fault: Option<AgentFault>,
    dropped: DroppedLines,
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
    /// What its stdin takes is written by `framing`. It is read from `position` on, and had `lease` hosts before this one.
    pub(super) fn new(framing: Framing, position: u64, lease: u64) -> Self {
        Self {
            requests: Outgoing::starting_at(lease << LEASE),
            routes: Vec::new(),
            next_route: 0,
            claims: Claims::default(),
            held: HeldMessages::default(),
            said: position,
            watermark: Watermark::starting_at(position),
            stdin: ForStdin::new(framing),
            fault: None,
            dropped: DroppedLines::default(),
            torn: false,
            spoke_as_acpd: false,
        }
    }

    /// Whether a request to it is not answered.
    pub(super) fn owes_answers(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The first line that was dropped while the answers that it owes are awaited.
    pub(super) fn dropped_line(&self) -> Option<String> {
        self.dropped.first().map(str::to_owned)
    }

    /// What was wrong with the connection.
    pub(super) fn take_fault(&mut self) -> Option<AgentFault> {
        self.fault.take()
    }

    pub(super) fn fail(&mut self, message: String, out: &mut Effects) {
        out.notes.push(Note::Failed(message.clone()));
        self.fault.get_or_insert(AgentFault::Broken(message));
        out.stop = true;
    }

    /// Whether its process can outlive this host.
    pub(super) fn is_kept(&self) -> bool {
        self.stdin.framing != Framing::Plain
    }

    /// How far what it wrote is settled, where `committed` says how far a session has committed.
    pub(super) fn settled(&mut self, committed: impl Fn(RouteId) -> u64) -> u64 {
        self.watermark.settled(committed)
    }

    /// A session has taken up its lines up to `position`; what came of them are events up to `seq`.
    pub(super) fn handled(&mut self, route: RouteId, position: u64, seq: u64) {
        self.watermark.handled(route, position, seq);
    }

    fn native_of(&self, route: RouteId) -> Option<Arc<str>> {
        let found = self.routes.iter().find(|known| known.id == route);
        found.map(|route| Arc::clone(&route.native))
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
        self.routes.push(Route { id, native, known: 0 });
        let Self { held, routes, .. } = self;
        for (route, message) in held.release(|native| route_of(routes, native)) {
            out.add(route, message);
        }
        id
    }

    /// The session has ended, or its task is gone.
    pub(super) fn unbind(&mut self, id: RouteId) {
        if let Some(native) = self.native_of(id) {
            for key in [marks::run(&native), marks::turn(&native), marks::sent(&native)] {
                self.stdin.put(&key, None);
            }
        }
        self.watermark.left(id);
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

    /// The agent wrote a line, which ends at `end`.
    pub(super) fn line(&mut self, line: Bytes, end: u64, out: &mut Effects) {
        if self.torn {
            return;
        }
        self.said = end;
        self.watermark.line(end);
        let written = line.len();
        let (line, kind) = read(line);
        // What is mended otherwise gets no shorter.
        if let Some(cut @ 1..) = written.checked_sub(line.len()) {
            out.notes.push(Note::StrayBytes(cut));
        }
        match kind {
            Line::Blank => {}
            Line::Noise => {
                let (line, first) = self.dropped.add(&line, self.owes_answers());
                out.notes.push(Note::Noise { line, first });
            }
            Line::Ambiguous { member, .. } => out.notes.push(Note::Ambiguous(member)),
            Line::Forbidden { method } => {
                let first = !std::mem::replace(&mut self.spoke_as_acpd, true);
                out.notes.push(Note::OwnName { method, first });
            }
            Line::Stray => out.notes.push(Note::Stray),
            Line::Broken { code, id, detail } => {
                let id = id.as_ref().map_or(RawId::NULL, OwnedId::as_id);
                self.tell(None, |out| acpd_wire::write_error(out, id, code, &detail, None));
                out.notes.push(self.broken(&line, detail));
            }
            Line::BrokenAnswer { id, detail } => {
                // FR-3: the wait for this answer has an end.
                let whom = self.requests.close(&id.as_id());
                let answer = self.internal_error(&detail);
                self.pass_answer(whom, answer, out);
            }
            Line::Answer { id, body, is_error } => {
                let whom = id.and_then(|id| self.requests.close(&id.as_id()));
                let answer = AgentAnswer { body: line.slice(body), is_error, position: end };
                self.pass_answer(whom, answer, out);
            }
            Line::Withdrawal { id } => {
                let routes: Vec<RouteId> = self.routes.iter().map(|route| route.id).collect();
                for route in routes {
                    self.give(route, FromAgent::Withdrawn { id: id.clone(), position: end }, out);
                }
            }
            Line::Notification { session, update } => {
                let (bytes, native) = (line.len(), session.clone().map(|span| line.slice(span)));
                let message = FromAgent::Notification { line, session, update, position: end };
                self.pass_on(native, message, bytes, out);
            }
            Line::Request { id, .. } if self.stdin.requests.has(&id, end) => {}
            Line::Request { session, id, method } => {
                self.asks(&id, end);
                let (bytes, native) = (line.len(), session.clone().map(|span| line.slice(span)));
                let message = FromAgent::Request { line, session, id, method, position: end };
                self.pass_on(native, message, bytes, out);
            }
        }
    }

    /// What is noted of a line that is no message and was meant to be one.
    fn broken(&mut self, line: &[u8], detail: String) -> Note {
        let (line, _) = self.dropped.add(line, self.owes_answers());
        Note::Broken { line, detail }
    }

    /// Passes a message to its session; one without a session id goes to the only session there is.
    fn pass_on(&mut self, native: Option<Bytes>, message: FromAgent, bytes: usize, out: &mut Effects) {
        match (route_of(&self.routes, native.as_deref()), &message) {
            (Some(route), _) => self.give(route, message, out),
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
        self.tell_answer(id, |out| acpd_wire::write_error(out, id.as_id(), code, &text, data));
    }

    /// Gives a session what the last line says, unless it has taken that up before. A request that is not answered yet comes
    /// again.
    fn give(&mut self, route: RouteId, message: FromAgent, out: &mut Effects) {
        let known = self.routes.iter().find(|known| known.id == route).map_or(0, |route| route.known);
        let is_open = match &message {
            FromAgent::Request { id, .. } if self.stdin.is_fed_again(id) => return,
            FromAgent::Request { id, .. } => self.stdin.served.contains(id),
            _ => false,
        };
        if self.said > known || is_open {
            self.watermark.is_for(route);
            out.add(route, message);
        }
    }

    fn pass_answer(&mut self, whom: Option<For>, answer: AgentAnswer, out: &mut Effects) {
        match whom {
            Some(For::Session { route, ticket }) => {
                self.give(route, FromAgent::Answer { ticket, answer }, out);
            }
            Some(For::Call(call)) => {
                // What came before it must not come after it.
                out.flush();
                out.deliveries.push(Delivery::Call(call, answer));
            }
            None => out.notes.push(Note::Unasked),
        }
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

#[cfg(test)]
mod tests;
