//! What the agent asks of its client, and where each request goes: to people, to a client that serves files itself, or to
//! acpd's own services.

use super::{AgentAsks, Now, SessionCore};
use crate::acp::{self, method};
use crate::error::HostError;
use crate::services::{Service, ServiceError};
use crate::session::effects::{Act, Effects};
use acpd_record::{AgentRequest, Event, RawMessage, Topic};
use acpd_wire::{Message, OwnedId, codes};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::ops::Range;

#[derive(Serialize)]
struct Failed<'a> {
    error: FailedError<'a>,
}

#[derive(Serialize)]
struct FailedError<'a> {
    code: i64,
    message: &'a str,
}

/// How the log has the error that answered a request.
pub(super) fn failed(code: i64, message: &str) -> Box<RawValue> {
    to_raw_value(&Failed { error: FailedError { code, message } }).expect("it is JSON")
}

impl SessionCore {
    /// Sends a request of the agent where it belongs; an agent is never left waiting in vain.
    pub(super) fn agent_asks(&mut self, request: &AgentAsks<'_>, now: Now, out: &mut Effects) {
        match request.method {
            method::REQUEST_PERMISSION => self.permission_requested(request, now, out),
            method::ELICITATION => self.elicitation_requested(request, now, out),
            method => match Service::of_method(method, self.facts.offered) {
                Some(service) if self.forward_file(service, request, now, out) => {}
                Some(service) => self.serve(service, request, out),
                None => {
                    let text = HostError::MethodNotFound { method: method.to_owned() }.to_string();
                    self.refuse_agent(request, codes::METHOD_NOT_FOUND, &text, out);
                }
            },
        }
    }

    /// A notification of the agent that is no update.
    pub(super) fn notified(&mut self, line: &Bytes, session: Option<Range<usize>>, out: &mut Effects) {
        if let Ok(Message::Notification { method, .. }) = Message::parse(line)
            && method == method::ELICITATION_COMPLETE
        {
            self.elicitation_completed(line, session, out);
            return;
        }
        let id = self.facts.id.clone();
        self.append(&Event::Notification(RawMessage::of_agent(line, session, id.as_json())), out);
    }

    /// FS-5: a client that serves files itself knows what is not saved yet.
    fn forward_file(
        &mut self,
        service: Service,
        request: &AgentAsks<'_>,
        now: Now,
        out: &mut Effects,
    ) -> bool {
        if !self.facts.forwards_files || self.is_ending() || self.too_many_questions() {
            return false;
        }
        let (viewers, prompted) = (&self.volatile.viewers, self.log.prompted_via());
        let only = match service {
            Service::Read => viewers.one(prompted, |viewer| viewer.reads),
            Service::Write => viewers.one(prompted, |viewer| viewer.writes),
            _ => None,
        };
        let Some(only) = only else { return false };
        self.ask(request, Topic::File, Some(only), now, out);
        true
    }

    /// A client that was asked for a file does not answer: acpd serves it.
    pub(super) fn serve_instead(&mut self, id: &OwnedId, message: &str, out: &mut Effects) {
        let line = Bytes::copy_from_slice(message.as_bytes());
        let Ok(Message::Request { method, .. }) = Message::parse(&line) else { return };
        if let Some(service) = Service::of_method(&method, self.facts.offered) {
            let request = AgentAsks { line: &line, session: None, id, method: &method };
            self.serve(service, &request, out);
        }
    }

    /// An error for the agent; what it asked is in the log.
    pub(super) fn refuse_agent(
        &mut self,
        request: &AgentAsks<'_>,
        code: i64,
        message: &str,
        out: &mut Effects,
    ) {
        let answer = failed(code, message);
        self.record_request(request.line, request.session.clone(), &answer, out);
        Self::fail_agent(request.id, &ServiceError::new(code, message), out);
    }

    /// A request of the agent and what it was answered.
    pub(super) fn record_request(
        &mut self,
        line: &Bytes,
        session: Option<Range<usize>>,
        answer: &RawValue,
        out: &mut Effects,
    ) {
        let message = self.under_our_id(line, session);
        if let Ok(message) = serde_json::from_slice(&message) {
            self.append(&Event::AgentRequest(AgentRequest { answer, message }), out);
        }
    }

    /// Sends what the agent is told to close its session.
    pub(super) fn send_close(&self, out: &mut Effects) {
        out.act(Act::Close { params: self.native_params() });
    }

    /// The params of a request, as a part of its line.
    pub(in crate::session) fn params_of(line: &Bytes) -> Bytes {
        acp::params_of(line).map(|params| line.slice_ref(params)).unwrap_or_default()
    }
}
