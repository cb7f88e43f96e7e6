//! The agent's questions to people: asked, answered by a client or without one.
//!
//! Every question and every answer is an event, with what answered it (contract 2.1).

use super::{AgentAsks, Now, SessionCore};
use crate::acp;
use crate::permission::Choice;
use crate::services::ServiceError;
use crate::session::effects::{Effects, Note};
use crate::session::questions::{self, AutoAnswer, OPEN};
use crate::session::{AnswerRefused, ClientRef, OpenQuestion};
use crate::viewers::ViewerInfo;
use acpd_record::{
    AnsweredBy, ConnectionId, ElicitationCompleted, Event, Question, QuestionNumber, Resolution, Topic,
};
use acpd_wire::{OwnedId, codes};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation<'a> {
    #[serde(borrow, default)]
    mode: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    elicitation_id: Option<Cow<'a, str>>,
}

fn elicitation(line: &[u8]) -> Elicitation<'_> {
    acp::params_of(line).and_then(acp::view).unwrap_or_default()
}

impl SessionCore {
    /// `session/request_permission`: the session's mode decides, or else people.
    pub(super) fn permission_requested(&mut self, request: &AgentAsks<'_>, now: Now, out: &mut Effects) {
        let offer = questions::offer(request.line);
        if offer.is_empty() {
            let error = "options: an array of options, each with optionId and kind, is required";
            self.refuse_agent(request, codes::INVALID_PARAMS, error, out);
            return;
        }
        let mode = self.facts.permission_mode;
        let offer = offer.with_kind(|call| self.log.snapshot().kind_of_call(call));
        match offer.choose(mode) {
            // PR-5: no client is asked for a turn that is being cancelled.
            _ if self.is_cancelling() => {
                self.answer_at_once(request, Topic::Permission, AutoAnswer::Cancelled, out)
            }
            Choice::Answer(answer) => {
                let by = AnsweredBy::Mode(Cow::Borrowed(mode.as_str()));
                self.resolve_at_once(request, Topic::Permission, &answer, by, out);
            }
            Choice::AskWhich if !self.somebody_answers(|viewer| viewer.answers) => {
                self.answer_at_once(request, Topic::Permission, AutoAnswer::Nobody, out);
            }
            Choice::Ask | Choice::AskWhich => self.ask(request, Topic::Permission, None, now, out),
        }
    }

    /// Whether a client that watches can answer, or the prompter over REST, which is no viewer.
    fn somebody_answers(&self, can: impl Fn(&ViewerInfo) -> bool) -> bool {
        self.log.prompted_via().is_some_and(ConnectionId::is_rest) || self.volatile.viewers.any(can)
    }

    /// `elicitation/create`: a form goes to all who can fill it in, a URL to one who can open it (PE-5). A client that prompts
    /// over REST answers over REST, and is no viewer.
    pub(super) fn elicitation_requested(&mut self, request: &AgentAsks<'_>, now: Now, out: &mut Effects) {
        let viewers = &self.volatile.viewers;
        let only = match elicitation(request.line).mode.as_deref() {
            Some("form") => self.somebody_answers(|viewer| viewer.forms).then_some(None),
            Some("url") => viewers.one(self.log.prompted_via(), |viewer| viewer.urls).map(Some),
            _ => {
                self.refuse_agent(request, codes::INVALID_PARAMS, "mode: form or url is required", out);
                return;
            }
        };
        match only {
            _ if self.is_cancelling() => {
                self.answer_at_once(request, Topic::Elicitation, AutoAnswer::Cancelled, out)
            }
            None => self.answer_at_once(request, Topic::Elicitation, AutoAnswer::Nobody, out),
            Some(only) => self.ask(request, Topic::Elicitation, only, now, out),
        }
    }

    /// `elicitation/complete` goes where the URL went, and nowhere else. One with an unknown id goes nowhere.
    pub(super) fn elicitation_completed(
        &mut self,
        line: &Bytes,
        session: Option<Range<usize>>,
        out: &mut Effects,
    ) {
        let id = elicitation(line).elicitation_id;
        let Some(only) = id.and_then(|id| self.log.url_at(&id)).cloned() else { return };
        let message = self.under_our_id(line, session);
        let completed = ElicitationCompleted { only: Some(only), message: raw(&message) };
        self.append(&Event::ElicitationCompleted(completed), out);
    }

    fn is_cancelling(&self) -> bool {
        let turns = &self.volatile.turns;
        self.is_ending() || turns.cancelling() || (turns.busy() && !turns.active())
    }

    /// Puts a question to clients: to one, or to all that can answer it.
    pub(super) fn ask(
        &mut self,
        request: &AgentAsks<'_>,
        topic: Topic,
        only: Option<ConnectionId>,
        now: Now,
        out: &mut Effects,
    ) {
        if self.too_many_questions() {
            let text = format!("{OPEN} questions are open already; wait for an answer");
            self.refuse_agent(request, codes::INTERNAL_ERROR, &text, out);
            return;
        }
        let number = self.record_question(request, topic, only, false, out);
        let due = self.facts.limits.permission.map(|limit| now.at + limit);
        self.volatile.due.set(number, due);
        out.note(Note::Asked { turn: self.log.turns(), question: number, topic });
    }

    pub(super) fn too_many_questions(&self) -> bool {
        self.log.open_questions().count() >= OPEN
    }

    fn record_question(
        &mut self,
        request: &AgentAsks<'_>,
        topic: Topic,
        only: Option<ConnectionId>,
        unasked: bool,
        out: &mut Effects,
    ) -> QuestionNumber {
        let message = self.under_our_id(request.line, request.session.clone());
        let number = QuestionNumber(self.next_seq());
        let question = Question { only, unasked, request: number, message: raw(&message) };
        let event = match topic {
            Topic::Permission => Event::PermissionRequested(question),
            Topic::Elicitation => Event::ElicitationRequested(question),
            Topic::File => Event::FileForwarded(question),
        };
        self.append(&event, out);
        number
    }

    fn answer_at_once(&mut self, request: &AgentAsks<'_>, topic: Topic, why: AutoAnswer, out: &mut Effects) {
        let answer = questions::auto_answer(topic, request.line, why);
        self.resolve_at_once(request, topic, &answer, AnsweredBy::Cause(Cow::Borrowed(why.as_str())), out);
    }

    /// Answers what no client is asked; question and answer are in the log.
    fn resolve_at_once(
        &mut self,
        request: &AgentAsks<'_>,
        topic: Topic,
        answer: &[u8],
        by: AnsweredBy<'_>,
        out: &mut Effects,
    ) {
        let number = self.record_question(request, topic, None, true, out);
        self.record_answer(topic, number, answer, by, out);
        Self::answer_agent(request.id, answer, out);
    }

    fn record_answer(
        &mut self,
        topic: Topic,
        request: QuestionNumber,
        result: &[u8],
        by: AnsweredBy<'_>,
        out: &mut Effects,
    ) {
        self.volatile.due.drop(request);
        let (by, result) = (Some(by), Some(raw(result)));
        let event = match topic {
            Topic::Permission => Event::PermissionResolved(Resolution { request, by, result }),
            Topic::Elicitation => Event::ElicitationResolved(Resolution { request, by, result }),
            // What is in a file is in the file.
            Topic::File => Event::FileResolved(Resolution { request, by, result: None }),
        };
        self.append(&event, out);
    }

    /// A client answers a question: with a result, or with an error, which decides nothing for others; but what was put to
    /// it alone goes another way.
    pub(super) fn client_answers(
        &mut self,
        number: QuestionNumber,
        result: Option<Bytes>,
        client: &ClientRef,
        out: &mut Effects,
    ) {
        let question = self.log.open_question(number).cloned();
        let question =
            question.filter(|question| question.only.as_ref().is_none_or(|only| *only == client.connection));
        match (question, result) {
            (None, None) => {}
            (None, Some(_)) => {
                let reason = "it was answered already".to_owned();
                out.refused = Some(AnswerRefused { reason, again: None });
            }
            (Some(question), None) => {
                if question.only.is_some() {
                    self.resolve(number, &question, AutoAnswer::Declined, out);
                }
            }
            (Some(question), Some(result)) => match questions::check(&question, &result) {
                Ok(()) => {
                    let by = AnsweredBy::Client(Cow::Borrowed(&*client.name));
                    out.note(Note::Answered {
                        question: number,
                        topic: question.topic,
                        client: client.clone(),
                    });
                    self.record_answer(question.topic, number, &result, by, out);
                    if let Some(id) = &question.agent_id {
                        Self::answer_agent(id, &result, out);
                    }
                }
                Err(reason) => {
                    let again = Some(OpenQuestion::new(number, &question));
                    out.refused = Some(AnswerRefused { reason, again });
                }
            },
        }
    }

    /// A viewer has left: the only one that was asked, perhaps.
    pub(super) fn viewer_left(&mut self, out: &mut Effects) {
        let mut orphans = self.questions_open();
        let viewers = self.volatile.viewers.clone();
        orphans.retain(|(_, question)| question.only.as_ref().is_some_and(|only| !viewers.has(only)));
        self.resolve_each(orphans, AutoAnswer::Declined, out);
    }

    /// PR-10: the agent takes a question back, by its own request id.
    pub(super) fn agent_withdraws(&mut self, id: &OwnedId, out: &mut Effects) {
        let mut withdrawn = self.questions_open();
        withdrawn.retain(|(_, question)| question.agent_id.as_ref() == Some(id));
        self.resolve_each(withdrawn, AutoAnswer::Withdrawn, out);
    }

    /// PE-4: no client has answered in time.
    pub(super) fn resolve_due(&mut self, now: Now, out: &mut Effects) {
        let due = self.volatile.due.due(now.at);
        due.iter().for_each(|number| self.volatile.due.drop(*number));
        let mut questions = self.questions_open();
        questions.retain(|(number, _)| due.contains(number));
        self.resolve_each(questions, AutoAnswer::TimedOut, out);
    }

    /// PR-5: it is over for all; no client has to answer any more.
    pub(super) fn resolve_all(&mut self, why: AutoAnswer, out: &mut Effects) {
        let questions = self.questions_open();
        self.resolve_each(questions, why, out);
    }

    pub(super) fn resolve_each(
        &mut self,
        questions: Vec<(QuestionNumber, acpd_record::OpenQuestion)>,
        why: AutoAnswer,
        out: &mut Effects,
    ) {
        for (number, question) in questions {
            self.resolve(number, &question, why, out);
        }
    }

    pub(super) fn questions_open(&self) -> Vec<(QuestionNumber, acpd_record::OpenQuestion)> {
        self.log.open_questions().map(|(number, question)| (number, question.clone())).collect()
    }

    fn resolve(
        &mut self,
        number: QuestionNumber,
        question: &acpd_record::OpenQuestion,
        why: AutoAnswer,
        out: &mut Effects,
    ) {
        use AutoAnswer::{Cancelled, Declined, Ended, Nobody, TimedOut, TurnOver, Withdrawn};
        let (topic, cause) = (question.topic, why.as_str());
        out.note(Note::Unanswered { question: number, topic, cause });
        let answer = questions::auto_answer(topic, question.message.as_bytes(), why);
        self.record_answer(topic, number, &answer, AnsweredBy::Cause(Cow::Borrowed(cause)), out);
        let Some(id) = &question.agent_id else { return };
        match (topic, why) {
            // What is not wanted any more is not done behind a client's back.
            (Topic::File, Withdrawn | Cancelled | TurnOver | Ended | Nobody) => {
                Self::fail_agent(id, &ServiceError::withdrawn(), out);
            }
            // The agent sees no difference.
            (Topic::File, Declined | TimedOut) => self.serve_instead(id, &question.message, out),
            _ => Self::answer_agent(id, &answer, out),
        }
    }
}

/// A value that was read before, so it is JSON.
fn raw(json: &[u8]) -> &RawValue {
    serde_json::from_slice(json).unwrap_or(RawValue::NULL)
}
