//! The log over session files: which files it has open, and what it knows of the sessions of this process.
//!
//! The files are the truth; the database beside them is an index of them, written later (`rows.rs`), which may be locked,
//! damaged or gone. Who has a session is decided by claims (`owning.rs`); who has it appends to it without asking anybody
//! (`live_segment.rs`). Not here: the form of the files (`session_files.rs`).

mod asking;
mod backlog;
mod beside;
mod catching_up;
mod group_commit;
mod index;
mod lists;
mod live_segment;
mod owning;
mod partial;
mod readiness;
mod reading;
mod redo_log;
mod rows;
mod running_writes;
mod seal_schedule;
mod sealer;
mod syncing;
mod upkeep;

pub(crate) use backlog::{Group, Queued};
pub(crate) use beside::Beside;
pub(crate) use index::{IndexRow, remove_garbage, write};
pub(crate) use live_segment::LiveSegment;
pub(crate) use partial::PartialFiles;
pub(crate) use reading::{FilesRead, read_piece};
pub(crate) use redo_log::RedoLog;
pub(crate) use rows::UnwrittenRows;
pub(crate) use running_writes::{LARGE_BYTES, RunningWrite};
pub(crate) use upkeep::{Upkeep, UpkeepOptions};

use crate::failure::WriteError;
use crate::named::{Named, system_code};
use crate::options::Durability;
use crate::outbox::Subscribers;
use crate::redo;
use crate::reserve::Reserve;
use crate::schema::OpenError;
use crate::session_files::{
    Claims, ClaimsFile, HeadReader, NO_HOST, SessionDirectory, SessionFileError, layout,
};
use backlog::BacklogWriters;
use parking_lot::{Mutex, RwLock};
use readiness::FailingDisk;
use running_writes::RunningWrites;
use sealer::SealQueue;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use syncing::UnsyncedFiles;
use tokio::sync::Semaphore;

/// The part of a log over session files in one process.
#[derive(Debug)]
pub(crate) struct Files {
    state: PathBuf,
    /// Hosts that have begun sessions here.
    hosts: Mutex<HashMap<String, Arc<FilesHost>>>,
    /// One change of who has a session at a time: between its claim and its entry among the live sessions comes no other.
    owning: Mutex<()>,
    /// The next number by which the cache knows a live session.
    keys: AtomicI64,
    /// Rows that the index does not have yet.
    pub(crate) rows: UnwrittenRows,
    writes: RunningWrites,
    /// Those that write what async threads do not.
    pub(crate) backlogs: BacklogWriters,
    /// Those that are told of events.
    pub(crate) subscribers: RwLock<Arc<Subscribers>>,
    reserve: Arc<Mutex<Reserve>>,
    disk: FailingDisk,
    /// For one who tries whether a session could begin.
    checks: Arc<Semaphore>,
    /// The most that all files may take, in bytes.
    limit: Option<SizeLimit>,
    /// Sessions that may have an owner though no claims name them: copies of live sessions were put into the directory.
    unclaimed: Mutex<BTreeSet<String>>,
    /// What commits survive the loss of power by, if they do.
    pub(crate) redo: Option<RedoLog>,
    anybody: SessionDirectory,
    /// Sessions that are to be sealed.
    seals: SealQueue,
    /// Sessions that are to be synced.
    pub(crate) unsynced: UnsyncedFiles,
    /// Looks at the sessions of other hosts.
    heads: HeadReader,
    head_turns: lists::HeadTurns,
}

/// A host of this process.
#[derive(Debug)]
struct FilesHost {
    directory: SessionDirectory,
    claims: Mutex<ClaimsFile>,
}

/// The most that all files may take, and about what they take.
#[derive(Debug)]
struct SizeLimit {
    most: u64,
    used: AtomicI64,
}

impl Files {
    /// Those of a state directory, which is there.
    ///
    /// # Errors
    /// When a directory cannot be made or read, or a thread cannot be had.
    pub(crate) fn open(
        state: &Path,
        reserve: Arc<Mutex<Reserve>>,
        most: Option<u64>,
        subscribers: Arc<Subscribers>,
        (upkeep, index_lag): (UpkeepOptions, Duration),
        durability: Durability,
    ) -> Result<Self, OpenError> {
        let at_state = |source| OpenError::Directory { path: state.to_owned(), source };
        // What another log has left, before any session is read.
        let replayed = redo::replay_all(state, &redo::boot_id(), |bytes| reserve.lock().give(bytes));
        replayed.named(&layout::redo(state)).map_err(at_state)?;
        let syncs = durability == Durability::Power;
        let anybody = SessionDirectory::open(state, NO_HOST).and_then(|directory| directory.syncing(syncs));
        let anybody = anybody.map_err(at_state)?;
        let limit = match most {
            Some(most) => {
                let used = anybody.bytes().map_err(at_state)?;
                Some(SizeLimit { most, used: AtomicI64::new(signed(used)) })
            }
            None => None,
        };
        let no_thread = |source| OpenError::Thread { path: state.to_owned(), source };
        Ok(Self {
            state: state.to_owned(),
            hosts: Mutex::default(),
            owning: Mutex::default(),
            keys: AtomicI64::new(1),
            rows: UnwrittenRows::new(index_lag),
            writes: RunningWrites::new(live_segment::now()),
            backlogs: BacklogWriters::start().map_err(no_thread)?,
            subscribers: RwLock::new(subscribers),
            reserve,
            disk: FailingDisk::default(),
            checks: Arc::new(Semaphore::new(1)),
            limit,
            unclaimed: Mutex::default(),
            redo: syncs.then(|| RedoLog::new(state)),
            anybody,
            seals: SealQueue::new(upkeep.seal_after),
            unsynced: UnsyncedFiles::new(upkeep.sync_every, upkeep.sync),
            heads: HeadReader::new(state),
            head_turns: lists::HeadTurns::default(),
        })
    }

    fn host(&self, name: &str) -> io::Result<Arc<FilesHost>> {
        let mut hosts = self.hosts.lock();
        if let Some(host) = hosts.get(name) {
            return Ok(Arc::clone(host));
        }
        let syncs = self.redo.is_some();
        let directory = SessionDirectory::open(&self.state, name)?.syncing(syncs)?;
        // One of this name that has ended may have left sessions.
        let left = Claims::of_all(&self.state)?.into_iter().find(|claims| claims.host == name);
        let mut claims = ClaimsFile::begin(&self.state, name)?.syncing(&self.state, syncs)?;
        for id in left.iter().flat_map(|left| &left.sessions) {
            claims.add(id)?;
        }
        let host = Arc::new(FilesHost { directory, claims: Mutex::new(claims) });
        hosts.insert(name.to_owned(), Arc::clone(&host));
        Ok(host)
    }

    /// The hosts of this process.
    pub(crate) fn host_names(&self) -> Vec<String> {
        self.hosts.lock().keys().cloned().collect()
    }

    /// Begins a write on one of so many async threads. None: none of them must write now.
    pub(crate) fn begin_write(&self, workers: usize) -> Option<RunningWrite<'_>> {
        self.writes.begin_inline(workers, live_segment::now())
    }

    fn next_key(&self) -> i64 {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// Only last words are written beyond the limit, which so many bytes are within.
    fn check_limit(&self, bytes: usize) -> Result<(), WriteError> {
        match &self.limit {
            Some(limit) if limit.used.load(Ordering::Relaxed) + signed(bytes as u64) > signed(limit.most) => {
                Err(self.full("the event log has reached its limit"))
            }
            _ => Ok(()),
        }
    }

    /// So many bytes were written, or given back.
    fn count(&self, bytes: i64) {
        if let Some(limit) = &self.limit {
            limit.used.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Does `attempt`, again and again as long as it finds the disk full and the reserve has something to give.
    fn with_reserve<T>(
        &self,
        bytes: usize,
        mut attempt: impl FnMut() -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        loop {
            match attempt() {
                Err(WriteError::DiskFull { .. }) if self.reserve.lock().give(bytes as u64) => {}
                result => return result,
            }
        }
    }

    /// Something of the files could not be written.
    fn failed(&self, error: io::Error) -> WriteError {
        let failed = WriteError::from_files(&error);
        self.disk.see(&error, &failed);
        // Of the system: what is said here of the reserve is no news.
        if system_code(&error).is_some() && matches!(failed, WriteError::DiskFull { .. }) {
            self.reserve.lock().see_full();
        }
        failed
    }

    fn unreadable(&self, error: SessionFileError) -> WriteError {
        match error {
            SessionFileError::Io(error) => self.failed(error),
            error => WriteError::from_damage(&error),
        }
    }
}

/// As a number that can be taken away from another.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
