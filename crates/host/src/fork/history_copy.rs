//! What a fork takes over of its source's log: the conversation, under the new id.
//!
//! Pure: events of the source come in, in their order, and those of the fork go into batches. Invariant: the log of the
//! fork is legal. So a turn that never ended in the source, because its run was lost or is still at it, ends in the fork.

use crate::recording;
use acpd_eventlog::{Batch, Event as StoredEvent};
use acpd_record::{
    AgentState, Event, Position, Projection, Prompt, RawMessage, SessionId, StateChanged, TurnEnded,
};
use acpd_wire::{Member, scan};
use std::ops::Range;

/// Why a turn ended in the fork that had not in its source.
const NOT_ENDED: &str = r#"{"code":-32603,"message":"the turn had not ended when the session was forked"}"#;

/// Copies a history, one event after the other.
pub(super) struct HistoryCopy {
    id: SessionId,
    source: Projection,
    fork: Projection,
}

impl HistoryCopy {
    /// Into the session `id`, whose log has begun as `fork` says. `source_is_fork`: the source is a fork itself.
    pub(super) fn new(id: &SessionId, source_is_fork: bool, fork: Projection) -> Self {
        Self { id: id.clone(), source: Projection::new(source_is_fork), fork }
    }

    /// What the source's log says of it.
    pub(super) fn source(&self) -> &Projection {
        &self.source
    }

    /// Takes the next event of the source.
    pub(super) fn take(&mut self, stored: &StoredEvent<'_>, now_ms: i64, batch: &mut Batch) {
        match recording::read(&mut self.source, stored) {
            Some(Event::Update(message)) => {
                let (line, id) = (message.line(), self.id.clone());
                let message = RawMessage::of_agent(line, session_in(line), id.as_json());
                self.push(&Event::Update(message), now_ms, batch);
            }
            Some(Event::Prompt(prompt)) => {
                self.end_turn(now_ms, batch);
                // A key is of the session that was prompted.
                let copied = Prompt { idempotency_key: None, ..prompt };
                self.push(&Event::Prompt(copied), now_ms, batch);
            }
            Some(event @ Event::TurnEnded(_)) if self.fork.check(self.next(), &event).is_ok() => {
                self.push(&event, now_ms, batch);
            }
            // The rest is about the source's own runs.
            _ => {}
        }
    }

    /// All of the source was taken. Its state, and what the agent says of the fork's in its `answer`, are recorded behind it.
    pub(super) fn finish(mut self, answer: &AgentState, now_ms: i64, batch: &mut Batch) -> Projection {
        self.end_turn(now_ms, batch);
        let mut state = self.source.snapshot().state().clone();
        state.merge(answer);
        // It is there also when it says nothing: what was used before it is not the fork's.
        self.push(&Event::StateChanged(StateChanged { state, by: None }), now_ms, batch);
        self.fork
    }

    fn end_turn(&mut self, now_ms: i64, batch: &mut Batch) {
        if let Some(turn) = self.fork.running_turn().map(|turn| turn.number) {
            let error = serde_json::from_str(NOT_ENDED).ok();
            self.push(&Event::TurnEnded(TurnEnded { turn, error, ..TurnEnded::default() }), now_ms, batch);
        }
    }

    fn push(&mut self, event: &Event<'_>, now_ms: i64, batch: &mut Batch) {
        self.fork.apply(Position { seq: self.next(), at_ms: now_ms }, event);
        recording::push(batch, now_ms, event);
    }

    fn next(&self) -> u64 {
        self.fork.last_seq() + 1
    }
}

/// Where the session id stands in a `session/update` line.
fn session_in(line: &[u8]) -> Option<Range<usize>> {
    scan(line).ok()?.span(Member::SessionId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_record::{Tally, TurnNumber};

    fn copied(source: &[(u16, &str)]) -> (Projection, u64) {
        let id = SessionId::parse("copy").expect("an id");
        let mut fork = Projection::default();
        for (seq, (kind, payload)) in
            (1..).zip([(1, r#"{"agent":"a","cwd":"/","forkedFrom":"s"}"#), (2, "{}")])
        {
            fork.see(Position { seq, at_ms: 0 }, kind, payload.as_bytes());
        }
        let (mut copy, mut batch) = (HistoryCopy::new(&id, false, fork), Batch::new());
        for (seq, (kind, payload)) in (1..).zip(source) {
            let stored = StoredEvent { seq, kind: *kind, at_ms: 0, payload: payload.as_bytes() };
            copy.take(&stored, 0, &mut batch);
        }
        (copy.finish(&AgentState::default(), 0, &mut batch), batch.len())
    }

    const CREATED: (u16, &str) = (1, r#"{"agent":"a","cwd":"/"}"#);
    const STARTED: (u16, &str) = (2, r#"{"pid":1}"#);
    const LOST: (u16, &str) =
        (9, r#"{"reason":"error","terminatedBy":"daemon","endedAt":"x","turnActive":true,"leaked":false}"#);

    // SE-18: whatever the source has seen, the log of the fork is legal, and every turn in it has ended
    #[test]
    fn every_turn_of_a_fork_has_ended() {
        let (first, second) = ((3, r#"{"turn":1,"prompt":[]}"#), (3, r#"{"turn":2,"prompt":[]}"#));
        let (ended, update) =
            ((6, r#"{"turn":2,"stopReason":"end_turn"}"#), (4, r#"{"params":{"sessionId":"s"}}"#));
        for (source, expected) in [
            (vec![CREATED, STARTED, first, update], 4),
            (vec![CREATED, STARTED, first, LOST], 3),
            (vec![CREATED, STARTED, first, LOST, STARTED, second, update, ended], 6),
            // What cannot be read, or could not follow in the source, is left out.
            (vec![CREATED, STARTED, ended, (3, "{}"), first], 3),
            (vec![CREATED, STARTED, (3, r#"{"turn":1,"idempotencyKey":"k","prompt":[]}"#), update], 4),
        ] {
            let (fork, events) = copied(&source);
            assert_eq!((fork.skipped(), events), (0, expected), "{source:?}");
            assert!(fork.running_turn().is_none() && fork.turns() >= TurnNumber(1), "{source:?}");
            assert_eq!(fork.keyed_turn("k"), None, "a fork is prompted under keys of its own");
        }
    }

    // contract 7.3: a fork has used nothing yet, and what its turns use counts once
    #[test]
    fn a_fork_begins_with_nothing_used() {
        let prompt = (3, r#"{"turn":1,"prompt":[]}"#);
        let cost = r#"{"amount":1,"currency":"USD"}"#;
        let paid = format!(
            r#"{{"params":{{"sessionId":"s","update":{{"sessionUpdate":"usage_update","cost":{cost}}}}}}}"#
        );
        let ended = (6, r#"{"turn":1,"stopReason":"end_turn","result":{"usage":{"inputTokens":5}}}"#);
        let (mut fork, events) = copied(&[CREATED, STARTED, prompt, (4, &paid), ended]);
        assert_eq!((fork.tally(u64::MAX), fork.turns(), events), (Tally::default(), TurnNumber(1), 4));
        let more = paid.replace("\"amount\":1", "\"amount\":1.5");
        fork.see(Position { seq: fork.last_seq() + 1, at_ms: 0 }, 4, more.as_bytes());
        assert_eq!((fork.usage().cost_nanos().next(), fork.skipped()), (Some(("USD", 500_000_000)), 0));
    }
}
