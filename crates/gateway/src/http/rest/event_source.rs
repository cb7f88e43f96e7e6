//! Where the events of a session are read from: the log of this node, or the archive, where its node is gone.

use super::super::problem::Problem;
use super::event_cursor::cursor_problem;
use super::lost::Archived;
use crate::forms::EVENT_STREAM;
use acpd_eventlog::{Block, Cursor, CursorError};
use acpd_record::SessionId;
use bytes::Bytes;
use std::sync::Arc;

/// Events of one session, in order.
pub(super) enum EventSource {
    Log(Box<Cursor>),
    Archive(Box<Archived>),
}

/// Why no events come.
pub(super) enum Unread {
    /// The session was removed.
    Deleted,
    Problem(Problem),
}

impl EventSource {
    /// The last event that was given, or where it began.
    pub(super) fn position(&self) -> u64 {
        match self {
            Self::Log(cursor) => cursor.position(),
            Self::Archive(archived) => archived.position(),
        }
    }

    /// The last event that there is now.
    pub(super) fn last(&self) -> u64 {
        match self {
            Self::Log(cursor) => cursor.last(),
            Self::Archive(archived) => archived.last(),
        }
    }

    /// The next events. None: there will be no more here.
    ///
    /// # Cancel safety
    /// Safe: an event counts as given only when it is returned.
    pub(super) async fn next(&mut self, id: &SessionId) -> Result<Option<Block>, Unread> {
        match self {
            Self::Log(cursor) => cursor.next().await.map_err(|error| match error {
                CursorError::Unknown { .. } => Unread::Deleted,
                error => Unread::Problem(cursor_problem(&error, id)),
            }),
            Self::Archive(archived) => archived.next().await.map_err(Unread::Problem),
        }
    }

    /// The next events if they are in memory. None does not mean that there are none.
    pub(super) fn try_next(&mut self) -> Option<Block> {
        match self {
            Self::Log(cursor) => cursor.try_next(),
            Self::Archive(_) => None,
        }
    }

    /// A stream has begun: it takes as long as it takes, and shares with the others of its session.
    pub(super) fn begin_stream(&mut self) {
        match self {
            Self::Log(cursor) => cursor.share_forms(EVENT_STREAM),
            Self::Archive(archived) => archived.has_time(),
        }
    }

    /// As [`Cursor::shared_form`].
    pub(super) fn shared_form(
        &self,
        block: &Block,
        make: impl FnOnce() -> Arc<[Bytes]>,
    ) -> Option<Arc<[Bytes]>> {
        match self {
            Self::Log(cursor) => cursor.shared_form(block, make),
            Self::Archive(_) => None,
        }
    }

    /// Why the events end before the session does.
    pub(super) fn end(&self) -> Option<String> {
        match self {
            Self::Log(_) => None,
            Self::Archive(archived) => Some(archived.end()),
        }
    }
}

impl Unread {
    /// As a request is told.
    pub(super) fn problem(self, id: &SessionId) -> Problem {
        match self {
            Self::Deleted => Problem::session_not_found(id.as_str()),
            Self::Problem(problem) => problem,
        }
    }
}
