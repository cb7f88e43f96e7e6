//! What an index of sessions lacks, and what it has too much: the directories of all sessions against its rows.
//!
//! Names are compared first, which takes milliseconds; heads are read, once, only of sessions that are not in the index, or of which it
//! may have something else. In pieces, so that it can be done in the background. Writes nothing.

use super::heads::Head;
use super::{LastSegment, SessionDir, layout};
use crate::named::Named;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Sessions that are looked at in one piece.
const PIECE: usize = 256;

/// A session as the index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedSession {
    /// Its id.
    pub id: String,
    /// Its last event.
    pub last_seq: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// A session as its files have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    /// Where it stands, without what waits.
    pub last: LastSegment,
    /// Bytes of its files.
    pub bytes: u64,
    /// Whether it was given back and not all of it is sealed that is worth it.
    pub unsealed: bool,
}

impl FoundSession {
    /// One that stands so in its directory.
    pub(crate) fn of(directory: &SessionDir, last: LastSegment) -> Self {
        let bytes = directory.bytes().unwrap_or_default();
        let unsealed = last.standing.released && directory.has_unsealed(&last).unwrap_or(true);
        Self { last, bytes, unsealed }
    }
}

/// Some of what the index is to be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CatchUpPiece {
    /// Sessions that it lacks, or has otherwise. Where it has changed meanwhile, the row with the later event or change counts.
    pub sessions: Vec<FoundSession>,
    /// Ids that it has of sessions that are gone.
    pub gone: Vec<String>,
    /// Sessions whose removal has begun; whoever finds one finishes it. What it has of them is in `gone`, too.
    pub doomed: Vec<String>,
    /// Sessions that have another id already and not its place yet: the id of the place, and theirs. Whoever finds one finishes that.
    pub moving: Vec<(String, String)>,
}

/// The comparison, as far as it has come.
#[derive(Debug)]
pub struct CatchUp {
    sessions: PathBuf,
    left: Vec<(PathBuf, Option<IndexedSession>)>,
}

impl CatchUp {
    /// Compares the sessions of a state directory with those that the index has. `indexed` are its rows of sessions that are files,
    /// read before this is called; none if the index is new. The head of a session that it has is read only if that `is_suspect`: a
    /// host that died had it.
    ///
    /// # Errors
    /// When a directory cannot be read: what is in it cannot be said to be gone.
    pub fn new(
        state: &Path,
        indexed: Vec<IndexedSession>,
        is_suspect: impl Fn(&str) -> bool,
    ) -> io::Result<Self> {
        let sessions = layout::sessions(state);
        // By names: those of ids that are too long say nothing of these.
        let by_place = indexed.into_iter().map(|row| (OsString::from(layout::place(&row.id)), row));
        let mut indexed: HashMap<OsString, IndexedSession> = by_place.collect();
        let mut left = Vec::new();
        for spread in names_of_directories(&sessions)? {
            for name in names_of_directories(&sessions.join(&spread))? {
                let mut place = spread.clone();
                place.push("/");
                place.push(name);
                match indexed.remove(&place) {
                    Some(row) if !is_suspect(&row.id) => {}
                    row => left.push((sessions.join(place), row)),
                }
            }
        }
        left.extend(indexed.into_iter().map(|(place, row)| (sessions.join(place), Some(row))));
        Ok(Self { sessions, left })
    }

    /// How many sessions are still to be looked at.
    pub fn left(&self) -> usize {
        self.left.len()
    }

    fn look(&self, path: &Path, row: Option<IndexedSession>, piece: &mut CatchUpPiece) {
        match Head::read(&self.sessions, path) {
            Ok(Head::Session(last, directory)) => {
                let (id, standing) = (&last.facts.id, &last.standing);
                let is_same = |row: &IndexedSession| {
                    (&row.id, row.last_seq, row.updated_ms) == (id, standing.last_seq, standing.at_ms)
                };
                if !row.as_ref().is_some_and(is_same) {
                    // Of two ids with one hash, one can be there.
                    piece.gone.extend(row.map(|row| row.id).filter(|other| other != id));
                    piece.sessions.push(FoundSession::of(&directory, *last));
                }
            }
            Ok(Head::Doomed(id)) => {
                piece.gone.extend(row.map(|row| row.id));
                piece.doomed.push(id);
            }
            Ok(Head::Gone) => piece.gone.extend(row.map(|row| row.id)),
            // Under its old name until its renaming is finished.
            Ok(Head::Misplaced(new)) => {
                let name = path.file_name().and_then(|name| name.to_str());
                piece.moving.extend(name.and_then(layout::id_of).map(|id| (id, new)));
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(?path, error, "where a session stands cannot be read");
            }
        }
    }
}

impl Iterator for CatchUp {
    type Item = CatchUpPiece;

    fn next(&mut self) -> Option<CatchUpPiece> {
        if self.left.is_empty() {
            return None;
        }
        let mut piece = CatchUpPiece::default();
        for (path, row) in self.left.split_off(self.left.len().saturating_sub(PIECE)) {
            self.look(&path, row, &mut piece);
        }
        Some(piece)
    }
}

/// The directories in one, but for those whose names begin with a dot; none if it is not there.
pub(super) fn directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(names_of_directories(path)?.into_iter().map(|name| path.join(name)).collect())
}

fn names_of_directories(path: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.named(path)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.named(path)?;
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(b".") && entry.file_type().named(&entry.path())?.is_dir() {
            found.push(name);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
