//! What a connection does, decided without a runtime: inputs in, effects out, in order.
//!
//! Owned by its shell, which performs the effects and adds nothing. Invariants: every request is answered once; what is
//! asked of a session right behind its `session/load` or `session/resume` waits for that, in its order (contract 7.3), and
//! counts as an open request. Not here: what the host does, and what a viewer writes.

mod answers;
mod refusals;
mod serving;
mod state;

use super::OPEN_REQUESTS;
use super::call::{Call, Message};
use super::effects::{Effect, Effects};
use super::input::{Input, Lookup, Outcome, Run};
use crate::access::{Named, Needs, Refusal, decide};
use crate::identity::Identity;
use crate::methods::StartsRun;
use crate::questions::AskedQuestion;
use crate::wire_error::{WireError, wire_error};
use acpd_api::Scope;
use acpd_host::{HostError, Reason, method};
use acpd_record::SessionId;
use acpd_wire::{Incoming, OwnedId, codes};
use answers::last_before;
use bytes::Bytes;
pub(super) use refusals::answer_refused;
use refusals::{NO_LONGER_ASKED, refused, too_many};
use state::{OpenRequest, Stage};
use std::collections::{HashMap, VecDeque};

/// The answer to a prompt that was withdrawn before it began.
const CANCELLED: Bytes = Bytes::from_static(br#"{"stopReason":"cancelled"}"#);

/// A connection.
#[derive(Debug)]
pub(super) struct ConnectionCore {
    identity: Identity,
    /// The name of the agent that its sessions run on.
    agent: String,
    /// The host ends with it.
    ends_host: bool,
    stage: Stage,
    /// Requests of the client that are not answered yet.
    open: Incoming<OpenRequest>,
    /// What waits for a session to be joined.
    waiting: VecDeque<Message>,
    /// Sessions that have a viewer, and the run that the client is attached to; None if it only reads, or has left.
    watched: HashMap<SessionId, Option<u64>>,
    /// Sessions whose history is shown but that cannot go on, with the reason.
    unresumable: HashMap<SessionId, HostError>,
}

impl ConnectionCore {
    pub(super) fn new(identity: Identity, agent: String, ends_host: bool) -> Self {
        Self {
            identity,
            agent,
            ends_host,
            stage: Stage::Uninitialized,
            open: Incoming::new(),
            waiting: VecDeque::new(),
            watched: HashMap::new(),
            unresumable: HashMap::new(),
        }
    }

    /// Whether the client is read while so many things are `running`: nothing is before the answer to `initialize`, on
    /// which everything else depends.
    pub(super) fn reads(&self, running: usize) -> bool {
        self.stage.reads() && running + self.waiting.len() < OPEN_REQUESTS
    }

    /// Whether the client is still there.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Finishing
    }

    pub(super) fn handle(&mut self, input: Input, effects: &mut Effects) {
        match input {
            Input::Request(_)
            | Input::Notification(_)
            | Input::Withdrawal(_)
            | Input::Answer { .. }
            | Input::Malformed { .. }
                if self.is_over() => {}
            Input::Request(call) => self.request(call, effects),
            Input::LateRequest(call) => {
                let _is_open = self.open(&call, effects);
            }
            Input::Notification(message) => self.notification(message, effects),
            Input::Withdrawal(request) => self.withdraw(request, effects),
            Input::Answer { id, asked, result } => answer(id, asked, result, effects),
            Input::Malformed { id, error } => effects.push(Effect::Send(error.to_line(&id))),
            Input::Noise => {}
            Input::Found { call, session, is_live } => self.found(call, &session, is_live, effects),
            Input::Counted { call, is_granted: true } => self.serve(call, effects),
            Input::Counted { call, is_granted: false } => {
                self.refuse(&call, too_many(self.identity.sessions()), effects);
            }
            Input::Reached { message, run } => self.reached(message, run, effects),
            Input::AnsweredBefore { message, end, body } => {
                let body = body.map_err(|error| wire_error(&error));
                if let Some(request) = message.request {
                    self.answer_behind(last_before(end), request, body, effects);
                }
            }
            Input::Done { request, outcome } => self.done(request, outcome, effects),
            Input::Over(sessions) => self.over(sessions, effects),
            Input::Gone { is_revoked, host_closes } => self.gone(is_revoked, host_closes, effects),
            Input::Drained => self.drained(effects),
        }
    }

    /// A request is open from now on; one whose id is that of an open one is refused, and is not.
    fn open(&mut self, call: &Call, effects: &mut Effects) -> bool {
        let session = call.params.known_session().cloned();
        let is_open = self.open.open(call.id.clone(), OpenRequest { session, joins: false }).is_ok();
        if !is_open {
            let message = format!("a request with the id {} is open already", call.id.as_id());
            let error = WireError::Own { code: codes::INVALID_REQUEST, message, data: None };
            effects.push(Effect::Send(error.to_line(&call.id)));
        }
        is_open
    }

    fn request(&mut self, call: Box<Call>, effects: &mut Effects) {
        if !self.open(&call, effects) {
            return;
        }
        // Without the scope, nothing is looked up.
        match decide(&self.identity, call.method.needs, Named::Nothing) {
            Err(refusal) => self.refuse(&call, refused(&call.name, "", refusal), effects),
            Ok(_) if self.names_a_session(&call) || self.is_limited(&call) => {
                effects.push(Effect::Find(call));
            }
            Ok(_) => self.admit(call, false, effects),
        }
    }

    fn names_a_session(&self, call: &Call) -> bool {
        self.stage.is_introduced()
            && call.method.may_name_a_session()
            && call.params.known_session().is_some()
    }

    /// Whether a limit of the client's token may refuse it.
    fn is_limited(&self, call: &Call) -> bool {
        self.stage.is_introduced() && call.method.is_use() && self.identity.limits().is_some()
    }

    fn found(&mut self, mut call: Box<Call>, session: &Lookup, is_live: bool, effects: &mut Effects) {
        let named = match session {
            Lookup::Of(creator) => Named::Of(creator.as_deref()),
            Lookup::Unknown => Named::Unknown,
            Lookup::Nothing => Named::Nothing,
        };
        let decided = decide(&self.identity, call.method.needs, named);
        match decided.and_then(|_| call.held.beyond.take().map_or(Ok(()), Err)) {
            Ok(()) => self.admit(call, is_live, effects),
            Err(refusal) => {
                let session = call.params.known_session().map(SessionId::as_str).unwrap_or_default();
                self.refuse(&call, refused(&call.name, session, refusal), effects);
            }
        }
    }

    /// The client may ask for this; what may start a run is counted until that has happened.
    fn admit(&mut self, call: Box<Call>, is_live: bool, effects: &mut Effects) {
        if !self.stage.is_introduced() && !call.method.is_served_early() {
            let message = format!("{} before initialize: initialize the connection first", call.name);
            let error = WireError::Own { code: codes::INVALID_REQUEST, message, data: None };
            return self.answer(call.id, Err(error), effects);
        }
        let may_start = match call.method.starts_run {
            StartsRun::No => false,
            StartsRun::New => !self.only_watches(),
            StartsRun::UnlessLive => !self.only_watches() && !is_live,
        };
        if may_start && self.identity.sessions() < usize::MAX {
            effects.push(Effect::Count(call));
        } else {
            self.serve(call, effects);
        }
    }

    /// A message for the run of a session. One right behind a load or resume waits for that.
    fn forward(&mut self, message: Message, effects: &mut Effects) {
        if self.is_joining(&message.session) {
            self.waiting.push_back(message);
        } else {
            effects.push(Effect::Reach(message));
        }
    }

    fn notification(&mut self, message: Message, effects: &mut Effects) {
        if !self.stage.is_introduced() {
            return;
        }
        if self.waiting.iter().any(|waiting| waiting.session == message.session) {
            // In its order behind the requests that wait.
            self.waiting.push_back(message);
        } else {
            effects.push(Effect::Reach(message));
        }
    }

    fn reached(&mut self, message: Message, run: Result<Run, HostError>, effects: &mut Effects) {
        let Some(request) = message.request.clone() else {
            // What is told to a session that is gone, or never was, goes nowhere, and is not answered.
            let may = |run: &Run| {
                let named = Named::Of(run.created_by.as_deref());
                run.beyond.is_none() && decide(&self.identity, Needs::method(Scope::Control), named).is_ok()
            };
            if run.as_ref().is_ok_and(may) {
                effects.push(Effect::Pass(message));
            }
            return;
        };
        match run {
            // It has come to be beyond them since the request was admitted.
            Ok(Run { beyond: Some(beyond), .. }) => {
                let error = refused(&message.method, message.session.as_str(), Refusal::Beyond(beyond));
                self.answer(request, Err(error), effects);
            }
            // Only clients that are attached to a run use it (MC-4).
            Ok(run) if self.watched.get(&message.session) == Some(&Some(run.began_after)) => {
                effects.push(Effect::Pass(message));
            }
            // It has seen an earlier run, or the history; it is not there yet for this one.
            Ok(_) => self.fail(request, &HostError::NotAttached { id: message.session.to_string() }, effects),
            Err(error) => {
                let after = match &error {
                    HostError::SessionEnded { info, .. } => last_before(info.seq()),
                    _ => 0,
                };
                let error = wire_error(&self.not_live_error(&message.session, error));
                self.answer_behind(after, request, Err(error), effects);
            }
        }
    }

    /// Why a session takes no request: what its load said, unless it was ended for good.
    fn not_live_error(&self, session: &SessionId, error: HostError) -> HostError {
        match &error {
            HostError::SessionEnded { info, .. } if info.reason != Reason::Terminated => {
                self.unresumable.get(session).cloned().unwrap_or(error)
            }
            _ => error,
        }
    }

    /// A request that no session has is answered soon anyway. Of a prompt that may have begun on an earlier connection only its
    /// session knows what there is to cancel.
    fn withdraw(&mut self, request: OwnedId, effects: &mut Effects) {
        let place = self.waiting.iter().position(|waiting| waiting.request.as_ref() == Some(&request));
        if let Some(waiting) = place.and_then(|place| self.waiting.get_mut(place))
            && waiting.may_come_again()
        {
            waiting.is_withdrawn = true;
            return;
        }
        match place.and_then(|place| self.waiting.remove(place)) {
            Some(waiting) if waiting.is_prompt() => self.answer(request, Ok(CANCELLED), effects),
            Some(_) => self.fail(request, &HostError::RequestCancelled, effects),
            None if self.open.find(&request).is_some() => effects.push(Effect::Withdraw(request)),
            None => {}
        }
    }

    fn done(&mut self, request: Option<OwnedId>, outcome: Outcome, effects: &mut Effects) {
        if let Some(request) = request {
            if let Outcome::Lost = outcome {
                return self.lost(request, effects);
            }
            self.open.close(&request);
        }
        match outcome {
            Outcome::Answered | Outcome::Lost => {}
            Outcome::Initialized => {
                if let Some(params) = self.stage.initialized() {
                    effects.push(Effect::Introduce(params));
                }
            }
            Outcome::NotInitialized(error) => {
                self.stage.not_initialized();
                let method = method::INITIALIZE.to_owned();
                effects.push(Effect::RecordRefusal { method, session: None, error });
            }
            Outcome::Attached { session, run, unresumable } => {
                match unresumable {
                    Some(error) => drop(self.unresumable.insert(session.clone(), error)),
                    None => drop(self.unresumable.remove(&session)),
                }
                self.watched.insert(session.clone(), run);
                effects.push(Effect::Attach(session));
            }
        }
        self.pass_on_waiting(effects);
    }

    /// A request is answered all the same.
    fn lost(&mut self, request: OwnedId, effects: &mut Effects) {
        if self.stage.is_initialized_by(&request) {
            self.stage.not_initialized();
        }
        if self.open.find(&request).is_some() {
            self.fail(request, &HostError::Broken, effects);
        }
    }

    /// Passes on what waits no more, in its order.
    fn pass_on_waiting(&mut self, effects: &mut Effects) {
        for message in std::mem::take(&mut self.waiting) {
            if self.is_joining(&message.session) {
                self.waiting.push_back(message);
            } else {
                effects.push(Effect::Reach(message));
            }
        }
    }

    /// A session that is about to be joined again keeps its viewer, which knows what it has shown.
    fn over(&mut self, sessions: Vec<SessionId>, effects: &mut Effects) {
        for session in sessions {
            if !self.is_joining(&session) && self.watched.remove(&session).is_some() {
                effects.push(Effect::Forget(session));
            }
        }
    }

    /// What was asked for is still answered if acpd ends: the answers of a client that has just left are dropped.
    fn gone(&mut self, is_revoked: bool, host_closes: bool, effects: &mut Effects) {
        if self.is_over() {
            return;
        }
        self.stage = Stage::Finishing;
        effects.push(Effect::Close(match (is_revoked, host_closes) {
            (true, _) => "revoked",
            (false, true) => "shutdown",
            (false, false) => "left",
        }));
        if self.ends_host {
            effects.push(Effect::ShutDown);
        }
        effects.push(if self.ends_host || host_closes { Effect::Drain } else { Effect::EndViewers });
    }

    /// What took too long is answered behind what viewers write, and only that: each request is answered once (FR-3).
    fn drained(&mut self, effects: &mut Effects) {
        effects.push(Effect::SendLast(wire_error(&HostError::ShuttingDown)));
    }

    fn is_joining(&self, session: &SessionId) -> bool {
        self.open.iter().any(|(_, request)| request.joins && request.session.as_ref() == Some(session))
    }

    /// It may see what is there, and starts nothing.
    fn only_watches(&self) -> bool {
        !self.identity.may_use(&self.agent)
    }
}

/// The answer to a question goes to the session that asked. One that comes too late changes nothing for others (PE-2), and
/// the client is told; nothing is owed for what was never asked, nor for an error that comes late.
fn answer(id: OwnedId, asked: AskedQuestion, result: Option<Bytes>, effects: &mut Effects) {
    match asked {
        AskedQuestion::Open(position) => effects.push(Effect::PassAnswer { id, position, result }),
        AskedQuestion::Over if result.is_some() => {
            effects.push(Effect::Send(answer_refused(None, &id, NO_LONGER_ASKED)));
        }
        AskedQuestion::Over | AskedQuestion::Never => {}
    }
}

#[cfg(test)]
mod tests;
