//! Prompts that come again under their keys: a client that has lost an answer asks for it, and nothing runs twice
//! (contract 7.3).
//!
//! Keys of turns that began are in the log, those of prompts that wait are with them.

use super::{Now, SessionCore};
use crate::acp::{self, method};
use crate::error::HostError;
use crate::session::effects::Effects;
use crate::session::prompt::PromptParams;
use crate::session::requests::{Pending, PendingPrompt};
use crate::session::turns::{Place, Step};
use crate::session::{ClientRef, ClientRequest, Prompted, prompt};
use acpd_record::{KeyedEnd, KeyedTurn, Projection, RequestKey, SessionId, TurnNumber};
use bytes::Bytes;
use serde::Serialize;

/// A prompt that came before under the same key.
pub(super) enum Known<'a> {
    /// Its turn began.
    Began(&'a KeyedTurn),
    /// It waits in line.
    Waits(ClientRequest),
}

impl SessionCore {
    /// What is known under a key. It is an error to use it with another prompt.
    pub(super) fn known(&self, key: Option<&RequestKey>) -> Result<Option<Known<'_>>, HostError> {
        let Some(key) = key else { return Ok(None) };
        if let Some(turn) = turn_under(&self.log, key)? {
            return Ok(Some(Known::Began(turn)));
        }
        let Some((request, first)) = self.volatile.requests.keyed(key.as_str()) else { return Ok(None) };
        check_same(first, key)?;
        Ok(Some(Known::Waits(request)))
    }

    /// A client prompts and waits for the end of the turn, or for that of the first prompt under the same key.
    pub(super) fn client_prompts(
        &mut self,
        request: ClientRequest,
        (method, read): (String, PromptParams),
        client: ClientRef,
        out: &mut Effects,
    ) {
        let PromptParams { params, content, key } = read;
        let known = match self.known(key.as_ref()) {
            Ok(known) => known,
            Err(error) => return out.answer(request, Err(error)),
        };
        if let Some(Known::Began(KeyedTurn { turn, end: Some(end), .. })) = known {
            let body = told_again(*turn, end);
            return out.answer(request, body);
        }
        let repeats = known.is_some();
        let prompt = Some(PendingPrompt { content, key, repeats, is_stored: false });
        let params = (!repeats).then_some(params);
        self.volatile.requests.open(request, Pending { method, params, client, prompt });
        if !repeats {
            let step = self.volatile.turns.prompt(request);
            self.step(step, out);
            self.store_waiting(request, out);
        }
    }

    /// A client prompts and does not wait for the end of the turn.
    pub(super) fn client_leaves_prompt(
        &mut self,
        request: ClientRequest,
        (method, read): (String, PromptParams),
        client: ClientRef,
        out: &mut Effects,
    ) -> Result<Prompted, HostError> {
        match self.known(read.key.as_ref())? {
            Some(Known::Began(KeyedTurn { turn, seq, .. })) => {
                return Ok(Prompted::Began { turn: *turn, seq: *seq });
            }
            Some(Known::Waits(first)) => return self.place(first),
            None => self.client_prompts(request, (method, read), client, out),
        }
        self.place(request)
    }

    /// A client sends a prompt and has withdrawn it: its end is all that is wanted. One that never came before is not begun.
    pub(super) fn client_sends_withdrawn(
        &mut self,
        request: ClientRequest,
        params: Bytes,
        client: ClientRef,
        now: Now,
        out: &mut Effects,
    ) {
        if self.is_ending() || self.volatile.log_failed {
            self.volatile.requests.came_late(request);
            return;
        }
        let read = match prompt::read(Some(params), self.facts.prompt, self.facts.native.as_json()) {
            Ok(read) => read,
            Err(error) => return out.answer(request, Err(error)),
        };
        if matches!(self.known(read.key.as_ref()), Ok(None)) {
            return out.answer(request, Ok(Bytes::from_static(acp::CANCELLED_RESULT)));
        }
        self.client_prompts(request, (method::SESSION_PROMPT.to_owned(), read), client, out);
        self.client_withdraws(request, now, out);
    }

    /// Where a prompt is that was taken.
    fn place(&self, request: ClientRequest) -> Result<Prompted, HostError> {
        let full = || HostError::QueueFull { queued: self.volatile.turns.waiting() };
        match self.volatile.turns.place(request).ok_or_else(full)? {
            Place::Runs => {
                let turn = self.log.unfinished_turn().expect("it is the turn of the prompt that runs");
                Ok(Prompted::Began { turn: turn.number, seq: turn.seq })
            }
            Place::Waits { before } => Ok(Prompted::Waits { before }),
        }
    }

    /// Answers the prompt whose turn is over, and all that repeat it.
    pub(super) fn answer_turn(
        &mut self,
        turn: TurnNumber,
        request: ClientRequest,
        body: Result<Bytes, HostError>,
        out: &mut Effects,
    ) {
        self.answer_client(request, body.clone(), out);
        let key = self.log.key_of(turn).map(|key| key.as_str().to_owned());
        self.answer_repeats(key, &body, out);
    }

    /// Answers a prompt that never began, and all that repeat it.
    pub(super) fn answer_dropped(&mut self, request: ClientRequest, out: &mut Effects) {
        let body = Ok(Bytes::from_static(acp::CANCELLED_RESULT));
        let prompt = self.volatile.requests.get(request).and_then(|pending| pending.prompt.as_ref());
        let key = prompt.and_then(|prompt| prompt.key.as_ref()).map(|key| key.as_str().to_owned());
        self.waits_no_more(request, out);
        self.answer_client(request, body.clone(), out);
        self.answer_repeats(key, &body, out);
    }

    fn answer_repeats(&mut self, key: Option<String>, body: &Result<Bytes, HostError>, out: &mut Effects) {
        let Some(key) = key else { return };
        for request in self.volatile.requests.repeats_of(&key) {
            self.answer_client(request, body.clone(), out);
        }
    }

    /// What a client's withdrawal of a prompt leads to: a prompt is one, however often it was sent.
    pub(super) fn withdraw_prompt(
        &mut self,
        request: ClientRequest,
        prompt: &PendingPrompt,
        now: Now,
    ) -> Option<Step> {
        let first = match prompt.key.as_ref().filter(|_| prompt.repeats) {
            None => Some(request),
            Some(key) => self.volatile.requests.keyed(key.as_str()).map(|(first, _)| first),
        };
        match first {
            Some(first) => self.volatile.turns.withdraw(first, now.at),
            // The request that began the turn was lost with its connection.
            None if self.volatile.turns.active() => self.volatile.turns.cancel(now.at),
            None => None,
        }
    }

    /// Returns `true` if `key` means the prompt that the session was created with: that has the session's id for a key, while its
    /// client knows the key of the creation.
    fn is_first_prompt(&self, key: &str) -> bool {
        let is_of_prompt = self.volatile.requests.keyed(key).is_some() || self.log.keyed_turn(key).is_some();
        !is_of_prompt && self.meta.created_under.as_ref().is_some_and(|own| own.as_str() == key)
    }

    /// A client ends the prompt under a key: one that waits leaves the line, the turn of one that runs is cancelled.
    pub(super) fn client_takes_back(&mut self, key: &str, client: &ClientRef, now: Now, out: &mut Effects) {
        let of_creation = self.is_first_prompt(key).then(|| self.facts.id.clone());
        let key = of_creation.as_ref().map_or(key, SessionId::as_str);
        let step = match self.volatile.requests.keyed(key) {
            Some((first, _)) => self.volatile.turns.withdraw(first, now.at),
            // The request that began the turn was lost with its connection.
            None if self.log.keyed_turn(key).is_some_and(|turn| turn.end.is_none()) => {
                self.volatile.turns.cancel(now.at)
            }
            None => return,
        };
        out.taken_back = true;
        self.record_cancel(step, client, out);
        self.step(step, out);
    }
}

/// The turn that began under a key. It is an error to use it with another prompt.
pub(crate) fn turn_under<'a>(
    log: &'a Projection,
    key: &RequestKey,
) -> Result<Option<&'a KeyedTurn>, HostError> {
    let turn = log.keyed_turn(key.as_str());
    turn.map_or(Ok(()), |turn| check_same(&turn.key, key))?;
    Ok(turn)
}

/// A key and its prompt are one.
fn check_same(first: &RequestKey, key: &RequestKey) -> Result<(), HostError> {
    let reused = || HostError::KeyReused { key: key.as_str().to_owned() };
    (first == key).then_some(()).ok_or_else(reused)
}

/// The answer to a prompt whose turn has ended, once more.
pub(crate) fn told_again(turn: TurnNumber, end: &KeyedEnd) -> Result<Bytes, HostError> {
    #[serde_with::skip_serializing_none]
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Stopped<'a> {
        stop_reason: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Failed<'a> {
        code: i64,
        message: &'a str,
    }
    match end {
        KeyedEnd::Answered(result) => Ok(Bytes::copy_from_slice(result.get().as_bytes())),
        KeyedEnd::Stopped(reason) => {
            let result = Stopped { stop_reason: reason.as_deref() };
            Ok(serde_json::to_vec(&result).expect("it is JSON").into())
        }
        KeyedEnd::Failed(code, message) => {
            let code = code.unwrap_or(acpd_wire::codes::INTERNAL_ERROR);
            let error = Failed { code, message };
            Err(HostError::Agent { error: serde_json::to_vec(&error).expect("it is JSON").into() })
        }
        KeyedEnd::Interrupted => Err(HostError::TurnInterrupted { turn }),
    }
}
