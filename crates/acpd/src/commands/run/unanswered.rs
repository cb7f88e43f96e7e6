//! Questions of the agent without a person to ask: who prompted is told what the log says became of them.
//!
//! Pure. Only the log has a form that was declined, because it is offered to clients that can fill it in, and `run` cannot; and
//! only the log says whether a refusal of a permission counted, or came behind that of another client, or when the agent had
//! taken its question back.

use super::lines::{Answered, WithMessage};
use crate::daemon::Event;
use crate::view::Question;
use acpd_record::AnsweredBy;
use acpd_wire::member;
use serde_json::Value;
use std::collections::HashMap;

/// Questions whose answers the log does not have yet.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    /// The number and the params of the last form; what nobody is asked is answered by the next event.
    form: Option<(u64, Value)>,
    /// The permissions that clients were asked for, by their numbers; the host bounds how many are open.
    asked: HashMap<u64, Question>,
    /// Those that were refused here, in their order.
    refused: Vec<Question>,
}

/// The outcome of a question.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A form, or a page to open, with these params.
    Declined(Value),
    /// The agent was told that it may not.
    Refused(Question),
    /// The agent does not wait for the answer any more.
    TakenBack,
}

impl Unanswered {
    /// A permission was refused here, and its answer is on the way.
    pub(super) fn refuses(&mut self, question: Question) {
        self.refused.push(question);
    }

    /// Takes the next event; what it says became of a question, if a person is to be told of that. `own` is the name by which
    /// clients know this one.
    pub(super) fn take(&mut self, event: &Event, own: &str) -> Option<Outcome> {
        let json = event.json.as_str();
        match event.kind.as_str() {
            "elicitation_requested" => {
                let asked: WithMessage<'_> = serde_json::from_str(json).ok()?;
                let params = acpd_wire::read(member(asked.message, "params")?.get().as_bytes()).ok()?;
                self.form = Some((asked.request, params));
                None
            }
            "elicitation_resolved" => {
                let answered: Answered<'_> = serde_json::from_str(json).ok()?;
                let (_, params) = self.form.take_if(|(request, _)| *request == answered.request)?;
                match answered.by? {
                    AnsweredBy::Cause(cause) if cause == "nobody" => Some(Outcome::Declined(params)),
                    _ => None,
                }
            }
            "permission_requested" => {
                let asked: WithMessage<'_> = serde_json::from_str(json).ok()?;
                let question = Question::read(member(asked.message, "params")?.get().as_bytes())?;
                self.asked.insert(asked.request, question);
                None
            }
            "permission_resolved" => {
                let answered: Answered<'_> = serde_json::from_str(json).ok()?;
                let asked = self.asked.remove(&answered.request)?;
                let at = self.refused.iter().position(|refused| refused.is_about_the_call_of(&asked));
                let refused = at.map(|at| self.refused.remove(at));
                match answered.by? {
                    AnsweredBy::Client(name) if name == own => refused.map(Outcome::Refused),
                    AnsweredBy::Cause(cause) if cause == "agent" => Some(Outcome::TakenBack),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(unanswered: &mut Unanswered, event: &Value) -> Option<Outcome> {
        unanswered.take(&Event::read(&event.to_string()).expect("an event"), "acpd run")
    }

    // contract 7.1, PE-5: a form that nobody could be asked is told, one that a client had or that was not wanted any more is not
    #[test]
    fn a_form_that_nobody_was_asked_is_told() {
        let params = json!({"mode": "form", "message": "What?"});
        let asked =
            json!({"seq": 3, "kind": "elicitation_requested", "request": 3, "message": {"params": params}});
        for (request, by, is_told) in [
            (3, json!({"cause": "nobody"}), true),
            (2, json!({"cause": "nobody"}), false),
            (3, json!({"cause": "cancel"}), false),
            (3, json!({"cause": "declined"}), false),
            (3, json!({"client": "other"}), false),
        ] {
            let mut unanswered = Unanswered::default();
            assert!(taken(&mut unanswered, &asked).is_none());
            let answer = json!({"seq": 4, "kind": "elicitation_resolved", "request": request, "by": by});
            let told = taken(&mut unanswered, &answer);
            match told {
                Some(Outcome::Declined(told)) => assert!(is_told && told == params, "{request} {by}"),
                told => assert!(!is_told && told.is_none(), "{request} {by}: {told:?}"),
            }
        }
    }

    // contract 7.1, PE-4, PR-10: a permission counts as refused here when the log says so, whenever its answer was sent
    #[test]
    fn a_refusal_is_told_when_it_counts() {
        let params = |call: &str| json!({"toolCall": {"toolCallId": call}, "options": [{"optionId": "n", "kind": "reject_once"}]});
        let question = |call: &str| Question::read(params(call).to_string().as_bytes()).expect("a question");
        for (by, refused, told) in [
            (json!({"client": "acpd run"}), &["a", "b"][..], "refused b"),
            (json!({"client": "acpd run"}), &["a"], "-"),
            (json!({"client": "other"}), &["b"], "-"),
            (json!({"mode": "deny"}), &[], "-"),
            (json!({"cause": "agent"}), &["b"], "taken back"),
            // Its answer was not even sent.
            (json!({"cause": "agent"}), &[], "taken back"),
            (json!({"cause": "cancel"}), &["b"], "-"),
        ] {
            let mut unanswered = Unanswered::default();
            let asked = json!({"seq": 3, "kind": "permission_requested", "request": 3, "message": {"params": params("b")}});
            assert!(taken(&mut unanswered, &asked).is_none());
            refused.iter().for_each(|call| unanswered.refuses(question(call)));
            let answer = json!({"seq": 4, "kind": "permission_resolved", "request": 3, "by": by});
            let said = match taken(&mut unanswered, &answer) {
                Some(Outcome::Refused(told_of)) if told_of.is_about_the_call_of(&question("b")) => {
                    "refused b"
                }
                Some(Outcome::TakenBack) => "taken back",
                None => "-",
                other => panic!("{other:?}"),
            };
            assert_eq!(said, told, "{by} {refused:?}");
        }
    }
}
