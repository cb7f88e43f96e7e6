//! The handle that opens the log, hands out appenders and cursors, and answers queries.
//!
//! It owns the threads that write and read: all work on the file happens on them, off the async threads.

use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Transaction;
use tokio::sync::{Notify, oneshot};

use crate::appender::Appender;
use crate::batch::{Batch, IndexUpdate};
use crate::block::{Block, BlockBuilder};
use crate::cache::Cache;
use crate::checkpoint::WaitingCheckpoints;
use crate::cursor::{Cursor, CursorError};
use crate::damage::Damage;
use crate::disk::DiskBudget;
use crate::failure::WriteError;
use crate::live::{Live, LiveSessions};
use crate::lock_wait::{ForeignLock, LockWatch};
use crate::metrics;
use crate::outbox::Subscribers;
use crate::presence::{Presence, Presences};
use crate::query::{self, ListQuery, QueryError, SessionRow};
use crate::queue::Queue;
use crate::readers::Readers;
use crate::schema::{self, OpenError};
use crate::search::{self, Piece, WaitingPieces};
use crate::sizes::Unchanged;
use crate::store::{self, RowTime, SessionHead};
use crate::thread::Thread;
use crate::times::AnyBehind;
use crate::writer::{Parts, Writer};

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The death of every process.
    #[default]
    Process,
    /// The loss of power too: the disk is asked to confirm each group of commits.
    Power,
}

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a commit survives.
    pub durability: Durability,
    /// The largest size of the file, in bytes; only last words ([`Appender::append_final`]) may exceed it.
    pub max_bytes: Option<u64>,
    /// How many bytes of the newest events are kept in memory, over all sessions.
    pub cache_bytes: usize,
    /// Whether what is said is indexed for [`EventLog::search`]; without, an index that is there is dropped.
    pub search: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { durability: Durability::Process, max_bytes: None, cache_bytes: 16 * 1024 * 1024, search: true }
    }
}

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
    pub(crate) outbox_grown: Arc<Notify>,
    pub(crate) presences: Arc<Presences>,
    behind: AnyBehind,
    pub(crate) locks: Arc<LockWatch>,
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
}

impl Drop for Shared {
    /// Without a join, which could be on the writer thread itself; it still commits what is queued.
    fn drop(&mut self) {
        self.locks.bound();
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
    /// Opens the log in `dir`, which is created if needed. Blocks for as long as another process migrates the file.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let (database, mut connection) = schema::open_writer(dir, &options)?;
        if options.search
            && let Err(error) = search::drop_other_words(&mut connection)
        {
            tracing::warn!(%error, "the index of the event log is renewed at the next start");
        }
        let budget = DiskBudget::new(&connection, database.clone(), options.max_bytes)
            .map_err(|error| OpenError::Sqlite { path: database.clone(), source: error.into() })?;
        let (queue, live) = (Arc::new(Queue::new()), Arc::new(LiveSessions::default()));
        let cache = Arc::new(Cache::new(options.cache_bytes));
        let damage = Arc::new(Damage::default());
        let no_thread = |source| OpenError::Thread { path: database.clone(), source };
        let locks = LockWatch::new(&database);
        let readers = Readers::start(&database, Arc::clone(&damage), &locks).map_err(no_thread)?;
        let behind = AnyBehind::default();
        let checkpoints = Arc::<WaitingCheckpoints>::default();
        let pieces = Arc::<WaitingPieces>::default();
        if !options.search {
            pieces.put(Piece::Clear);
        }
        let outbox_grown = Arc::<Notify>::default();
        let parts = Parts {
            queue: Arc::clone(&queue),
            cache: Arc::clone(&cache),
            live: Arc::clone(&live),
            damage,
            behind: Arc::clone(&behind),
            checkpoints: Arc::clone(&checkpoints),
            pieces: Arc::clone(&pieces),
            subscribers: Subscribers::new(Arc::clone(&outbox_grown)),
            locks: Arc::clone(&locks),
        };
        let writer = Writer::new(connection, budget, parts);
        let thread = Thread::start("event-log", move || writer.run()).map_err(no_thread)?;
        let thread = Mutex::new(Some(thread));
        let searches = options.search;
        let shared = Shared {
            queue,
            live,
            cache,
            readers,
            checkpoints,
            pieces,
            searches,
            outbox_grown,
            presences: Arc::default(),
            behind,
            locks,
            thread,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Commits what is queued, ends all appenders and cursors, and closes the file.
    pub async fn close(self) {
        self.bound_waits();
        self.shared.queue.close();
        // Before the writer, which leaves the file in order when its connection is the last.
        self.shared.readers.close().await;
        let thread = self.shared.thread.lock().take();
        if let Some(thread) = thread
            && !thread.ended().await
        {
            tracing::error!("the writer thread of the event log died");
        }
    }

    /// From now on a lock that another process holds is waited for no longer than about ten seconds; until then without
    /// end. For the end of a host, which must not wait for ever.
    pub fn bound_waits(&self) {
        self.shared.locks.bound();
    }

    /// The lock of another process that keeps everything from being written, if the log has waited for one for a while.
    pub fn foreign_lock(&self) -> Option<ForeignLock> {
        self.shared.locks.lock()
    }

    /// Waits until what was appended before is committed.
    ///
    /// # Errors
    ///
    /// [`WriteError::Closed`] when the log is closed, which has committed it then.
    pub async fn committed(&self) -> Result<(), WriteError> {
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
        let bytes = new.events.cost();
        let job = move |writer: &mut Writer| {
            let live = writer.create(new)?;
            Ok(Appender::new(shared, live))
        };
        self.shared.ask(bytes, job).await?
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
        let job = move |writer: &mut Writer| {
            let here = writer.live().get(&id).is_some();
            writer.check_beginning()?;
            let head = writer.transact(None, |transaction| {
                let head = match store::session_head(transaction, &id)? {
                    None => return Ok(Err(WriteError::Unknown { id: id.clone() })),
                    Some(SessionHead { owner: Some(other), .. }) if here || other != owner => {
                        return Ok(Err(WriteError::Live { id: id.clone(), owner: other }));
                    }
                    Some(_) if here => {
                        return Ok(Err(WriteError::Live { id: id.clone(), owner: owner.clone() }));
                    }
                    Some(head) => head,
                };
                store::set_owner(transaction, head.row, &owner)?;
                Ok(Ok(head))
            })?;
            let live = Arc::new(Live::new(id, head.row, Some(owner), head.last_seq));
            writer.live().insert(Arc::clone(&live));
            Ok(Appender::new(shared, live))
        };
        self.shared.ask(0, job).await?
    }

    /// Appends to a session that has no appender, if its host is still the one that the caller saw (`None`: no
    /// host). So of several processes that find a host gone, one writes down the end. Returns the last sequence
    /// number; durable when this returns.
    ///
    /// # Errors
    ///
    /// [`WriteError::Conflict`] if it now has another host or none, [`WriteError::Live`] if it has an appender here.
    pub async fn append_to(&self, id: &str, owner: Option<&str>, batch: Batch) -> Result<u64, WriteError> {
        batch.check_size()?;
        let (id, owner, bytes) = (id.to_owned(), owner.map(str::to_owned), batch.cost());
        // The end of a session whose host could not record it is its last words.
        let is_end = batch.index.as_ref().is_some_and(|index| index.ended == Some(true));
        let job = move |writer: &mut Writer| {
            refuse_live(writer, &id)?;
            let reserved = is_end.then_some(bytes);
            let subscribers = Arc::clone(writer.subscribers());
            let appended = writer.transact(reserved, |transaction| {
                let head = match store::session_head(transaction, &id)? {
                    None => return Ok(Err(WriteError::Unknown { id: id.clone() })),
                    Some(head) if head.owner != owner => {
                        return Ok(Err(WriteError::Conflict { id: id.clone() }));
                    }
                    Some(head) => head,
                };
                append_behind(transaction, &subscribers, &head, &batch)?;
                Ok(Ok(head.last_seq + batch.count))
            });
            subscribers.tell();
            // Once, however often it was tried.
            appended.inspect(|_| metrics::appended(batch.count, bytes as u64))
        };
        self.shared.ask(bytes, job).await?
    }

    /// Changes the index of a session that has no appender; as [`EventLog::append_to`] without events.
    pub async fn update_index(
        &self,
        id: &str,
        owner: Option<&str>,
        update: IndexUpdate,
    ) -> Result<(), WriteError> {
        self.append_to(id, owner, Batch::index_only(update)).await.map(drop)
    }

    /// Deletes a session that no host has live. It is unknown when this returns; its space is reclaimed afterwards. As
    /// last words do, it may use the reserve: on a full disk it is what makes room.
    pub async fn delete(&self, id: &str) -> Result<(), WriteError> {
        let (id, presences) = (id.to_owned(), Arc::clone(&self.shared.presences));
        let job = move |writer: &mut Writer| {
            refuse_live(writer, &id)?;
            writer.transact(Some(0), |transaction| match store::session_head(transaction, &id)? {
                None => Ok(Err(WriteError::Unknown { id: id.clone() })),
                Some(SessionHead { owner: Some(owner), .. }) => {
                    Ok(Err(WriteError::Live { id: id.clone(), owner }))
                }
                Some(head) => store::delete(transaction, head.row).map(Ok),
            })?;
            writer.removed(&id, &presences);
            Ok(())
        };
        self.shared.ask(0, job).await?
    }

    /// Deletes a session that has ended and has not changed since it was seen: not one that was taken up meanwhile, ended
    /// again or not. False: it has changed, is live, or is gone. As [`EventLog::delete`] otherwise.
    pub async fn delete_ended(&self, id: &str, seen: Unchanged) -> Result<bool, WriteError> {
        let (id, presences) = (id.to_owned(), Arc::clone(&self.shared.presences));
        let job = move |writer: &mut Writer| {
            if refuse_live(writer, &id).is_err() {
                return Ok(false);
            }
            let removed = writer.transact(Some(0), |transaction| {
                let Some(row) = store::ended_since(transaction, &id, seen)? else { return Ok(Ok(false)) };
                store::delete(transaction, row).map(|()| Ok(true))
            })?;
            if removed {
                writer.removed(&id, &presences);
            }
            Ok(removed)
        };
        self.shared.ask(0, job).await?
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
        Ok(self.shared.readers.read(move |connection| query::get(connection, &id)).await?)
    }

    /// A page of sessions.
    pub async fn list(&self, query: ListQuery) -> Result<Vec<SessionRow>, QueryError> {
        if self.shared.behind.load(Ordering::Acquire) {
            // A log that cannot be written is listed as it is.
            drop(self.shared.ask(0, Writer::write_times).await);
        }
        Ok(self.shared.readers.read(move |connection| query::list(connection, query)).await?)
    }

    /// Whether a session could begin now: the writer answers, no other process keeps the file locked, there is room, and
    /// no damage was found. Nothing is written, but for a file beside it that is gone again. Takes as long as the
    /// writer is busy with what was queued before. The first time, it also has the file looked through, beside.
    pub async fn check(&self) -> Result<(), WriteError> {
        self.shared.readers.inspect_once();
        self.shared.ask(0, Writer::check).await?
    }

    /// The sessions that a host has live, or had when it died.
    pub async fn owned_by(&self, owner: &str) -> Result<Vec<SessionRow>, QueryError> {
        let owner = owner.to_owned();
        Ok(self.shared.readers.read(move |connection| query::owned_by(connection, &owner)).await?)
    }

    /// Every host that has a session live or is writing one in pieces, or did when it died.
    pub async fn owners(&self) -> Result<Vec<String>, QueryError> {
        Ok(self.shared.readers.read(query::owners).await?)
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").finish_non_exhaustive()
    }
}

/// Writes a batch behind what a session has, with what subscribers are told of it.
pub(crate) fn append_behind(
    transaction: &Transaction<'_>,
    subscribers: &Subscribers,
    head: &SessionHead,
    batch: &Batch,
) -> rusqlite::Result<Vec<Block>> {
    let first = head.last_seq + 1;
    let blocks = BlockBuilder::whole(first, batch.records.clone(), batch.count);
    store::write(transaction, head.standing(), &blocks, (batch.index.as_ref(), RowTime::Now))?;
    subscribers.write(transaction, head.row, &subscribers.noted(first, batch))?;
    Ok(blocks)
}

pub(crate) fn refuse_live(writer: &Writer, id: &str) -> Result<(), WriteError> {
    match writer.live().get(id) {
        Some(_) => Err(WriteError::Live { id: id.to_owned(), owner: "this process".to_owned() }),
        None => Ok(()),
    }
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
