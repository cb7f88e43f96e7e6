//! The stored sessions of a state directory, for a process that only looks.
//!
//! Nothing is recovered, started or recorded, and no host is registered: sessions whose host has died are shown as they will be
//! recorded. Not here: opening the log.

use crate::error::HostError;
use crate::export::{ExportForm, SessionExport};
use crate::host_file::HostFile;
use crate::listed::{Listing, Matching, SessionBrief};
use crate::listing::SessionSummary;
use crate::pruning::Keep;
use crate::recovery::Recovery;
use crate::registry::Registry;
use crate::search::Findings;
use crate::store::SessionStore;
use acpd_api::{Prunable, SessionInfo};
use acpd_eventlog::{Cursor, EventLog, ListQuery, SearchQuery};
use acpd_record::SessionId;
use std::path::Path;
use std::sync::Arc;

/// Stored sessions, to look at.
pub struct Archive {
    store: Arc<SessionStore>,
    recovery: Recovery,
    /// None is live here.
    live: Registry,
}

impl Archive {
    /// The sessions of a log.
    pub fn new(log: EventLog, state_dir: &Path) -> Self {
        let store = Arc::new(SessionStore::new(log, HostFile::of_a_reader(state_dir)));
        Self { recovery: Recovery::new(Arc::clone(&store)), store, live: Registry::default() }
    }

    /// As [`Host::list_matching`](crate::Host::list_matching).
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn list(&self, query: ListQuery, matching: Matching) -> Result<Vec<SessionSummary>, HostError> {
        self.listing().matching(query, matching).await
    }

    /// The same as a table shows them.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn brief(&self, query: ListQuery, matching: Matching) -> Result<Vec<SessionBrief>, HostError> {
        self.listing().brief(query, matching).await
    }

    /// As [`Host::search`](crate::Host::search).
    ///
    /// # Errors
    /// When search is turned off, or the log cannot be read.
    pub async fn search(&self, query: SearchQuery) -> Result<Findings, HostError> {
        self.store.search(query).await
    }

    /// One session, with its state.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn info(&self, id: &SessionId) -> Result<SessionInfo, HostError> {
        self.listing().info(id, self.store.row(id).await?).await
    }

    /// The events of a session behind one of them.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn cursor(&self, id: &SessionId, after: u64) -> Result<Cursor, HostError> {
        Ok(self.store.log.cursor(id.as_str(), after).await?)
    }

    /// A session on its way out.
    ///
    /// # Errors
    /// When there is none of that id, or the log cannot be read.
    pub async fn export(&self, id: &SessionId, form: ExportForm) -> Result<SessionExport, HostError> {
        SessionExport::begin(&self.store, id, &self.store.row(id).await?, form).await
    }

    /// As [`Host::prunable`](crate::Host::prunable).
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn prunable(&self, keep: Keep) -> Result<Vec<Prunable>, HostError> {
        self.store.prunable(keep).await
    }

    /// Whether agents have ended while no daemon was there, and that is not recorded yet.
    pub async fn has_ends(&self) -> bool {
        !self.recovery.ends_left().await.is_empty()
    }

    fn listing(&self) -> Listing<'_> {
        Listing { store: &self.store, recovery: &self.recovery, live: &self.live }
    }

    /// Closes the log.
    pub async fn close(self) {
        self.store.log.clone().close().await;
    }
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").finish_non_exhaustive()
    }
}
