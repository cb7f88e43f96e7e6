//! Sessions as they are stored: rows and events as types, over the event log.
//!
//! Not here: what is live, and what of it is shown.

use crate::acp;
use crate::chain::chain;
use crate::check::CheckCache;
use crate::checkpoints::{self, LONG};
use crate::error::HostError;
use crate::host_file::HostFile;
use crate::journal;
use crate::recording;
use crate::unsearched::Unsearched;
use acpd_eventlog::{EventLog, SessionRow};
use acpd_record::{Event, Json, Projection, SessionId, SessionMeta, TerminationInfo};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Histories that are read at once for those who look at a session that is not live here; the others wait. One is read
/// block by block, so what it takes is time.
const READINGS: usize = 2;

/// The stored sessions of a state directory.
#[derive(Debug)]
pub(crate) struct SessionStore {
    pub(crate) log: EventLog,
    /// This host in its state directory.
    pub(crate) host_file: HostFile,
    pub(crate) check_cache: CheckCache,
    /// What is to be indexed.
    pub(crate) unsearched: Unsearched,
    /// Histories that are read at once.
    readings: Semaphore,
}

impl SessionStore {
    pub(crate) fn new(log: EventLog, host_file: HostFile) -> Self {
        let (check_cache, unsearched) = (CheckCache::default(), Unsearched::default());
        Self { log, host_file, check_cache, unsearched, readings: Semaphore::new(READINGS) }
    }

    /// The right to read a history for someone who looks.
    pub(crate) async fn one_of_few(&self) -> SemaphorePermit<'_> {
        self.readings.acquire().await.expect("it is never closed")
    }

    /// The other host that has the session, or had when it died.
    pub(crate) fn other_owner<'a>(&self, row: &'a SessionRow) -> Option<&'a str> {
        row.owner.as_deref().filter(|owner| *owner != self.host_file.id())
    }

    /// Something went wrong that a log out of order would explain; the watch of the host looks.
    pub(crate) fn doubt(&self) {
        self.check_cache.doubts.raise();
    }

    /// What the log says of a session up to event `last`. Reads the events after a checkpoint, and those before it where
    /// there is none.
    pub(crate) async fn recall(
        &self,
        id: &SessionId,
        meta: &SessionMeta,
        last: u64,
    ) -> Result<Projection, HostError> {
        let known = checkpoints::find(&self.log, id, last).await;
        let known = known.unwrap_or_else(|| Projection::new(meta.forked_from.is_some()));
        self.go_on(id, known, last, |_| {}).await
    }

    /// The same from the first event on; `also` sees each event.
    pub(crate) async fn recall_each(
        &self,
        id: &SessionId,
        meta: &SessionMeta,
        last: u64,
        also: impl FnMut(&Event<'_>) + Send,
    ) -> Result<Projection, HostError> {
        self.go_on(id, Projection::new(meta.forked_from.is_some()), last, also).await
    }

    /// Goes on with the fold up to event `last`. What took long has a checkpoint then.
    async fn go_on(
        &self,
        id: &SessionId,
        mut projection: Projection,
        last: u64,
        mut also: impl FnMut(&Event<'_>) + Send,
    ) -> Result<Projection, HostError> {
        let from = projection.last_seq();
        let mut cursor = self.log.cursor(id.as_str(), from).await?;
        // Of a session that is live here, the cursor would wait for more.
        while cursor.position() < last {
            let Some(block) = cursor.next().await? else { break };
            for stored in block.events().take_while(|event| event.seq <= last) {
                if let Some(event) = recording::read(&mut projection, &stored) {
                    also(&event);
                }
            }
        }
        let read = projection.last_seq() - from;
        journal::history_read(id, &projection, read);
        if read >= LONG {
            checkpoints::keep(&self.log, id, &projection);
        }
        Ok(projection)
    }

    /// How the last run of a session ended, as its index has it, with the text of stderr, which only the event has.
    pub(crate) async fn whole_end(&self, id: &SessionId, end: Json) -> Json {
        let Some(seq) = acp::view::<TerminationInfo>(end.get().as_bytes())
            .filter(|info| !info.has_stderr_text())
            .map(|info| info.seq())
        else {
            return end;
        };
        match self.end_at(id, seq).await {
            Ok(Some(whole)) => Json::new(&whole),
            Ok(None) => end,
            Err(error) => {
                tracing::warn!(parent: None, session = %id, seq, error = chain(&error), "the record of an end cannot be read");
                end
            }
        }
    }

    /// What the index knows of a session, with the whole record of its end.
    pub(crate) async fn whole_meta(&self, id: &SessionId, row: &SessionRow) -> SessionMeta {
        let mut meta = SessionMeta::read(&row.info);
        if let Some(end) = meta.termination_info.take() {
            meta.termination_info = Some(self.whole_end(id, end).await);
        }
        meta
    }

    /// The record of an end that is event `seq`.
    async fn end_at(&self, id: &SessionId, seq: u64) -> Result<Option<TerminationInfo>, HostError> {
        let block = self.log.cursor(id.as_str(), seq - 1).await?.next().await?;
        let stored = block.as_ref().and_then(|block| block.events().find(|event| event.seq == seq));
        Ok(match stored.map(|stored| Event::read(stored.kind, stored.payload)) {
            Some(Ok(Event::Ended(info))) => Some(*info),
            _ => None,
        })
    }

    /// What is stored of a session as it stands there.
    pub(crate) async fn row(&self, id: &SessionId) -> Result<SessionRow, HostError> {
        let row = self.log.get(id.as_str()).await.map_err(|error| unreadable(&error))?;
        row.ok_or_else(|| HostError::UnknownSession { id: id.to_string() })
    }
}

pub(crate) fn unreadable(error: &acpd_eventlog::QueryError) -> HostError {
    HostError::History { detail: chain(error) }
}

#[cfg(test)]
mod tests;
