//! What clients have asked a session and not been answered yet.

use super::{ClientRef, Reply, ReplyTo, SessionCommand};
use crate::agent::Ticket;
use crate::error::HostError;
use bytes::Bytes;
use std::collections::BTreeMap;

/// A request of a client that is with the agent, or waits to be.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) is_prompt: bool,
    pub(super) method: String,
    /// With the agent's session id in it.
    pub(super) params: Option<Bytes>,
    pub(super) client: ClientRef,
    number: u64,
    reply: Option<ReplyTo>,
}

/// Open requests by ticket. Invariant: each is answered once; dropping one unanswered is a bug that the client
/// would see as a closed channel.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    next: u64,
    open: BTreeMap<Ticket, Pending>,
}

impl PendingRequests {
    pub(super) fn open(
        &mut self,
        is_prompt: bool,
        (method, params): (String, Option<Bytes>),
        (client, number): (ClientRef, u64),
        reply: ReplyTo,
    ) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let pending = Pending { is_prompt, method, params, client, number, reply: Some(reply) };
        self.open.insert(ticket, pending);
        ticket
    }

    /// A request of the session's own; its answer is for nobody else.
    pub(super) fn open_own(&mut self, method: String, params: Bytes) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        let client = ClientRef { name: "acpd".into(), connection: "".into() };
        let params = Some(params);
        let pending = Pending { is_prompt: false, method, params, client, number: u64::MAX, reply: None };
        self.open.insert(ticket, pending);
        ticket
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&Pending> {
        self.open.get(&ticket)
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Pending> {
        self.open.get_mut(&ticket)
    }

    pub(super) fn find(&self, number: u64) -> Option<(Ticket, &Pending)> {
        self.open
            .iter()
            .find(|(_, pending)| pending.number == number)
            .map(|(ticket, pending)| (*ticket, pending))
    }

    /// Answers a request, if it is still open.
    pub(super) fn answer(&mut self, ticket: Ticket, body: Result<Bytes, HostError>, replies: &mut Replies) {
        if let Some(reply) = self.open.remove(&ticket).and_then(|mut pending| pending.reply.take()) {
            replies.0.push(Waiting { reply, body, events: None });
        }
        if self.open.is_empty() {
            // An empty map keeps room for a dozen, and a session mostly has none.
            self.open = BTreeMap::new();
        }
    }

    /// Takes all that are open, oldest first.
    pub(super) fn tickets(&self) -> Vec<Ticket> {
        self.open.keys().copied().collect()
    }
}

/// Answers that wait until what precedes them is queued for the log.
#[derive(Default)]
pub(super) struct Replies(Vec<Waiting>);

struct Waiting {
    reply: ReplyTo,
    body: Result<Bytes, HostError>,
    /// How many events of the batch precede it; None for all of them.
    events: Option<u64>,
}

impl Replies {
    /// What was answered so far stands behind the first `events` events of the batch, before all others.
    pub(super) fn stand_behind(&mut self, events: u64) {
        for waiting in &mut self.0 {
            waiting.events.get_or_insert(events);
        }
    }

    /// Gives the answers; the batch has the events after `before`, up to `last`.
    pub(super) fn send(self, before: u64, last: u64) {
        for Waiting { reply, body, events } in self.0 {
            let after = events.map_or(last, |events| last.min(before + events));
            reply.send(Reply { after, before: None, body });
        }
    }

    /// Gives the answers before the event `end` is written, to stand in front of it (contract 7.3).
    pub(super) fn send_ahead_of(self, end: u64) {
        for Waiting { reply, body, .. } in self.0 {
            reply.send(Reply { after: end.saturating_sub(1), before: Some(end), body });
        }
    }
}

/// Answers a command that came after the end.
pub(super) fn refuse(command: SessionCommand, error: &HostError, after: u64) {
    match command {
        SessionCommand::Request { reply, .. } => {
            reply.send(Reply { after, before: None, body: Err(error.clone()) });
        }
        // Its sender learns from the closed channel that the end had passed.
        SessionCommand::End { .. }
        | SessionCommand::Attach { .. }
        | SessionCommand::Answer { .. }
        | SessionCommand::Notify { .. }
        | SessionCommand::Withdraw { .. } => {}
    }
}
