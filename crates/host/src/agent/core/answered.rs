//! Requests of the agent that were answered, and where their lines end: a host that takes the agent over reads again what was
//! not settled, and knows by that which requests have their answers, also those of sessions that have ended since.
//!
//! Pure and bounded. Not here: requests that are being served, of which the keeper knows the lines.

use crate::agent::marks;
use acpd_wire::OwnedId;
use std::collections::VecDeque;

/// Answers that are remembered: what an agent is answered in a tenth of a second, in which its lines are settled.
const ANSWERED: usize = 256;
/// Requests without an answer whose lines are known. An older one may be answered again.
const OPEN: usize = 1024;
/// Bytes of an id up to which its answer is remembered: its keeper has little room.
const LONGEST: usize = 128;

/// Where the line of a request ends.
type Asked = (OwnedId, u64);

/// The requests of one agent.
#[derive(Debug, Default)]
pub(super) struct AnsweredRequests {
    open: VecDeque<Asked>,
    answered: VecDeque<Asked>,
}

/// A mark that the keeper stores, or removes.
pub(super) type Mark = (String, Option<String>);

fn mark(id: &OwnedId, end: Option<u64>) -> Mark {
    (marks::answer_mark(id), end.map(|end| end.to_string()))
}

impl AnsweredRequests {
    /// Takes over the requests that the host before had answered.
    pub(super) fn inherit(&mut self, answered: Vec<Asked>) {
        self.answered = answered.into();
        self.answered.make_contiguous().sort_by_key(|(_, end)| *end);
    }

    /// Returns `true` if the request whose line ends at `end` has its answer: the line is read again.
    pub(super) fn has(&self, id: &OwnedId, end: u64) -> bool {
        self.answered.iter().any(|(answered, at)| *at == end && answered == id)
    }

    /// The agent asks, with a line that ends at `end`. `is_again`: it was served from its keeper's memory before, where the end
    /// is not known. The mark that is to be stored anew.
    pub(super) fn asks(&mut self, id: &OwnedId, end: u64, is_again: bool) -> Option<Mark> {
        if let Some(open) = self.open.iter_mut().find(|(open, _)| open == id) {
            open.1 = end;
            return None;
        }
        if let Some(known) = self.answered.iter_mut().find(|(answered, _)| is_again && answered == id) {
            known.1 = end;
            return Some(mark(id, Some(end)));
        }
        if self.open.len() == OPEN {
            self.open.pop_front();
        }
        self.open.push_back((id.clone(), end));
        None
    }

    /// The agent is sent the answer: the mark that says so, and one that is too old.
    pub(super) fn answers(&mut self, id: &OwnedId) -> (Option<Mark>, Option<Mark>) {
        let place = self.open.iter().position(|(open, _)| open == id);
        let Some((id, end)) = place.and_then(|place| self.open.remove(place)) else { return (None, None) };
        if id.as_raw().len() > LONGEST {
            return (None, None);
        }
        // An id that the agent uses again has one mark.
        self.answered.retain(|(answered, _)| *answered != id);
        let stored = mark(&id, Some(end));
        self.answered.push_back((id, end));
        let oldest = if self.answered.len() > ANSWERED { self.answered.pop_front() } else { None };
        (Some(stored), oldest.map(|(id, _)| mark(&id, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> OwnedId {
        OwnedId::parse(&number.to_string()).expect("an id")
    }

    // contract 7.3: what is remembered is bounded, and an answer is that of one line, however often its id is used
    #[test]
    fn the_last_answers_are_remembered() {
        let mut requests = AnsweredRequests::default();
        for number in 0..=ANSWERED {
            assert_eq!(requests.asks(&id(number), number as u64, false), None);
            let (stored, oldest) = requests.answers(&id(number));
            assert_eq!(stored, Some((format!("answered/{number}"), Some(number.to_string()))));
            assert_eq!(oldest, (number == ANSWERED).then(|| ("answered/0".to_owned(), None)));
        }
        assert!(!requests.has(&id(0), 0) && requests.has(&id(1), 1) && !requests.has(&id(1), 2));
        requests.asks(&id(1), 999, false);
        requests.answers(&id(1));
        assert!(requests.has(&id(1), 999) && !requests.has(&id(1), 1));
        assert_eq!(requests.answers(&id(1)), (None, None), "it has its answer");
        for number in 0..=OPEN {
            requests.asks(&id(number), 7, false);
        }
        assert_eq!(requests.open.len(), OPEN);
        let long = OwnedId::parse(&format!("\"{}\"", "x".repeat(LONGEST))).expect("an id");
        requests.asks(&long, 8, false);
        assert_eq!(requests.answers(&long), (None, None));
    }

    // ADR 22: where a line ends that was served from memory is known when it comes again, before its answer or behind
    #[test]
    fn an_end_that_was_not_known_is_learnt() {
        let mut requests = AnsweredRequests::default();
        requests.asks(&id(1), 0, false);
        requests.asks(&id(2), 0, false);
        requests.answers(&id(1));
        assert_eq!(requests.asks(&id(1), 10, true), Some(("answered/1".to_owned(), Some("10".to_owned()))));
        assert_eq!(requests.asks(&id(2), 20, true), None);
        requests.answers(&id(2));
        assert!(requests.has(&id(1), 10) && requests.has(&id(2), 20));
    }
}
