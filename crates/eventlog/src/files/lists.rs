//! What sessions there are: the index, and in front of it what it does not say yet.

use super::live_segment::now;
use super::owning::Found;
use super::{Files, IndexRow};
use crate::failure::WriteError;
use crate::list_overlay::Overlay;
use crate::log::Shared;
use crate::query::{self, ListQuery, SessionRow};
use crate::session_files::{Claims, Heads};
use rusqlite::Connection;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a list waits for the files of sessions that other hosts have. 3,000 of them take 35 ms, and a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(5);
/// Threads that read these at once, and no more when a file system stalls: others have to read the index.
const READ_AT_ONCE: usize = 2;

/// The right to read where sessions of other hosts stand.
#[derive(Debug)]
pub(super) struct HeadTurns {
    turns: Arc<Semaphore>,
    /// The last list did without, which is said once.
    is_late: AtomicBool,
}

impl Default for HeadTurns {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(READ_AT_ONCE)), is_late: AtomicBool::new(false) }
    }
}

impl Files {
    /// One session, as its own files say it.
    pub(crate) fn get(&self, id: &str) -> Result<Option<SessionRow>, WriteError> {
        Ok(self.find(id)?.map(|found| found.last.into()))
    }

    /// What a session was given and has not begun with.
    pub(crate) fn waiting(&self, id: &str) -> Result<Vec<(u64, Vec<u8>)>, WriteError> {
        Ok(self.find(id)?.map(|found| found.last.waiting).unwrap_or_default())
    }

    /// A page of sessions, of which other hosts have some that stand so.
    pub(crate) fn list(
        &self,
        connection: &Connection,
        query: &ListQuery,
        heads: Heads,
    ) -> rusqlite::Result<Vec<SessionRow>> {
        let newer = self.newer(heads);
        let indexed = query::list(connection, newer.index_query(query))?;
        Ok(newer.merge(query, indexed))
    }

    /// The sessions of a host: of those that it says it has, and of those that none says it has.
    pub(crate) fn owned_by(&self, host: &str) -> Result<Vec<SessionRow>, WriteError> {
        let claims = self.claims()?.into_iter().find(|claims| claims.host == host);
        let mut rows = self.unclaimed_rows();
        rows.retain(|row| row.owner.as_deref() == Some(host));
        if let Some(claims) = &claims {
            rows.retain(|row| !claims.sessions.contains(&row.id));
        }
        for id in claims.iter().flat_map(|claims| &claims.sessions) {
            rows.extend(self.get(id)?.filter(|row| row.owner.as_deref() == Some(host)));
        }
        Ok(rows)
    }

    /// Notes a session of which its files say that a host has it, where that host does not: the end of its files is lost, or they
    /// were put back. Whoever asks for the sessions of that host is told of it then. True if that was not known; what the index
    /// has of it counts no more, since it may say more than there is.
    fn note_lost_end(&self, id: &str, found: &Found) -> Result<bool, WriteError> {
        let has_it = |claims: &Claims| claims.sessions.contains(id);
        let Some(owner) = found.owner().filter(|owner| !self.hosts.lock().contains_key(*owner)) else {
            return Ok(false);
        };
        if self.unclaimed.lock().contains(id) || self.claims()?.iter().any(has_it) {
            return Ok(false);
        }
        // None is claimed here between this look and the word of it, nor was it given back between the two looks.
        let _owning = self.owning.lock();
        let again = self.find(id)?;
        let is_same = again.is_some_and(|again| {
            (again.last.header.number, again.owner()) == (found.last.header.number, Some(owner))
        });
        if !is_same || !self.unclaimed.lock().insert(id.to_owned()) {
            return Ok(false);
        }
        tracing::warn!(
            session = id,
            host = owner,
            "the end of a session is not in its files; it is recorded as lost"
        );
        self.rows.remove(id, now());
        self.rows.put(found.row(), Vec::new(), now());
        Ok(true)
    }

    /// Notes that a session is gone of which the directory is left. False: there is none either, or it has begun since.
    fn note_lost_files(&self, id: &str) -> Result<bool, WriteError> {
        if self.directory_of(id)?.is_none() {
            return Ok(false);
        }
        let _owning = self.owning.lock();
        Ok(self.find(id)?.is_none() && self.rows.remove(id, now()))
    }

    /// Sessions that have an owner and stood in no claims when the log was opened, or when they were looked at.
    fn unclaimed_rows(&self) -> Vec<SessionRow> {
        let ids = self.unclaimed.lock().clone();
        let mut rows = Vec::new();
        for id in ids {
            match self.get(&id) {
                Ok(Some(row)) if row.owner.is_some() => rows.push(row),
                // It has ended, or is gone.
                Ok(_) => drop(self.unclaimed.lock().remove(&id)),
                // One that cannot be read keeps none of the others from an end.
                Err(error) => tracing::debug!(session = id, %error, "whose a session is cannot be read"),
            }
        }
        rows
    }

    /// The hosts that say they have sessions, are writing one in pieces, or are named by a session that is in no claims.
    pub(crate) fn owners(&self) -> Result<Vec<String>, WriteError> {
        let mut owners = self.anybody.writers().map_err(|error| self.failed(error))?;
        let claims = self.claims()?.into_iter().filter(|claims| !claims.sessions.is_empty());
        owners.extend(claims.map(|claims| claims.host));
        owners.extend(self.unclaimed_rows().into_iter().filter_map(|row| row.owner));
        Ok(owners.into_iter().collect())
    }

    pub(super) fn claims(&self) -> Result<Vec<Claims>, WriteError> {
        Claims::of_all(&self.state).map_err(|error| self.failed(error))
    }

    /// Where the sessions of other hosts stand, which those write to the index in their time.
    fn other_heads(&self) -> Heads {
        let own: HashSet<String> = self.hosts.lock().keys().cloned().collect();
        match self.claims() {
            Ok(claims) => self.heads.read(&claims, |host| own.contains(host)),
            Err(error) => {
                tracing::warn!(%error, "sessions of other hosts are listed as the index has them");
                Heads::default()
            }
        }
    }

    /// What the index does not say: sessions of other hosts, and one's own.
    fn newer(&self, heads: Heads) -> Overlay {
        let mut newer = Overlay::default();
        heads.rows.into_iter().for_each(|row| newer.put(row));
        heads.gone.into_iter().for_each(|id| newer.remove(id));
        for (id, row) in self.rows.unwritten() {
            match row {
                Some(IndexRow { session, .. }) => newer.put(session),
                None => newer.remove(id),
            }
        }
        newer
    }
}

impl Shared {
    /// Where the sessions of other hosts stand; none of them if their files cannot be read in time.
    pub(crate) async fn other_heads(&self, files: &Arc<Files>) -> Heads {
        let (others, turns) = (Arc::clone(files), Arc::clone(&files.head_turns.turns));
        let reading = async move {
            let turn = turns.acquire_owned().await;
            // Kept until it is done, however long that takes.
            self.readers.run(move || (others.other_heads(), turn).0).await.unwrap_or_default()
        };
        let heads = tokio::time::timeout(PATIENCE, reading).await;
        let is_late = heads.is_err();
        let was_late = files.head_turns.is_late.swap(is_late, Ordering::Relaxed);
        if is_late && !was_late {
            tracing::warn!("sessions of other hosts are listed as the index has them: their files are slow");
        }
        heads.unwrap_or_default()
    }

    /// One session, as its own files say it. The index is told where it cannot be right.
    pub(crate) fn look_up(&self, files: &Files, id: &str) -> Result<Option<SessionRow>, WriteError> {
        let found = files.find(id)?;
        let is_news = match &found {
            Some(found) => files.note_lost_end(id, found)?,
            None => files.note_lost_files(id)?,
        };
        if is_news {
            self.wake_writer();
        }
        Ok(found.map(|found| found.last.into()))
    }

    /// A session that is not live here stands as its files say now, which the index is to learn.
    pub(super) fn row_has_changed(&self, files: &Files, id: &str) -> Result<(), WriteError> {
        if let Some(found) = files.find(id)?
            && files.rows.put(found.row(), Vec::new(), now())
        {
            self.wake_writer();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{EventLog, ListQuery, NewSession, Options};

    // issue 29: a file system that does not answer keeps no list waiting for ever: what other hosts have is listed from the index
    #[tokio::test(start_paused = true)]
    async fn a_list_does_without_files_that_stall() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = || {
            let options = Options::default();
            EventLog::open(dir.path(), options).expect("the log opens")
        };
        let (log, other) = (open(), open());
        let new = NewSession { id: "a".into(), owner: "other".into(), ..NewSession::default() };
        let live = other.create(new).await.expect("it is new");
        let list = async || log.list(ListQuery::default()).await.expect("it is read").len();
        let files = &log.shared.files;
        // As reads do that do not come back.
        let stalled = files.head_turns.turns.acquire_many(2).await.expect("it is open");
        other.shared.write_rows_first().await;
        assert_eq!(list().await, 1);
        assert!(files.head_turns.is_late.load(std::sync::atomic::Ordering::Relaxed));
        drop(stalled);
        assert_eq!(list().await, 1);
        drop(live);
        log.close().await;
        other.close().await;
    }

    // issue 28: a session that began since it was looked for in vain is not taken for one that is gone
    #[tokio::test]
    async fn what_began_since_the_look_is_not_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = EventLog::open(dir.path(), Options::default()).expect("the log opens");
        assert_eq!(log.get("a").await.expect("it is read"), None);
        let new = NewSession { id: "a".into(), owner: "host".into(), ..NewSession::default() };
        let live = log.create(new).await.expect("it is new");
        assert!(!log.shared.files.note_lost_files("a").expect("it is read"));
        assert_eq!(log.list(ListQuery::default()).await.expect("it is read").len(), 1);
        drop(live);
        log.close().await;
    }
}
