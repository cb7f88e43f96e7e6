//! What a session is, computed from its events.

use crate::event::Event;
use crate::first_prompt::first_words;
use crate::ids::{ConnectionId, QuestionNumber, RunNumber, TurnNumber};
use crate::json::Json;
use crate::keys::{KeyedTurn, Keys, RequestKey};
use crate::kind::EventKind;
use crate::last_turn::LastTurn;
use crate::message::update_value;
use crate::payload::{AgentRequest, Prompt, RunStarted, StateChanged, TurnEnded};
use crate::questions::{OpenQuestion, Questions};
use crate::snapshot::Snapshot;
use crate::tally::Tally;
use crate::termination::Cause;
use crate::usage::{Meter, Usage};
use acpd_wire::Skimmer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Where an event stands in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Its sequence number.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Whether a run is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// No event was seen.
    #[default]
    Empty,
    /// It was created, and no agent has it yet.
    Created,
    /// A run is live, as far as its log goes.
    Live,
    /// The last run has ended.
    Ended,
}

/// A turn that is running, or that its agent may still work on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunningTurn {
    /// Its number.
    pub number: TurnNumber,
    /// The event that began it.
    pub seq: u64,
    /// When that happened, in milliseconds since 1970.
    began_ms: i64,
    /// The content blocks of its prompt.
    prompt: Json,
    /// Terminals that were created in it.
    pub terminals: Vec<Box<str>>,
    /// It is to end.
    cancel_requested: bool,
    /// It was answered without the agent, which ignored its cancellation.
    pub(crate) given_up: bool,
    /// Nothing comes from the agent.
    stalled: bool,
}

/// What a session is, computed from its events alone.
///
/// Total: an event that cannot follow what was seen before changes nothing and is counted. Its members are also what a
/// checkpoint of it holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    pub(crate) phase: Phase,
    pub(crate) last_seq: u64,
    pub(crate) turns: TurnNumber,
    pub(crate) turn: Option<Box<RunningTurn>>,
    pub(crate) questions: Questions,
    keys: Keys,
    /// The last run ended in a way that a terminate makes final.
    #[serde(default)]
    pub(crate) can_be_made_final: bool,
    /// It began with the history of another session.
    pub(crate) is_fork: bool,
    runs: RunNumber,
    run_started_ms: i64,
    last_at_ms: i64,
    prompted_via: Option<ConnectionId>,
    last_stop_reason: Option<Box<str>>,
    first_prompt: Option<Box<str>>,
    last_turn: Option<LastTurn>,
    meter: Meter,
    snapshot: Snapshot,
    skipped: u64,
    /// For the kinds of updates that are read from the log.
    #[serde(skip)]
    skimmer: Skimmer,
}

impl Projection {
    /// What is known before the first event. `is_fork`: it began with the history of another session, which earlier versions
    /// did not record in the log.
    pub fn new(is_fork: bool) -> Self {
        Self { is_fork, ..Self::default() }
    }

    /// Takes the next event of the log as it is stored.
    pub fn see(&mut self, at: Position, kind: u16, payload: &[u8]) {
        match Event::read(kind, payload) {
            Ok(event) => self.apply(at, &event),
            Err(unreadable) => {
                self.take_end(at.at_ms, unreadable.kind);
                self.passed(at);
                self.skipped += 1;
            }
        }
    }

    /// Takes what an event says by its kind alone: a run or a turn is over, whatever a later version says of why.
    fn take_end(&mut self, at_ms: i64, kind: EventKind) {
        match kind {
            EventKind::Ended if self.is_live() => self.ended(at_ms),
            EventKind::TurnEnded if self.running_turn().is_some() => {
                self.turn_ended(at_ms, &TurnEnded::default());
            }
            _ => {}
        }
    }

    /// Takes the next event of the log.
    pub fn apply(&mut self, at: Position, event: &Event<'_>) {
        match self.check(at.seq, event) {
            Ok(()) => self.take(at, event),
            Err(_illegal) => self.skipped += 1,
        }
        self.passed(at);
    }

    fn passed(&mut self, at: Position) {
        (self.last_seq, self.last_at_ms) = (at.seq, at.at_ms);
    }

    fn take(&mut self, at: Position, event: &Event<'_>) {
        match event {
            Event::Created(created) => {
                self.phase = Phase::Created;
                self.is_fork |= created.forked_from.is_some();
            }
            Event::RunStarted(run) => self.run_started(at.at_ms, run),
            Event::Prompt(prompt) => self.prompted(at, prompt),
            Event::Update(message) => {
                if self.snapshot.see_update(message.kind_by(&mut self.skimmer), message.line()) {
                    self.meter.updated(message.line());
                }
            }
            Event::Notification(message) => self.snapshot.see_tools(message.line()),
            Event::TurnEnded(ended) => self.turn_ended(at.at_ms, ended),
            Event::AgentRequest(request) => self.served(request),
            // The run is over already.
            Event::Ended(_) if self.phase == Phase::Ended => self.can_be_made_final = false,
            // One whose host died is recorded when that is found. Until when its turn went on is not known.
            Event::Ended(end) if matches!(end.cause, Some(Cause::DaemonLost | Cause::DaemonUpgrade)) => {
                self.ended(self.last_at_ms);
                self.can_be_made_final = true;
            }
            Event::Ended(end) => {
                self.ended(at.at_ms);
                self.can_be_made_final = end.cause.is_some_and(Cause::can_be_made_final);
            }
            Event::ElicitationCompleted(completed) => self.questions.completed(completed),
            Event::StateChanged(changed) => self.state_changed(changed),
            Event::Stalled(stalled) => {
                if let Some(turn) = &mut self.turn {
                    turn.stalled = !stalled.goes_on;
                }
            }
            Event::CancelRequested(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.cancel_requested = true;
                }
            }
            event => {
                if let Some((topic, question)) = event.question() {
                    self.questions.asked(topic, question);
                } else if let Some(resolution) = event.resolution() {
                    self.questions.resolved(resolution);
                }
            }
        }
    }

    fn run_started(&mut self, at_ms: i64, run: &RunStarted<'_>) {
        self.runs = self.runs.next();
        self.phase = Phase::Live;
        self.run_started_ms = at_ms;
        self.last_stop_reason = None;
        self.no_turn(at_ms);
        self.meter.run_started(run.method.as_deref() == Some("session/new"));
        if let Some(state) = &run.state {
            self.snapshot.see_state(state);
        }
    }

    fn state_changed(&mut self, changed: &StateChanged<'_>) {
        self.snapshot.see_state(&changed.state);
        if self.is_fork && changed.by.is_none() {
            // The history of its source ends here.
            self.meter.forked();
            self.last_turn = None;
        }
    }

    fn prompted(&mut self, at: Position, prompt: &Prompt<'_>) {
        self.questions.forget_settled();
        if let Some(key) = &prompt.idempotency_key {
            self.keys.prompted(RequestKey::stored(key, prompt.prompt), prompt.turn, at.seq);
        }
        if self.first_prompt.is_none() {
            self.first_prompt = first_words(prompt.prompt);
        }
        self.turns = prompt.turn;
        self.prompted_via.clone_from(&prompt.via);
        let content = Json::compact(prompt.prompt).unwrap_or_else(|| Json::new(&Value::Null));
        self.turn = Some(Box::new(RunningTurn {
            number: prompt.turn,
            seq: at.seq,
            began_ms: at.at_ms,
            prompt: content,
            terminals: Vec::new(),
            cancel_requested: false,
            given_up: false,
            stalled: false,
        }));
    }

    fn turn_ended(&mut self, at_ms: i64, ended: &TurnEnded<'_>) {
        let stop_reason = ended.stop_reason.as_deref();
        self.last_stop_reason = stop_reason.map(Into::into);
        if let Some(result) = ended.result {
            self.meter.turn_ended(result);
        }
        self.snapshot.turn_ended();
        self.questions.settle();
        if let Some(turn) = &self.turn {
            self.keys.ended(turn.number, ended);
            self.last_turn = Some(LastTurn::new(stop_reason, turn.began_ms, at_ms));
        }
        match &mut self.turn {
            Some(turn) if ended.agent_ignored_cancel => turn.given_up = true,
            _ => self.turn = None,
        }
    }

    fn served(&mut self, request: &AgentRequest<'_>) {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            method: Cow<'a, str>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            terminal_id: Box<str>,
        }
        let Some(turn) = &mut self.turn else { return };
        let method = serde_json::from_str::<Message<'_>>(request.message.get());
        if method.is_ok_and(|message| message.method == "terminal/create")
            && let Ok(answer) = serde_json::from_str::<Answer>(request.answer.get())
        {
            turn.terminals.push(answer.terminal_id);
        }
    }

    fn ended(&mut self, at_ms: i64) {
        self.phase = Phase::Ended;
        self.no_turn(at_ms);
    }

    /// No host works on it, as far as this log goes.
    fn no_turn(&mut self, at_ms: i64) {
        if let Some(turn) = self.turn.take() {
            self.keys.interrupted(turn.number);
            if !turn.given_up {
                self.last_turn = Some(LastTurn::new(None, turn.began_ms, at_ms));
            }
        }
        self.snapshot.turn_ended();
        self.questions = Questions::default();
    }

    /// The last event that was seen.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// When that happened, in milliseconds since 1970.
    pub fn last_at_ms(&self) -> i64 {
        self.last_at_ms
    }

    /// Runs that began.
    pub fn runs(&self) -> RunNumber {
        self.runs
    }

    /// Whether a run is live, as far as the log goes.
    pub fn is_live(&self) -> bool {
        self.phase == Phase::Live
    }

    /// When the last run began, in milliseconds since 1970.
    pub fn run_started_ms(&self) -> i64 {
        self.run_started_ms
    }

    /// Turns that began.
    pub fn turns(&self) -> TurnNumber {
        self.turns
    }

    /// The turn that runs, for all a client can see.
    pub fn running_turn(&self) -> Option<&RunningTurn> {
        self.turn.as_deref().filter(|turn| !turn.given_up)
    }

    /// When the running turn began, in milliseconds since 1970.
    pub fn turn_began_ms(&self) -> Option<i64> {
        self.running_turn().map(|turn| turn.began_ms)
    }

    /// The turn that the agent may work on, whether a client still waits for it or not.
    pub fn unfinished_turn(&self) -> Option<&RunningTurn> {
        self.turn.as_deref()
    }

    /// The turn that was prompted under a key, if that is one of the last 256.
    pub fn keyed_turn(&self, key: &str) -> Option<&KeyedTurn> {
        self.keys.get(key)
    }

    /// The key of the turn that began last, if that is `turn` and has one.
    pub fn key_of(&self, turn: TurnNumber) -> Option<&RequestKey> {
        self.keys.of_turn(turn)
    }

    /// The connection that prompted last.
    pub fn prompted_via(&self) -> Option<&ConnectionId> {
        self.prompted_via.as_ref()
    }

    /// How the last turn of the last run ended.
    pub fn last_stop_reason(&self) -> Option<&str> {
        self.last_stop_reason.as_deref()
    }

    /// What it has used.
    pub fn usage(&self) -> &Usage {
        self.meter.used()
    }

    /// What lists show beside its state, with the questions up to event `until`.
    pub fn tally(&self, until: u64) -> Tally {
        Tally {
            usage: self.usage().clone(),
            first_prompt: self.first_prompt.clone(),
            turn_began_ms: self.turn_began_ms(),
            last_turn: self.last_turn.clone(),
            open_questions: self.open_to_people(until),
        }
    }

    /// The same with the end that a run of a dead host is recorded with when it is found.
    pub fn lost_tally(mut self) -> Tally {
        self.ended(self.last_at_ms);
        self.tally(u64::MAX)
    }

    /// What its agent said of its state.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Everything that a late viewer needs (contract 1.5), with the questions up to event `until`.
    pub fn shown(&self, until: u64) -> Json {
        self.snapshot.shown(self.questions.shown(until))
    }

    /// The questions that clients are asked, oldest first.
    pub fn open_questions(&self) -> impl Iterator<Item = (QuestionNumber, &OpenQuestion)> {
        self.questions.open.iter().map(|(number, question)| (*number, question))
    }

    /// How many of them up to event `until` wait for a person: permission requests and elicitations.
    pub fn open_to_people(&self, until: u64) -> u64 {
        self.questions.open_to_people(until)
    }

    /// A question that clients are asked.
    pub fn open_question(&self, number: QuestionNumber) -> Option<&OpenQuestion> {
        self.questions.open.get(&number)
    }

    /// A question that no client is asked any more, and whose resolution is still to come.
    pub fn settled_question(&self, number: QuestionNumber) -> Option<&OpenQuestion> {
        self.questions.settled(number)
    }

    /// The connection that was asked to open the URL of an elicitation.
    pub fn url_at(&self, elicitation: &str) -> Option<&ConnectionId> {
        self.questions.url_at(elicitation)
    }

    /// Events that were not readable or could not follow what was before them.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl RunningTurn {
    /// A client asked for its end.
    pub fn cancel_requested(&self) -> bool {
        self.cancel_requested
    }

    /// Its agent was told to have fallen silent, and not to have gone on.
    pub fn stalled(&self) -> bool {
        self.stalled
    }

    /// It was answered without the agent, which ignored its cancellation.
    pub fn given_up(&self) -> bool {
        self.given_up
    }

    /// Whether a `session/update` line repeats a part of its prompt (PR-3).
    pub fn is_echoed_by(&self, line: &[u8]) -> bool {
        let update = update_value(line).unwrap_or_default();
        let content = &update["content"];
        self.prompt.value().as_array().is_some_and(|blocks| blocks.contains(content))
    }
}

#[cfg(test)]
mod tests;
