//! What a decision of a connection leads to, as data.

use super::call::{Call, Message};
use crate::capabilities::InitializeParams;
use crate::paging::PageRequest;
use crate::questions::EventPosition;
use crate::wire_error::WireError;
use acpd_host::EndRequest;
use acpd_record::SessionId;
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// Something that the shell does.
#[derive(Debug)]
pub(super) enum Effect {
    /// Looks for the session that a request names, as far as it exists for the caller.
    Find(Box<Call>),
    /// Counts the run that a request may begin.
    Count(Box<Call>),
    /// Looks for the run that a message is for.
    Reach(Message),
    /// Passes a message on to its run.
    Pass(Message),
    /// Begins what is to be done for a request.
    Start(Work, Box<Call>),
    /// Answers a request, about a session or not; behind event `after` of the session, if the client is shown its events.
    Answer { request: OwnedId, session: Option<SessionId>, after: u64, body: Result<Bytes, WireError> },
    /// Sends what answers no open request.
    Send(Bytes),
    /// Records that a request was refused.
    RecordRefusal { method: String, session: Option<String>, error: WireError },
    /// Passes the answer to a question on.
    PassAnswer { id: OwnedId, position: EventPosition, result: Option<Bytes> },
    /// Withdraws a request from the session that has it.
    Withdraw(OwnedId),
    /// The client is known from now on.
    Introduce(Arc<InitializeParams>),
    /// Attaches the client to a session that was prepared for it.
    Attach(SessionId),
    /// Drops the viewer of a session.
    Forget(SessionId),
    /// Stops watching a session, and answers the request with that.
    Leave { request: OwnedId, session: SessionId },
    /// The client is gone, for this reason.
    Close(&'static str),
    /// Ends the viewers: the sessions go on without this client.
    EndViewers,
    /// Ends the host.
    ShutDown,
    /// Waits for what is still done for requests, within bounds.
    Drain,
    /// Sends the last answers, beside the end.
    SendLast(WireError),
}

/// What is done for a request beside everything else.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing is started for a client that `only_watches`.
    Initialize {
        params: Arc<InitializeParams>,
        only_watches: bool,
    },
    /// `session/new`, or `session/fork` of this session.
    Create(Option<SessionId>),
    List(PageRequest),
    Status(SessionId),
    /// `session/load` and (without a replay) `session/resume`.
    Join {
        session: SessionId,
        replay: bool,
        only_watches: bool,
    },
    End(SessionId, EndRequest),
    Delete(SessionId),
    /// Leaving what one is not attached to is no error, as long as it is there.
    CheckItIsThere(SessionId),
    /// A request that belongs to no session, such as `authenticate`.
    AskAgent,
}

impl Effect {
    /// The request that it is for, which is answered when it fails.
    pub(super) fn request(&self) -> Option<&OwnedId> {
        match self {
            Self::Find(call) | Self::Count(call) | Self::Start(_, call) => Some(&call.id),
            Self::Reach(message) | Self::Pass(message) => message.request.as_ref(),
            Self::Answer { request, .. } | Self::Leave { request, .. } => Some(request),
            _ => None,
        }
    }
}

/// Effects in order.
#[derive(Debug, Default)]
pub(super) struct Effects(VecDeque<Effect>);

impl Effects {
    pub(super) fn push(&mut self, effect: Effect) {
        self.0.push_back(effect);
    }

    pub(super) fn next(&mut self) -> Option<Effect> {
        self.0.pop_front()
    }

    /// These come first: they follow from an effect that was in front of the others.
    pub(super) fn put_first(&mut self, mut effects: Self) {
        effects.0.append(&mut self.0);
        *self = effects;
    }
}
