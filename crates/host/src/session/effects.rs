//! What a decision of the session leads to, as data.

use super::{AnswerRefused, ClientRef, ClientRequest, Prompted};
use crate::agent::Ticket;
use crate::error::HostError;
use crate::recording;
use crate::services::Service;
use acpd_eventlog::{Batch, IndexUpdate};
use acpd_record::{Event, QuestionNumber, TerminationInfo, Topic, TurnNumber, Usage};
use acpd_terminal::TerminalId;
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// What inputs lead to. The shell performs it in the order of the members and adds nothing.
#[derive(Debug)]
pub(crate) struct Effects {
    /// Answers to clients. They go first: each names the event that it stands behind and waits for it, so that no viewer
    /// can have seen what follows an answer before it has the answer.
    pub(crate) answers: Vec<Answer>,
    /// What becomes of the agent's process.
    pub(crate) stop: Option<Stop>,
    /// What is appended to the log, before it is sent to the agent: no client sees what a restart would forget.
    pub(crate) recording: Recording,
    /// All else, in order.
    pub(crate) acts: Vec<Ordered>,
    /// The answer of a client that does not count, and why.
    pub(crate) refused: Option<AnswerRefused>,
    /// Where the prompt of a client is that does not wait for its end, or why it is nowhere.
    pub(crate) prompted: Option<Result<Prompted, HostError>>,
    /// There was a prompt that a client takes back.
    pub(crate) taken_back: bool,
    /// How the run ended, when it is over.
    pub(crate) ended: Option<Arc<TerminationInfo>>,
    /// The last event that was appended.
    last: Option<u64>,
}

/// The answer to a client's request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) request: ClientRequest,
    pub(crate) body: Result<Bytes, HostError>,
    /// The event that it stands behind; `None` until all that precedes it is known.
    pub(crate) after: Option<u64>,
    /// The end of the run, if it stands before that.
    pub(crate) before: Option<u64>,
}

/// What becomes of the agent's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is stopped.
    Agent,
    /// Others share it: this session leaves it.
    Leave,
}

/// Something that the shell does, and its place among the events.
#[derive(Debug, PartialEq)]
pub(crate) struct Ordered {
    pub(crate) act: Act,
    /// The last event that was appended before it, by the same decision.
    pub(crate) behind: Option<u64>,
}

/// Something that the shell does.
#[derive(Debug, PartialEq)]
pub(crate) enum Act {
    /// Sends a request to the agent; its answer comes with the ticket. One that is `repeatable` is never sent before its
    /// event is committed: a client may send it again.
    Request { ticket: Ticket, method: String, params: Option<Bytes>, repeatable: bool },
    /// Asks the agent to close its session, if it can; it says so when it cannot.
    Close { params: Bytes },
    /// Sends a notification to the agent.
    Notify { method: String, params: Option<Bytes> },
    /// Answers a request of the agent with a whole line.
    Answer { id: OwnedId, frame: Bytes },
    /// Tells the agent that an answer is not waited for any more.
    Withdraw(Ticket),
    /// Serves a request of the agent, which is `line` up to `position` of what it wrote.
    Serve { number: u64, service: Service, id: OwnedId, line: Bytes, position: u64 },
    /// The agent took a request back that is being served.
    WithdrawService(u64),
    /// Ends terminals.
    KillTerminals(Vec<TerminalId>),
    /// Ends all terminals and forgets them.
    ReleaseTerminals,
    /// The agent turned out to lack a method.
    RememberMissing(String),
    /// The agent turned out to lack the method by which it was asked to close its session.
    CloseIsMissing,
    /// For the operator.
    Note(Note),
}

/// What an operator is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Note {
    TurnStarted { turn: TurnNumber, client: ClientRef },
    TurnEnded { turn: TurnNumber, end: TurnEnd },
    Used(Usage),
    Stalled { turn: TurnNumber, silent: Duration },
    GoesOn { turn: TurnNumber, silent: Duration },
    Asked { turn: TurnNumber, question: QuestionNumber, topic: Topic },
    Answered { question: QuestionNumber, topic: Topic, client: ClientRef },
    Unanswered { question: QuestionNumber, topic: Topic, cause: &'static str },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    /// The agent answered with a stop reason, or without.
    Stopped(Option<String>),
    /// The agent answered with an error, of this code.
    Failed(Option<i64>),
    /// It was cancelled, and the agent took no notice.
    GivenUp,
    /// The agent was never asked: it does not read.
    Refused,
}

/// Events that are appended together, with what changes in the index.
#[derive(Debug)]
pub(crate) struct Recording {
    batch: Batch,
    now_ms: i64,
}

impl Recording {
    pub(crate) fn new(now_ms: i64) -> Self {
        Self { batch: Batch::new(), now_ms }
    }

    /// When its events happen, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(crate) fn event(&mut self, event: &Event<'_>) {
        recording::push(&mut self.batch, self.now_ms, event);
    }

    pub(crate) fn index(&mut self, update: IndexUpdate) {
        self.batch.update_index(IndexUpdate { updated_ms: self.now_ms, ..update });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Kind and payload of each event.
    #[cfg(test)]
    pub(super) fn events(&self) -> Vec<(u16, String)> {
        let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("text");
        self.batch.events(1).map(|event| (event.kind, text(event.payload))).collect()
    }

    /// The batch; the session counts as updated now.
    pub(crate) fn into_batch(mut self) -> Batch {
        self.index(IndexUpdate::default());
        self.batch
    }
}

impl Act {
    /// Whether the agent is told something.
    pub(crate) fn tells_the_agent(&self) -> bool {
        match self {
            Self::Request { .. }
            | Self::Close { .. }
            | Self::Notify { .. }
            | Self::Answer { .. }
            | Self::Withdraw(_) => true,
            Self::Serve { .. }
            | Self::WithdrawService(_)
            | Self::KillTerminals(_)
            | Self::ReleaseTerminals
            | Self::RememberMissing(_)
            | Self::CloseIsMissing
            | Self::Note(_) => false,
        }
    }
}

impl Effects {
    pub(crate) fn new(now_ms: i64) -> Self {
        let (answers, acts) = (Vec::new(), Vec::new());
        Self {
            answers,
            stop: None,
            recording: Recording::new(now_ms),
            acts,
            refused: None,
            prompted: None,
            taken_back: false,
            ended: None,
            last: None,
        }
    }

    /// Event `seq` is appended; what is done from now on stands behind it.
    pub(crate) fn append(&mut self, seq: u64, event: &Event<'_>) {
        self.recording.event(event);
        self.last = Some(seq);
    }

    /// What is done from now on stands behind event `seq`, which another host appended.
    pub(crate) fn stand_behind_event(&mut self, seq: u64) {
        self.last = Some(seq);
    }

    /// Answers a client's request, behind all that is appended for the same input.
    pub(crate) fn answer(&mut self, request: ClientRequest, body: Result<Bytes, HostError>) {
        self.answers.push(Answer { request, body, after: None, before: None });
    }

    pub(crate) fn act(&mut self, act: Act) {
        self.acts.push(Ordered { act, behind: self.last });
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.act(Act::Note(note));
    }

    /// What was answered so far stands behind event `seq` at the latest.
    pub(crate) fn stand_behind(&mut self, seq: u64) {
        for answer in &mut self.answers {
            answer.after.get_or_insert(seq);
        }
    }
}
