//! What clients ask of a session, and what the agent answers to all but prompts.

use super::{Now, SessionCore};
use crate::acp::{self, method};
use crate::agent::{AgentAnswer, Ticket};
use crate::error::HostError;
use crate::session::effects::{Act, Effects};
use crate::session::questions::AutoAnswer;
use crate::session::requests::Pending;
use crate::session::turns::Step;
use crate::session::{ClientRef, ClientRequest, prompt};
use acpd_record::{AgentState, CancelRequested, Event, StateChanged};
use acpd_wire::{codes, member, span_of};
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetParams<'a> {
    #[serde(borrow, default)]
    mode_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    model_id: Option<&'a RawValue>,
}

impl SessionCore {
    pub(super) fn client_asks(
        &mut self,
        request: ClientRequest,
        (method, params): (String, Option<Bytes>),
        client: ClientRef,
        out: &mut Effects,
    ) {
        if self.is_ending() || self.volatile.log_failed {
            self.volatile.requests.came_late(request);
            return;
        }
        if method != method::SESSION_PROMPT {
            let params = params.map(|params| self.with_native_id(&params));
            out.act(Act::Request {
                ticket: Ticket::Client(request),
                method: method.clone(),
                params: params.clone(),
                repeatable: false,
            });
            self.volatile.requests.open(request, Pending { method, params, client, prompt: None });
            return;
        }
        match prompt::read(params, self.facts.prompt, self.facts.native.as_json()) {
            Ok(read) => self.client_prompts(request, (method, read), client, out),
            Err(error) => out.answer(request, Err(error)),
        }
    }

    /// A client prompts, and is told where its prompt is, unless it comes too late.
    pub(super) fn client_leaves(
        &mut self,
        request: ClientRequest,
        params: Bytes,
        client: ClientRef,
        out: &mut Effects,
    ) {
        if self.is_ending() || self.volatile.log_failed {
            return;
        }
        let read = prompt::read(Some(params), self.facts.prompt, self.facts.native.as_json());
        let method = method::SESSION_PROMPT.to_owned();
        let prompted = read.and_then(|read| self.client_leaves_prompt(request, (method, read), client, out));
        out.prompted = Some(prompted);
    }

    pub(super) fn client_notifies(
        &mut self,
        method: String,
        params: Option<Bytes>,
        client: &ClientRef,
        now: Now,
        out: &mut Effects,
    ) {
        if method != method::SESSION_CANCEL {
            let params = params.map(|params| self.with_native_id(&params));
            out.act(Act::Notify { method, params });
            return;
        }
        for step in self.volatile.turns.cancel_of_client(now.at) {
            self.record_cancel(step, client, out);
            // One that ends has been told all it needs.
            let is_ending = self.is_ending();
            self.step(step.filter(|step| !is_ending || *step != Step::PassCancel), out);
        }
        // Also without a turn: some agents ask outside of one.
        self.resolve_all(AutoAnswer::Cancelled, out);
    }

    pub(super) fn client_withdraws(&mut self, request: ClientRequest, now: Now, out: &mut Effects) {
        match self.volatile.requests.get(request) {
            Some(Pending { prompt: Some(prompt), client, .. }) => {
                let (prompt, client) = (prompt.clone(), client.clone());
                let step = self.withdraw_prompt(request, &prompt, now);
                self.record_cancel(step, &client, out);
                self.step(step, out);
            }
            Some(_) => out.act(Act::Withdraw(Ticket::Client(request))),
            None => {}
        }
    }

    /// That a client asked for the turn to end is an event: a successor has to know how to take the agent's answer.
    pub(super) fn record_cancel(&mut self, step: Option<Step>, client: &ClientRef, out: &mut Effects) {
        if step == Some(Step::SendCancel) {
            let by = Cow::Borrowed(&*client.name);
            self.append(&Event::CancelRequested(CancelRequested { by }), out);
        }
    }

    /// The agent answered a request of a session.
    pub(super) fn agent_answers(
        &mut self,
        ticket: Ticket,
        answer: &AgentAnswer,
        now: Now,
        out: &mut Effects,
    ) {
        match ticket {
            Ticket::Turn(turn) => self.agent_ends_turn(turn, answer, now, out),
            Ticket::Client(request) => {
                let Some(pending) = self.volatile.requests.take(request) else { return };
                Self::remember_missing(&pending.method, answer, out);
                self.see_answer(&pending, answer, out);
                let body = match answer.is_error {
                    true => Err(HostError::Agent { error: answer.body.clone() }),
                    false => Ok(answer.body.clone()),
                };
                out.answer(request, body);
            }
            // Whatever it said: acpd ends the session itself (SE-17).
            Ticket::Close => self.closed(answer, out),
        }
    }

    /// A method that the agent turns out not to have is not tried again (contract 1.4).
    pub(super) fn remember_missing(method: &str, answer: &AgentAnswer, out: &mut Effects) {
        if answer.is_error && error_code(&answer.body) == Some(codes::METHOD_NOT_FOUND) {
            out.act(Act::RememberMissing(method.to_owned()));
        }
    }

    /// Keeps the snapshot right when an agent answers a change without telling of it; then it is an event, because the log
    /// is what the next run begins with.
    fn see_answer(&mut self, pending: &Pending, answer: &AgentAnswer, out: &mut Effects) {
        if answer.is_error {
            return;
        }
        let before = self.log.snapshot().state();
        let params = pending.params.as_deref().and_then(acp::view::<SetParams<'_>>).unwrap_or_default();
        let after = match (pending.method.as_str(), params.mode_id, params.model_id) {
            (method::SET_MODE, Some(mode), _) => before.clone().with_mode(mode),
            (method::SET_MODEL, _, Some(model)) => before.clone().with_model(model),
            (method::SET_CONFIG_OPTION, _, _) => before.clone().with_config_options(&answer.body),
            _ => return,
        };
        let state: AgentState = after.since(before);
        if !state.is_empty() {
            let by = Some(Cow::Borrowed(&*pending.client.name));
            self.append(&Event::StateChanged(StateChanged { state, by }), out);
        }
    }

    pub(super) fn agent_does_not_read(&mut self, ticket: Ticket, waiting: usize, out: &mut Effects) {
        let error = HostError::AgentNotReading { waiting };
        match ticket {
            Ticket::Turn(turn) => self.refuse_turn(turn, &error, out),
            Ticket::Client(request) => {
                if self.volatile.requests.take(request).is_some() {
                    out.answer(request, Err(error));
                }
            }
            // The grace of the close bounds it.
            Ticket::Close => {}
        }
    }

    /// `params` of a client with the agent's session id in place of ours.
    fn with_native_id(&self, params: &Bytes) -> Bytes {
        let native = self.facts.native.as_json();
        let raw: Option<&RawValue> = serde_json::from_slice(params).ok();
        let span = raw.and_then(|raw| span_of(params, member(raw, "sessionId")?));
        let Some(span) = span else { return params.clone() };
        let mut out = BytesMut::with_capacity(params.len() + native.len());
        acpd_wire::splice(&mut out, params, &[(span, native.as_bytes())]);
        out.freeze()
    }

    /// The params of a message that only names the session.
    pub(super) fn native_params(&self) -> Bytes {
        format!("{{\"sessionId\":{}}}", self.facts.native.as_json()).into()
    }
}

/// The code of an error object.
pub(super) fn error_code(error: &[u8]) -> Option<i64> {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
    }
    acp::view::<Error>(error).map(|error| error.code)
}
