//! One turn, as its own thread sees it: what it says, asks and waits for.
//!
//! Invariants: what is sent is kept, before anything that could end the process or the turn's patience; message
//! and tool call ids follow from the turn's number; a cancellation surfaces at the next wait or directive.
//! Not the directives: it only gives them words.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::filler::Filler;
use crate::history::{Record, message_id};
use crate::quirk_steps::Playing;
use crate::session::Session;
use crate::turn_signal::{Patience, TurnSignal, Waited};
use crate::wire::Reply;

/// Lines of history to gather before they are written in the middle of a turn.
const KEEP_BYTES: usize = 64 * 1024;

/// The turn was cancelled: stop what you do.
#[derive(Debug)]
pub(crate) struct Cancelled;

/// A running turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) agent: Arc<Agent>,
    pub(crate) session: Arc<Session>,
    pub(crate) signal: Arc<TurnSignal>,
    /// Why it ends, unless it is cancelled.
    pub(crate) stop_reason: String,
    /// What it says at its end that it has used.
    pub(crate) usage: Map<String, Value>,
    pub(crate) playing: Playing,
    number: u64,
    unkept: String,
    has_spoken: bool,
    tool_calls: u64,
}

impl Turn {
    pub(crate) fn new(
        agent: Arc<Agent>,
        session: Arc<Session>,
        signal: Arc<TurnSignal>,
        number: u64,
    ) -> Self {
        Self {
            agent,
            session,
            signal,
            stop_reason: "end_turn".to_owned(),
            usage: Map::new(),
            playing: Playing::default(),
            number,
            unkept: String::new(),
            has_spoken: false,
            tool_calls: 0,
        }
    }

    /// Sends an update and notes it for the history.
    pub(crate) fn update(&mut self, update: Value) {
        self.agent.output.update(&self.session.id, &update);
        self.note(&Record::Update(update));
    }

    /// Says `text` in one chunk.
    pub(crate) fn say(&mut self, text: &str) {
        self.say_in_chunks(std::iter::once(text));
    }

    /// Says something in chunks of the turn's one message; a line of its own if something was said before.
    pub(crate) fn say_in_chunks<'a>(&mut self, chunks: impl IntoIterator<Item = &'a str>) {
        let mut separator = if self.has_spoken { "\n" } else { "" };
        for chunk in chunks {
            let text = format!("{separator}{chunk}");
            self.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": self.message("agent"),
                "content": {"type": "text", "text": text}}));
            separator = "";
            self.has_spoken = true;
        }
    }

    /// Sends filler until it is through or the turn is cancelled.
    pub(crate) fn fill(&mut self, filler: Filler) {
        let message = self.message("agent");
        let stop = || self.signal.is_cancelled();
        let count = filler.write(&self.agent.output, &self.session.id, &message, stop);
        self.note(&Record::Filler(Filler { count, ..filler }, message));
    }

    pub(crate) fn message(&self, speaker: &str) -> String {
        message_id(self.number, speaker)
    }

    pub(crate) fn next_tool_call(&mut self) -> String {
        self.tool_calls += 1;
        format!("turn-{}-call-{}", self.number, self.tool_calls)
    }

    /// Waits until `limit` is over, or for ever; a cancellation ends it.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> Result<(), Cancelled> {
        self.keep();
        if self.signal.wait_cancelled(limit) { Err(Cancelled) } else { Ok(()) }
    }

    /// Sends a request to the client without waiting for the answer. `params` gets the session's id.
    pub(crate) fn call(&mut self, method: &str, mut params: Value) -> u64 {
        self.keep();
        params["sessionId"] = json!(self.session.id);
        self.agent.call(&self.signal, method, &params)
    }

    /// The same, taken back at once.
    pub(crate) fn call_and_take_back(&mut self, method: &str, mut params: Value) -> u64 {
        self.keep();
        params["sessionId"] = json!(self.session.id);
        self.agent.call_and_take_back(&self.signal, method, &params)
    }

    /// Asks the client and waits; a cancelled turn takes the request back.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<Reply, Cancelled> {
        let call = self.call(method, params);
        match self.signal.wait_reply(call, Patience { heeds_cancel: true, limit: None }) {
            Waited::Answered(reply) => Ok(reply),
            Waited::Cancelled | Waited::TimedOut => {
                self.take_back(call);
                Err(Cancelled)
            }
        }
    }

    /// Asks the client and waits for the answer, whatever happens: the client owes one, also when it cancels.
    pub(crate) fn request_to_the_end(&mut self, method: &str, params: Value) -> Reply {
        let call = self.call(method, params);
        self.answer_to(call)
    }

    pub(crate) fn answer_to(&self, call: u64) -> Reply {
        match self.signal.wait_reply(call, Patience::default()) {
            Waited::Answered(reply) => reply,
            Waited::Cancelled | Waited::TimedOut => unreachable!("only an answer ends this wait"),
        }
    }

    pub(crate) fn take_back(&self, call: u64) {
        self.agent.output.notify("$/cancel_request", &json!({"requestId": call}));
    }

    /// Writes down what happened so far.
    pub(crate) fn keep(&mut self) {
        if !self.unkept.is_empty() {
            self.agent.keep(&self.session.id, &self.unkept);
            self.unkept.clear();
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn note(&mut self, record: &Record) {
        self.unkept.push_str(&record.to_line());
        if self.unkept.len() >= KEEP_BYTES {
            self.keep();
        }
    }
}
