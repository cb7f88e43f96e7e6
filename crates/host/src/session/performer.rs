//! Performs what a session's core decides, in its order, and adds nothing. Nothing here waits.

mod going_on;

use super::answers::Waiting;
use super::core::{EndOfRun, Ended, Input, Now, SessionCore};
use super::effects::{Act, Answer, Effects, Ordered, Stop};
use super::holding::Held;
use super::live::LiveSession;
use super::parts::RunParts;
use super::working::Working;
use super::{AnswerRefused, ClientRef, ClientRequest, EndRequest, Prompted, ReplyTo};
use crate::agent::Ticket;
use crate::chain::chain;
use crate::clock;
use crate::error::HostError;
use crate::metrics::SessionShare;
use crate::services::{Served, ServiceError};
use crate::termination::RequestedEnd;
use acpd_api::SessionState;
use acpd_eventlog::{Appender, Batch, WriteError};
use acpd_record::{Cause, QuestionNumber, TerminationInfo};
use acpd_terminal::TerminalEvent;
use bytes::Bytes;
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// One run of a session: the core and its shell.
pub(crate) struct Performer {
    core: SessionCore,
    parts: RunParts,
    waiting: Waiting,
    working: Working,
    held: Held,
    /// How far its agent's lines were taken up, as the agent's task knows.
    told: u64,
    /// What it counts for among the live sessions.
    share: SessionShare,
    /// The log failed; the run ends with this.
    failure: Option<WriteError>,
    /// The end of the run is being recorded: only the session task changes anything now.
    closing: bool,
    task: ForTask,
}

/// What the session task has to know.
struct ForTask {
    /// For services, which come back with what they did.
    live: Weak<LiveSession>,
    /// When it wakes up by itself.
    wakes_at: Option<Instant>,
    /// It tells replays from news: messages of the agent go through it.
    sifts: bool,
    /// A prompt was begun since it looked.
    prompted: bool,
    /// The shared process is left; the run ends without it.
    released: bool,
}

/// What the session task does next.
pub(super) struct Orders {
    pub(super) due: Option<Instant>,
    /// What terminals say, the first time that there may be one.
    pub(super) feed: Option<mpsc::Receiver<TerminalEvent>>,
    pub(super) released: bool,
    pub(super) log_failed: bool,
}

/// The end of a run, to be recorded.
pub(super) struct LastWords {
    pub(super) info: Arc<TerminationInfo>,
    pub(super) batch: Batch,
    pub(super) appender: Option<Appender>,
    /// Said behind the end.
    pub(super) answers: Vec<Answer>,
}

impl Performer {
    pub(crate) fn new(core: SessionCore, parts: RunParts, sifts: bool, live: Weak<LiveSession>) -> Self {
        let held = Held::new(core.is_kept());
        Self {
            core,
            parts,
            waiting: Waiting::default(),
            working: Working::default(),
            held,
            told: 0,
            share: SessionShare::new(SessionState::Idle.as_str()),
            failure: None,
            closing: false,
            task: ForTask { live, wakes_at: None, sifts, prompted: false, released: false },
        }
    }

    /// The time.
    pub(crate) fn now() -> Now {
        Now { at: tokio::time::Instant::now().into_std(), ms: clock::now_ms() }
    }

    pub(crate) fn core(&self) -> &SessionCore {
        &self.core
    }

    pub(super) fn parts(&self) -> &RunParts {
        &self.parts
    }

    /// Whether messages of the agent go through the session task.
    pub(super) fn sifts(&self) -> bool {
        self.task.sifts
    }

    /// Nothing that the agent says can be a replay any more.
    pub(super) fn sift_no_more(&mut self) {
        self.task.sifts = false;
    }

    /// Whether a prompt was begun since this was asked last.
    pub(super) fn was_prompted(&mut self) -> bool {
        std::mem::take(&mut self.task.prompted)
    }

    /// How many inputs wait for the session task.
    pub(super) fn show_inputs(&mut self, inputs: usize) {
        self.share.show_inputs(inputs);
    }

    /// What the session task does next. It is woken when that changes.
    pub(super) fn orders(&mut self) -> Orders {
        let due = self.core.deadline();
        self.task.wakes_at = due;
        let (feed, released) = (self.working.take_feed(), self.task.released);
        Orders { due, feed, released, log_failed: self.failure.is_some() }
    }

    /// Whether the session task's orders have changed.
    pub(super) fn needs_task(&self) -> bool {
        let is_sooner = match (self.core.deadline(), self.task.wakes_at) {
            (Some(due), Some(wakes_at)) => due < wakes_at,
            (due, None) => due.is_some(),
            (None, Some(_)) => false,
        };
        is_sooner || self.task.released || self.working.has_new_feed()
    }

    /// Lets the core decide, and performs what it says. Nothing is decided any more while the end is recorded.
    pub(super) fn handle(&mut self, inputs: impl IntoIterator<Item = Input>) {
        if !self.closing {
            self.decide(inputs);
        }
    }

    fn decide(&mut self, inputs: impl IntoIterator<Item = Input>) -> Option<Result<Prompted, HostError>> {
        let turns = self.core.log().turns();
        let mut effects = self.core.handle(inputs, Self::now());
        self.task.prompted |= self.core.log().turns() != turns;
        let prompted = effects.prompted.take();
        self.perform(effects);
        prompted
    }

    /// Takes a prompt of a client that does not wait for its end. None at the end of the run.
    pub(super) fn prompt(
        &mut self,
        request: ClientRequest,
        params: Bytes,
        client: ClientRef,
    ) -> Option<Result<Prompted, HostError>> {
        if self.closing {
            return None;
        }
        self.decide([Input::Prompt { request, params, client }])
    }

    /// Takes a request of a client; `reply` takes its answer. One that comes while the end is recorded is answered with that.
    pub(super) fn request(&mut self, request: ClientRequest, asked: Input, reply: ReplyTo) {
        if self.closing {
            self.waiting.came_late(reply);
            return;
        }
        self.waiting.add(request, reply);
        self.decide([asked]);
    }

    /// Takes the prompt under a key back; whether there was one. None while the end is recorded.
    pub(super) fn take_back(&mut self, key: String, client: ClientRef) -> Option<bool> {
        if self.closing {
            return None;
        }
        let effects = self.core.handle([Input::TakeBack { key, client }], Self::now());
        let was_there = effects.taken_back;
        self.perform(effects);
        Some(was_there)
    }

    /// Takes a client's answer to a question. None while the end is recorded.
    pub(super) fn answer(
        &mut self,
        number: QuestionNumber,
        result: Option<Bytes>,
        client: ClientRef,
    ) -> Option<Result<(), AnswerRefused>> {
        if self.closing {
            return None;
        }
        let effects = self.core.handle([Input::Answer { number, result, client }], Self::now());
        let counts = effects.refused.clone().map_or(Ok(()), Err);
        self.perform(effects);
        Some(counts)
    }

    /// Ends the session; `done` is told of its last event when it has ended. None while that is recorded.
    pub(super) fn end(&mut self, request: EndRequest, initiator: &str) -> Option<oneshot::Receiver<u64>> {
        if self.closing {
            return None;
        }
        let (done, ended) = oneshot::channel();
        self.waiting.for_end(done);
        self.decide([Input::End(RequestedEnd { cause: request.cause(), initiator: initiator.to_owned() })]);
        Some(ended)
    }

    /// What a client that attaches now has to know. None while the end is recorded.
    pub(super) fn attached(&self) -> Option<super::Attached> {
        let appender = self.parts.appender.as_ref().filter(|_| !self.closing)?;
        Some(self.core.attached(appender.committed().seq()))
    }

    /// A request of the agent was served.
    pub(super) fn served(&mut self, number: u64, outcome: Result<Served, ServiceError>) {
        self.working.finished(number);
        self.handle([Input::Served { number, outcome }]);
    }

    /// Performs what the core decided; see [`Effects`] for the order.
    fn perform(&mut self, effects: Effects) {
        let Effects { answers, stop, recording, acts, .. } = effects;
        for answer in answers {
            self.waiting.answer(answer);
        }
        match stop {
            Some(Stop::Agent) => self.parts.agent.stop(),
            Some(Stop::Leave) => self.task.released = true,
            None => {}
        }
        self.tell_what_is_served(&acts);
        if !recording.is_empty()
            && self.failure.is_none()
            && let Some(appender) = &mut self.parts.appender
            && let Err(error) = appender.append_now(recording.into_batch())
        {
            self.log_failed(error);
        }
        self.act_in_order(acts);
        self.tell_how_far();
        self.share.show(self.core.state().as_str());
        self.share.show_questions(self.core.log().open_to_people(u64::MAX));
    }

    fn act_in_order(&mut self, acts: Vec<Ordered>) {
        for ordered in acts {
            if !self.held.holds(&ordered, &self.parts, &self.task.live) {
                self.act(ordered);
                continue;
            }
            for ordered in self.held.keep(ordered) {
                self.act(ordered);
            }
        }
    }

    /// Event `seq`, which acts wait for, is committed, or will never be.
    pub(super) fn committed(&mut self, seq: u64, is_committed: bool) {
        let acts = self.held.committed(seq, is_committed);
        self.act_in_order(acts);
    }

    fn act(&mut self, Ordered { act, behind }: Ordered) {
        let (agent, route) = (&self.parts.agent, self.parts.route);
        // An agent that is gone says so through its inputs.
        let _gone = match act {
            Act::Request { ticket, method, params, repeatable: _ } => {
                agent.request_for(route, ticket, &method, params.as_deref())
            }
            Act::Notify { method, params } => agent.notify(route, &method, params.as_deref(), behind),
            Act::Answer { id, frame } => agent.answer(route, &id, &frame, behind),
            Act::Withdraw(ticket) => agent.withdraw(route, ticket),
            Act::Close { params } => return self.close(&params),
            Act::CloseIsMissing => return self.working.close_is_missing(agent.methods()),
            Act::RememberMissing(method) => return agent.methods().remember_missing(&method),
            Act::Serve { number, service, id, line, position: _ } => {
                return self.serve((number, service), &id, &line);
            }
            Act::WithdrawService(number) => return self.working.withdraw(number),
            Act::KillTerminals(terminals) => return Working::kill(&terminals, &self.parts),
            Act::ReleaseTerminals => return self.working.begin_release(&self.parts),
            Act::Note(note) => return self.parts.note(self.core.id(), note),
        };
    }

    /// Asks the agent to close its session, if it can.
    fn close(&mut self, params: &[u8]) {
        let (agent, route) = (&self.parts.agent, self.parts.route);
        let method = agent.close_method();
        self.working.closes_by(method);
        match method {
            // An agent that is gone says so through its inputs.
            Some(method) => drop(agent.request_for(route, Ticket::Close, method, Some(params))),
            None => drop(self.decide([Input::CannotClose])),
        }
    }

    pub(super) fn log_failed(&mut self, error: WriteError) {
        // The first failure is the cause of all others.
        if self.failure.is_none() {
            self.parts.journal.not_recorded(&error);
            self.failure = Some(error);
        }
        self.decide([Input::LogFailed]);
    }

    /// The agent is gone, or was left. What was held until now is handled first.
    pub(super) fn begin_to_close(&mut self, held: Vec<crate::agent::FromAgent>) {
        let acts = self.held.end();
        self.act_in_order(acts);
        self.decide(held.into_iter().map(Input::Agent));
        self.closing = true;
        self.decide([Input::Abandoned]);
        self.working.abandon();
    }

    /// A terminal's release that was begun, which the end waits for.
    pub(super) fn release(&mut self) -> Option<oneshot::Receiver<()>> {
        self.working.release()
    }

    /// What terminals said last.
    pub(super) fn last_output(&mut self, said: Vec<Input>) {
        self.decide(said);
    }

    /// The run is over, and all that was recorded of it is committed up to `committed`.
    pub(super) fn over(&mut self, ended: Ended, committed: u64) -> LastWords {
        let failure = self.failure.as_ref().map(|error| chain(error));
        let end = EndOfRun { ended, failure, committed };
        let Effects { answers, recording, acts, ended, .. } =
            self.core.handle([Input::Over(Box::new(end))], Self::now());
        let info = ended.expect("a run that is over has its record");
        // Those that stand in front of the end are handed out first: a viewer that sees the end has them then.
        let (before, after): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.before.is_some());
        for answer in before {
            self.waiting.answer(answer);
        }
        for act in acts {
            self.act(act);
        }
        LastWords {
            info,
            batch: recording.into_batch(),
            appender: self.parts.appender.take(),
            answers: after,
        }
    }

    /// The end is recorded: all that wait are told. Gives the core as it was at the end, unless something that it decided is
    /// not in the log.
    pub(super) fn told(
        mut self,
        info: Arc<TerminationInfo>,
        answers: Vec<Answer>,
        leftovers: u32,
    ) -> Option<SessionCore> {
        self.parts.journal.ended(&info, leftovers);
        self.parts.unsearched.note(self.core.id(), info.seq());
        self.parts.ended.tell(Arc::clone(&info));
        for answer in answers {
            self.waiting.answer(answer);
        }
        let error = HostError::SessionEnded { id: self.core.id().to_string(), info: Arc::clone(&info) };
        self.waiting.ended(&error, info.seq());
        self.failure.is_none().then_some(self.core)
    }

    /// No handle is left: as good as a shutdown.
    pub(super) fn abandoned(&mut self) {
        let (cause, initiator) = (Cause::DaemonShutdown, "daemon".to_owned());
        self.handle([Input::End(RequestedEnd { cause, initiator })]);
    }
}
