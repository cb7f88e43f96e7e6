//! The session: the only place that decides what happens in one.
//!
//! Inputs and the time come in, effects go out; no IO and no clock. What a session is, is a fold over its events
//! ([`Projection`]); what is not in events stands in [`Volatile`], with its value after a restart. Decisions read these
//! two and what does not change in a run ([`RunFacts`]), nothing else.

mod asking;
mod ending;
mod forwarding;
mod going_on;
mod hearing;
mod indexing;
mod repeating;
mod requesting;
mod serving;
mod turning;
mod waiting;

pub(crate) use ending::{EndOfRun, Ending};
use going_on::Continuation;
use hearing::Silence;
use indexing::Indexed;
pub(crate) use repeating::{told_again, turn_under};
pub(crate) use serving::Serving;

use super::effects::{Act, Effects, Note};
use super::questions::Deadlines;
use super::requests::ClientRequests;
use super::transcribing::Handover;
use super::turns::Turns;
use super::{Attached, ClientRef, ClientRequest, OpenQuestion};
use crate::agent::{AgentEnd, FromAgent, PromptCapabilities};
use crate::services::{Offered, Served, ServiceError};
use crate::termination::RequestedEnd;
use crate::viewers::Viewers;
use acpd_api::SessionState;
use acpd_record::{
    Event, NativeSessionId, PermissionMode, Position, Projection, QuestionNumber, SessionId, SessionMeta,
    TurnNumber,
};
use acpd_terminal::TerminalEvent;
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What does not change while a run lasts.
#[derive(Clone, Debug)]
pub(crate) struct RunFacts {
    pub(crate) id: SessionId,
    /// The agent's own id of the session.
    pub(crate) native: NativeSessionId,
    pub(crate) permission_mode: PermissionMode,
    /// What prompts the agent takes.
    pub(crate) prompt: PromptCapabilities,
    /// Its process serves other sessions too.
    pub(crate) is_shared: bool,
    /// Its process can outlive this host: the log says how far the agent was heard.
    pub(crate) is_kept: bool,
    /// What acpd serves the agent.
    pub(crate) offered: Offered,
    /// Clients that serve files themselves are asked first.
    pub(crate) forwards_files: bool,
    pub(crate) limits: Limits,
    /// It is closed behind a turn, with or without clients (contract 7.3, `closeAfterTurn`).
    pub(crate) after_turn: Option<AfterTurn>,
}

/// A run that is closed when a turn of it has ended and no prompt waits.
#[derive(Clone, Debug)]
pub(crate) struct AfterTurn {
    /// What the client calls itself that wanted it.
    pub(crate) client: Arc<str>,
    /// The turns before the run.
    pub(crate) turns: TurnNumber,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// An agent that was asked to cancel may go on.
    pub(crate) cancel: Option<Duration>,
    /// A question waits for an answer.
    pub(crate) permission: Option<Duration>,
    /// A session may do nothing before it ends.
    pub(crate) idle: Option<Duration>,
    /// Nothing may come from an agent that is waited for.
    pub(crate) stall: Option<Duration>,
    /// A session that is closed waits for its cancelled turn: of what the agent has to end in, a part.
    pub(crate) settle_turn: Duration,
    /// It waits for the agent's own close.
    pub(crate) settle: Duration,
}

/// What is not in the log. After a restart of the host, of which the agent knows nothing, each member is what its comment
/// says.
#[derive(Debug)]
pub(super) struct Volatile {
    /// Restart: empty; the connections are gone with their requests.
    pub(super) requests: ClientRequests,
    /// Restart: the unfinished turn runs, without a request that waits for it; no prompt is in line.
    pub(super) turns: Turns,
    /// Restart: all open questions wait anew.
    pub(super) due: Deadlines,
    /// Restart: empty; what the agent asked and was not answered comes again with its input.
    pub(super) serving: Serving,
    /// Restart: empty; viewers join anew.
    pub(super) viewers: Viewers,
    /// Restart: made from the history, if the agent was not given it yet.
    pub(super) handover: Handover,
    /// Restart: none; the shutdown or the client that asked is gone.
    pub(super) ending: Option<Ending>,
    /// Restart: counted anew.
    pub(super) idle_at: Option<Instant>,
    /// Restart: counted anew.
    pub(super) silence: Silence,
    /// Restart: as `Continuation` says.
    pub(super) continuation: Continuation,
    /// Restart: nothing is stale, and the session is idle, which a change of owner sets.
    pub(super) indexed: Indexed,
    /// Nothing can be recorded any more. Restart: no.
    pub(super) log_failed: bool,
}

/// Something that happens to a session.
#[derive(Debug)]
pub(crate) enum Input {
    /// A client asks the agent for something, the prompt among them. `params` has acpd's session id.
    Request { request: ClientRequest, method: String, params: Option<Bytes>, client: ClientRef },
    /// A client sends a prompt that it has withdrawn, as it may when its connection was lost.
    Withdrawn { request: ClientRequest, params: Bytes, client: ClientRef },
    /// A client prompts, and does not wait for the end of the turn.
    Prompt { request: ClientRequest, params: Bytes, client: ClientRef },
    /// A client notifies the agent, `session/cancel` among them.
    Notify { method: String, params: Option<Bytes>, client: ClientRef },
    /// A client withdraws a request.
    Withdraw { request: ClientRequest },
    /// A client ends the prompt under a key, whichever client sent it.
    TakeBack { key: String, client: ClientRef },
    /// A client answers a question with a raw result, or with an error.
    Answer { number: QuestionNumber, result: Option<Bytes>, client: ClientRef },
    /// The run is to end.
    End(RequestedEnd),
    /// The agent says something.
    Agent(FromAgent),
    /// The agent has no way to close its session.
    CannotClose,
    /// A request of the agent was served.
    Served { number: u64, outcome: Result<Served, ServiceError> },
    /// A terminal said something.
    Terminal(TerminalEvent),
    /// A viewer has left.
    ViewerLeft,
    /// A deadline may have passed.
    Timer,
    /// Nothing can be recorded any more.
    LogFailed,
    /// The agent is gone, or was left: nothing is served any more.
    Abandoned,
    /// The run is over, and all that was recorded of it is committed, or will never be.
    Over(Box<EndOfRun>),
}

/// The time, as decisions see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) at: Instant,
    /// In milliseconds since 1970.
    pub(crate) ms: i64,
}

/// A request of the agent.
pub(super) struct AgentAsks<'a> {
    pub(super) line: &'a Bytes,
    pub(super) session: Option<Range<usize>>,
    pub(super) id: &'a OwnedId,
    pub(super) method: &'a str,
}

/// One run of a session.
#[derive(Debug)]
pub(crate) struct SessionCore {
    pub(super) facts: RunFacts,
    pub(super) log: Projection,
    pub(super) meta: SessionMeta,
    pub(super) volatile: Volatile,
}

impl SessionCore {
    /// A run that begins with what its log says, or goes on with it.
    pub(crate) fn new(
        facts: RunFacts,
        log: Projection,
        meta: SessionMeta,
        viewers: Viewers,
        handover: Handover,
        now: Now,
    ) -> Self {
        let turns = Turns::resumed(facts.limits.cancel, log.unfinished_turn(), now.at);
        let mut due = Deadlines::default();
        for (number, _) in log.open_questions() {
            due.set(number, facts.limits.permission.map(|limit| now.at + limit));
        }
        let volatile = Volatile {
            requests: ClientRequests::default(),
            turns,
            due,
            serving: Serving::default(),
            viewers,
            handover,
            ending: None,
            idle_at: facts.limits.idle.map(|idle| now.at + idle),
            silence: Silence::default(),
            continuation: Continuation::default(),
            indexed: Indexed::default(),
            log_failed: false,
        };
        let mut core = Self { facts, log, meta, volatile };
        core.listen(false, now);
        core
    }

    /// Decides what inputs lead to. What several lead to is appended at once.
    pub(crate) fn handle(&mut self, inputs: impl IntoIterator<Item = Input>, now: Now) -> Effects {
        let mut out = Effects::new(now.ms);
        let (mut by_time, mut heard) = (true, false);
        for input in inputs {
            by_time &= matches!(input, Input::Timer);
            heard |= matches!(input, Input::Agent(_));
            self.take(input, now, &mut out);
            self.close_after_turn(now, &mut out);
            out.stand_behind(self.log.last_seq());
        }
        if !by_time {
            // A running turn is not idleness, however long it is silent.
            let is_idle = !self.volatile.turns.busy() && self.volatile.ending.is_none();
            let idle = self.facts.limits.idle.filter(|_| is_idle);
            self.volatile.idle_at = idle.map(|idle| now.at + idle);
        }
        self.listen(heard, now);
        self.update_index(&mut out);
        out
    }

    fn take(&mut self, input: Input, now: Now, out: &mut Effects) {
        match input {
            Input::Request { request, method, params, client } => {
                self.client_asks(request, (method, params), client, out);
            }
            Input::Withdrawn { request, params, client } => {
                self.client_sends_withdrawn(request, params, client, now, out);
            }
            Input::Prompt { request, params, client } => self.client_leaves(request, params, client, out),
            Input::Notify { method, params, client } => {
                self.client_notifies(method, params, &client, now, out)
            }
            Input::Withdraw { request } => self.client_withdraws(request, now, out),
            Input::TakeBack { key, client } => self.client_takes_back(&key, &client, now, out),
            Input::Answer { number, result, client } => self.client_answers(number, result, &client, out),
            Input::End(requested) => self.begin_end(requested, now, out),
            // What cannot be recorded is not shown, nor is an answer that stands behind it.
            Input::Agent(_) if self.volatile.log_failed => {}
            Input::Agent(message) => self.agent_says(message, now, out),
            Input::CannotClose => self.cannot_close(out),
            Input::Served { number, outcome } => self.served(number, outcome, out),
            Input::Terminal(event) => self.terminal_said(&event, out),
            Input::ViewerLeft => self.viewer_left(out),
            Input::Timer => self.time_passed(now, out),
            Input::LogFailed => self.log_failed(out),
            Input::Abandoned => self.volatile.serving = Serving::default(),
            Input::Over(end) => self.over(&end, out),
        }
    }

    /// Appends an event, which the fold takes at once.
    pub(super) fn append(&mut self, event: &Event<'_>, out: &mut Effects) {
        let at = Position { seq: self.log.last_seq() + 1, at_ms: out.recording.now_ms() };
        debug_assert_eq!(self.log.check(at.seq, event), Ok(()), "{event:?}");
        let may_use = self.volatile.indexed.stale.see(event);
        let before = may_use.then(|| self.log.usage().clone());
        self.log.apply(at, event);
        out.append(at.seq, event);
        let used = before.map(|before| self.log.usage().since(&before));
        if let Some(used) = used.filter(|used| !used.is_empty()) {
            out.note(Note::Used(used));
        }
    }

    /// The number of the next event.
    pub(super) fn next_seq(&self) -> u64 {
        self.log.last_seq() + 1
    }

    /// What it is doing.
    pub(crate) fn state(&self) -> SessionState {
        match (self.log.open_questions().next(), self.volatile.turns.active()) {
            (Some(_), _) => SessionState::Waiting,
            (None, true) => SessionState::Running,
            (None, false) => SessionState::Idle,
        }
    }

    /// Prompts behind the one whose turn runs.
    pub(crate) fn waiting(&self) -> usize {
        self.volatile.turns.waiting()
    }

    /// What a client that attaches now has to know. What is not `committed` yet cannot be read yet; it comes after.
    pub(crate) fn attached(&self, committed: u64) -> Attached {
        let open = self.log.open_questions().filter(|(number, _)| number.0 <= committed);
        Attached {
            seq: committed,
            result: self.log.snapshot().lifecycle(),
            open: open.map(|(number, question)| OpenQuestion::new(number, question)).collect(),
            turn_active: self.log.running_turn().is_some(),
            prompted_via: self.log.running_turn().and_then(|_| self.log.prompted_via()).cloned(),
            waiting: self.waiting(),
            last_stop_reason: self.log.last_stop_reason().map(str::to_owned),
            transcript: self.volatile.handover.facts(),
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &SessionId {
        &self.facts.id
    }

    /// What the index knows of it.
    pub(crate) fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// What its log says.
    pub(crate) fn log(&self) -> &Projection {
        &self.log
    }

    /// When time is an input.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let volatile = &self.volatile;
        let of_agent = [volatile.turns.deadline(), self.stalls_at()];
        let deadlines =
            [volatile.due.next(), self.settles_at(), volatile.idle_at, volatile.continuation.orphans_at];
        of_agent.into_iter().chain(deadlines).flatten().min()
    }

    /// When a cancelled turn is given up.
    pub(crate) fn cancel_deadline(&self) -> Option<Instant> {
        self.volatile.turns.deadline()
    }

    /// Whether the run was asked to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.volatile.ending.is_some()
    }

    /// The agent's message under our session id.
    pub(super) fn under_our_id(&self, line: &Bytes, session: Option<Range<usize>>) -> Bytes {
        let Some(span) = session else { return line.clone() };
        let id = self.facts.id.as_json();
        let mut out = bytes::BytesMut::with_capacity(line.len() + id.len());
        acpd_wire::splice(&mut out, line, &[(span, id.as_bytes())]);
        out.freeze()
    }

    /// Answers a request of the agent.
    pub(super) fn answer_agent(id: &OwnedId, result: &[u8], out: &mut Effects) {
        let mut frame = bytes::BytesMut::new();
        acpd_wire::write_result(&mut frame, id.as_id(), result);
        out.act(Act::Answer { id: id.clone(), frame: frame.freeze() });
    }

    /// Answers a request of the agent with an error.
    pub(super) fn fail_agent(id: &OwnedId, error: &ServiceError, out: &mut Effects) {
        let mut frame = bytes::BytesMut::new();
        let data = error.data.as_ref().map(|data| data.to_string());
        let data = data.as_ref().map(String::as_bytes);
        acpd_wire::write_error(&mut frame, id.as_id(), error.code, &error.message, data);
        out.act(Act::Answer { id: id.clone(), frame: frame.freeze() });
    }
}

/// How a run came to its end.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// Its process is gone.
    Gone(Arc<AgentEnd>),
    /// It left a process that others share.
    Released,
}

#[cfg(test)]
mod tests;
