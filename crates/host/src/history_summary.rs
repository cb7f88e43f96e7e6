//! What a list shows of a session's log: when it changed, and what came of its turns.

use crate::clock::iso8601;
use acpd_eventlog::SessionRow;
use acpd_record::{LastTurn, Partition, ShownUsage, Tally};
use serde::Serialize;

/// What a list shows of a session's log.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistorySummary {
    /// When it was created, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub created_at: String,
    /// The same in milliseconds since 1970.
    #[serde(skip)]
    pub created_ms: i64,
    /// When it last changed, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub updated_at: String,
    /// Events in its log.
    pub event_count: u64,
    /// What its turns have used, as far as its agent tells; those of the source of a fork do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ShownUsage>,
    /// The words that it began with: at most 80 characters of its first prompt's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub first_prompt: Option<Box<str>>,
    /// When the turn that runs began, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub turn_started_at: Option<String>,
    /// How its last turn ended, if one has; that of the source of a fork does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<LastTurnSummary>,
    /// Permission requests and elicitations of its agent that wait for an answer.
    pub open_questions: u64,
    /// What becomes of it when its node is cut off, in a fleet; absent: it belongs to its node.
    #[serde(skip_serializing_if = "Partition::is_local")]
    pub partition: Partition,
    /// The node that has it, in a fleet.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub node: Option<OfNode>,
}

/// Where a session is, in a fleet.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OfNode {
    /// The name of its node.
    pub node: String,
    /// Whether its node is there.
    pub reachable: bool,
    /// Since when it is not, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub unreachable_since: Option<String>,
}

/// How the last turn of a session ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LastTurn"))]
pub struct LastTurnSummary {
    /// Why; absent when it failed, or when its run ended first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Box<str>>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub ended_at: String,
}

impl From<LastTurn> for LastTurnSummary {
    fn from(LastTurn { stop_reason, duration_ms, ended_ms }: LastTurn) -> Self {
        Self { stop_reason, duration_ms, ended_at: iso8601(ended_ms) }
    }
}

impl HistorySummary {
    pub(crate) fn of(row: &SessionRow, tally: Tally, partition: Partition) -> Self {
        let mut history = Self {
            created_ms: row.created_ms,
            created_at: iso8601(row.created_ms),
            updated_at: iso8601(row.updated_ms),
            event_count: row.last_seq,
            usage: None,
            first_prompt: None,
            turn_started_at: None,
            last_turn: None,
            open_questions: 0,
            partition,
            node: None,
        };
        history.take(tally);
        history
    }

    /// What its log says of its turns.
    pub(crate) fn take(&mut self, tally: Tally) {
        let Tally { usage, first_prompt, turn_began_ms, last_turn, open_questions } = tally;
        self.usage = usage.shown();
        self.first_prompt = first_prompt;
        self.turn_started_at = turn_began_ms.map(iso8601);
        self.last_turn = last_turn.map(Into::into);
        self.open_questions = open_questions;
    }
}
