//! What the agent is told: bytes for its stdin, and what its keeper remembers with them.

use super::answered::AnsweredRequests;
use super::{AgentCore, Delivery, Effects, For};
use crate::acp::method;
use crate::agent::{FromAgent, RouteId, Ticket, marks};
use acpd_supervisor::Framing;
use acpd_wire::OwnedId;
use bytes::{Buf, BytesMut};

/// Unwritten bytes for an agent that does not read. Over it requests are refused and the agent is not read.
pub(super) const BACKLOG: usize = 16 * 1024 * 1024;
/// A request up to this length, in bytes, is kept by the keeper while it is served; a longer one is read again.
const SMALL: usize = 2048;

/// What waits for the agent's stdin, and what its keeper knows.
pub(super) struct ForStdin {
    /// How stdin is written.
    pub(super) framing: Framing,
    /// Bytes that are not written.
    backlog: BytesMut,
    /// Bytes that were written and that the agent has not taken.
    undrained: usize,
    /// Requests that acpd serves, and that the keeper knows of.
    pub(super) served: Vec<OwnedId>,
    /// Those that the keeper gave back with their lines: these lines may come again.
    pub(super) fed: Vec<OwnedId>,
    /// All that it asks, until it is answered, and for a while behind that.
    pub(super) requests: AnsweredRequests,
}

impl ForStdin {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            backlog: BytesMut::new(),
            undrained: 0,
            served: Vec::new(),
            fed: Vec::new(),
            requests: AnsweredRequests::default(),
        }
    }

    /// Whether a request comes again that was taken from the keeper; once.
    pub(super) fn is_fed_again(&mut self, id: &OwnedId) -> bool {
        let place = self.fed.iter().position(|fed| fed == id);
        place.is_some_and(|place| {
            self.fed.swap_remove(place);
            true
        })
    }

    /// The keeper remembers something, or forgets it.
    pub(super) fn put(&mut self, key: &str, value: Option<&str>) {
        self.framing.put(&mut self.backlog, key, value);
    }
}

impl AgentCore {
    /// Bytes for its stdin.
    pub(in crate::agent) fn unwritten(&self) -> &[u8] {
        &self.stdin.backlog
    }

    /// So many of them were written.
    pub(in crate::agent) fn written(&mut self, bytes: usize) {
        self.stdin.backlog.advance(bytes);
        if self.stdin.backlog.is_empty() {
            // Most agents are asked now and then.
            self.stdin.backlog = BytesMut::new();
        }
    }

    /// So many bytes were written and it has not taken them.
    pub(in crate::agent) fn waits_for(&mut self, undrained: usize) {
        self.stdin.undrained = undrained;
    }

    /// It does not take any more.
    pub(in crate::agent) fn stdin_ended(&mut self) {
        self.stdin.backlog = BytesMut::new();
    }

    /// Whether so much waits for it that it is not read: answers to its own requests must not pile up.
    pub(in crate::agent) fn is_behind(&self) -> bool {
        self.stdin.backlog.len() + self.stdin.undrained >= BACKLOG
    }

    /// Writes a message for its stdin.
    pub(super) fn tell(&mut self, mark: Option<(&str, &str)>, write: impl FnOnce(&mut BytesMut)) {
        if self.stdin.framing == Framing::Plain {
            return write(&mut self.stdin.backlog);
        }
        let mut message = BytesMut::new();
        write(&mut message);
        self.stdin.framing.message(&mut self.stdin.backlog, &message, mark);
    }

    /// The agent asks, with a line that ends at `end`.
    pub(super) fn asks(&mut self, id: &OwnedId, end: u64) {
        if self.stdin.framing == Framing::Plain {
            return;
        }
        let is_again = self.stdin.fed.contains(id);
        if let Some((key, value)) = self.stdin.requests.asks(id, end, is_again) {
            self.stdin.put(&key, value.as_deref());
        }
    }

    /// Writes the answer to a request, in one with the mark that says so.
    pub(super) fn tell_answer(&mut self, id: &OwnedId, write: impl FnOnce(&mut BytesMut)) {
        let (stored, oldest) = self.stdin.requests.answers(id);
        let mark = stored.as_ref().and_then(|(key, value)| Some((&**key, value.as_deref()?)));
        self.tell(mark, write);
        if let Some((key, value)) = oldest {
            self.stdin.put(&key, value.as_deref());
        }
    }

    /// A request has its answer, which was written.
    fn remember_answer(&mut self, id: &OwnedId) {
        let (stored, oldest) = self.stdin.requests.answers(id);
        for (key, value) in stored.into_iter().chain(oldest) {
            self.stdin.put(&key, value.as_deref());
        }
    }

    /// Sends it something of a session as it is.
    pub(in crate::agent) fn pass(
        &mut self,
        route: RouteId,
        frame: &[u8],
        answers: Option<&OwnedId>,
        behind: Option<u64>,
    ) {
        let write = |out: &mut BytesMut| out.extend_from_slice(frame);
        if let Some(id) = answers.filter(|id| self.stdin.served.contains(id)) {
            // In one with the message, so that a host that takes over knows whether it is answered.
            let key = marks::served(id);
            self.tell(Some((&key, marks::ANSWERED)), write);
            if let (Some(seq), Some(native)) = (behind, self.native_of(route)) {
                self.stdin.put(&marks::sent(&native), Some(&seq.to_string()));
            }
            self.remember_answer(id);
            self.stdin.put(&key, None);
            self.stdin.served.retain(|served| served != id);
            self.watermark.answered(id);
            return;
        }
        match (behind, self.native_of(route), answers) {
            (Some(seq), Some(native), answers) => {
                self.tell(Some((&marks::sent(&native), &seq.to_string())), write);
                answers.into_iter().for_each(|id| self.remember_answer(id));
            }
            (_, _, Some(id)) => self.tell_answer(id, write),
            _ => self.tell(None, write),
        }
    }

    /// A request of a session is being served; `line` ends at `position`.
    pub(in crate::agent) fn serve(&mut self, route: RouteId, id: &OwnedId, line: &[u8], position: u64) {
        if self.stdin.framing == Framing::Plain {
            return;
        }
        let kept = std::str::from_utf8(line).ok().filter(|line| line.len() <= SMALL);
        if kept.is_none() {
            self.watermark.asks(route, position, id);
        }
        // Served by the host before, its keeper knows of it.
        if !self.stdin.served.contains(id) {
            self.stdin.served.push(id.clone());
            let kept = kept.unwrap_or(marks::READ_AGAIN);
            self.stdin.put(&marks::served(id), Some(kept));
        }
    }

    /// A host that takes the process over is told this of it.
    pub(in crate::agent) fn put(&mut self, key: &str, value: Option<&str>) {
        self.stdin.put(key, value);
    }

    /// Sends a request, or answers it without the agent: more is not kept for one that does not read.
    pub(in crate::agent) fn request(
        &mut self,
        whom: For,
        method: &str,
        params: Option<&[u8]>,
        out: &mut Effects,
    ) {
        if !self.is_behind() {
            if !self.owes_answers() {
                self.dropped.begin();
            }
            let id = self.requests.open(whom);
            let mark = match whom {
                For::Session { route, ticket: Ticket::Turn(turn) } => {
                    self.native_of(route).map(|native| (marks::turn(&native), marks::turn_value(turn, id)))
                }
                _ => None,
            };
            let mark = mark.as_ref().map(|(key, value)| (&**key, &**value));
            self.tell(mark, |out| acpd_wire::write_request(out, id, method, params));
            return;
        }
        let waiting = self.stdin.backlog.len() + self.stdin.undrained;
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
    pub(in crate::agent) fn withdraw(&mut self, route: RouteId, ticket: Ticket) {
        let whom = For::Session { route, ticket };
        let id = self.requests.iter().find(|(_, asked)| **asked == whom).map(|(id, _)| id);
        if let Some(id) = id {
            let params = format!("{{\"requestId\":{id}}}");
            let (method, params) = (method::CANCEL_REQUEST, Some(params.as_bytes()));
            self.tell(None, |out| acpd_wire::write_notification(out, method, params));
        }
    }
}
