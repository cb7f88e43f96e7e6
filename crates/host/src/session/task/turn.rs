//! What the session task does for its turns: begins and finishes them, and records both.

use super::{Outputs, SessionTask, ToAgent};
use crate::acp::{self, method};
use crate::agent::{AgentAnswer, Ticket};
use crate::error::HostError;
use crate::journal::TurnEnd;
use crate::session::ingest::Record;
use crate::session::questions::AutoAnswer;
use crate::session::turns::Step;
use acpd_record::EventKind;
use acpd_record::update_kind;
use acpd_wire::{codes, member};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

impl SessionTask {
    pub(super) fn answered(&mut self, ticket: Ticket, answer: AgentAnswer, out: &mut Outputs) {
        if self.ending.as_ref().is_some_and(|ending| ending.closing == Some(ticket)) {
            self.remember_missing(ticket, &answer);
            // Whatever it said: acpd ends the session itself (SE-17).
            self.settled(out);
            return;
        }
        let is_prompt = self.pending.get(ticket).is_none_or(|pending| pending.is_prompt);
        if !is_prompt {
            self.see_answer(ticket, &answer, &mut out.record);
            let body = match answer.is_error {
                true => Err(HostError::Agent { error: answer.body }),
                false => Ok(answer.body),
            };
            self.pending.answer(ticket, body, &mut out.replies);
            return;
        }
        let cancelled = self.turns.cancelling();
        for step in self.turns.answered(ticket) {
            self.steps(step, Some((&answer, cancelled)), out);
        }
        if !self.turns.active() {
            self.snapshot.turn_ended();
            self.turn_content.clear();
            // Only a session that waits for its turn to end has something left to do here.
            if self.ladder_at().is_some() {
                self.settled(out);
            }
        }
    }

    /// A method that the agent turns out not to have is not tried again (contract 1.4).
    pub(super) fn remember_missing(&self, ticket: Ticket, answer: &AgentAnswer) {
        let error: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.is_error
            && error["code"] == json!(codes::METHOD_NOT_FOUND)
            && let Some(pending) = self.pending.get(ticket)
        {
            self.parts.agent.methods().remember_missing(&pending.method);
        }
    }

    /// Keeps the snapshot right when an agent answers a change without telling of it; then it is an event, because
    /// the log is what the next run begins with.
    pub(super) fn see_answer(&mut self, ticket: Ticket, answer: &AgentAnswer, record: &mut Record) {
        let Some(pending) = self.pending.get(ticket).filter(|_| !answer.is_error) else { return };
        let parse = |json: &[u8]| serde_json::from_slice::<serde_json::Value>(json).unwrap_or_default();
        let params = || parse(pending.params.as_deref().unwrap_or(b"{}"));
        if ![method::SET_MODE, method::SET_MODEL, method::SET_CONFIG_OPTION].contains(&&*pending.method) {
            return;
        }
        let (before, by) = (self.snapshot.state(), json!(&*pending.client.name));
        match pending.method.as_str() {
            method::SET_MODE => self.snapshot.set_mode(&params()["modeId"]),
            method::SET_MODEL => self.snapshot.set_model(&params()["modelId"]),
            _ => self.snapshot.see_config_options(&parse(&answer.body)),
        }
        let mut changed = self.snapshot.state();
        changed.retain(|name, value| before.get(name) != Some(value));
        if !changed.is_empty() {
            changed.insert("by".to_owned(), by);
            record.object(EventKind::StateChanged, &serde_json::Value::Object(changed));
            self.describe(record);
        }
    }

    pub(super) fn steps(
        &mut self,
        step: Option<Step>,
        answer: Option<(&AgentAnswer, bool)>,
        out: &mut Outputs,
    ) {
        match step {
            None | Some(Step::Ignore(_)) => {}
            Some(Step::Begin(ticket)) => self.begin_turn(ticket, out),
            Some(Step::SendCancel | Step::PassCancel) => {
                let params = format!("{{\"sessionId\":{}}}", self.parts.native);
                out.to_agent.push(ToAgent::Notify(method::SESSION_CANCEL.to_owned(), Some(params.into())));
                self.sweep_questions(AutoAnswer::Cancelled, out);
            }
            Some(Step::Finish(ticket)) => {
                let (answer, cancelled) = answer.expect("only an answer finishes a turn");
                self.finish_turn(ticket, answer, cancelled, out);
                self.end_terminals_of_turn(cancelled);
                // Nobody waits for an answer that the agent does not wait for.
                self.sweep_questions(AutoAnswer::TurnOver, out);
            }
            Some(Step::GiveUp(ticket)) => {
                self.transcript_was_taken();
                self.end_terminals_of_turn(true);
                out.to_agent.push(ToAgent::Withdraw(ticket));
                self.facts.last_stop_reason = Some("cancelled".to_owned());
                self.parts.journal.turn_ended(self.turn, TurnEnd::GivenUp);
                let ended = json!({"turn": self.turn, "stopReason": "cancelled", "agentIgnoredCancel": true});
                out.record.object(EventKind::TurnEnded, &ended);
                let result = Bytes::from_static(acp::CANCELLED_RESULT);
                self.pending.answer(ticket, Ok(result), &mut out.replies);
            }
            Some(Step::Drop(ticket)) => {
                let result = Bytes::from_static(acp::CANCELLED_RESULT);
                self.pending.answer(ticket, Ok(result), &mut out.replies);
            }
            Some(Step::Refuse(ticket)) => {
                let error = HostError::QueueFull { queued: self.turns.waiting() };
                self.pending.answer(ticket, Err(error), &mut out.replies);
            }
        }
    }

    pub(super) fn begin_turn(&mut self, ticket: Ticket, out: &mut Outputs) {
        let pending = self.pending.get(ticket).expect("a prompt is pending until it is answered");
        self.turn += 1;
        let client = &pending.client;
        self.parts.journal.turn_started(self.turn, client);
        let (by, via) = (json!(&*client.name), json!(&*client.connection));
        self.turn_via = std::sync::Arc::clone(&client.connection);
        let head = format!("{{\"turn\":{},\"by\":{by},\"via\":{via},\"prompt\":", self.turn);
        let params = pending.params.as_deref().unwrap_or(b"{}");
        let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
        let prompt = raw.and_then(|raw| member(raw, "prompt")).map_or("[]", RawValue::get);
        out.record.around(EventKind::Prompt, &head, prompt.as_bytes(), "}");
        self.turn_content = serde_json::from_str(prompt).unwrap_or_default();
        self.replay_meets_prompt();
        self.give_transcript(ticket, out);
        out.to_agent.push(ToAgent::Request(ticket));
    }

    pub(super) fn finish_turn(
        &mut self,
        ticket: Ticket,
        answer: &AgentAnswer,
        cancelled: bool,
        out: &mut Outputs,
    ) {
        // PR-4: a cancelled prompt is answered with a result, also when the agent calls the abort an error.
        let body = match (answer.is_error, cancelled) {
            (true, true) => {
                let meta = [
                    br#"{"stopReason":"cancelled","_meta":{"sandboxagent.dev":{"agentError":"#.as_slice(),
                    &answer.body,
                    b"}}}",
                ];
                Ok(Bytes::from(meta.concat()))
            }
            (true, false) => Err(answer.body.clone()),
            (false, _) => Ok(answer.body.clone()),
        };
        match body {
            Ok(result) => {
                self.transcript_was_taken();
                let stop =
                    acp::view::<acp::PromptAnswerView<'_>>(&result).map(|view| view.stop_reason.into_owned());
                let head = format!("{{\"turn\":{},\"stopReason\":{},\"result\":", self.turn, json!(stop));
                out.record.around(EventKind::TurnEnded, &head, &result, "}");
                self.parts.journal.turn_ended(self.turn, TurnEnd::Stopped(stop.as_deref()));
                self.facts.last_stop_reason = stop;
                self.pending.answer(ticket, Ok(result), &mut out.replies);
            }
            Err(error) => {
                let head = format!("{{\"turn\":{},\"error\":", self.turn);
                out.record.around(EventKind::TurnEnded, &head, &error, "}");
                let code = acp::view::<serde_json::Value>(&error).and_then(|error| error["code"].as_i64());
                self.parts.journal.turn_ended(self.turn, TurnEnd::Failed(code));
                self.pending.answer(ticket, Err(HostError::Agent { error }), &mut out.replies);
            }
        }
    }

    pub(super) fn refused_turn(&mut self, ticket: Ticket, error: &HostError, out: &mut Outputs) {
        let ended = json!({"turn": self.turn, "error": {"message": error.to_string()}});
        out.record.object(EventKind::TurnEnded, &ended);
        self.parts.journal.turn_ended(self.turn, TurnEnd::Refused);
        self.pending.answer(ticket, Err(error.clone()), &mut out.replies);
    }

    /// Whether an update repeats a part of the prompt whose turn is running.
    pub(super) fn is_echo(&self, line: &[u8]) -> bool {
        if update_kind(line) != Some("user_message_chunk") {
            return false;
        }
        let Some(message) = acp::view::<serde_json::Value>(line) else { return false };
        self.turn_content.contains(&message["params"]["update"]["content"])
    }
}
