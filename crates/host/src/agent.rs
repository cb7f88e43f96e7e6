//! One agent process and the JSON-RPC connection to it.
//!
//! [`AgentHandle`] sends, through the [`AgentConnection`] that it shares with the task that owns the process: the request tables of this
//! hop, and the routes from the agent's own session ids to sessions. Requests of a session are answered through the
//! session's own inbox, in the order in which the agent spoke, so that an answer never overtakes the updates before it.
//!
//! Not here: what any message means to a session.

mod ask;
mod callers;
mod checking;
mod claim;
mod connection;
mod core;
mod deadlines;
mod finder;
mod handle;
mod health;
mod held;
mod inbox;
mod info;
mod marks;
mod methods;
mod pool;
mod read;
mod spare;
mod start;
mod stray;
mod taking_over;
mod task;
mod terminals;
mod watermark;

pub use crate::agent_end::{AgentEnd, AgentStartError};
pub use callers::CallerRefused;
pub use checking::{CheckedAgent, check_agent, start_apart};
pub(crate) use claim::Claim;
pub(crate) use deadlines::Deadlines;
pub use finder::{AgentFinder, Sought};
pub use handle::{AgentHandle, AgentRef};
pub(crate) use health::HealthRecords;
pub use health::health_of_none;
pub(crate) use inbox::{DirectRecipient, Inbox, SessionInputs};
pub use info::{AgentInfo, PromptCapabilities};
pub(crate) use marks::{Marks, NotedTerminal, SentTurn};
pub(crate) use methods::{AgentMethods, MethodMemory};
pub use pool::Agents;
pub(crate) use read::{Line, read as read_line};
pub(crate) use spare::Spares;
pub(crate) use start::{AgentStarter, start as start_agent};
pub(crate) use taking_over::{Gap, TakenAgent};

pub(crate) use crate::agent_end::AgentFault;
use crate::ids::ClientRequest;
use acpd_record::{Snapshot, TurnNumber};
use acpd_wire::{OwnedId, UpdateKind};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What the agent answered to one request: the raw `result` or `error`.
#[derive(Clone, Debug)]
pub struct AgentAnswer {
    /// The raw value.
    pub body: Bytes,
    /// It is an error object.
    pub is_error: bool,
    /// Where its line ends in what the agent wrote, in bytes.
    pub(crate) position: u64,
}

/// What an agent says to one session. `position` is where the line ends in all that the agent wrote, in bytes.
#[derive(Debug)]
pub(crate) enum FromAgent {
    /// A `session/update` with its kind, or another notification; `session` is where the agent's own session id stands.
    Notification { line: Bytes, session: Option<Range<usize>>, update: Option<UpdateKind>, position: u64 },
    /// A request; it has to be answered with [`AgentHandle::answer`].
    Request { line: Bytes, session: Option<Range<usize>>, id: OwnedId, method: String, position: u64 },
    /// The answer to a request of the session.
    Answer { ticket: Ticket, answer: AgentAnswer },
    /// The agent takes a request of its own back. Which session it belongs to is not said, so each is told.
    Withdrawn { id: OwnedId, position: u64 },
    /// A request of the session could not be passed on.
    NotReading { ticket: Ticket, waiting: usize },
}

impl FromAgent {
    /// Where its line ends in what the agent wrote; nothing of what acpd says for the agent.
    pub(crate) fn position(&self) -> Option<u64> {
        match self {
            Self::Notification { position, .. }
            | Self::Request { position, .. }
            | Self::Withdrawn { position, .. }
            | Self::Answer { answer: AgentAnswer { position, .. }, .. } => Some(*position),
            Self::NotReading { .. } => None,
        }
    }
}

/// What reaches a session from its agent.
#[derive(Debug)]
pub(crate) enum SessionInput {
    /// Updates of the conversation that came before the answer with which the agent took the session up: first of all.
    Replayed(Box<[Bytes]>),
    /// Some messages, in order.
    Messages(Vec<FromAgent>),
    /// The process is gone; nothing follows.
    Gone(Arc<AgentEnd>),
}

/// Names a request of a session until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Ticket {
    /// The prompt of a turn.
    Turn(TurnNumber),
    /// Another request of a client.
    Client(ClientRequest),
    /// The session's own request that the agent close it.
    Close,
}

/// Where the answer to a request goes.
#[derive(Debug)]
enum ReplyTo {
    /// To the session that is bound to this route.
    Session { route: RouteId, ticket: Ticket },
    /// To the caller that waits.
    Caller(oneshot::Sender<AgentAnswer>),
}

/// A session that is bound to an agent process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteId(u64);

/// What the conversation is that an agent told of a session before it was bound.
#[derive(Debug)]
pub(crate) enum History {
    /// It is new.
    Keep,
    /// Up to the answer at this place it is a replay of what acpd has stored, and so is what it says of the state, as
    /// far as that is known (SE-7).
    Drop(Box<Snapshot>, u64),
    /// The host before has taken up what ends at `position`, and the agent works on `turn`.
    Taken { position: u64, turn: Option<SentTurn> },
}

/// The agent is gone; how is known from [`AgentHandle::ended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;
