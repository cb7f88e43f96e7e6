//! Listing and inspecting sessions from the store (contract 1.3): live and ended, across restarts, without starting
//! anything.

use crate::clock::iso8601;
use crate::dead_hosts::Elsewhere;
use crate::error::HostError;
use crate::host::Host;
use crate::termination::chain;
use acpd_eventlog::{ListQuery, SessionRow};
use serde_json::{Value, json};

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Nothing; it waits for a prompt.
    Idle,
    /// A turn is running.
    Running,
    /// Somebody has to answer the agent's question first.
    Waiting,
    /// Its run is over.
    Ended,
}

impl SessionState {
    /// The name that clients see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
        }
    }
}

/// One session in a list.
#[derive(Clone, Debug)]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// Its title, if its agent gave one.
    pub title: Option<String>,
    /// What it is doing.
    pub state: SessionState,
    /// The name of the token under which it was created; None for nobody's (contract 1.7).
    pub created_by: Option<String>,
    /// ISO 8601.
    pub created_at: String,
    /// ISO 8601.
    pub updated_at: String,
    /// Events in its log.
    pub event_count: u64,
    /// How its last run ended, as `terminationInfo`.
    pub termination: Option<Value>,
    /// Its place in a list.
    pub place: (i64, String),
}

impl SessionSummary {
    /// acpd's own part of an ACP list entry.
    pub fn meta(&self) -> Value {
        let mut meta = json!({
            "agent": self.agent, "createdAt": self.created_at, "ended": self.state == SessionState::Ended,
            "eventCount": self.event_count, "state": self.state.as_str(),
        });
        if let (Some(info), Value::Object(meta)) = (&self.termination, &mut meta) {
            meta.insert("terminationInfo".to_owned(), info.clone());
        }
        meta
    }
}

impl Host {
    /// A page of sessions, the latest change first.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionSummary>, HostError> {
        let mut rows = self.shared.log.list(query.clone()).await.map_err(|error| unreadable(&error))?;
        let mut have_died = false;
        for row in &rows {
            have_died |= self.is_elsewhere(row).await == Elsewhere::HasDied;
        }
        if have_died {
            rows = self.shared.log.list(query).await.map_err(|error| unreadable(&error))?;
        }
        Ok(rows.into_iter().map(|row| self.summary(row)).collect())
    }

    /// One session.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn inspect(&self, id: &str) -> Result<SessionSummary, HostError> {
        Ok(self.summary(self.stored(id).await?))
    }

    /// What is stored of a session; one whose host has died is recorded as lost first.
    pub(crate) async fn stored(&self, id: &str) -> Result<SessionRow, HostError> {
        let row = self.row(id).await?;
        if self.is_elsewhere(&row).await != Elsewhere::HasDied {
            return Ok(row);
        }
        self.row(id).await
    }

    /// What is stored of a session as it stands there.
    pub(crate) async fn row(&self, id: &str) -> Result<SessionRow, HostError> {
        let row = self.shared.log.get(id).await.map_err(|error| unreadable(&error))?;
        row.ok_or_else(|| HostError::UnknownSession { id: id.to_owned() })
    }

    fn summary(&self, row: SessionRow) -> SessionSummary {
        // The record of an end can be read a moment before its session knows that it was written.
        let live = self.shared.registry.get(&row.id).filter(|_| !row.ended).map(|session| session.status());
        let info: Value = serde_json::from_slice(&row.info).unwrap_or_default();
        let termination = Some(info["terminationInfo"].clone()).filter(Value::is_object);
        let state = match &live {
            Some(status) if status.waiting => SessionState::Waiting,
            Some(status) if status.running => SessionState::Running,
            Some(_) => SessionState::Idle,
            // Another process may have it live; what it does there is not known here.
            None if row.owner.is_some() && !row.ended => SessionState::Idle,
            None => SessionState::Ended,
        };
        let title = match live {
            Some(status) => status.title,
            None => info["title"].as_str().map(str::to_owned),
        };
        SessionSummary {
            place: (row.updated_ms, row.id.clone()),
            id: row.id,
            agent: row.agent,
            cwd: row.cwd,
            title,
            state,
            created_by: row.created_by,
            created_at: iso8601(row.created_ms),
            updated_at: iso8601(row.updated_ms),
            event_count: row.last_seq,
            termination,
        }
    }
}

fn unreadable(error: &acpd_eventlog::QueryError) -> HostError {
    HostError::History { detail: chain(error) }
}
