//! What the agent asks people and nobody has answered yet: permission requests and elicitations.
//!
//! A state machine without IO and without a clock. A question has a number, the sequence number of the event that
//! shows it; answers come by number. The first valid answer wins (PE-2); whoever comes later, or chooses what was not
//! offered, is refused, and nobody else notices. Whatever ends the turn answers what is open.

use crate::acp;
use crate::permission::{self, Offer};
use acpd_wire::OwnedId;
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Questions that one session may have open. An agent that asks more is refused.
pub(super) const OPEN: usize = 256;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    /// `session/request_permission`.
    Permission,
    /// `elicitation/create`.
    Elicitation,
    /// `fs/*`, forwarded to a client that serves files itself.
    File,
}

impl Topic {
    /// As an operator reads it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Elicitation => "elicitation",
            Self::File => "file",
        }
    }
}

/// An open question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) topic: Topic,
    /// The agent's own request id.
    pub(super) agent_id: OwnedId,
    /// The agent's message under our session id.
    pub(super) message: Bytes,
    /// The only connection that may answer; None: all of them.
    pub(super) only: Option<Arc<str>>,
    /// What a permission request offers.
    offer: Offer,
    /// When it is answered without anybody's say.
    due: Option<Instant>,
}

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Somebody was faster, or there never was such a question.
    NotOpen,
    /// It may be answered again.
    Invalid(String),
}

/// Why a question was answered though nobody chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AutoAnswer {
    /// The turn was cancelled.
    Cancelled,
    /// The turn ended without it.
    TurnOver,
    /// The run ends.
    Ended,
    /// The agent took it back.
    Withdrawn,
    /// Nobody answered in time.
    TimedOut,
    /// Who was asked will not answer, or is gone.
    Declined,
}

impl AutoAnswer {
    /// As the log has it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancel",
            Self::TurnOver => "turn_ended",
            Self::Ended => "end",
            Self::Withdrawn => "agent",
            Self::TimedOut => "timeout",
            Self::Declined => "declined",
        }
    }
}

/// The open questions of one session.
#[derive(Debug)]
pub(super) struct OpenQuestions {
    open: Vec<Question>,
    timeout: Option<Duration>,
}

impl OpenQuestions {
    pub(super) fn new(timeout: Option<Duration>) -> Self {
        Self { open: Vec::new(), timeout }
    }

    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= OPEN
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// All that are open, oldest first.
    pub(super) fn open(&self) -> &[Question] {
        &self.open
    }

    /// A question is put to people.
    pub(super) fn ask(
        &mut self,
        number: u64,
        topic: Topic,
        agent_id: OwnedId,
        message: Bytes,
        only: Option<Arc<str>>,
        now: Instant,
    ) {
        let offer = match topic {
            Topic::Permission => acp::params_of(&message).map(permission::offer).unwrap_or_default(),
            Topic::Elicitation | Topic::File => Offer::default(),
        };
        let due = self.timeout.map(|timeout| now + timeout);
        self.open.push(Question { number, topic, agent_id, message, only, offer, due });
    }

    /// A client answers; `via` is its connection. Gives the question and the result for the agent.
    pub(super) fn answer(
        &mut self,
        number: u64,
        via: &str,
        result: &[u8],
    ) -> Result<(Question, Bytes), Refused> {
        let place =
            self.open.iter().position(|question| question.number == number).ok_or(Refused::NotOpen)?;
        let question = &self.open[place];
        if question.only.as_deref().is_some_and(|only| only != via) {
            return Err(Refused::NotOpen);
        }
        question.check(result).map_err(Refused::Invalid)?;
        Ok((self.open.remove(place), Bytes::copy_from_slice(result)))
    }

    /// The client of this connection will not answer, or is gone. What was put to it alone needs another answer.
    pub(super) fn decline(&mut self, number: u64, via: &str) -> Option<Question> {
        let is_it = |question: &Question| question.number == number && question.only.as_deref() == Some(via);
        let place = self.open.iter().position(is_it)?;
        Some(self.open.remove(place))
    }

    /// Takes what was put to a client alone that is not there any more.
    pub(super) fn orphans(&mut self, is_there: impl Fn(&str) -> bool) -> Vec<Question> {
        self.open
            .extract_if(.., |question| question.only.as_deref().is_some_and(|only| !is_there(only)))
            .collect()
    }

    /// The agent takes a question back.
    pub(super) fn withdraw(&mut self, agent_id: &OwnedId) -> Option<Question> {
        let place = self.open.iter().position(|question| question.agent_id == *agent_id)?;
        Some(self.open.remove(place))
    }

    /// Takes all that are open.
    pub(super) fn sweep(&mut self) -> Vec<Question> {
        std::mem::take(&mut self.open)
    }

    /// Takes what nobody has answered in time.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<Question> {
        self.open.extract_if(.., |question| question.due.is_some_and(|due| now >= due)).collect()
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.iter().filter_map(|question| question.due).min()
    }
}

impl Question {
    /// The answer that nobody chose.
    pub(super) fn default_answer(&self, why: AutoAnswer) -> Value {
        match (self.topic, why) {
            (Topic::Permission, AutoAnswer::TimedOut) => self.offer.rejection(),
            (Topic::Permission, _) => permission::cancelled(),
            (Topic::Elicitation, AutoAnswer::Declined) => json!({"action": "decline"}),
            (Topic::Elicitation, _) => json!({"action": "cancel"}),
            // Served by acpd itself, or nobody is there to read it.
            (Topic::File, _) => Value::Null,
        }
    }

    /// What is wrong with an answer, for whoever gave it.
    fn check(&self, result: &[u8]) -> Result<(), String> {
        let result: Value = serde_json::from_slice(result).map_err(|error| error.to_string())?;
        match self.topic {
            Topic::Permission => {
                let outcome = &result["outcome"];
                match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
                    (Some("cancelled"), _) => Ok(()),
                    (Some("selected"), Some(id)) if self.offer.has(id) => Ok(()),
                    (Some("selected"), Some(id)) => {
                        Err(format!("outcome.optionId: {id:?} was not offered; choose one of {}", self.offer))
                    }
                    (Some("selected"), None) => {
                        Err(format!("outcome.optionId: the id of an option is required: {}", self.offer))
                    }
                    _ => Err("outcome.outcome: selected or cancelled is required".to_owned()),
                }
            }
            Topic::File => match result.is_object() {
                true => Ok(()),
                false => Err("result: an object is required".to_owned()),
            },
            Topic::Elicitation => match result["action"].as_str() {
                Some(_) => Ok(()),
                None => Err("action: accept, decline or cancel is required".to_owned()),
            },
        }
    }
}

#[cfg(test)]
mod tests;
