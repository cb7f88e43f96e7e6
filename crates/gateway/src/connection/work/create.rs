//! `session/new` and `session/fork`.

use super::{Job, Worked, answer_line, json};
use crate::connection::input::Outcome;
use crate::connection::tasks::{Done, Process};
use crate::viewer::{Answer, Attachment};
use acpd_host::{AgentHandle, Beginning, Created, Creator, HostError, Joined, META, Place};
use acpd_record::{LifecycleState, RequestKey, SessionId};
use acpd_wire::{member, put_member, splice};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;

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
        let creator = Creator { client: self.client.name.clone(), token, key: None };
        let (source, params) = (source.as_ref(), self.params.clone());
        let key = match source {
            None => self.key().map_err(|error| (error, None))?,
            Some(_) => None,
        };
        let new = match key {
            None => self.host.begin(place, Beginning { source, params, prompt: None, creator }).await?,
            Some(key) => {
                let creator = Creator { key: Some(key), ..creator };
                match self.host.begin_once(place, params, creator).await? {
                    Created::Now(new) => new,
                    Created::Before(session, spare) => {
                        return self.created_before(session).await.map_err(|error| (error, spare));
                    }
                }
            }
        };
        // A new session is seen from its beginning; the initial events of a fork are seen by loading it.
        let history_until = if source.is_some() { new.initial_events } else { 0 };
        let session = new.session.id().clone();
        let cursor = self.host.cursor(&session, history_until).await.map_err(|error| {
            tracing::error!(%session, %error, "a new session cannot be followed");
            (HostError::UnknownSession { id: session.to_string() }, None)
        })?;
        let result = self.with_seq(&self.capabilities.filter_result(&new.result), history_until);
        // The client learns the session's id from it, so it cannot read the session's stream before.
        let answer = self.first_answer(history_until, result);
        let live = Some(new.session);
        let (goes_on, skip_until, own_turn) = (false, 0, false);
        Ok((session, Attachment { live, cursor, history_until, goes_on, skip_until, own_turn, answer }))
    }

    /// The answer from which the client learns the session's id.
    fn first_answer(&self, after: u64, result: Bytes) -> Answer {
        let line = answer_line(&self.owing.id, &Ok(result));
        Answer::new(self.owing.clone(), after, line).on_connection()
    }

    /// The agent's result, with the last event before it for a client that keeps cursors.
    fn with_seq(&self, result: &[u8], seq: u64) -> Bytes {
        let raw: Option<&RawValue> =
            serde_json::from_slice(result).ok().filter(|_| self.capabilities.keeps_cursors());
        let edit = raw.and_then(|raw| put_member(result, raw, &["_meta", META, "seq"], &seq.to_string()));
        let mut out = BytesMut::with_capacity(result.len() + 64);
        match edit {
            Some((span, new)) => splice(&mut out, result, &[(span, &new)]),
            None => out.extend_from_slice(result),
        }
        out.freeze()
    }

    /// The key of a request that may come again (contract 7.3).
    fn key(&self) -> Result<Option<RequestKey>, HostError> {
        let params: Option<&RawValue> =
            self.params.as_deref().and_then(|params| serde_json::from_slice(params).ok());
        let own = params.and_then(|params| member(member(params, "_meta")?, META));
        let given = own.and_then(|own| member(own, "idempotencyKey")).filter(|given| given.get() != "null");
        let (Some(params), Some(given)) = (params, given) else { return Ok(None) };
        let key: Option<String> = serde_json::from_str(given.get()).ok();
        key.and_then(|key| RequestKey::new(&key, params)).map(Some).ok_or_else(|| {
            let longest = RequestKey::LONGEST;
            let message = format!(
                "_meta[{META:?}].idempotencyKey: a string of 1 to {longest} visible ASCII characters is required"
            );
            HostError::InvalidParams { message }
        })
    }

    /// The session that the same request has created, for a client that has not seen it yet.
    async fn created_before(&self, session: SessionId) -> Result<(SessionId, Attachment), HostError> {
        let Joined { live, attached, .. } = self.find(&session).await?;
        let result = json(&Recreated { session_id: &session, state: &attached.result });
        let result = self.with_seq(&self.capabilities.filter_result(&result), 0);
        let cursor = self.host.cursor(&session, 0).await?;
        let answer = self.first_answer(0, result).asking(attached.open);
        let (live, own_turn) = (Some(live), false);
        let (history_until, goes_on, skip_until) = (0, false, 0);
        Ok((session, Attachment { live, cursor, history_until, goes_on, skip_until, own_turn, answer }))
    }
}

/// The answer to `session/new` for a session that was there.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recreated<'a> {
    session_id: &'a SessionId,
    #[serde(flatten)]
    state: &'a LifecycleState,
}
