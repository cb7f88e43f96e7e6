//! `session/prompt`: from the request to the turn's thread and its one answer.
//!
//! Invariants: one turn per session at a time; nothing of a turn is sent after its answer, but for a quirk; a cancel
//! that follows the prompt immediately finds it running.
//! Not the directives' work.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::{Agent, Answer};
use crate::directive::{Directive, directives};
use crate::failure::Failure;
use crate::history::Record;
use crate::session::{Running, Session};
use crate::turn::Turn;
use crate::turn_signal::TurnSignal;
use crate::wire::Raw;

impl Agent {
    pub(crate) fn prompt(self: &Arc<Self>, request: &Raw, params: &Value) -> Answer {
        let session = self.session(params)?;
        let blocks = blocks(&params["prompt"])?;
        let directives = directives(&blocks).map_err(|error| Failure::invalid_params(error.to_string()))?;

        let mut state = session.state();
        if state.running.is_some() {
            return Err(Failure::invalid_request("a prompt is already running in this session"));
        }
        let signal = Arc::new(TurnSignal::default());
        state.running = Some(Running { prompt: request.clone(), signal: Arc::clone(&signal) });
        state.turns += 1;
        let turn = Turn::new(Arc::clone(self), Arc::clone(&session), signal, state.turns);
        drop(state);

        self.keep(&session.id, &Record::Prompt(blocks).to_line());
        std::thread::spawn(move || turn.play(&directives));
        Ok(None)
    }

    /// Answers the prompt of the turn that just ended, and then whatever waited for that end.
    fn turn_ended(&self, session: &Session, answer: Result<Value, Failure>) {
        // Answered under the lock: a close that comes in meanwhile must be answered after the prompt.
        let mut state = session.state();
        if let Some(running) = state.running.take() {
            self.output.answer(Some(&running.prompt), answer);
        }
        for farewell in state.after_turn.drain(..) {
            self.end(&session.id, farewell.deletes);
            self.output.answer(Some(&farewell.request), Ok(json!({})));
        }
    }
}

impl Turn {
    fn play(mut self, directives: &[Directive]) {
        for directive in directives {
            let expects_cancel = matches!(directive, Directive::Quirk(quirk) if quirk.expects_cancel());
            let is_over = self.signal.is_cancelled() && !expects_cancel;
            if is_over || self.perform(directive).is_err() {
                break;
            }
        }
        self.keep();
        let stop_reason = if self.signal.is_cancelled() { "cancelled" } else { &self.stop_reason };
        let mut result = json!({"stopReason": stop_reason});
        if !self.usage.is_empty() {
            result["usage"] = Value::Object(std::mem::take(&mut self.usage));
        }
        let answer = self.playing.answer.take().unwrap_or(Ok(result));
        self.agent.turn_ended(&self.session, answer);
        self.play_late_steps();
    }
}

fn blocks(prompt: &Value) -> Result<Vec<Value>, Failure> {
    let blocks = prompt.as_array().ok_or_else(|| Failure::invalid_params("prompt is a list of blocks"))?;
    let good = |block: &Value| match block["type"].as_str() {
        Some("text") => block["text"].is_string(),
        kind => kind.is_some(),
    };
    if blocks.iter().all(good) {
        Ok(blocks.clone())
    } else {
        Err(Failure::invalid_params("a block of the prompt has no type or no text"))
    }
}
