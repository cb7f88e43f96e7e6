//! Finding sessions, and ending them.

use crate::clock;
use crate::continuity::TakesOver;
use crate::error::HostError;
use crate::host::Host;
use crate::journal;
use crate::recording;
use crate::session::{EndOutcome, EndRequest, SessionHandle};
use crate::termination;
use acpd_eventlog::{SessionRow, WriteError};
use acpd_record::{Cause, SessionId, SessionMeta, TerminationInfo};
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits for a run that begins.
const BEGINS: Duration = Duration::from_secs(2);

/// A session that was found.
#[derive(Debug)]
pub struct Found {
    /// The name of the token under which it was created, or None.
    pub created_by: Option<Arc<str>>,
    /// What is stored of it, if that had to be read.
    pub(crate) row: Option<SessionRow>,
}

impl Found {
    /// Whether it has ended, and nothing of it is live or being activated anywhere.
    pub fn has_ended(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.ended && row.owner.is_none())
    }
}

impl Host {
    /// A live session, by id.
    ///
    /// # Errors
    /// When it has ended, with how, and when there is none.
    pub async fn session(&self, id: &SessionId) -> Result<SessionHandle, HostError> {
        if let Some(session) = self.session_now(id).await? {
            return Ok(session);
        }
        // Its run is recorded, which clients see already, and is live in a moment.
        let begun = self.shared.sessions.attempts.turn(id);
        drop(tokio::time::timeout(BEGINS, begun).await);
        self.session_now(id).await?.ok_or_else(|| HostError::UnknownSession { id: id.to_string() })
    }

    /// The same, also within an attempt. None between the record of a run and the run itself.
    pub(crate) async fn session_now(&self, id: &SessionId) -> Result<Option<SessionHandle>, HostError> {
        if let Some(session) = self.shared.sessions.live.get(id) {
            return Ok(Some(session));
        }
        let row = self.shared.recovery.recovered(id).await?;
        match &row.owner {
            Some(owner) if owner != self.shared.store.host_file.id() => {
                return Err(self.live_elsewhere(owner, &row).await);
            }
            Some(_) if !row.ended => return Ok(None),
            _ => {}
        }
        let info = self.shared.store.whole_meta(id, &row).await.termination();
        let unreadable = |error: serde_json::Error| HostError::History {
            detail: format!("how the session ended cannot be read: {error}"),
        };
        Err(HostError::SessionEnded { id: id.to_string(), info: Arc::new(info.map_err(unreadable)?) })
    }

    /// Finds a session and its owner (contract 1.7): the token under which it was created, or None. `sees` says of which
    /// owners the caller may see sessions.
    ///
    /// # Errors
    /// When there is no such session for the caller, or the log cannot be read.
    pub async fn find(
        &self,
        id: &SessionId,
        sees: impl Fn(Option<&str>) -> bool,
    ) -> Result<Found, HostError> {
        let live = self.shared.sessions.live.get(id).map(|session| session.created_by().map(Arc::clone));
        if let Some(created_by) = live.filter(|creator| sees(creator.as_deref())) {
            return Ok(Found { created_by, row: None });
        }
        // A live one of another owner takes as long as one that never was: the time must not tell them apart.
        let row = self.shared.store.row(id).await?;
        match sees(row.created_by.as_deref()) {
            true => Ok(Found { created_by: row.created_by.as_deref().map(Arc::from), row: Some(row) }),
            false => Err(HostError::UnknownSession { id: id.to_string() }),
        }
    }

    /// A session that is live here.
    pub fn live(&self, id: &SessionId) -> Option<SessionHandle> {
        self.shared.sessions.live.get(id)
    }

    /// Whether a session is live here.
    pub fn is_live(&self, id: &SessionId) -> bool {
        self.live(id).is_some()
    }

    /// How many sessions are live here.
    pub fn live_sessions(&self) -> usize {
        self.shared.sessions.live.all().iter().filter(|session| session.ended_with().is_none()).count()
    }

    /// How many sessions are live here that were created under this token, or under none.
    pub fn live_sessions_of(&self, token: Option<&Arc<str>>) -> usize {
        self.shared
            .sessions
            .live
            .all()
            .iter()
            .filter(|session| session.created_by() == token && session.ended_with().is_none())
            .count()
    }

    /// The error for a session that another process has (contract 6), or whose agent waits for the next one (contract 7.3).
    pub(crate) async fn live_elsewhere(&self, owner: &str, row: &SessionRow) -> HostError {
        let id = row.id.clone();
        match self.shared.recovery.detached_of(row).await {
            Some(detached) => HostError::Detached {
                id,
                left: detached.left(clock::now_ms()),
                is_ours: self.shared.agents.takes_over() == Some(&TakesOver::All),
            },
            None => HostError::LiveElsewhere { id, pid: self.shared.store.host_file.pid_of(owner) },
        }
    }

    /// Ends a live session, or finds how it has ended.
    ///
    /// # Errors
    /// When there is none of that id, or another process has it.
    pub async fn end_session(
        &self,
        id: &SessionId,
        request: EndRequest,
        client: &str,
    ) -> Result<EndOutcome, HostError> {
        if let Some(session) = self.shared.sessions.live.get(id) {
            return Ok(session.end(request, client.into()).await);
        }
        let _no_attempt = self.shared.sessions.attempts.stop(id).await;
        match self.session_now(id).await {
            // It was activated a moment before.
            Ok(Some(session)) => Ok(session.end(request, client.into()).await),
            Ok(None) => Err(HostError::UnknownSession { id: id.to_string() }),
            Err(HostError::SessionEnded { info, .. }) => {
                let is_lost = info.cause.is_some_and(Cause::can_be_made_final);
                let info = match request == EndRequest::Terminate && is_lost {
                    true => self.make_final(id, info, client).await?,
                    false => info,
                };
                Ok(EndOutcome { after: info.seq(), already: true, info })
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the end of a run that was lost final: a second record, behind the first.
    async fn make_final(
        &self,
        id: &SessionId,
        lost: Arc<TerminationInfo>,
        client: &str,
    ) -> Result<Arc<TerminationInfo>, HostError> {
        let row = self.shared.store.row(id).await?;
        let mut meta = SessionMeta::read(&row.info);
        let end = termination::final_end(&lost, client, row.last_seq, clock::now_ms());
        meta.ended(&end);
        let batch = recording::ended_batch(&end, &meta);
        let host = self.shared.store.host_file.id();
        match self.shared.store.log.append_to(&row.id, row.owner.as_deref(), host, batch).await {
            Ok(_) => {
                journal::made_final(id, client);
                Ok(Arc::new(end))
            }
            // Another process was faster.
            Err(WriteError::Conflict { .. }) => Ok(lost),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a session and its history; a live one is closed first. One that is not there is as good as removed
    /// (SE-16).
    ///
    /// # Errors
    /// When another process has it, or the log cannot be written.
    pub async fn delete_session(&self, id: &SessionId, client: &str) -> Result<(), HostError> {
        match self.end_session(id, EndRequest::Close, client).await {
            Ok(_) => {}
            Err(HostError::UnknownSession { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        let _no_attempt = self.shared.sessions.attempts.stop(id).await;
        let store = &self.shared.store;
        match store.log.delete(id.as_str(), store.host_file.id()).await {
            Ok(()) => {
                journal::session_deleted(id, client);
                Ok(())
            }
            Err(WriteError::Unknown { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
