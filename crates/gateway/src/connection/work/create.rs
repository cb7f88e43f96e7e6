//! `session/new` and `session/fork`.

use super::{Job, Place, Worked, answer_line};
use crate::connection::input::Outcome;
use crate::connection::tasks::{Done, Process};
use crate::viewer::{Answer, Attachment};
use acpd_host::{AgentHandle, Creator, HostError};
use acpd_record::SessionId;
use bytes::Bytes;

impl Job {
    /// Creates a session, with the history of `source` if there is one. A failure gives the process back: a refused session
    /// says nothing against it, and the next attempt may follow a login.
    pub(super) async fn create(self, source: Option<SessionId>, place: Place) -> Worked {
        // What cannot be starts nothing.
        let (known, params) = (self.known.as_ref(), self.params.as_ref());
        let checked = match &source {
            None => self.host.check_new(params),
            Some(source) => self.host.check_fork(source, &self.agent, known, params).await,
        };
        let created = match checked {
            Ok(()) => self.create_in(source, place).await,
            Err(error) => Err((error, place.spare)),
        };
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
        Place { cwd, spare }: Place,
    ) -> Result<(SessionId, Attachment), (HostError, Option<AgentHandle>)> {
        // One whose entry has changed since gets no new session.
        let agents = self.host.agents();
        let agent = match spare.filter(|agent| agents.still_offers(agent)) {
            Some(agent) => agent,
            None => agents.connect(&self.agent, cwd.as_deref()).await.map_err(|error| (error, None))?,
        };
        let token = self.identity.name().cloned();
        let (params, creator) = (self.params.clone(), Creator { client: self.client.clone(), token });
        let created = match &source {
            None => self.host.new_session(&agent, params, creator).await,
            Some(source) => self.host.fork_session(source, &agent, params, creator).await,
        };
        let new = created.map_err(|error| (error, Some(agent)))?;
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
