//! What a client answers to the agent's questions.

use super::{Change, Connection, Done};
use crate::questions::{AskedQuestion, EventPosition};
use acpd_host::{AnswerRefused, HostError, method};
use acpd_record::SessionId;
use acpd_wire::{OwnedId, RawId, write_notification};
use bytes::{Bytes, BytesMut};
use serde_json::json;

impl Connection {
    /// Passes an answer to the session that asked. One that does not count changes nothing for anybody else (PE-2); the
    /// client is told why, and asked again if the question is still open.
    pub(super) async fn answer(&mut self, id: Option<RawId<'_>>, outcome: Result<Bytes, ()>) {
        let Some(id) = id else { return };
        let asked = id.as_raw().parse().map_or(AskedQuestion::Never, |id| self.questions.answered(id));
        match (asked, outcome) {
            (AskedQuestion::Open(position), outcome) => {
                self.pass_answer(id.to_owned(), position, outcome.ok()).await
            }
            (AskedQuestion::Over, Ok(_)) => {
                let reason = "it needs no answer any more";
                self.send(self.outbox.clone(), refusal(None, &id.to_owned(), reason));
            }
            // Nobody is owed anything for what was never asked, nor for an error that comes late.
            (AskedQuestion::Over, Err(())) | (AskedQuestion::Never, _) => {}
        }
    }

    async fn pass_answer(&mut self, id: OwnedId, position: EventPosition, result: Option<Bytes>) {
        let counts = match self.host.session(&position.session).await {
            Ok(session) => match session.answer(position.number, result, self.client.clone()).await {
                Some(counts) => Ok(counts),
                None => Err(session),
            },
            Err(error) => Ok(Err(over(&error))),
        };
        let (outbox, viewer) = (self.outbox.about(&position.session), self.viewer_of(&position.session));
        let questions = self.questions.clone();
        self.tasks.spawn(async move {
            let counts = match counts {
                Ok(counts) => counts,
                Err(session) => Err(over(&session.ended_error().await)),
            };
            if let Err(AnswerRefused { reason, again }) = counts {
                let line = refusal(Some(&position.session), &id, &reason);
                let _gone = outbox.send(line.freeze()).await;
                let again = again.filter(|_| questions.is_asked_again(&position));
                if let (Some(question), Some(viewer)) = (again, viewer) {
                    viewer.ask(question).await;
                }
            }
            Done { id: None, change: Change::None }
        });
    }
}

fn over(error: &HostError) -> AnswerRefused {
    AnswerRefused { reason: error.to_string(), again: None }
}

fn refusal(session: Option<&SessionId>, id: &OwnedId, reason: &str) -> BytesMut {
    let mut params = json!({"reason": reason});
    if let Some(session) = session {
        params["sessionId"] = json!(session);
    }
    let mut text = params.to_string();
    text.pop();
    text.push_str(&format!(",\"requestId\":{}}}", id.as_raw()));
    let mut lines = BytesMut::new();
    write_notification(&mut lines, method::ANSWER_REFUSED, Some(text.as_bytes()));
    lines
}
