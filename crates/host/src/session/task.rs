//! The session task: the one place where a session's fate is decided.
//!
//! One loop: an event is picked, decided upon, and its outputs are performed in order: append to the log, write
//! to the agent, answer clients. It is the only writer of the session's log. It ends after the agent process is
//! gone and the termination record is durable.

mod asking;
mod ending;
mod giving;
mod replaying;
mod serving;
mod turn;

use asking::AgentRequest;
use ending::{Ended, Ending};
pub(crate) use replaying::Past;
use serving::{ServiceEvent, Serving};

use super::ingest::Record;
use super::pending::{PendingRequests, Replies};
use super::questions::{AutoAnswer, OpenQuestions};
use super::snapshot::Snapshot;
use super::turns::{Step, Turns};
use super::{Attached, SessionCommand, SessionStatus, prompt};
use crate::acp::method;
use crate::agent::{AgentHandle, FromAgent, RouteId, SessionInput, Ticket};
use crate::error::HostError;
use crate::journal::RunJournal;
use crate::listing::SessionState;
use crate::metrics::SessionShare;
use crate::services::Services;
use crate::termination::{RequestedEnd, SessionFacts};
use crate::transcript::Transcript;
use crate::viewers::Viewers;
use acpd_eventlog::{Appender, IndexUpdate, WriteError};
use acpd_record::EventKind;
use acpd_record::PermissionMode;
use acpd_record::Projection;
use acpd_record::SessionId;
use acpd_record::SessionMeta;
use acpd_record::TerminationInfo;
use acpd_supervisor::TaskScope;
use acpd_wire::{member, span_of};
use bytes::{Bytes, BytesMut};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// What a session task is made of.
pub(crate) struct SessionParts {
    pub(crate) id: SessionId,
    /// What an operator is told.
    pub(crate) journal: RunJournal,
    /// The agent's session id as JSON text.
    pub(crate) native: Arc<str>,
    pub(crate) agent: AgentHandle,
    pub(crate) route: RouteId,
    pub(crate) appender: Appender,
    pub(crate) commands: mpsc::Receiver<Box<SessionCommand>>,
    pub(crate) inputs: mpsc::Receiver<SessionInput>,
    pub(crate) ended: watch::Sender<Option<Arc<TerminationInfo>>>,
    pub(crate) status: watch::Sender<SessionStatus>,
    pub(crate) meta: SessionMeta,
    /// How long the session may do nothing before it ends.
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) permission_mode: PermissionMode,
    /// How long a question waits for an answer.
    pub(crate) permission_timeout: Option<Duration>,
    /// Who can be asked.
    pub(crate) viewers: Viewers,
    /// What acpd serves the agent.
    pub(crate) services: Services,
    /// Where services run.
    pub(crate) scope: TaskScope,
    /// How long an ending session waits for its cancelled turn before the ladder starts.
    pub(crate) settle: Duration,
}

/// What a run begins with, and changes from then on.
pub(crate) struct Beginning {
    pub(crate) projection: Box<Projection>,
    /// The history that the agent may replay, if it took the session up.
    pub(crate) past: Option<Box<Past>>,
    pub(crate) transcript: Option<Transcript>,
    pub(crate) started_ms: i64,
    pub(crate) cancel_timeout: Option<Duration>,
}

/// Owns one run of a session.
pub(crate) struct SessionTask {
    parts: SessionParts,
    turns: Turns,
    pending: PendingRequests,
    facts: SessionFacts,
    turn: u64,
    /// What the agent may still replay.
    past: Option<Box<Past>>,
    /// What the agent is given with the next prompt; kept until a turn with it ends well.
    transcript: Option<Transcript>,
    /// The content block that it was given as.
    given: Option<Box<serde_json::Value>>,
    /// What of the history it was, told to whoever attaches, for as long as the run lives.
    transcript_facts: Option<Box<serde_json::Value>>,
    questions: OpenQuestions,
    serving: Serving,
    /// Who was asked to open a URL, by the elicitation's id.
    urls: HashMap<String, Arc<str>>,
    /// The connection that prompted last.
    turn_via: Arc<str>,
    /// What the running turn was prompted with.
    turn_content: Vec<serde_json::Value>,
    ending: Option<Ending>,
    snapshot: Snapshot,
    /// Requests that came while the session was ending; answered with how it ended.
    late: Vec<SessionCommand>,
    /// The shared process is left; the run ends without it.
    released: bool,
    /// When a session in which nothing happens ends.
    idle_at: Option<Instant>,
    /// What the index says that it is doing.
    told: SessionState,
    /// What it counts for among the live sessions.
    share: SessionShare,
    /// The log failed; the run ends with this.
    failure: Option<WriteError>,
}

enum Event {
    Command(Option<Box<SessionCommand>>),
    Input(Option<SessionInput>),
    Service(ServiceEvent),
    ViewerLeft,
    Timer,
    LogFailed(WriteError),
}

impl SessionTask {
    pub(crate) fn new(parts: SessionParts, beginning: Beginning) -> Self {
        let Beginning { projection, past, transcript, started_ms, cancel_timeout } = beginning;
        let facts = SessionFacts { started_ms: Some(started_ms), ..SessionFacts::default() };
        Self {
            turns: Turns::new(cancel_timeout),
            pending: PendingRequests::default(),
            facts,
            turn: projection.turns().0,
            transcript_facts: transcript.as_ref().map(|transcript| Box::new(json!(transcript.facts()))),
            transcript,
            given: None,
            past,
            questions: OpenQuestions::new(parts.permission_timeout),
            serving: Serving::default(),
            urls: HashMap::new(),
            turn_via: "".into(),
            turn_content: Vec::new(),
            ending: None,
            snapshot: Snapshot::of(&projection),
            late: Vec::new(),
            released: false,
            idle_at: None,
            told: SessionState::Idle,
            share: SessionShare::new(SessionState::Idle.as_str()),
            failure: None,
            parts,
        }
    }

    /// In a box, because a future holds what it is given twice: where it came in and where it is used.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut committed = self.parts.appender.committed();
        let viewers = self.parts.viewers.clone();
        let mut owned = true;
        self.idle_at = self.parts.idle_timeout.map(|idle| Self::now() + idle);
        let end = loop {
            let timers = [self.turns.deadline(), self.questions.deadline(), self.ladder_at(), self.idle_at];
            let due = timers.into_iter().flatten().min();
            let event = tokio::select! {
                biased;
                // No sequence number is ever that high: this ends only with a failure.
                Err(error) = committed.wait_for(u64::MAX), if self.failure.is_none() => Event::LogFailed(error),
                command = self.parts.commands.recv(), if owned => Event::Command(command),
                // Before the agent, which may have always something to say.
                () = sleep_until(due), if due.is_some() => Event::Timer,
                event = self.serving.next() => Event::Service(event),
                () = viewers.viewer_left() => Event::ViewerLeft,
                input = self.parts.inputs.recv() => Event::Input(input),
            };
            let mut out = Outputs::default();
            let by_time = matches!(event, Event::Timer);
            match event {
                Event::Command(Some(command)) => self.command(*command, &mut out),
                // The registry and every client let go of it: as good as a shutdown.
                Event::Command(None) => {
                    owned = false;
                    self.begin_end(RequestedEnd::shutdown("daemon"), None, &mut out);
                }
                Event::Input(Some(SessionInput::Replayed(lines))) => self.told_before(&lines).await,
                // What cannot be recorded is not shown, nor is an answer that stands behind it.
                Event::Input(Some(SessionInput::Messages(_))) if self.failure.is_some() => {}
                Event::Input(Some(SessionInput::Messages(messages))) => {
                    let news = self.without_replay(messages).await;
                    self.messages(news, &mut out);
                }
                Event::Input(Some(SessionInput::Gone(end))) => break Ended::Gone(end),
                Event::Input(None) => break Ended::Gone(self.parts.agent.ended().await),
                Event::Service(event) => self.service_event(event, &mut out),
                Event::ViewerLeft => self.viewer_left(&mut out),
                Event::Timer => {
                    if self.turns.deadline().is_some_and(|at| at <= Self::now()) {
                        self.turn_ends_without_answer(&mut out);
                    }
                    self.timer(&mut out);
                }
                Event::LogFailed(error) => self.log_failed(error, &mut out.to_agent),
            }
            self.perform(out).await;
            if !by_time {
                // A running turn is not idleness, however long it is silent.
                let idle = self.parts.idle_timeout.filter(|_| !self.turns.busy() && self.ending.is_none());
                self.idle_at = idle.map(|idle| Self::now() + idle);
            }
            if self.released {
                self.parts.agent.unbind(self.parts.route).await;
                break Ended::Released;
            }
        };
        self.end_replay().await;
        // In a box of its own: a session that waits need not have the room for its end.
        Box::pin(self.finish(end)).await;
    }

    fn now() -> Instant {
        Instant::now()
    }

    fn command(&mut self, command: SessionCommand, out: &mut Outputs) {
        match command {
            SessionCommand::Request { .. } if self.ending.is_some() || self.failure.is_some() => {
                self.late.push(command);
            }
            SessionCommand::Request { method, params, client, number, reply } => {
                let is_prompt = method == method::SESSION_PROMPT;
                let check = match (&params, is_prompt) {
                    (Some(params), true) => prompt::check(params, self.parts.agent.info().prompt),
                    (None, true) => prompt::check(b"{}", self.parts.agent.info().prompt),
                    _ => Ok(()),
                };
                let params = params.map(|params| self.with_native_id(&params));
                let ticket = self.pending.open(is_prompt, (method, params), (client, number), reply);
                match (check, is_prompt) {
                    (Err(error), _) => self.pending.answer(ticket, Err(error), &mut out.replies),
                    (Ok(()), true) => {
                        let step = self.turns.prompt(ticket);
                        self.steps(step, None, out);
                    }
                    (Ok(()), false) => out.to_agent.push(ToAgent::Request(ticket)),
                }
            }
            SessionCommand::Notify { method, client, .. } if method == method::SESSION_CANCEL => {
                let ending = self.ending.is_some();
                for step in self.turns.cancel_of_client(Self::now()) {
                    if step == Some(Step::SendCancel) {
                        out.record.object(EventKind::CancelRequested, &json!({"by": &*client.name}));
                    }
                    // One that ends has been told all it needs.
                    self.steps(step.filter(|step| !ending || *step != Step::PassCancel), None, out);
                }
                // Also without a turn: some agents ask outside of one.
                self.sweep_questions(AutoAnswer::Cancelled, out);
            }
            SessionCommand::Notify { method, params, .. } => {
                let params = params.map(|params| self.with_native_id(&params));
                out.to_agent.push(ToAgent::Notify(method, params));
            }
            SessionCommand::Withdraw { number } => match self.pending.find(number) {
                Some((ticket, pending)) if pending.is_prompt => {
                    let step = self.turns.withdraw(ticket, Self::now());
                    self.steps(step, None, out);
                }
                Some((ticket, _)) => out.to_agent.push(ToAgent::Withdraw(ticket)),
                None => {}
            },
            SessionCommand::Answer { number, result, client, reply } => {
                let counts = match result {
                    Some(result) => self.client_answers(number, &result, &client, out),
                    None => {
                        self.client_declines(number, &client, out);
                        Ok(())
                    }
                };
                // A client that is gone does not want to know.
                let _gone = reply.send(counts);
            }
            SessionCommand::Attach { reply } => {
                let attached = Attached {
                    // What is not committed yet cannot be read yet; it comes after.
                    seq: self.parts.appender.committed().seq(),
                    result: self.snapshot.lifecycle_result(),
                    snapshot: self.everything_known(),
                    open: self.open_questions(),
                    turn_active: self.turns.active(),
                    last_stop_reason: self.facts.last_stop_reason.clone(),
                    transcript: self.transcript_facts.as_deref().cloned(),
                };
                let _left = reply.send(attached);
            }
            SessionCommand::End { request, initiator, done } => {
                let requested = RequestedEnd { cause: request.cause(), initiator: initiator.to_string() };
                self.begin_end(requested, Some(done), out);
            }
        }
    }

    fn messages(&mut self, messages: Vec<FromAgent>, out: &mut Outputs) {
        for message in messages {
            match message {
                FromAgent::Notification { line, is_update: true, .. } if self.repeats_transcript(&line) => {
                    tracing::debug!(session = %self.parts.id, "the agent repeats the transcript");
                }
                FromAgent::Notification { line, session, is_update } => {
                    let kind = match is_update {
                        true if self.is_echo(&line) => EventKind::Echo,
                        true => EventKind::Update,
                        false => EventKind::Notification,
                    };
                    if is_update {
                        if self.snapshot.see_line(&line) {
                            self.describe(&mut out.record);
                        }
                    } else if let Ok(message) = serde_json::from_slice::<serde_json::Value>(&line) {
                        if message["method"] == method::ELICITATION_COMPLETE {
                            self.elicitation_completed(&line, session, out);
                            continue;
                        }
                        self.snapshot.see_tools(&message["params"]);
                    }
                    out.record.message(kind, &line, session, self.parts.id.as_json());
                }
                FromAgent::Withdrawn { id } => {
                    self.agent_withdraws(&id, out);
                    self.withdraw_service(&id);
                }
                FromAgent::Request { line, session, id, method } => {
                    let request = AgentRequest { line: &line, session, id: &id, method: &method };
                    self.agent_request(&request, out);
                }
                FromAgent::Answer { ticket, answer } => self.answered(ticket, answer, out),
                FromAgent::NotReading { ticket, waiting } => {
                    let error = HostError::AgentNotReading { waiting };
                    if self.pending.get(ticket).is_some_and(|pending| pending.is_prompt) {
                        let steps = self.turns.answered(ticket);
                        self.refused_turn(ticket, &error, out);
                        self.steps(steps[1], None, out);
                    }
                    self.pending.answer(ticket, Err(error), &mut out.replies);
                }
            }
            out.replies.stand_behind(out.record.len());
        }
    }

    /// Outputs in their order: the log first, so that nobody sees what a restart would forget.
    async fn perform(&mut self, mut out: Outputs) {
        let before = self.last_seq();
        let status = self.status();
        self.index_state(SessionState::of(&status), &mut out.record);
        // Answers first: each names the event that it stands behind, and waits for it, so that no viewer can have seen
        // what follows an answer before it has the answer.
        out.replies.send(before, before + out.record.len());
        if !out.record.is_empty() && self.failure.is_none() {
            let appended = self.parts.appender.append(out.record.into_batch()).await;
            if let Err(error) = appended {
                self.log_failed(error, &mut out.to_agent);
            }
        }
        for message in out.to_agent {
            // An agent that is gone says so through its inputs.
            let _gone = self.send_to_agent(message).await;
        }
        let (commands, inputs) = (self.parts.commands.len(), self.parts.inputs.len());
        self.share.show(SessionState::of(&status).as_str(), commands, inputs);
        self.parts.status.send_if_modified(|known| {
            let changed = *known != status;
            *known = status;
            changed
        });
    }

    fn status(&self) -> SessionStatus {
        SessionStatus {
            running: self.turns.active(),
            waiting: !self.questions.is_empty(),
            title: self.snapshot.title().map(str::to_owned),
        }
    }

    /// Other processes read from the index what the session is doing; they learn it with the events that changed it.
    fn index_state(&mut self, state: SessionState, record: &mut Record) {
        if state != self.told && !record.is_empty() {
            self.told = state;
            record.index(IndexUpdate { state: Some(state.stored()), ..IndexUpdate::default() });
        }
    }

    async fn send_to_agent(&self, message: ToAgent) -> Result<(), crate::agent::Gone> {
        let agent = &self.parts.agent;
        match message {
            ToAgent::Request(ticket) => match self.pending.get(ticket) {
                Some(pending) => {
                    let (method, params) = (pending.method.clone(), pending.params.clone());
                    agent.request_for(self.parts.route, ticket, method, params).await
                }
                None => Ok(()),
            },
            ToAgent::Notify(method, params) => agent.notify(&method, params).await,
            ToAgent::Answer(frame) => agent.answer(frame).await,
            ToAgent::Withdraw(ticket) => agent.withdraw(self.parts.route, ticket).await,
        }
    }

    /// What a list shows of the session has changed; the index learns it together with the events.
    fn describe(&mut self, record: &mut Record) {
        self.parts.meta.describe(self.snapshot.glance());
        let info = Some(self.parts.meta.write());
        record.index(IndexUpdate { info, ..IndexUpdate::default() });
    }

    fn last_seq(&self) -> u64 {
        self.parts.appender.next_seq() - 1
    }

    /// `params` of a client with the agent's session id in place of ours.
    fn with_native_id(&self, params: &Bytes) -> Bytes {
        let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
        let span = raw.and_then(|raw| span_of(params, member(raw, "sessionId")?));
        let Some(span) = span else { return params.clone() };
        let mut out = BytesMut::with_capacity(params.len() + self.parts.native.len());
        acpd_wire::splice(&mut out, params, &[(span, self.parts.native.as_bytes())]);
        out.freeze()
    }
}

/// What a decision leads to.
struct Outputs {
    record: Record,
    to_agent: Vec<ToAgent>,
    replies: Replies,
}

impl Default for Outputs {
    fn default() -> Self {
        Self { record: Record::new(), to_agent: Vec::new(), replies: Replies::default() }
    }
}

enum ToAgent {
    Request(Ticket),
    Notify(String, Option<Bytes>),
    Answer(Bytes),
    Withdraw(Ticket),
}

async fn sleep_until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}
