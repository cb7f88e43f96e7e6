//! What a list shows of a session's log: when it changed, and what came of its turns.

use crate::clock::iso8601;
use acpd_api::{HistorySummary, LastTurnSummary};
use acpd_eventlog::SessionRow;
use acpd_record::{LastTurn, Partition, Tally};

/// Summarises the log of a session.
pub(crate) fn summarise(row: &SessionRow, tally: Tally, partition: Partition) -> HistorySummary {
    let mut history = HistorySummary {
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
    fill_in(&mut history, tally);
    history
}

/// Fills in what its log says of its turns.
pub(crate) fn fill_in(history: &mut HistorySummary, tally: Tally) {
    let Tally { usage, first_prompt, turn_began_ms, last_turn, open_questions } = tally;
    history.usage = usage.shown();
    history.first_prompt = first_prompt;
    history.turn_started_at = turn_began_ms.map(iso8601);
    history.last_turn = last_turn.map(summarise_turn);
    history.open_questions = open_questions;
}

fn summarise_turn(LastTurn { stop_reason, duration_ms, ended_ms }: LastTurn) -> LastTurnSummary {
    LastTurnSummary { stop_reason, duration_ms, ended_at: iso8601(ended_ms) }
}
