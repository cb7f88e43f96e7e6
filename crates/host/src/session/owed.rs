//! What the agent of a session that is taken over has to be told: what its events say, and what the host before had not sent.
//!
//! Pure. Events behind the last one that the agent was told of come in, in order; messages for the agent come out. What a
//! decision did not record, and what acpd serves, is not here: the agent's own output brings it again.

use super::ClientRequest;
use super::requests::StoredPrompt;
use crate::agent::{Marks, SentTurn};
use acpd_record::{AgentRequest, Event, Projection, Prompt, QuestionNumber, Topic, TurnNumber};
use acpd_terminal::TerminalId;
use acpd_wire::{OwnedId, RawId, member};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A message that the agent of a session is owed, and the event that says so.
#[derive(Debug, PartialEq)]
pub(crate) struct Owed {
    pub(crate) seq: u64,
    pub(crate) what: OwedMessage,
}

#[derive(Debug, PartialEq)]
pub(crate) enum OwedMessage {
    /// The prompt of a turn; its content blocks.
    Prompt {
        turn: TurnNumber,
        content: Bytes,
    },
    Cancel,
    /// The answer to a question.
    Answer {
        id: OwnedId,
        result: Bytes,
    },
    /// The answer to a request that was refused.
    Refusal {
        id: OwnedId,
        code: i64,
        message: String,
    },
    /// A file request whose answer was lost with the host: acpd serves it.
    File {
        id: OwnedId,
        message: String,
    },
}

/// What a host that is gone left to do for the agent of a session.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    pub(crate) debts: Vec<Owed>,
    /// Requests that are in the log and are served again.
    pub(crate) recorded: Vec<OwnedId>,
    /// Requests that it had begun to serve.
    pub(crate) begun: Vec<OwnedId>,
    /// Prompts that wait for their turns.
    pub(crate) waiting: Vec<(ClientRequest, StoredPrompt)>,
    /// Terminals that run, by the requests for them.
    pub(crate) terminals: Vec<(OwnedId, TerminalId)>,
}

/// Collects what an agent is owed.
#[derive(Debug)]
pub(crate) struct Debts<'a> {
    marks: &'a Marks,
    told: u64,
    turn: Option<SentTurn>,
    owed: Vec<Owed>,
    /// Requests that are in the log and are served again.
    recorded: Vec<OwnedId>,
}

impl<'a> Debts<'a> {
    /// What is owed to the agent that knows the session as `native`.
    pub(crate) fn new(marks: &'a Marks, native: &str) -> Self {
        let (told, turn) = (marks.sent(native), marks.turn(native));
        Self { marks, told, turn, owed: Vec::new(), recorded: Vec::new() }
    }

    /// The last event that the agent is known to have been told of.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Takes the next event, where `before` is what the log says up to it.
    pub(crate) fn see(&mut self, before: &Projection, seq: u64, event: &Event<'_>) {
        let what = match event {
            Event::Prompt(Prompt { turn, prompt, .. }) => {
                let is_sent = self.turn.is_some_and(|sent| sent.turn >= *turn);
                let content = Bytes::copy_from_slice(prompt.get().as_bytes());
                (!is_sent).then_some(OwedMessage::Prompt { turn: *turn, content })
            }
            _ if seq <= self.told => None,
            Event::CancelRequested(_) => Some(OwedMessage::Cancel),
            Event::PermissionResolved(resolved) | Event::ElicitationResolved(resolved) => {
                let result = resolved.result.map(|result| Bytes::copy_from_slice(result.get().as_bytes()));
                asked(before, resolved.request)
                    .zip(result)
                    .map(|((id, _), result)| OwedMessage::Answer { id, result })
            }
            Event::FileResolved(resolved) => {
                asked(before, resolved.request).map(|(id, message)| OwedMessage::File { id, message })
            }
            Event::AgentRequest(request) => self.answered(request),
            _ => None,
        };
        self.owed.extend(what.map(|what| Owed { seq, what }));
    }

    fn answered(&mut self, request: &AgentRequest<'_>) -> Option<OwedMessage> {
        #[derive(Deserialize)]
        struct Error {
            code: i64,
            message: String,
        }
        let id = member(request.message, "id").and_then(RawId::new)?.to_owned();
        if self.marks.is_served(&id) {
            if !self.marks.was_answered(&id) {
                self.recorded.push(id);
            }
            return None;
        }
        let error: Error = serde_json::from_str(error_of(request.answer)?.get()).ok()?;
        Some(OwedMessage::Refusal { id, code: error.code, message: error.message })
    }

    /// All of it, where `log` is what the whole log says: of a turn that is over nothing is owed.
    pub(crate) fn finish(mut self, log: &Projection) -> (Vec<Owed>, Vec<OwnedId>) {
        let unfinished = log.unfinished_turn().map(|turn| turn.number);
        self.owed.retain(|owed| match &owed.what {
            OwedMessage::Prompt { turn, .. } => unfinished == Some(*turn),
            OwedMessage::Cancel => unfinished.is_some(),
            _ => true,
        });
        (self.owed, self.recorded)
    }
}

fn error_of(answer: &RawValue) -> Option<&RawValue> {
    member(answer, "error")
}

/// The agent's request behind a question.
fn asked(log: &Projection, number: QuestionNumber) -> Option<(OwnedId, String)> {
    let question = log.open_question(number).or_else(|| log.settled_question(number))?;
    let message = if question.topic == Topic::File { question.message.to_string() } else { String::new() };
    Some((question.agent_id.clone()?, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_record::Position;
    use std::collections::BTreeMap;

    /// What is owed of a log whose agent knows `marks`.
    fn owed(log: &[(u16, &str)], marks: &[(&str, &str)]) -> (Vec<Owed>, Vec<OwnedId>) {
        let marks: BTreeMap<String, String> =
            marks.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let marks = Marks::new(marks);
        let mut debts = Debts::new(&marks, "\"n\"");
        let mut projection = Projection::default();
        for (seq, (kind, payload)) in (1..).zip(log) {
            let event = Event::read(*kind, payload.as_bytes()).expect("readable");
            debts.see(&projection, seq, &event);
            projection.apply(Position { seq, at_ms: 0 }, &event);
        }
        debts.finish(&projection)
    }

    const BEGUN: [(u16, &str); 2] = [(1, r#"{"agent":"a","cwd":"/"}"#), (2, r#"{"pid":7,"agentInfo":null}"#)];
    const PROMPT: (u16, &str) = (3, r#"{"turn":1,"by":"c","prompt":[1]}"#);
    const ASKED: (u16, &str) = (12, r#"{"request":4,"message":{"id":5,"method":"x"}}"#);
    const RESOLVED: (u16, &str) = (13, r#"{"request":4,"by":{"client":"c"},"result":{"a":1}}"#);

    fn log(more: &[(u16, &'static str)]) -> Vec<(u16, &'static str)> {
        [&BEGUN[..], more].concat()
    }

    // ADR 22: a prompt in the log reaches the agent, once
    #[test]
    fn a_prompt_is_owed_until_it_was_sent() {
        let prompt = OwedMessage::Prompt { turn: TurnNumber(1), content: "[1]".into() };
        let log = log(&[PROMPT]);
        assert_eq!(owed(&log, &[]).0, [Owed { seq: 3, what: prompt }]);
        assert_eq!(owed(&log, &[("turn/\"n\"", "1 0")]).0, []);
        assert_eq!(owed(&[&log[..], &[(6, r#"{"turn":1}"#)]].concat(), &[]).0, [], "it is over");
    }

    // ADR 22: so does an answer, and a cancel
    #[test]
    fn answers_are_owed_until_they_were_sent() {
        let log = log(&[PROMPT, ASKED, RESOLVED, (7, r#"{"by":"c"}"#)]);
        let id = OwnedId::parse("5").expect("an id");
        let answer = Owed { seq: 5, what: OwedMessage::Answer { id, result: r#"{"a":1}"#.into() } };
        let cancel = || Owed { seq: 6, what: OwedMessage::Cancel };
        let sent = ("turn/\"n\"", "1 0");
        assert_eq!(owed(&log, &[sent]).0, [answer, cancel()]);
        assert_eq!(owed(&log, &[sent, ("sent/\"n\"", "5")]).0, [cancel()]);
        assert_eq!(owed(&log, &[sent, ("sent/\"n\"", "6")]).0, []);
    }

    // ADR 22: what was refused is refused again; what is served is not owed, and not recorded twice
    #[test]
    fn refusals_are_owed_and_services_are_not() {
        let request = r#"{"answer":{"error":{"code":-1,"message":"no"}},"message":{"id":"q","method":"x"}}"#;
        let log = log(&[(8, request)]);
        let id = OwnedId::parse("\"q\"").expect("an id");
        let refusal = OwedMessage::Refusal { id: id.clone(), code: -1, message: "no".into() };
        assert_eq!(owed(&log, &[]), (vec![Owed { seq: 3, what: refusal }], vec![]));
        assert_eq!(owed(&log, &[("served/\"q\"", "again")]), (vec![], vec![id]));
        assert_eq!(owed(&log, &[("served/\"q\"", "")]), (vec![], vec![]));
    }
}
