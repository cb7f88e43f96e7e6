//! `session/new` and `session/fork`.

use super::{Job, Worked, answer_line};
use crate::connection::input::Outcome;
use crate::connection::tasks::{Done, Process};
use crate::viewer::{Answer, Attachment};
use acpd_host::{AgentHandle, Beginning, Creator, HostError, Place};
use acpd_record::SessionId;
use bytes::Bytes;

impl Job {
    /// Creates a session, with the history of `source` if there is one. A failure gives the process back: a refused session
    /// says nothing against it, and the next attempt may follow a login.
    pub(super) async fn create(self, source: Option<SessionId>, place: Place) -> Worked {
        let created = self.create_in(source, place).await;
        match created {
            Ok((session, attachment)) => {
                let run = attachment.live.as_ref().map(acpd_host::SessionHandle::began_after);
                let outcome = Outcome::Attached { session, run, unresumable: None };
                (None, Done { attachment: Some(Box::new(attachment)), ..Done::new(None, outcome) })
            }
            Err((error, process)) => {
                let process = process.map(Process::Unused);
                (Some(Err(error)), Done { process, ..Done::new(None, Outcome::Answered) })
            }
        }
    }

    async fn create_in(
        &self,
        source: Option<SessionId>,
        place: Place,
    ) -> Result<(SessionId, Attachment), (HostError, Option<AgentHandle>)> {
        let token = self.identity.name().cloned();
        let creator = Creator { client: self.client.clone(), token, key: None };
        let (source, params) = (source.as_ref(), self.params.clone());
        let new = self.host.begin(place, Beginning { source, params, prompt: None, creator }).await?;
        // A new session is seen from its beginning; the initial events of a fork are seen by loading it.
        let history_until = if source.is_some() { new.initial_events } else { 0 };
        let session = new.session.id().clone();
        let cursor = self.host.cursor(&session, history_until).await.map_err(|error| {
            tracing::error!(%session, %error, "a new session cannot be followed");
            (HostError::UnknownSession { id: session.to_string() }, None)
        })?;
        let result = Bytes::copy_from_slice(&self.capabilities.filter_result(&new.result));
        // The client learns the session's id from it, so it cannot read the session's stream before.
        let mut answer = Answer::new(history_until, answer_line(&self.id, &Ok(result)));
        answer.delivery.on_connection = true;
        Ok((session, Attachment { live: Some(new.session), cursor, history_until, answer }))
    }
}
