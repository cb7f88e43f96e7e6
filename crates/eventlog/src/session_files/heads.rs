//! The heads of sessions, for lists: where each stands now, as its files say it, without what waits.
//!
//! Reads only, and needs no lock: a session that another host has is read while that host writes it. Not here: what a list is made of
//! besides (`list_overlay.rs`).

use super::session_dir::{SessionDir, SessionFileError};
use super::{Claims, LastSegment, layout};
use crate::query::SessionRow;
use crate::segment::SegmentFlags;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// What is found under the name of a session.
#[derive(Debug)]
pub(super) enum Head {
    /// A session, and where it is.
    Session(Box<LastSegment>, SessionDir),
    /// One whose removal has begun: it is none any more, and what is left of it is to be taken away.
    Doomed(String),
    /// One with this other id, which belongs elsewhere: it is being renamed, or has the hash of another.
    Misplaced(String),
    /// Nothing.
    Gone,
}

impl Head {
    /// Reads it from a directory below that of all sessions.
    pub(super) fn read(sessions: &Path, path: &Path) -> Result<Self, SessionFileError> {
        let Some(directory) = SessionDir::open(path)? else { return Ok(Self::Gone) };
        let last = match directory.head() {
            Ok(last) => last,
            // It was removed meanwhile.
            Err(SessionFileError::Empty) => return Ok(Self::Gone),
            Err(error) if error.is_missing() => return Ok(Self::Gone),
            Err(error) => return Err(error),
        };
        Ok(match layout::session(sessions, &last.facts.id) == path {
            _ if last.header.flags.has(SegmentFlags::DELETED) => Self::Doomed(last.facts.id),
            true => Self::Session(Box::new(last), directory),
            false => Self::Misplaced(last.facts.id),
        })
    }
}

/// What the heads of other hosts' sessions say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// Sessions as they are.
    pub rows: Vec<SessionRow>,
    /// Sessions that are claimed and not there: gone, or not there yet.
    pub gone: Vec<String>,
}

/// Reads the heads of the sessions that hosts claim.
#[derive(Debug)]
pub struct HeadReader {
    sessions: PathBuf,
    /// Sessions whose heads cannot be read, which is said once.
    unreadable: Mutex<HashSet<String>>,
}

impl HeadReader {
    /// For the sessions of a state directory.
    pub fn new(state: &Path) -> Self {
        Self { sessions: layout::sessions(state), unreadable: Mutex::default() }
    }

    /// Reads the heads of all sessions that other hosts claim. The head says whose a session is, whatever the claims say: one that
    /// is an own host's is left out. So is one whose head cannot be read, with a warning: what else is known of it counts.
    pub fn read(&self, claims: &[Claims], is_own: impl Fn(&str) -> bool) -> Heads {
        let others = claims.iter().filter(|claims| !is_own(&claims.host));
        // Two may claim one session: what a host that died had, until its file goes.
        let ids: BTreeSet<&String> = others.flat_map(|claims| &claims.sessions).collect();
        let mut heads = Heads::default();
        for id in ids {
            match Head::read(&self.sessions, &layout::session(&self.sessions, id)) {
                // An own session is known better.
                Ok(Head::Session(last, _)) if last.owner().is_some_and(&is_own) => {}
                Ok(Head::Session(last, _)) if last.facts.id == *id => heads.rows.push((*last).into()),
                Ok(Head::Misplaced(_)) => {}
                Ok(_) => heads.gone.push(id.clone()),
                Err(error) => self.warn(id, &error),
            }
        }
        heads
    }

    fn warn(&self, id: &str, error: &SessionFileError) {
        if self.unreadable.lock().insert(id.to_owned()) {
            let error: &dyn std::error::Error = error;
            tracing::warn!(session = id, error, "where a session of another host stands cannot be read");
        }
    }
}

#[cfg(test)]
mod tests;
