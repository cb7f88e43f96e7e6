//! The sessions that earlier processes have left unsealed, by the index; and whether their notes are written.
//!
//! Read oldest first: whoever comes is behind those that are there, so each has its turn, and the one that changed longest ago
//! is the least likely to be resumed. One process at a time reads them, by a lock that it loses with its life.

use crate::flock::Flock;
use crate::notes;
use crate::schema;
use crate::session_files::layout;
use rusqlite::{Connection, params};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::path::{Path, PathBuf};

/// Sessions that are read at once.
const PIECE: u32 = 64;

type Failure = Box<dyn std::error::Error>;

/// A place in the index.
pub(super) struct Backlog {
    sessions: PathBuf,
    index: PathBuf,
    hooks: PathBuf,
    /// The last session that was read: when it changed, and its id.
    position: (i64, String),
    /// Held from the first piece to the last.
    lock: Option<Flock>,
    /// Open while there is something to do.
    open_index: Option<Connection>,
    open_hooks: Option<Connection>,
}

impl Backlog {
    /// That of a state directory, with its databases.
    pub(super) fn new(state: &Path, index: PathBuf, hooks: PathBuf) -> Self {
        let sessions = layout::sessions(state);
        let position = (i64::MIN, String::new());
        Self { sessions, index, hooks, position, lock: None, open_index: None, open_hooks: None }
    }

    /// The next sessions that have not changed since `before_ms`, in milliseconds since 1970; none at the end, or while another
    /// process reads them. Behind the end it begins again.
    pub(super) fn read(&mut self, before_ms: i64) -> Result<Vec<String>, Failure> {
        if self.lock.is_none() {
            self.lock = self.take_lock()?;
        }
        let found = match self.lock {
            Some(_) => self.read_piece(before_ms)?,
            None => Vec::new(),
        };
        match found.last() {
            Some((updated_ms, id)) => self.position = (*updated_ms, id.clone()),
            None => (self.position, self.lock) = ((i64::MIN, String::new()), None),
        }
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    fn read_piece(&mut self, before_ms: i64) -> Result<Vec<(i64, String)>, Failure> {
        let index = match &self.open_index {
            Some(open) => open,
            None => self.open_index.insert(schema::open_reader(&self.index)?),
        };
        let mut select = index.prepare_cached(
            "SELECT updated_ms, id FROM session WHERE owner IS NULL AND unsealed = 1 \
             AND (updated_ms, id) > (?1, ?2) AND updated_ms <= ?3 ORDER BY updated_ms, id LIMIT ?4",
        )?;
        let (updated_ms, id) = &self.position;
        let place = params![updated_ms, id, before_ms, PIECE];
        let rows = select.query_map(place, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn take_lock(&self) -> Result<Option<Flock>, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&self.sessions, flags, Mode::empty())?;
        Ok(Flock::take(handle, FlockOperation::NonBlockingLockExclusive)?)
    }

    /// Whether the notes of a session are written up to an event, or nobody would be told of them. `host` is who had it last.
    pub(super) fn is_noted(&mut self, id: &str, host: &str, upto: u64) -> Result<bool, Failure> {
        let hooks = match &self.open_hooks {
            Some(open) => open,
            None => self.open_hooks.insert(schema::open_reader(&self.hooks)?),
        };
        Ok(notes::subscribers(hooks, host)?.is_empty()
            || notes::noted(hooks, id)?.is_some_and(|noted| noted >= upto))
    }

    /// Closes the databases until there is something to do.
    pub(super) fn close(&mut self) {
        (self.open_index, self.open_hooks) = (None, None);
    }
}
