//! The turn of a prompt among the events of a session that other clients prompt too.
//!
//! Pure: events come in, in their order. Invariant: nothing of the turn of another client belongs to it. Not here: how it is
//! shown.

use crate::daemon::Event;
use jiff::Timestamp;
use serde::Deserialize;
use std::time::Duration;

/// How far the turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its prompt was not begun yet: it is to come, or waits in line.
    ToCome,
    Runs,
    /// It has ended; what its commands still write belongs to it.
    Over,
    /// Another one has begun.
    Past,
}

/// One turn.
#[derive(Debug)]
pub(super) struct OwnTurn {
    /// What its prompt is sent under.
    key: String,
    stage: Stage,
    /// Others prompt the session too: what is there before this turn is theirs.
    is_shared: bool,
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
}

/// An event, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Happened {
    at: Option<Timestamp>,
    idempotency_key: Option<String>,
}

impl OwnTurn {
    pub(super) fn new(key: String) -> Self {
        Self { key, stage: Stage::ToCome, is_shared: false, began: None, ended: None }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// The session was live before: the turn of another client may run in it.
    pub(super) fn joins(&mut self) {
        self.is_shared = true;
    }

    /// Takes the next event; whether it belongs to the turn, or to a session that is there for it alone.
    pub(super) fn take(&mut self, event: &Event) -> bool {
        if !matches!(event.kind.as_str(), "prompt" | "turn_ended") {
            return self.is_shown();
        }
        let happened: Option<Happened> = serde_json::from_str(&event.json).ok();
        let at = happened.as_ref().and_then(|happened| happened.at);
        match (event.kind.as_str(), self.stage) {
            ("prompt", Stage::ToCome) => {
                let key = happened.and_then(|happened| happened.idempotency_key);
                if key.as_deref() == Some(&*self.key) {
                    (self.stage, self.began) = (Stage::Runs, at);
                }
                self.is_shared = true;
            }
            ("turn_ended", Stage::Runs) => {
                (self.stage, self.ended) = (Stage::Over, at);
            }
            ("prompt", Stage::Over) => self.stage = Stage::Past,
            _ => {}
        }
        self.is_shown()
    }

    /// Whether what comes now is shown, and asked.
    pub(super) fn is_shown(&self) -> bool {
        match self.stage {
            Stage::ToCome => !self.is_shared,
            Stage::Runs | Stage::Over => true,
            Stage::Past => false,
        }
    }

    /// Whether its prompt was not begun yet.
    pub(super) fn is_to_come(&self) -> bool {
        self.stage == Stage::ToCome
    }

    /// Returns `true` once its recorded end was taken.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over | Stage::Past)
    }

    /// From its prompt to its end, both recorded.
    pub(super) fn took(&self) -> Option<Duration> {
        between(self.began?, self.ended?)
    }
}

/// The time between two events.
pub(super) fn between(began: Timestamp, ended: Timestamp) -> Option<Duration> {
    Duration::try_from(ended.duration_since(began)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str, second: u8, key: Option<&str>) -> Event {
        let at = format!("2026-11-21T21:03:{second:02}.500Z");
        let event = json!({"seq": 1, "kind": kind, "at": at, "idempotencyKey": key});
        Event::read(&event.to_string()).expect("an event")
    }

    fn shown(turn: &mut OwnTurn, events: &[(&str, u8, Option<&str>)]) -> String {
        let one = |(kind, second, key): &(&str, u8, Option<&str>)| turn.take(&event(kind, *second, *key));
        events.iter().map(one).map(|is_shown| if is_shown { 'x' } else { '.' }).collect()
    }

    // contract 7.1: of a session that others prompt too, only the own turn is shown; it takes from its prompt to its end
    #[test]
    fn a_turn_is_told_from_others() {
        let own = [("prompt", 2, Some("mine")), ("update", 3, None), ("turn_ended", 5, None)];
        let anothers = [("prompt", 1, Some("other")), ("update", 1, None), ("turn_ended", 2, None)];
        let nameless = [("prompt", 6, None), ("update", 7, None), ("turn_ended", 8, None)];
        let mut turn = OwnTurn::new("mine".to_owned());
        assert_eq!(shown(&mut turn, &[("created", 0, None), ("update", 0, None)]), "xx");
        assert_eq!(shown(&mut turn, &own), "xxx");
        // A command that the turn has started writes on; the next turn is none of this one.
        assert_eq!(shown(&mut turn, &[("terminal", 6, None)]), "x");
        assert_eq!(shown(&mut turn, &nameless), "...");
        assert_eq!(turn.took(), Some(Duration::from_secs(3)));
        // In line behind the turn of another client, whose beginning was before.
        let mut turn = OwnTurn::new("mine".to_owned());
        turn.joins();
        assert_eq!(shown(&mut turn, &[("update", 0, None), ("turn_ended", 1, None)]), "..");
        assert_eq!((shown(&mut turn, &anothers), turn.is_to_come()), ("...".to_owned(), true));
        assert_eq!((shown(&mut turn, &own), turn.took()), ("xxx".to_owned(), Some(Duration::from_secs(3))));
        // Another client was faster in a new session.
        let mut turn = OwnTurn::new("mine".to_owned());
        assert_eq!(shown(&mut turn, &anothers), "...");
        assert_eq!(shown(&mut turn, &own), "xxx");
    }
}
