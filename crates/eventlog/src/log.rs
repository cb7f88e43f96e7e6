//! The handle that opens the log, hands out appenders and cursors, and answers queries.
//!
//! It owns the threads that write and read: all work on the file happens on them, off the async threads.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Notify, oneshot};

use crate::appender::Appender;
use crate::batch::{Batch, IndexUpdate};
use crate::cache::Cache;
use crate::checkpoint::WaitingCheckpoints;
use crate::cursor::{Cursor, CursorError};
use crate::damage::Damage;
use crate::disk::DiskBudget;
use crate::failure::WriteError;
use crate::files::{Beside, Files, Upkeep, UpkeepOptions};
use crate::live::LiveSessions;
use crate::log_files::OpenLog;
use crate::migration;
use crate::notes;
use crate::options::Options;
use crate::outbox::{NamedNote, Subscribers};
use crate::presence::{Presence, Presences};
use crate::query::{ListQuery, QueryError, SessionRow};
use crate::queue::Queue;
use crate::readers::Readers;
use crate::schema::{self, OpenError};
use crate::search::{self, Piece, WaitingPieces};
use crate::sizes::Unchanged;
use crate::state_form;
use crate::thread::Thread;
use crate::writer::{Parts, Writer};

/// A session that is to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its id, unique for ever.
    pub id: String,
    /// Its agent's name.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// The host that has it live.
    pub owner: String,
    /// The token that created it, if one did.
    pub created_by: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// The host's own description, opaque here.
    pub info: Vec<u8>,
    /// What it begins with, in the same commit: the session is not found without it.
    pub events: Batch,
}

pub(crate) struct Shared {
    pub(crate) queue: Arc<Queue>,
    pub(crate) live: Arc<LiveSessions>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) readers: Readers,
    pub(crate) checkpoints: Arc<WaitingCheckpoints>,
    pub(crate) pieces: Arc<WaitingPieces>,
    pub(crate) searches: bool,
    pub(crate) index_lag: Duration,
    pub(crate) outbox_grown: Arc<Notify>,
    pub(crate) presences: Arc<Presences>,
    /// Where the sessions are.
    pub(crate) files: Arc<Files>,
    upkeep: Upkeep,
    thread: Mutex<Option<Thread>>,
}

impl Shared {
    /// Has the writer thread do something in its place among the batches, and waits for the result.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce(&mut Writer) -> T + Send + 'static,
    ) -> Result<T, WriteError> {
        let permit = self.queue.permit(bytes).await?;
        let (reply, answer) = oneshot::channel();
        self.queue.job(Box::new(move |writer| {
            let _permit = permit;
            drop(reply.send(job(writer)));
        }))?;
        answer.await.map_err(|_| WriteError::Closed)
    }

    /// Before a host has a session: it notes for those that subscribe.
    pub(crate) async fn begin_host(&self, host: &str) -> Result<(), WriteError> {
        if self.files.subscribers.read().all.is_empty() {
            return Ok(());
        }
        let host = host.to_owned();
        self.ask(0, move |writer| writer.note_host(&host)).await
    }

    /// Before a session is claimed that a host has left: what that has not noted. What is left of it is the claimer's to note.
    pub(crate) async fn derive_notes(&self, id: &str, host: &str) -> Result<Vec<NamedNote>, WriteError> {
        let (id, host) = (id.to_owned(), host.to_owned());
        self.ask(0, move |writer| writer.derive_notes(&id, &host)).await
    }
}

impl Drop for Shared {
    /// Without a join, which could be on the writer thread itself; it still commits what is queued.
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// An open event log. Clones share it; it is closed by [`EventLog::close`] or with the last clone, appender and
/// cursor.
#[derive(Clone)]
pub struct EventLog {
    pub(crate) shared: Arc<Shared>,
}

impl EventLog {
    /// Opens the log in `dir`, which is created if needed. Blocks for as long as another process migrates it.
    ///
    /// # Errors
    ///
    /// [`OpenError::Unmigrated`] for one that an earlier version began, which is [migrated](crate::migration::migrate) first.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        Self::open_with(dir, options, UpkeepOptions::default())
    }

    pub(crate) fn open_with(dir: &Path, options: Options, upkeep: UpkeepOptions) -> Result<Self, OpenError> {
        let (database, mut connection) = open_index(dir, &options)?;
        if options.search
            && let Err(error) = search::drop_other_words(&mut connection)
        {
            tracing::warn!(%error, "the index of the event log is renewed at the next start");
        }
        let budget = DiskBudget::new(database.clone());
        let (queue, live) = (Arc::new(Queue::new()), Arc::new(LiveSessions::default()));
        let cache = Arc::new(Cache::new(options.cache_bytes));
        let damage = Arc::new(Damage::default());
        let no_thread = |source| OpenError::Thread { path: database.clone(), source };
        let readers = Readers::start(&database, Arc::clone(&damage)).map_err(no_thread)?;
        let checkpoints = Arc::<WaitingCheckpoints>::default();
        let pieces = Arc::<WaitingPieces>::default();
        if !options.search {
            pieces.put(Piece::Clear);
        }
        let outbox_grown = Arc::<Notify>::default();
        let subscribers = Arc::new(Subscribers::new(Arc::clone(&outbox_grown)));
        let (times, of_files) = ((upkeep.clone(), options.index_lag), Arc::clone(&subscribers));
        let files =
            Files::open(dir, budget.reserve(), options.max_bytes, of_files, times, options.durability);
        let files = Arc::new(files?);
        let hooks = notes::open(dir, options.durability)?;
        let syncing = files.redo.is_some().then(|| {
            let files = Arc::clone(&files);
            Thread::start("event-log-redo", move || files.sync_segments()).map_err(no_thread)
        });
        let beside = Beside {
            syncing: syncing.transpose()?,
            catch_up: files.catch_up(&mut connection),
            files: Arc::clone(&files),
            _open_hooks: OpenLog::register(&hooks.0),
            hooks,
            hooks_damage: Damage::default(),
            noted_hosts: BTreeSet::new(),
        };
        let parts = (Arc::clone(&files), Arc::clone(&live), Arc::clone(&queue));
        let upkeep = Upkeep::start(parts, (database.clone(), beside.hooks.0.clone())).map_err(no_thread)?;
        let parts = Parts {
            queue: Arc::clone(&queue),
            cache: Arc::clone(&cache),
            live: Arc::clone(&live),
            damage,
            checkpoints: Arc::clone(&checkpoints),
            pieces: Arc::clone(&pieces),
            subscribers,
            beside,
        };
        let writer = Writer::new(connection, budget, parts);
        let thread = Thread::start("event-log", move || writer.run()).map_err(no_thread)?;
        let thread = Mutex::new(Some(thread));
        let shared = Shared {
            queue,
            live,
            cache,
            readers,
            checkpoints,
            pieces,
            searches: options.search,
            index_lag: options.index_lag,
            outbox_grown,
            presences: Arc::default(),
            files,
            upkeep,
            thread,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Commits what is queued, ends all appenders and cursors, and closes the file.
    pub async fn close(self) {
        self.shared.files.backlogs.end().await;
        // Before the writer is told to end: it leaves the file in order when its connection is the last.
        self.shared.readers.close().await;
        self.shared.queue.close();
        self.shared.upkeep.close().await;
        let thread = self.shared.thread.lock().take();
        if let Some(thread) = thread
            && !thread.ended().await
        {
            tracing::error!("the writer thread of the event log died");
        }
    }

    /// Waits until what was appended before is committed.
    ///
    /// # Errors
    ///
    /// [`WriteError::Closed`] when the log is closed, which has committed it then.
    pub async fn committed(&self) -> Result<(), WriteError> {
        self.shared.flush_backlogs().await;
        self.shared.ask(0, |_| ()).await
    }

    /// Creates a session and gives its appender. It and its first events are durable when this returns.
    ///
    /// # Errors
    ///
    /// [`WriteError::Exists`] if there is one of that id, [`WriteError::TooLarge`] if an event is too large.
    pub async fn create(&self, new: NewSession) -> Result<Appender, WriteError> {
        new.events.check_size()?;
        let shared = Arc::clone(&self.shared);
        shared.begin_host(&new.owner).await?;
        let live = shared.with_files(|shared, files| shared.create_files(files, new)).await?;
        Ok(Appender::new(Arc::clone(&shared), live))
    }

    /// Gives the appender of an existing session that is not live, and makes `owner` its host. Whether it has ended
    /// stays as it is.
    ///
    /// # Errors
    ///
    /// [`WriteError::Live`] if another host has it, or this one has an appender of it already.
    pub async fn reopen(&self, id: &str, owner: &str) -> Result<Appender, WriteError> {
        let shared = Arc::clone(&self.shared);
        let (id, owner) = (id.to_owned(), owner.to_owned());
        shared.until_left(&id).await;
        shared.begin_host(&owner).await?;
        let reopen = move |shared: &Shared, files: &Files| shared.reopen_files(files, &id, &owner);
        let live = shared.with_files(reopen).await?;
        Ok(Appender::new(Arc::clone(&shared), live))
    }

    /// Appends to a session that has no appender, if its host is still the one that the caller saw (`None`: no
    /// host). So of several processes that find a host gone, one writes down the end. `host`, a host of this process, does it: if it
    /// dies before the index says so, whoever comes next looks at the session. Returns the last sequence number; durable when this
    /// returns.
    ///
    /// # Errors
    ///
    /// [`WriteError::Conflict`] if it now has another host or none, [`WriteError::Live`] if it has an appender here.
    pub async fn append_to(
        &self,
        id: &str,
        owner: Option<&str>,
        host: &str,
        batch: Batch,
    ) -> Result<u64, WriteError> {
        batch.check_size()?;
        let (id, owner, host) = (id.to_owned(), owner.map(str::to_owned), host.to_owned());
        self.shared.until_left(&id).await;
        let left = match &owner {
            Some(owner) => self.shared.derive_notes(&id, owner).await?,
            None => Vec::new(),
        };
        let append = move |shared: &Shared, files: &Files| {
            shared.append_to_files(files, &id, (owner.as_deref(), &host), (&batch, left))
        };
        self.shared.with_files(append).await
    }

    /// Changes the index of a session that has no appender; as [`EventLog::append_to`] without events.
    pub async fn update_index(
        &self,
        id: &str,
        owner: Option<&str>,
        host: &str,
        update: IndexUpdate,
    ) -> Result<(), WriteError> {
        self.append_to(id, owner, host, Batch::index_only(update)).await.map(drop)
    }

    /// Deletes a session that no host has live, for `host`, a host of this process. It is unknown when this returns; its space is reclaimed afterwards. As
    /// last words do, it may use the reserve: on a full disk it is what makes room.
    pub async fn delete(&self, id: &str, host: &str) -> Result<(), WriteError> {
        let (id, host) = (id.to_owned(), host.to_owned());
        self.shared.until_left(&id).await;
        let delete = move |shared: &Shared, files: &Files| shared.delete_files(files, &id, &host);
        self.shared.with_files(delete).await
    }

    /// Deletes a session that has ended and has not changed since it was seen: not one that was taken up meanwhile, ended
    /// again or not. False: it has changed, is live, or is gone. As [`EventLog::delete`] otherwise.
    pub async fn delete_ended(&self, id: &str, host: &str, seen: Unchanged) -> Result<bool, WriteError> {
        let (id, host) = (id.to_owned(), host.to_owned());
        self.shared.until_left(&id).await;
        let delete =
            move |shared: &Shared, files: &Files| shared.delete_ended_files(files, (&id, &host), seen);
        self.shared.with_files(delete).await
    }

    /// A cursor that gives the events of a session after `after` (0: all), and then follows it if it is live here.
    ///
    /// # Errors
    ///
    /// [`CursorError::Unknown`] and [`CursorError::Future`].
    pub async fn cursor(&self, id: &str, after: u64) -> Result<Cursor, CursorError> {
        Cursor::open(&self.shared, id, after).await
    }

    /// Whether a session is there, for those that wait for nothing else. Taken before it is looked for, it misses no removal.
    pub fn presence(&self, id: &str) -> Arc<Presence> {
        self.shared.presences.of(id)
    }

    /// One session.
    pub async fn get(&self, id: &str) -> Result<Option<SessionRow>, QueryError> {
        let id = id.to_owned();
        Ok(self.shared.with_files(move |shared, files| shared.look_up(files, &id)).await?)
    }

    /// A page of sessions.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionRow>, QueryError> {
        let files = Arc::clone(&self.shared.files);
        let heads = self.shared.other_heads(&files).await;
        Ok(self.shared.readers.read(move |it| files.list(it, &query, heads)).await?)
    }

    /// Whether a session could begin now: there is room, the disk does as it is told, and the sessions are where they were. Nothing
    /// is written, but for a session aside that is gone again. The index is not needed for that.
    pub async fn check(&self) -> Result<(), WriteError> {
        self.shared.check_files().await
    }

    /// The sessions that a host has live, or had when it died.
    pub async fn owned_by(&self, owner: &str) -> Result<Vec<SessionRow>, QueryError> {
        let owner = owner.to_owned();
        Ok(self.shared.with_files(move |_, files| files.owned_by(&owner)).await?)
    }

    /// Every host that has a session live or is writing one in pieces, or did when it died.
    pub async fn owners(&self) -> Result<Vec<String>, QueryError> {
        Ok(self.shared.with_files(|_, files| files.owners()).await?)
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").finish_non_exhaustive()
    }
}

/// Makes a directory one of session files if needed, and opens its index.
fn open_index(dir: &Path, options: &Options) -> Result<(PathBuf, Connection), OpenError> {
    state_form::settle(dir)?;
    // Behind that: whoever migrates the directory has begun to place the files then.
    migration::finish(dir)?;
    schema::open_index(dir, options.durability)
}

#[cfg(test)]
mod tests {
    use super::*;

    // architecture 5: an owner sees the end of what it owns; no caller waits in vain
    #[tokio::test]
    async fn the_death_of_the_writer_reaches_everybody() {
        let dir = tempfile::TempDir::new().unwrap();
        let log = EventLog::open(dir.path(), Options::default()).unwrap();
        let new = NewSession { id: "a".into(), owner: "host".into(), ..NewSession::default() };
        let mut appender = log.create(new).await.unwrap();
        let mut batch = Batch::new();
        batch.push(1, 1, b"event");
        appender.append_durable(batch).await.unwrap();
        let mut cursor = log.cursor("a", 0).await.unwrap();
        let committed = appender.committed();
        let died = log.shared.ask::<()>(0, |_| panic!("as a test")).await;
        assert!(matches!(died, Err(WriteError::Closed)));
        assert!(matches!(committed.wait_for(2).await, Err(WriteError::Closed)));
        assert!(matches!(appender.append_durable(Batch::new()).await, Err(WriteError::Closed)));
        assert_eq!(cursor.next().await.unwrap().unwrap().range(), 1..=1);
        assert!(cursor.next().await.unwrap().is_none());
        log.close().await;
    }
}
