//! Plays the steps of a quirk within a turn, and what is left of them after it.
//!
//! Invariant: only here does a turn send something after its answer. Not the list of quirks.

use serde_json::{Value, json};

use crate::client_services::{failed, outcome};
use crate::directive::parse;
use crate::failure::Failure;
use crate::history::Record;
use crate::quirks::{Quirk, Step, listing, repeated, unescaped};
use crate::turn::{Cancelled, Turn};
use crate::turn_signal::{Patience, Waited};

/// A quirk that is being played.
#[derive(Debug, Default)]
pub(crate) struct Playing {
    /// The last question was answered with an option that allows.
    is_allowed: bool,
    /// The answer to the prompt, if not the usual one.
    pub(crate) answer: Option<Result<Value, Failure>>,
    /// Steps for the time after the answer.
    late: Vec<Step<'static>>,
}

impl Turn {
    pub(crate) fn list_quirks(&mut self) {
        self.say(listing().trim_end());
    }

    pub(crate) fn play_quirk(&mut self, quirk: Quirk) -> Result<(), Cancelled> {
        let mut is_late = false;
        for step in quirk.steps() {
            match step {
                Step::Late => is_late = true,
                step if is_late => self.playing.late.push(step),
                step => self.play_step(&step)?,
            }
        }
        Ok(())
    }

    /// Plays what is left when the prompt has its answer.
    pub(crate) fn play_late_steps(&mut self) {
        for step in std::mem::take(&mut self.playing.late) {
            if self.play_step(&step).is_err() {
                return;
            }
        }
        self.keep();
    }

    fn play_step(&mut self, step: &Step<'static>) -> Result<(), Cancelled> {
        match step {
            Step::Update(update) => {
                let update = self.filled_in(update);
                self.agent.output.raw(update_line(&self.session.id, &update).as_bytes());
                self.note(&Record::Verbatim(update));
            }
            Step::Line(line) => self.agent.output.raw(format!("{}\n", self.filled_in(line)).as_bytes()),
            Step::Raw(text) => self.agent.output.raw(&unescaped(&self.filled_in(text))),
            Step::Request { method, params, has_text_id } => {
                self.ask_verbatim(method, params, *has_text_id)?;
            }
            Step::UnlessAllowed(_) if self.playing.is_allowed => {}
            Step::UnlessAllowed(step) => self.play_step(step)?,
            // The steps behind it are those of an agent that was cancelled.
            Step::UntilCancelled => drop(self.wait(None)),
            Step::Answer(result) => {
                let result = serde_json::from_str(result).expect("the tests play every step");
                self.playing.answer = Some(Ok(result));
            }
            Step::Error(error) => {
                let error = serde_json::from_str(error).expect("the tests play every step");
                self.playing.answer = Some(Err(Failure::from_json(&error)));
            }
            Step::Late => {}
            Step::Option(option) => {
                self.say(&format!("the agent plays this from its start on, with {option}"))
            }
            Step::Directive(directive) => {
                let directive = parse(&self.filled_in(directive)).expect("the tests read every step");
                self.perform(&directive)?;
            }
        }
        Ok(())
    }

    /// Sends a request as it is written and reports the answer. A question waits for its answer whatever happens.
    fn ask_verbatim(&mut self, method: &str, params: &str, has_text_id: bool) -> Result<(), Cancelled> {
        self.keep();
        let call = self.agent.expect_answer(&self.signal);
        let id = if has_text_id { format!("\"{TEXT_ID}{call}\"") } else { call.to_string() };
        let params = self.filled_in(params);
        let (_, members) = params.split_once('{').expect("the tests play every step");
        let comma = if members == "}" { "" } else { "," };
        let session = json!(self.session.id);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{\"sessionId\":{session}{comma}{members}}}\n"
        );
        self.agent.output.raw(line.as_bytes());
        let is_question = method == "session/request_permission";
        let patience = Patience { heeds_cancel: !is_question, limit: None };
        let Waited::Answered(reply) = self.signal.wait_reply(call, patience) else {
            self.take_back(call);
            return Err(Cancelled);
        };
        if is_question {
            self.playing.is_allowed = !["", "cancelled", "selected no"].contains(&outcome(&reply).as_str());
        }
        let text = match &reply {
            Ok(_) if is_question => format!("permission {}", outcome(&reply)),
            Ok(result) => format!("{method}: {result}"),
            Err(error) => failed(method, error),
        };
        self.say(&text);
        Ok(())
    }

    fn filled_in(&self, text: &str) -> String {
        let text = text.replace("$S", &self.session.id).replace("$C", &self.session.cwd);
        repeated(&text.replace("$N", &self.number().to_string()))
    }
}

/// The beginning of an id that is a text.
pub(crate) const TEXT_ID: &str = "example-";

/// The line of an update whose JSON is sent as it is.
pub(crate) fn update_line(session: &str, update: &str) -> String {
    let session = json!(session);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":{session},\"update\":{update}}}}}\n"
    )
}
