//! One session: a handle for all others, a core that decides, and what performs it.

mod answers;
mod core;
mod effects;
mod handle;
mod holding;
mod live;
mod owed;
mod parts;
mod performer;
mod prompt;
mod questions;
mod replay;
mod replaying;
mod requests;
mod task;
mod transcribing;
mod turns;
mod working;

pub(crate) use self::core::{AfterTurn, Limits, RunFacts, SessionCore};
pub(crate) use self::core::{told_again, turn_under};
pub(crate) use effects::{Note, TurnEnd};
pub use handle::SessionHandle;
pub(crate) use handle::{AboutRun, Glimpse, Standing};
pub(crate) use live::LiveSession;
pub(crate) use owed::{Debts, Inherited, Owed};
pub(crate) use parts::RunParts;
pub(crate) use performer::Performer;
pub(crate) use prompt::{check_content, key_of};
pub(crate) use replaying::Past;
pub(crate) use requests::StoredPrompt;
pub(crate) use task::SessionTask;
pub(crate) use transcribing::Handover;

pub use crate::ids::ClientRequest;

use crate::error::HostError;
use acpd_record::{
    Cause, ConnectionId, LifecycleState, QuestionNumber, TerminationInfo, Topic, TranscriptFacts, TurnNumber,
};
use bytes::Bytes;
use std::sync::Arc;

/// An answer to a client, and what has to reach the client before it.
#[derive(Debug)]
pub struct Reply {
    /// Every event up to this one precedes the answer. They may be on their way to the log still: an answer does not count
    /// if the run ends without them.
    pub after: u64,
    /// The end of the run, if the answer stands before it: not given before that can be read, since it may tell of it, and
    /// not behind it.
    pub before: Option<u64>,
    /// The raw result.
    pub body: Result<Bytes, HostError>,
}

/// Takes the answer to one request, once, at the moment at which the session gives it: before any event that follows
/// can be seen. Dropped when the session is lost.
pub struct ReplyTo(Box<dyn FnOnce(Reply) + Send + Sync>);

impl ReplyTo {
    /// `take` runs while the session decides, so it must neither wait nor take long, nor use the session.
    pub fn new(take: impl FnOnce(Reply) + Send + Sync + 'static) -> Self {
        Self(Box::new(take))
    }

    pub(crate) fn send(self, reply: Reply) {
        (self.0)(reply);
    }
}

impl std::fmt::Debug for ReplyTo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReplyTo")
    }
}

/// Where a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompted {
    /// Its turn began.
    Began {
        /// The turn.
        turn: TurnNumber,
        /// The event that began it.
        seq: u64,
    },
    /// It waits in line, which is no event yet.
    Waits {
        /// Prompts before it, with the one that the agent works on.
        before: usize,
    },
}

/// Why a session should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndRequest {
    /// The daemon, or the front end with a host inside, shuts down.
    Shutdown,
    /// A client has no more use for it; it can be activated again.
    Close,
    /// A client ends it for good.
    Terminate,
    /// The fleet may have given this node up, and another node may take it up.
    Fence,
    /// Another node, which asks, has taken it up.
    Supersede,
}

/// What came of an [`EndRequest`].
#[derive(Clone, Debug)]
pub struct EndOutcome {
    /// How the run ended: as asked, or otherwise if something else came first.
    pub info: Arc<TerminationInfo>,
    /// The last event of the run; what is said after the end is said after this one.
    pub after: u64,
    /// It had ended before the request.
    pub already: bool,
}

impl EndRequest {
    /// The request of a client that is recorded as this.
    pub(crate) fn of_client(cause: Cause) -> Option<Self> {
        match cause {
            Cause::ClientClose => Some(Self::Close),
            Cause::ClientTerminate => Some(Self::Terminate),
            _ => None,
        }
    }

    fn cause(self) -> Cause {
        match self {
            Self::Shutdown => Cause::DaemonShutdown,
            Self::Close => Cause::ClientClose,
            Self::Terminate => Cause::ClientTerminate,
            Self::Fence => Cause::Fenced,
            Self::Supersede => Cause::Superseded,
        }
    }
}

/// The client that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRef {
    /// What the client calls itself.
    pub name: Arc<str>,
    /// Its connection; no two connections have the same, in any process.
    pub connection: ConnectionId,
}

/// An open question of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its number: the event that shows it.
    pub number: QuestionNumber,
    /// It is an elicitation, for clients that can fill in forms; else a permission request, for all.
    pub form: bool,
    /// The only connection that is asked, if it is one only.
    pub only: Option<ConnectionId>,
    /// The raw request, under the session's own id and the agent's request id.
    pub message: Bytes,
}

impl OpenQuestion {
    pub(crate) fn new(number: QuestionNumber, question: &acpd_record::OpenQuestion) -> Self {
        Self {
            number,
            form: question.topic == Topic::Elicitation,
            only: question.only.clone(),
            message: Bytes::copy_from_slice(question.message.as_bytes()),
        }
    }
}

/// Why a client's answer does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerRefused {
    /// For the client, with the fix.
    pub reason: String,
    /// The question, if it can still be answered.
    pub again: Option<OpenQuestion>,
}

/// What a client that attaches learns, and at which event.
#[derive(Clone, Debug)]
pub struct Attached {
    /// The last event that can be read now.
    pub seq: u64,
    /// Members of the answer to `session/load` and `session/resume`: current modes and config options.
    pub result: LifecycleState,
    /// What it has to be asked.
    pub open: Vec<OpenQuestion>,
    /// A turn is running.
    pub turn_active: bool,
    /// The connection that prompted the turn that runs.
    pub prompted_via: Option<ConnectionId>,
    /// Prompts that wait in line.
    pub waiting: usize,
    /// How the last turn ended, whichever client had prompted it (PR-12).
    pub last_stop_reason: Option<String>,
    /// How much of the history the agent knows from a transcript, if it could not resume or load the session.
    pub transcript: Option<TranscriptFacts>,
}
