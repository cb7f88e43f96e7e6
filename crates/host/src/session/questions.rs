//! The agent's questions to people: what counts as an answer, what is answered without one, and when.
//!
//! Pure. Which questions are open is in the log; a question has the number of the event that shows it. The first valid
//! answer wins (PE-2); one that comes later, or that was not offered, is refused toward its client only.

use crate::acp;
use crate::permission::{self, Offer};
use acpd_record::{OpenQuestion, QuestionNumber, Topic};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Instant;

/// Questions that one session may have open. An agent that asks more is refused.
pub(super) const OPEN: usize = 256;

/// Why a question was answered without a client.
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
    /// No client answered in time.
    TimedOut,
    /// The only client that was asked will not answer, or is gone.
    Declined,
    /// No client can be asked.
    Nobody,
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
            Self::Nobody => "nobody",
        }
    }
}

/// The answer to a question that no client answers. A file has none: it is served by acpd, or not wanted any more.
pub(super) fn auto_answer(topic: Topic, message: &[u8], why: AutoAnswer) -> Bytes {
    match (topic, why) {
        (Topic::Permission, AutoAnswer::TimedOut) => offer(message).rejection(),
        (Topic::Permission, _) => permission::cancelled(),
        (Topic::Elicitation, AutoAnswer::Declined | AutoAnswer::Nobody) => {
            Bytes::from_static(br#"{"action":"decline"}"#)
        }
        (Topic::Elicitation, _) => Bytes::from_static(br#"{"action":"cancel"}"#),
        (Topic::File, _) => Bytes::from_static(b"null"),
    }
}

/// What a permission request offers.
pub(super) fn offer(message: &[u8]) -> Offer {
    acp::params_of(message).map(permission::offer).unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionResult<'a> {
    #[serde(borrow)]
    outcome: Outcome<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    #[serde(borrow)]
    outcome: Cow<'a, str>,
    #[serde(borrow, default)]
    option_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ElicitationResult<'a> {
    #[serde(borrow, rename = "action")]
    _action: Cow<'a, str>,
}

/// Whether `result` answers a question; else what is wrong with it, and the fix.
pub(super) fn check(question: &OpenQuestion, result: &[u8]) -> Result<(), String> {
    let raw: &RawValue = serde_json::from_slice(result).map_err(|error| error.to_string())?;
    match question.topic {
        Topic::Permission => check_permission(&offer(question.message.as_bytes()), raw.get()),
        Topic::File => match raw.get().starts_with('{') {
            true => Ok(()),
            false => Err("result: an object is required".to_owned()),
        },
        Topic::Elicitation => match serde_json::from_str::<ElicitationResult<'_>>(raw.get()) {
            Ok(_) => Ok(()),
            Err(_) => Err("action: accept, decline or cancel is required".to_owned()),
        },
    }
}

fn check_permission(offer: &Offer, result: &str) -> Result<(), String> {
    let result = serde_json::from_str::<PermissionResult<'_>>(result).ok();
    let outcome = result.map(|result| result.outcome);
    match outcome.as_ref().map(|outcome| (&*outcome.outcome, outcome.option_id.as_deref())) {
        Some(("cancelled", _)) => Ok(()),
        Some(("selected", Some(id))) if offer.has(id) => Ok(()),
        Some(("selected", Some(id))) => {
            Err(format!("outcome.optionId: {id:?} was not offered; choose one of {offer}"))
        }
        Some(("selected", None)) => {
            Err(format!("outcome.optionId: the id of an option is required: {offer}"))
        }
        _ => Err("outcome.outcome: selected or cancelled is required".to_owned()),
    }
}

/// When open questions are answered without a client.
#[derive(Debug, Default)]
pub(super) struct Deadlines(BTreeMap<QuestionNumber, Instant>);

impl Deadlines {
    pub(super) fn set(&mut self, number: QuestionNumber, due: Option<Instant>) {
        if let Some(due) = due {
            self.0.insert(number, due);
        }
    }

    pub(super) fn drop(&mut self, number: QuestionNumber) {
        self.0.remove(&number);
    }

    /// The first of them.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// The questions whose time is over, oldest first.
    pub(super) fn due(&self, now: Instant) -> Vec<QuestionNumber> {
        self.0.iter().filter(|(_, due)| **due <= now).map(|(number, _)| *number).collect()
    }
}

#[cfg(test)]
mod tests;
