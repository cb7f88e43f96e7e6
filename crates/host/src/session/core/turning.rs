//! The turns of a session: beginning, ending and giving them up, with their events.

use super::{Now, SessionCore};
use crate::acp::{self, method};
use crate::agent::{AgentAnswer, Ticket};
use crate::error::HostError;
use crate::session::ClientRequest;
use crate::session::effects::{Act, Effects, Note, TurnEnd};
use crate::session::questions::AutoAnswer;
use crate::session::turns::Step;
use acpd_record::{Event, Prompt, TurnEnded, TurnNumber};
use acpd_terminal::TerminalId;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

/// How the answer of an agent ends a turn.
struct Outcome {
    /// What the client is answered.
    body: Result<Bytes, HostError>,
    end: TurnEnd,
    cancelled: bool,
}

impl SessionCore {
    /// Performs a step of the turns.
    pub(super) fn step(&mut self, step: Option<Step>, out: &mut Effects) {
        match step {
            None => {}
            Some(Step::Begin(request)) => self.begin_turn(request, out),
            Some(Step::SendCancel | Step::PassCancel) => {
                let (method, params) = (method::SESSION_CANCEL.to_owned(), Some(self.native_params()));
                out.act(Act::Notify { method, params });
                self.resolve_all(AutoAnswer::Cancelled, out);
            }
            Some(Step::GiveUp(request)) => self.give_up(request, out),
            Some(Step::Drop(request)) => self.answer_dropped(request, out),
            Some(Step::Refuse(request)) => {
                let error = HostError::QueueFull { queued: self.volatile.turns.waiting() };
                self.answer_client(request, Err(error), out);
            }
            // How a turn ends is for the agent's answer to say.
            Some(Step::Finish(_) | Step::Ignore(_)) => {}
        }
    }

    /// Answers a client's request, if it is still open.
    pub(super) fn answer_client(
        &mut self,
        request: ClientRequest,
        body: Result<Bytes, HostError>,
        out: &mut Effects,
    ) {
        if self.volatile.requests.take(request).is_some() {
            out.answer(request, body);
        }
    }

    fn begin_turn(&mut self, request: ClientRequest, out: &mut Effects) {
        let pending =
            self.volatile.requests.get(request).expect("a prompt is open until it is answered").clone();
        self.waits_no_more(request, out);
        let turn = self.log.turns().next();
        out.note(Note::TurnStarted { turn, client: pending.client.clone() });
        let prompt: &RawValue = serde_json::from_slice(pending.content()).expect("it was read before");
        let (by, via) = (Cow::Borrowed(&*pending.client.name), Some(pending.client.connection.clone()));
        let key = pending.prompt.as_ref().and_then(|prompt| prompt.key.as_ref());
        let idempotency_key = key.map(|key| Cow::Borrowed(key.as_str()));
        self.append(&Event::Prompt(Prompt { turn, by, via, idempotency_key, prompt }), out);
        let mut params = pending.params;
        let takes_resources = self.facts.prompt.embedded_context && self.facts.offered.transcript_resources;
        let handover = &mut self.volatile.handover;
        let given = handover.give(params.as_deref().unwrap_or(b"{}"), &self.facts.id, takes_resources);
        if let Some((with_transcript, facts)) = given {
            params = Some(with_transcript);
            let facts = acpd_record::TranscriptFacts { turn: Some(turn), ..facts };
            self.append(&Event::Transcript(facts), out);
        }
        let repeatable = self.log.key_of(turn).is_some();
        out.act(Act::Request { ticket: Ticket::Turn(turn), method: pending.method, params, repeatable });
    }

    /// The agent answered a prompt.
    pub(super) fn agent_ends_turn(
        &mut self,
        turn: TurnNumber,
        answer: &AgentAnswer,
        now: Now,
        out: &mut Effects,
    ) {
        if self.log.unfinished_turn().is_none_or(|running| running.number != turn) {
            return;
        }
        let cancelled = self.volatile.turns.cancelling();
        for step in self.volatile.turns.answered() {
            match step {
                Some(Step::Finish(request)) => {
                    self.finish_turn(turn, request, outcome(answer, cancelled), out)
                }
                step => self.step(step, out),
            }
        }
        // Only a session that waits for its turn to end has something left to do here.
        if !self.volatile.turns.active() && self.settles_at().is_some() {
            self.settled(now, out);
        }
    }

    fn finish_turn(&mut self, turn: TurnNumber, request: ClientRequest, outcome: Outcome, out: &mut Effects) {
        let Outcome { body, end, cancelled } = outcome;
        let (terminals, questions) = (self.terminals_of_turn(), self.questions_open());
        if body.is_ok() {
            self.volatile.handover.was_taken();
        }
        self.record_end(turn, &body, &end, out);
        self.answer_turn(turn, request, body, out);
        if cancelled {
            kill(terminals, out);
        }
        // No client has to answer what the agent does not wait for.
        self.resolve_each(questions, AutoAnswer::TurnOver, out);
    }

    fn record_end(
        &mut self,
        turn: TurnNumber,
        body: &Result<Bytes, HostError>,
        end: &TurnEnd,
        out: &mut Effects,
    ) {
        let raw = |bytes| serde_json::from_slice::<&RawValue>(bytes).ok();
        let ended = match body {
            Ok(result) => {
                let stop_reason = match end {
                    TurnEnd::Stopped(reason) => reason.as_deref().map(Cow::Borrowed),
                    _ => None,
                };
                TurnEnded { turn, stop_reason, result: raw(result), ..TurnEnded::default() }
            }
            Err(HostError::Agent { error }) => TurnEnded { turn, error: raw(error), ..TurnEnded::default() },
            Err(_) => TurnEnded { turn, ..TurnEnded::default() },
        };
        self.append(&Event::TurnEnded(ended), out);
        out.note(Note::TurnEnded { turn, end: end.clone() });
    }

    /// The agent ignored the cancel: the client is answered without it, and it loses its say over this turn (PR-6).
    fn give_up(&mut self, request: ClientRequest, out: &mut Effects) {
        let Some(turn) = self.log.running_turn().map(|turn| turn.number) else { return };
        self.volatile.handover.was_taken();
        kill(self.terminals_of_turn(), out);
        out.act(Act::Withdraw(Ticket::Turn(turn)));
        let ended = TurnEnded {
            turn,
            stop_reason: Some(Cow::Borrowed("cancelled")),
            agent_ignored_cancel: true,
            ..TurnEnded::default()
        };
        self.append(&Event::TurnEnded(ended), out);
        out.note(Note::TurnEnded { turn, end: TurnEnd::GivenUp });
        self.answer_turn(turn, request, Ok(Bytes::from_static(acp::CANCELLED_RESULT)), out);
    }

    /// The agent was never asked: it does not read.
    pub(super) fn refuse_turn(&mut self, turn: TurnNumber, error: &HostError, out: &mut Effects) {
        #[derive(Serialize)]
        struct Message {
            message: String,
        }
        if self.log.unfinished_turn().is_none_or(|running| running.number != turn) {
            return;
        }
        for step in self.volatile.turns.answered() {
            match step {
                Some(Step::Finish(request)) => {
                    let message = to_raw_value(&Message { message: error.to_string() }).expect("it is JSON");
                    let ended = TurnEnded { turn, error: Some(&message), ..TurnEnded::default() };
                    self.append(&Event::TurnEnded(ended), out);
                    out.note(Note::TurnEnded { turn, end: TurnEnd::Refused });
                    self.answer_turn(turn, request, Err(error.clone()), out);
                }
                step => self.step(step, out),
            }
        }
    }

    /// Terminals that the running turn has created.
    fn terminals_of_turn(&self) -> Vec<TerminalId> {
        let turn = self.log.running_turn();
        turn.into_iter().flat_map(|turn| &turn.terminals).map(|id| TerminalId::from(&**id)).collect()
    }
}

/// A cancelled turn leaves nothing running that it started; real agents forget to kill it.
fn kill(terminals: Vec<TerminalId>, out: &mut Effects) {
    if !terminals.is_empty() {
        out.act(Act::KillTerminals(terminals));
    }
}

/// How an answer ends a turn. PR-4: a cancelled prompt is answered with a result, also when the agent calls the abort an
/// error.
fn outcome(answer: &AgentAnswer, cancelled: bool) -> Outcome {
    let stopped = |result: &[u8]| {
        let view = acp::view::<acp::PromptAnswerView<'_>>(result);
        TurnEnd::Stopped(view.map(|view| view.stop_reason.into_owned()))
    };
    match (answer.is_error, cancelled) {
        (true, true) => {
            let before = br#"{"stopReason":"cancelled","_meta":{"sandboxagent.dev":{"agentError":"#;
            let result = Bytes::from([before.as_slice(), &answer.body, b"}}}"].concat());
            Outcome { end: stopped(&result), body: Ok(result), cancelled }
        }
        (true, false) => {
            let end = TurnEnd::Failed(super::requesting::error_code(&answer.body));
            Outcome { body: Err(HostError::Agent { error: answer.body.clone() }), end, cancelled }
        }
        (false, _) => Outcome { end: stopped(&answer.body), body: Ok(answer.body.clone()), cancelled },
    }
}
