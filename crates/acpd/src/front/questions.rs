//! What the client is asked, over all links: a question is put to it once, under an id that stays.
//!
//! Pure. A question is known by its session and the number of its event; each link has its own ids for it.

use bytes::Bytes;
use std::collections::HashMap;

/// Answers that are kept until it is known that they arrived. An older one is taken for arrived.
const KEPT: usize = 64;

/// A question.
#[derive(Debug)]
struct Question {
    session: String,
    number: u64,
    /// Its id at the client.
    id: u64,
    /// What the client has answered.
    answer: Option<Bytes>,
}

/// The questions of one client.
#[derive(Debug, Default)]
pub(super) struct Questions {
    /// Ids so far.
    asked: u64,
    known: Vec<Question>,
    /// The ids of this link: the daemon's by the client's, and back.
    there: HashMap<u64, u64>,
    here: HashMap<u64, u64>,
}

/// What becomes of a question of the daemon's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is put to the client under this id.
    Anew(u64),
    /// The client has it.
    Before,
    /// The client has answered it, with this line under its own id.
    Answered(Bytes),
}

impl Questions {
    /// The daemon asks under `id`. What has no number is asked anew.
    pub(super) fn ask(&mut self, session: &str, number: Option<u64>, id: u64) -> Asked {
        let is_it = |question: &&Question| Some(question.number) == number && question.session == session;
        let (own, asked) = match self.known.iter().find(is_it) {
            Some(known) => (known.id, known.answer.clone().map_or(Asked::Before, Asked::Answered)),
            None => {
                self.asked += 1;
                let (own, session) = (self.asked, session.to_owned());
                let new = number.map(|number| Question { session, number, id: own, answer: None });
                self.known.extend(new);
                (own, Asked::Anew(own))
            }
        };
        self.there.insert(own, id);
        self.here.insert(id, own);
        asked
    }

    /// The client answers. The id to answer under; None when there is nothing to answer any more.
    pub(super) fn answer(&mut self, id: u64, line: &Bytes) -> Option<u64> {
        if let Some(question) = self.known.iter_mut().find(|question| question.id == id) {
            question.answer = Some(line.clone());
            let answered = self.known.iter().filter(|question| question.answer.is_some()).count();
            if answered > KEPT
                && let Some(oldest) = self.known.iter().position(|question| question.answer.is_some())
            {
                self.known.remove(oldest);
            }
        }
        self.there.get(&id).copied()
    }

    /// The daemon withdraws what it has asked under `id`. The client's id of it.
    pub(super) fn withdraw(&mut self, id: u64) -> Option<u64> {
        let own = self.here.get(&id).copied()?;
        self.known.retain(|question| question.id != own);
        Some(own)
    }

    /// The answer to what was asked under the daemon's `id` does not count: it may be asked again. The client's id of it.
    pub(super) fn refused(&mut self, id: u64) -> Option<u64> {
        self.withdraw(id)
    }

    /// Only these questions of a session are open. The client's ids of the others that it has not answered.
    pub(super) fn keep(&mut self, session: &str, open: &[u64]) -> Vec<u64> {
        let mut over = Vec::new();
        self.known.retain(|question| {
            let stays = question.session != session || open.contains(&question.number);
            if !stays && question.answer.is_none() {
                over.push(question.id);
            }
            stays
        });
        over
    }

    /// The link is lost, and its ids with it.
    pub(super) fn lost(&mut self) {
        self.there.clear();
        self.here.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: a question is put to the client once over all links, and its answer reaches the daemon
    #[test]
    fn a_question_is_asked_once() {
        let mut questions = Questions::default();
        assert_eq!(questions.ask("s", Some(5), 1), Asked::Anew(1));
        assert_eq!(questions.ask("s", Some(7), 2), Asked::Anew(2));
        assert_eq!(questions.ask("t", Some(5), 3), Asked::Anew(3));
        let line = Bytes::from_static(b"{}");
        assert_eq!(questions.answer(2, &line), Some(2));
        questions.lost();
        assert_eq!(questions.answer(1, &line), None, "there is no link");
        // Another order, other ids.
        assert_eq!(questions.ask("s", Some(7), 1), Asked::Answered(line.clone()));
        assert_eq!(questions.ask("s", Some(5), 2), Asked::Answered(line));
        assert_eq!(questions.ask("t", Some(5), 3), Asked::Before);
        // What was answered elsewhere needs no answer any more.
        assert_eq!(questions.keep("t", &[]), [3]);
        assert_eq!(questions.keep("s", &[5, 7]), [] as [u64; 0]);
        assert_eq!(questions.ask("t", Some(9), 4), Asked::Anew(4));
        // A refused answer is not given again.
        assert_eq!(questions.refused(1), Some(2));
        assert_eq!(questions.ask("s", Some(7), 5), Asked::Anew(5));
        assert_eq!(questions.withdraw(4), Some(4));
        assert_eq!(questions.ask("t", None, 6), Asked::Anew(6));
    }
}
