//! Where the events of a session are read from: the log of this node, or the archive, where its node is gone.

use super::super::problem::Problem;
use super::event_cursor::cursor_problem;
use super::lost::Archived;
use acpd_eventlog::{Block, Cursor, CursorError};
use acpd_record::SessionId;

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

    /// An answer has begun, and takes as long as it takes.
    pub(super) fn has_time(&mut self) {
        if let Self::Archive(archived) = self {
            archived.has_time();
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
