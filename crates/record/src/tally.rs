//! What lists show of a session's turns beside how many events they were, and its index keeps a copy of.

use crate::last_turn::LastTurn;
use crate::payload::is_zero;
use crate::usage::Usage;
use serde::{Deserialize, Serialize};

/// What a session has used, how its last turn ended, and what its agent waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// What it has used.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// The words that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<Box<str>>,
    /// When the turn that runs began, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_began_ms: Option<i64>,
    /// The last turn that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<LastTurn>,
    /// Questions that wait for an answer of a client: permission requests and elicitations.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub open_questions: u64,
}

impl Tally {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
