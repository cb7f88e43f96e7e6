//! What the session task does about the agent's questions to people: asks, takes answers, answers by itself.
//!
//! Every question and every answer is an event, with who gave it or what (contract 2.1).

use super::{Outputs, SessionTask, ToAgent};
use crate::acp::{self, method};
use crate::error::HostError;
use crate::permission::{self, Choice};
use crate::services::{Service, ServiceError};
use crate::session::ingest::Record;
use crate::session::questions::{AutoAnswer, Question, Refused, Topic};
use crate::session::snapshot;
use crate::session::{AnswerRefused, ClientRef, OpenQuestion};
use acpd_record::EventKind;
use acpd_wire::{OwnedId, codes, splice};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::ops::Range;

/// A request of the agent.
pub(super) struct AgentRequest<'a> {
    pub(super) line: &'a Bytes,
    pub(super) session: Option<Range<usize>>,
    pub(super) id: &'a OwnedId,
    pub(super) method: &'a str,
}

impl SessionTask {
    /// `session/request_permission`: the session's mode decides, or else people.
    pub(super) fn permission_requested(&mut self, request: &AgentRequest<'_>, out: &mut Outputs) {
        let offer = acp::params_of(request.line).map(permission::offer).unwrap_or_default();
        if offer.is_empty() {
            let error = "options: an array of options, each with optionId and kind, is required";
            self.refuse_agent(request, codes::INVALID_PARAMS, error, out);
            return;
        }
        let mode = self.parts.permission_mode;
        let offer = offer.with_kind(|call| self.snapshot.kind_of_call(call));
        match offer.choose(mode) {
            // PR-5: nobody is asked for a turn that is being cancelled.
            _ if self.is_cancelling() => {
                let by = json!({"cause": AutoAnswer::Cancelled.as_str()});
                self.answer_automatically(request, Topic::Permission, &permission::cancelled(), &by, out);
            }
            Choice::Answer(answer) => {
                let by = json!({"mode": mode.as_str()});
                self.answer_automatically(request, Topic::Permission, &answer, &by, out);
            }
            Choice::Ask => self.ask(request, Topic::Permission, None, out),
        }
    }

    /// `elicitation/create`: a form goes to all who can fill it in, a URL to one who can open it (PE-5).
    pub(super) fn elicitation_requested(&mut self, request: &AgentRequest<'_>, out: &mut Outputs) {
        let params: Value = acp::params_of(request.line).and_then(acp::view).unwrap_or_default();
        let viewers = &self.parts.viewers;
        let only = match params["mode"].as_str() {
            Some("form") => viewers.any(|viewer| viewer.forms).then_some(None),
            Some("url") => viewers.one(&self.turn_via, |viewer| viewer.urls).map(Some),
            _ => {
                self.refuse_agent(request, codes::INVALID_PARAMS, "mode: form or url is required", out);
                return;
            }
        };
        match only {
            _ if self.is_cancelling() => {
                let by = json!({"cause": AutoAnswer::Cancelled.as_str()});
                self.answer_automatically(
                    request,
                    Topic::Elicitation,
                    &json!({"action": "cancel"}),
                    &by,
                    out,
                );
            }
            None => {
                let by = json!({"cause": "nobody"});
                self.answer_automatically(
                    request,
                    Topic::Elicitation,
                    &json!({"action": "decline"}),
                    &by,
                    out,
                );
            }
            Some(only) => {
                if let (Some(only), Some(id)) = (&only, params["elicitationId"].as_str()) {
                    self.urls.insert(id.to_owned(), only.clone());
                }
                self.ask(request, Topic::Elicitation, only, out);
            }
        }
    }

    /// `elicitation/complete` goes where the URL went, and nowhere else. An unknown id is nobody's.
    pub(super) fn elicitation_completed(
        &mut self,
        line: &Bytes,
        session: Option<Range<usize>>,
        out: &mut Outputs,
    ) {
        let params: Value = acp::params_of(line).and_then(acp::view).unwrap_or_default();
        let Some(only) = params["elicitationId"].as_str().and_then(|id| self.urls.remove(id)) else { return };
        let head = format!("{{\"only\":{},\"message\":", json!(&*only));
        out.record.around(EventKind::ElicitationCompleted, &head, &self.under_our_id(line, session), "}");
    }

    fn is_cancelling(&self) -> bool {
        self.ending.is_some() || self.turns.cancelling() || (self.turns.busy() && !self.turns.active())
    }

    fn ask(
        &mut self,
        request: &AgentRequest<'_>,
        topic: Topic,
        only: Option<std::sync::Arc<str>>,
        out: &mut Outputs,
    ) {
        if self.questions.is_full() {
            let text =
                format!("{} questions are open already; wait for an answer", crate::session::questions::OPEN);
            self.refuse_agent(request, codes::INTERNAL_ERROR, &text, out);
            return;
        }
        let message = self.under_our_id(request.line, request.session.clone());
        let number = self.record_question(topic, &message, json!({"only": only.as_deref()}), out);
        self.parts.journal.asked(self.turn, number, topic.as_str());
        self.questions.ask(number, topic, request.id.clone(), message, only, Self::now());
    }

    /// Records a question, and what else is to be known of it; gives its number.
    fn record_question(&self, topic: Topic, message: &[u8], mut facts: Value, out: &mut Outputs) -> u64 {
        let number = self.parts.appender.next_seq() + out.record.len();
        facts["request"] = json!(number);
        let members = facts.as_object_mut().expect("it is an object");
        members.retain(|_, value| !value.is_null());
        let mut head = facts.to_string();
        head.pop();
        let kind = match topic {
            Topic::Permission => EventKind::PermissionRequested,
            Topic::Elicitation => EventKind::ElicitationRequested,
            Topic::File => EventKind::FileForwarded,
        };
        out.record.around(kind, &format!("{head},\"message\":"), message, "}");
        number
    }

    /// Answers what nobody is asked for; both are in the log.
    fn answer_automatically(
        &mut self,
        request: &AgentRequest<'_>,
        topic: Topic,
        answer: &Value,
        by: &Value,
        out: &mut Outputs,
    ) {
        let message = self.under_our_id(request.line, request.session.clone());
        let number = self.record_question(topic, &message, json!({"unasked": true}), out);
        let answer = Bytes::from(answer.to_string());
        Self::record_answer(topic, number, &answer, by, &mut out.record);
        answer_agent(request.id, &answer, out);
    }

    fn record_answer(topic: Topic, number: u64, result: &[u8], by: &Value, record: &mut Record) {
        let kind = match topic {
            Topic::Permission => EventKind::PermissionResolved,
            Topic::Elicitation => EventKind::ElicitationResolved,
            Topic::File => {
                // What is in a file is in the file.
                record.object(EventKind::FileResolved, &json!({"request": number, "by": by}));
                return;
            }
        };
        let head = format!("{{\"request\":{number},\"by\":{by},\"result\":");
        record.around(kind, &head, result, "}");
    }

    /// A client answers a question.
    pub(super) fn client_answers(
        &mut self,
        number: u64,
        result: &[u8],
        client: &ClientRef,
        out: &mut Outputs,
    ) -> Result<(), AnswerRefused> {
        match self.questions.answer(number, &client.connection, result) {
            Ok((question, result)) => {
                let by = json!({"client": &*client.name});
                self.parts.journal.answered(question.number, question.topic.as_str(), client);
                Self::record_answer(question.topic, number, &result, &by, &mut out.record);
                answer_agent(&question.agent_id, &result, out);
                Ok(())
            }
            Err(Refused::NotOpen) => {
                Err(AnswerRefused { reason: "it was answered already".to_owned(), again: None })
            }
            Err(Refused::Invalid(reason)) => {
                let again = self.open_questions().into_iter().find(|question| question.number == number);
                Err(AnswerRefused { reason, again })
            }
        }
    }

    /// A client answers an error: it decides nothing for others, but what was put to it alone goes another way.
    pub(super) fn client_declines(&mut self, number: u64, client: &ClientRef, out: &mut Outputs) {
        if let Some(question) = self.questions.decline(number, &client.connection) {
            self.resolve(&question, AutoAnswer::Declined, out);
        }
    }

    /// Somebody has left; so did who was asked alone, perhaps.
    pub(super) fn viewer_left(&mut self, out: &mut Outputs) {
        let viewers = self.parts.viewers.clone();
        for question in self.questions.orphans(|only| viewers.has(only)) {
            self.resolve(&question, AutoAnswer::Declined, out);
        }
    }

    /// FS-5: a client that serves files itself knows what is not saved yet.
    pub(super) fn forward_file(
        &mut self,
        service: Service,
        request: &AgentRequest<'_>,
        out: &mut Outputs,
    ) -> bool {
        let viewers = &self.parts.viewers;
        let only = match service {
            Service::Read => viewers.one(&self.turn_via, |viewer| viewer.reads),
            Service::Write => viewers.one(&self.turn_via, |viewer| viewer.writes),
            _ => None,
        };
        let forwards =
            self.parts.services.forwards_files && self.ending.is_none() && !self.questions.is_full();
        let Some(only) = only.filter(|_| forwards) else { return false };
        self.ask(request, Topic::File, Some(only), out);
        true
    }

    /// PR-10: the agent takes a question back, by its own request id.
    pub(super) fn agent_withdraws(&mut self, id: &OwnedId, out: &mut Outputs) {
        if let Some(question) = self.questions.withdraw(id) {
            self.resolve(&question, AutoAnswer::Withdrawn, out);
        }
    }

    /// PR-5: it is over for everybody; nobody has to answer any more.
    pub(super) fn sweep_questions(&mut self, why: AutoAnswer, out: &mut Outputs) {
        for question in self.questions.sweep() {
            self.resolve(&question, why, out);
        }
    }

    /// PE-4: nobody answered in time.
    pub(super) fn questions_due(&mut self, out: &mut Outputs) {
        for question in self.questions.tick(Self::now()) {
            self.resolve(&question, AutoAnswer::TimedOut, out);
        }
    }

    fn resolve(&mut self, question: &Question, why: AutoAnswer, out: &mut Outputs) {
        self.parts.journal.unanswered(question.number, question.topic.as_str(), why.as_str());
        let answer = Self::record_auto_answer(question, why, &mut out.record);
        match (question.topic, why) {
            // What nobody wants any more is not done behind their back.
            (
                Topic::File,
                AutoAnswer::Withdrawn | AutoAnswer::Cancelled | AutoAnswer::TurnOver | AutoAnswer::Ended,
            ) => {
                let mut frame = BytesMut::new();
                let error = ServiceError::withdrawn();
                acpd_wire::write_error(
                    &mut frame,
                    question.agent_id.as_id(),
                    error.code,
                    &error.message,
                    None,
                );
                out.to_agent.push(ToAgent::Answer(frame.freeze()));
            }
            // The agent sees no difference.
            (Topic::File, AutoAnswer::Declined | AutoAnswer::TimedOut) => {
                let method: Value = acp::view(&question.message).unwrap_or_default();
                let method = method["method"].as_str().unwrap_or_default().to_owned();
                let (line, id) = (&question.message, &question.agent_id);
                let request = AgentRequest { line, session: None, id, method: &method };
                if let Some(service) = self.parts.services.of_method(&method) {
                    self.serve(service, &request, out);
                }
            }
            _ => answer_agent(&question.agent_id, &answer, out),
        }
    }

    /// PR-5: what is still open when the run is over.
    pub(super) fn record_abandoned(&mut self, record: &mut Record) {
        for question in self.questions.sweep() {
            Self::record_auto_answer(&question, AutoAnswer::Ended, record);
        }
    }

    fn record_auto_answer(question: &Question, why: AutoAnswer, record: &mut Record) -> Bytes {
        let answer = Bytes::from(question.default_answer(why).to_string());
        let by = json!({"cause": why.as_str()});
        Self::record_answer(question.topic, question.number, &answer, &by, record);
        answer
    }

    /// What somebody who attaches now has to be asked: what can be read already.
    /// Everything of contract 1.5.
    pub(super) fn everything_known(&self) -> Value {
        let committed = self.parts.appender.committed().seq();
        let open = self.questions.open().iter();
        let open = open.filter(|asked| asked.number <= committed && asked.topic == Topic::Permission);
        let open = open.map(|asked| snapshot::entry(asked.number, &asked.message)).collect();
        snapshot::with_open_requests(&self.snapshot, open)
    }

    pub(super) fn open_questions(&self) -> Vec<OpenQuestion> {
        let committed = self.parts.appender.committed().seq();
        let open = self.questions.open().iter().filter(|question| question.number <= committed);
        open.map(|question| OpenQuestion {
            number: question.number,
            form: question.topic == Topic::Elicitation,
            only: question.only.clone(),
            message: question.message.clone(),
        })
        .collect()
    }

    /// An error for the agent; what it asked is in the log.
    pub(super) fn refuse_agent(
        &mut self,
        request: &AgentRequest<'_>,
        code: i64,
        message: &str,
        out: &mut Outputs,
    ) {
        let mut frame = BytesMut::new();
        acpd_wire::write_error(&mut frame, request.id.as_id(), code, message, None);
        let answer = json!({"error": {"code": code, "message": message}});
        out.record.request(request.line, request.session.clone(), self.parts.id.as_json(), &answer);
        out.to_agent.push(ToAgent::Answer(frame.freeze()));
    }

    /// The agent's message under our session id.
    fn under_our_id(&self, line: &Bytes, session: Option<Range<usize>>) -> Bytes {
        let Some(span) = session else { return line.clone() };
        let mut out = BytesMut::with_capacity(line.len() + self.parts.id.as_json().len());
        splice(&mut out, line, &[(span, self.parts.id.as_json().as_bytes())]);
        out.freeze()
    }

    pub(super) fn refuse_unknown(&mut self, request: &AgentRequest<'_>, out: &mut Outputs) {
        let text = HostError::MethodNotFound { method: request.method.to_owned() }.to_string();
        self.refuse_agent(request, codes::METHOD_NOT_FOUND, &text, out);
    }

    /// Dispatches a request of the agent; an agent is never left waiting for nobody.
    pub(super) fn agent_request(&mut self, request: &AgentRequest<'_>, out: &mut Outputs) {
        match request.method {
            method::REQUEST_PERMISSION => self.permission_requested(request, out),
            method::ELICITATION => self.elicitation_requested(request, out),
            method => match self.parts.services.of_method(method) {
                Some(service) if self.forward_file(service, request, out) => {}
                Some(service) => self.serve(service, request, out),
                None => self.refuse_unknown(request, out),
            },
        }
    }
}

fn answer_agent(id: &OwnedId, result: &[u8], out: &mut Outputs) {
    let mut frame = BytesMut::new();
    acpd_wire::write_result(&mut frame, id.as_id(), result);
    out.to_agent.push(ToAgent::Answer(frame.freeze()));
}
