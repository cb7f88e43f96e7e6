//! Reads one session's events from any sequence number on, and then follows it.
//!
//! Owned by its reader. It gives every committed event after its start exactly once and in order, from memory
//! while it keeps up and from the file otherwise, a bounded piece at a time. A slow cursor is behind; it never holds
//! up the writer and never loses anything.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::block::Block;
use crate::cache::FormKind;
use crate::fault::SqliteFault;
use crate::files::{self, FilesRead};
use crate::live::{LiveProgress, Sharer};
use crate::log::Shared;
use crate::presence::Presence;
use crate::query::QueryError;
use crate::readers::ReadError;
use crate::session_files::SessionReader;

/// Why events can not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CursorError {
    /// There is no such session, or it was deleted.
    #[error("there is no session {id} in the event log")]
    Unknown {
        /// The session.
        id: String,
    },
    /// The start is beyond the last event.
    #[error("sequence number {after} is beyond the last event {last}")]
    Future {
        /// Where the cursor was to start.
        after: u64,
        /// The last event.
        last: u64,
    },
    /// The stored events are not readable.
    #[error("the events of session {id} from {seq} on are damaged")]
    Damaged {
        /// The session.
        id: String,
        /// The first event that is missing.
        seq: u64,
    },
    /// The file could not be read.
    #[error("{}", source.of_reading())]
    Read {
        /// What SQLite said.
        #[source]
        source: Arc<SqliteFault>,
    },
    /// The log was shut down.
    #[error("the event log is closed")]
    Closed,
}

impl From<QueryError> for CursorError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Read { source } => Self::Read { source },
            QueryError::Closed => Self::Closed,
        }
    }
}

impl From<ReadError> for CursorError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Sqlite(source) => Self::Read { source },
            ReadError::Closed => Self::Closed,
        }
    }
}

/// A row that the cache has no blocks of.
const NOT_CACHED: i64 = 0;

/// A place in a session's events.
pub struct Cursor {
    shared: Arc<Shared>,
    id: String,
    row: i64,
    /// The next event to give.
    next: u64,
    extent: Extent,
    /// Read from the file and not given yet.
    ahead: VecDeque<Block>,
    /// Of a session in files that is being read from them.
    reader: Option<Box<SessionReader>>,
    presence: Arc<Presence>,
    sharer: Option<Sharer>,
}

/// How far a session goes.
enum Extent {
    /// It is not written in this process: so far and no farther.
    Fixed(u64),
    /// It is live here.
    Live(Arc<LiveProgress>),
}

impl Cursor {
    pub(crate) async fn open(shared: &Arc<Shared>, id: &str, after: u64) -> Result<Self, CursorError> {
        // First, so that no removal comes between.
        let presence = shared.presences.of(id);
        let (row, extent) = match Self::attach(shared, id) {
            Some(live) => live,
            None => {
                let found = Self::find(shared, id).await?;
                let (row, last_seq) = found.ok_or_else(|| CursorError::Unknown { id: id.to_owned() })?;
                // It may have been reopened while we looked.
                Self::attach(shared, id).unwrap_or((row, Extent::Fixed(last_seq)))
            }
        };
        let (last, _) = extent.reach();
        if after > last {
            return Err(CursorError::Future { after, last });
        }
        let (shared, id) = (Arc::clone(shared), id.to_owned());
        let (next, ahead) = (after + 1, VecDeque::new());
        Ok(Self { shared, id, row, next, extent, ahead, reader: None, presence, sharer: None })
    }

    /// A session that is not live here: its row, and its last event.
    async fn find(shared: &Arc<Shared>, id: &str) -> Result<Option<(i64, u64)>, CursorError> {
        let id = id.to_owned();
        let row = shared.with_files(move |_, files| files.get(&id)).await;
        // The cache has blocks of live sessions alone.
        Ok(row.map_err(QueryError::from)?.map(|row| (NOT_CACHED, row.last_seq)))
    }

    fn attach(shared: &Shared, id: &str) -> Option<(i64, Extent)> {
        shared.live.get(id).map(|live| (live.row, Extent::Live(Arc::clone(live.progress()))))
    }

    /// Whether its session is there, also for those that have read all of it.
    pub fn presence(&self) -> Arc<Presence> {
        Arc::clone(&self.presence)
    }

    /// The last event that was given, or where the cursor began.
    pub fn position(&self) -> u64 {
        self.next - 1
    }

    /// The last event that is committed now, as far as this cursor can see.
    pub fn last(&self) -> u64 {
        self.extent.reach().0
    }

    /// The next events, waiting for them. Nothing when the session's appender is gone and all was given; for a
    /// session that is not live in this process, when all was given that was there at the beginning.
    ///
    /// # Errors
    ///
    /// When the events can not be read. The cursor stays where it is.
    ///
    /// # Cancel safety
    ///
    /// Safe: an event counts as given only when it is returned.
    pub async fn next(&mut self) -> Result<Option<Block>, CursorError> {
        loop {
            if let Some(block) = self.try_next() {
                return Ok(Some(block));
            }
            let (last, over) = self.extent.reach();
            if self.next <= last {
                // In a box: a cursor that waits for what comes need not have the room for reading what was.
                self.ahead = Box::pin(self.read_piece(last)).await?;
            } else if over {
                return Ok(None);
            } else if let Extent::Live(live) = &self.extent {
                let next = self.next;
                live.wait_until(|progress| (progress.committed >= next || progress.closed).then_some(()))
                    .await;
            }
        }
    }

    /// The next events if they are in memory, without waiting and without touching the file. Nothing does not mean
    /// that there are none.
    pub fn try_next(&mut self) -> Option<Block> {
        let block = match self.ahead.pop_front() {
            Some(block) => block,
            None if self.next <= self.extent.reach().0 => self.shared.cache.get(self.row, self.next)?,
            None => return None,
        };
        self.next = block.last() + 1;
        Some(block)
    }

    /// Shares the forms of this kind of a live session's blocks from now on with all other cursors that do.
    pub fn share_forms(&mut self, kind: FormKind) {
        if let Extent::Live(live) = &self.extent {
            self.sharer = Some(Sharer::new(live, kind));
        }
    }

    /// The form that `make` gives a block of this cursor, made once for all that share its kind: pieces without room for
    /// more, which depend on nothing but block and kind. They stay in memory with the block, and the bound counts both.
    ///
    /// None when no other cursor shares, when the cursor began inside the block, and when it was read from the file.
    pub fn shared_form(&self, block: &Block, make: impl FnOnce() -> Arc<[Bytes]>) -> Option<Arc<[Bytes]>> {
        let sharer = self.sharer.as_ref().filter(|sharer| !sharer.is_alone())?;
        self.shared.cache.form(self.row, block, sharer.kind, make)
    }

    async fn read_piece(&mut self, upto: u64) -> Result<VecDeque<Block>, CursorError> {
        let (from, id, reader) = (self.next, self.id.clone(), self.reader.take());
        let files = Arc::clone(&self.shared.files);
        let read = move || files::read_piece(&files, &id, reader, (from, upto));
        match self.shared.readers.run(read).await? {
            Ok(FilesRead::Blocks(blocks, reader)) => {
                // One that has caught up keeps no file open.
                let is_behind = blocks.last().is_some_and(|block| block.last() < upto);
                self.reader = Some(reader).filter(|_| is_behind);
                Ok(blocks.into())
            }
            Ok(FilesRead::Gone) => Err(CursorError::Unknown { id: self.id.clone() }),
            Ok(FilesRead::Damaged) => Err(CursorError::Damaged { id: self.id.clone(), seq: from }),
            Err(error) => Err(QueryError::from(error).into()),
        }
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("id", &self.id).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Extent {
    /// The last committed event, and whether there will be no more.
    fn reach(&self) -> (u64, bool) {
        match self {
            Self::Fixed(last) => (*last, true),
            Self::Live(live) => live.reach(),
        }
    }
}
