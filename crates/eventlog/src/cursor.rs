//! Reads one session's events from any sequence number on, and then follows it.
//!
//! Owned by its reader. It gives every committed event after its start exactly once and in order, from memory
//! while it keeps up and from the file otherwise, a bounded piece at a time. A slow cursor is behind; it never holds
//! up the writer and never loses anything.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use rusqlite::Connection;

use crate::block::Block;
use crate::fault::SqliteFault;
use crate::live::Live;
use crate::log::Shared;
use crate::presence::Presence;
use crate::readers::ReadError;
use crate::store;

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

impl From<ReadError> for CursorError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Sqlite(source) => Self::Read { source },
            ReadError::Closed => Self::Closed,
        }
    }
}

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
    presence: Arc<Presence>,
}

/// How far a session goes.
enum Extent {
    /// It is not written in this process: so far and no farther.
    Fixed(u64),
    /// It is live here.
    Live(Arc<Live>),
}

impl Cursor {
    pub(crate) async fn open(shared: &Arc<Shared>, id: &str, after: u64) -> Result<Self, CursorError> {
        // First, so that no removal comes between.
        let presence = shared.presences.of(id);
        let (row, extent) = match Self::attach(shared, id) {
            Some(live) => live,
            None => {
                let key = id.to_owned();
                let found =
                    shared.readers.read(move |connection| store::session_head(connection, &key)).await?;
                let found = found.ok_or_else(|| CursorError::Unknown { id: id.to_owned() })?;
                // It may have been reopened while we looked.
                Self::attach(shared, id).unwrap_or((found.row, Extent::Fixed(found.last_seq)))
            }
        };
        let (last, _) = extent.reach();
        if after > last {
            return Err(CursorError::Future { after, last });
        }
        let (shared, id) = (Arc::clone(shared), id.to_owned());
        Ok(Self { shared, id, row, next: after + 1, extent, ahead: VecDeque::new(), presence })
    }

    fn attach(shared: &Shared, id: &str) -> Option<(i64, Extent)> {
        shared.live.get(id).map(|live| (live.row, Extent::Live(live)))
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

    async fn read_piece(&self, upto: u64) -> Result<VecDeque<Block>, CursorError> {
        let (row, from, id) = (self.row, self.next, self.id.clone());
        let found =
            self.shared.readers.read(move |connection| find(connection, row, from, upto, &id)).await?;
        match found {
            Found::Blocks(blocks) => Ok(blocks.into()),
            Found::Deleted => Err(CursorError::Unknown { id: self.id.clone() }),
            Found::Damaged => Err(CursorError::Damaged { id: self.id.clone(), seq: from }),
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

enum Found {
    Blocks(Vec<Block>),
    Deleted,
    Damaged,
}

fn find(connection: &Connection, row: i64, from: u64, upto: u64, id: &str) -> rusqlite::Result<Found> {
    // The blocks of one that was deleted go later, a piece at a time.
    if store::session_head(connection, id)?.is_none_or(|found| found.row != row) {
        return Ok(Found::Deleted);
    }
    Ok(store::read_piece(connection, row, from, upto)?.map_or(Found::Damaged, Found::Blocks))
}
