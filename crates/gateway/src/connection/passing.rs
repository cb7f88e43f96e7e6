//! What a message needs of the host before it is passed on, and how it is passed on.

use super::call::{Call, Message};
use super::core::answer_refused;
use super::input::{Input, Lookup, Outcome, Run};
use super::tasks::Done;
use super::{Connection, answer_line};
use crate::access::Refusal;
use crate::capabilities::ClientCapabilities;
use crate::methods::StartsRun;
use crate::questions::EventPosition;
use crate::viewer::Answer;
use crate::wanted::{Beginning, Wanted, check, check_live};
use crate::wire_error::wire_error;
use acpd_host::{AnswerRefused, HostError, Reply, ReplyTo};
use acpd_wire::OwnedId;
use bytes::Bytes;
use std::borrow::Cow;
use tokio::sync::oneshot;

impl Connection {
    pub(super) async fn find(&self, mut call: Box<Call>) -> Input {
        let identity = &self.options.identity;
        let id = call.params.known_session().filter(|_| call.method.may_name_a_session());
        let (session, is_live) = match id {
            Some(id) => {
                let found = self.host.find(id, |creator| identity.sees(creator)).await;
                let session = match &found {
                    Ok(found) => Lookup::Of(found.created_by.clone()),
                    Err(HostError::UnknownSession { .. }) => Lookup::Unknown,
                    Err(_) => Lookup::Nothing,
                };
                let is_live = self.host.is_live(id);
                call.held.found = found.ok();
                (session, is_live)
            }
            None => (Lookup::Nothing, false),
        };
        if identity.limits().is_some() && call.method.is_use() {
            call.held.beyond = self.check_limits(&call).await.err();
        }
        Input::Found { call, session, is_live }
    }

    /// Whether what a request wants to use is within the limits of the client's token.
    async fn check_limits(&self, call: &Call) -> Result<(), Refusal> {
        let id = call.params.known_session().filter(|_| call.method.may_name_a_session());
        let session = match (id, &call.held.found) {
            (Some(id), Some(found)) => Some((id, found)),
            (Some(_), None) => return Err(Refusal::UnknownSession),
            (None, _) => None,
        };
        let params = call.params.raw.as_deref().unwrap_or_default();
        let begins = match call.method.starts_run {
            StartsRun::No => None,
            StartsRun::New => Some(Beginning { params, unless_live: false }),
            StartsRun::UnlessLive => Some(Beginning { params, unless_live: true }),
        };
        let wanted = Wanted { agent: &self.options.agent, session, begins };
        check(&self.host, &self.options.identity, wanted).await
    }

    pub(super) fn count(&self, mut call: Box<Call>) -> Input {
        let identity = &self.options.identity;
        call.held.permit = identity.begin_session(|| self.host.live_sessions_of(identity.name()));
        Input::Counted { is_granted: call.held.permit.is_some(), call }
    }

    pub(super) async fn reach(&self, mut message: Message) -> Input {
        let run = self.host.session(&message.session).await.map(|live| {
            let (began_after, created_by) = (live.began_after(), live.created_by().cloned());
            let beyond = check_live(&self.options.identity, &live).err();
            message.live = Some(live);
            Run { began_after, created_by, beyond }
        });
        if let (Err(HostError::SessionEnded { info, .. }), Some(params)) = (&run, &message.params)
            && message.is_prompt()
        {
            if let Ok(Some(body)) = self.host.answered_before(&message.session, params).await {
                let end = info.seq();
                let body = body.map(|result| filter_result(self.capabilities, result));
                return Input::AnsweredBefore { message, end, body };
            }
            // It ended for that, or could not be taken up.
            if let Err(fenced @ HostError::Fenced) = self.host.pass_fence(&message.session).await {
                return Input::Reached { message, run: Err(fenced) };
            }
        }
        Input::Reached { message, run }
    }

    /// What fails is answered; a notification is not.
    pub(super) async fn pass(&mut self, message: Message) {
        let Message { request, session, method, params, is_withdrawn, live } = message;
        let Some(live) = live else { return };
        let Some(id) = request else {
            live.notify(method, params, self.client.clone()).await;
            return;
        };
        let Some(viewer) = self.watching.viewer(&session) else { return };
        let Ok(slot) = viewer.reply_slot().await else {
            let error = HostError::NotAttached { id: session.to_string() };
            let (outbox, line) = (self.outbox.about(&session), wire_error(&error).to_line(&id));
            return self.send(Some(id), outbox, line);
        };
        let (written, answered) = oneshot::channel();
        let (keep, kept) = oneshot::channel();
        let (capabilities, owed, run) = (self.capabilities, self.requests.owed.to(id.clone()), live.clone());
        let reply = ReplyTo::new(move |Reply { after, before, body }| {
            let body = body.map(|result| filter_result(capabilities, result));
            let line = answer_line(&owed.id, &body);
            // In case the viewer leaves with the answer.
            let _gone = keep.send(line.clone());
            // What is said behind the end is no answer of the run's.
            let is_late = matches!(body, Err(HostError::SessionEnded { .. }));
            let mut answer = Answer::new(owed, after, line).before(before);
            answer.delivery.written = Some(written);
            slot.fill(if is_late { answer } else { answer.of_run(run) });
        });
        let (outbox, owing) = (self.outbox.about(&session), self.requests.owed.to(id.clone()));
        let client = self.client.clone();
        let asked = match (is_withdrawn, params) {
            (true, Some(params)) => live.withdrawn_prompt(params, client, reply).await,
            (_, params) => live.request(method, params, client, reply).await,
        };
        match asked {
            Ok(request) => drop(self.requests.passed.insert(id.clone(), (live.clone(), request))),
            Err(error) => return self.send(Some(id.clone()), outbox, wire_error(&error).to_line(&id)),
        }
        self.tasks.spawn(Some(&id.clone()), async move {
            if answered.await.is_err() {
                let line = match kept.await {
                    Ok(line) => line,
                    // The session's task is gone without an answer; its end is the answer.
                    Err(_) => wire_error(&live.ended_error().await).to_line(&id),
                };
                let _gone = outbox.answer(&owing, line).await;
            }
            Done::new(Some(id), Outcome::Answered)
        });
    }

    /// An answer that does not count changes nothing for other clients (PE-2); the client is told why, and asked again if
    /// the question is still open.
    pub(super) async fn pass_answer(&mut self, id: OwnedId, position: EventPosition, result: Option<Bytes>) {
        let over = |error: &HostError| AnswerRefused { reason: error.to_string(), again: None };
        let counts = match self.host.session(&position.session).await {
            Ok(live) if let Err(beyond) = check_live(&self.options.identity, &live) => {
                Ok(Err(AnswerRefused { reason: beyond.message, again: None }))
            }
            Ok(live) => match live.answer(position.number, result, self.client.clone()).await {
                Some(counts) => Ok(counts),
                None => Err(live),
            },
            Err(error) => Ok(Err(over(&error))),
        };
        let (outbox, viewer) =
            (self.outbox.about(&position.session), self.watching.viewer(&position.session));
        let questions = self.watching.questions.clone();
        self.tasks.spawn(None, async move {
            let counts = match counts {
                Ok(counts) => counts,
                Err(ended) => Err(over(&ended.ended_error().await)),
            };
            if let Err(AnswerRefused { reason, again }) = counts {
                let _gone = outbox.send(answer_refused(Some(&position.session), &id, &reason)).await;
                let again = again.filter(|_| questions.is_asked_again(&position));
                if let (Some(question), Some(viewer)) = (again, viewer) {
                    viewer.ask(question).await;
                }
            }
            Done::new(None, Outcome::Answered)
        });
    }
}

/// A result of the agent as the client takes it.
fn filter_result(capabilities: ClientCapabilities, result: Bytes) -> Bytes {
    match capabilities.filter_result(&result) {
        Cow::Borrowed(_) => result,
        Cow::Owned(filtered) => filtered.into(),
    }
}
