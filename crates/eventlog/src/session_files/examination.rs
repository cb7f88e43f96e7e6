//! A look through all sessions of a state directory for damage, while others may use them. Reads only.

use super::catch_up::directories;
use super::heads::Head;
use super::layout;
use super::reader::{Read, SessionReader};
use super::session_dir::{SessionDir, SessionFileError};
use std::io;
use std::path::{Path, PathBuf};

/// What a look through all sessions has found.
#[derive(Debug, Default)]
pub struct Examination {
    /// Sessions that there are.
    pub sessions: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// The directories of those that cannot be read as a whole, and why.
    pub damaged: Vec<(PathBuf, SessionFileError)>,
}

impl Examination {
    /// Looks through the sessions of a state directory: where each stands, and its events as long as those of all have no more than
    /// `most` bytes as they are stored. What is damaged behind that is found when it is read.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn of(state: &Path, most: u64) -> io::Result<Self> {
        let (sessions, mut found) = (layout::sessions(state), Self::default());
        for spread in directories(&sessions)? {
            for path in directories(&spread)? {
                match found.look(&sessions, &path, most) {
                    // It was removed meanwhile.
                    Err(error) if !error.is_gone() => found.damaged.push((path, error)),
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    fn look(&mut self, sessions: &Path, path: &Path, most: u64) -> Result<(), SessionFileError> {
        let Some(directory) = SessionDir::open(path)? else { return Ok(()) };
        self.bytes += directory.bytes()?;
        match Head::read(sessions, path) {
            // What is being removed or renamed is none here, or none yet.
            Ok(Head::Gone | Head::Doomed(_) | Head::Misplaced(_)) => Ok(()),
            Ok(Head::Session(last, directory)) => {
                self.sessions += 1;
                if self.bytes <= most { read_events(directory, last.standing.last_seq) } else { Ok(()) }
            }
            Err(error) => {
                self.sessions += 1;
                Err(error)
            }
        }
    }
}

/// Reads all events of a session up to `last`.
fn read_events(directory: SessionDir, last: u64) -> Result<(), SessionFileError> {
    let number = directory.parts()?.last().map_or(1, |part| part.range().1);
    let mut reader = SessionReader::new(directory, 0);
    while let Read::Blocks(_) = reader.read(last)? {}
    match reader.next_seq() > last {
        true => Ok(()),
        // Its head says more than its segments have.
        false => Err(SessionFileError::Damaged { number, last_seq: reader.next_seq() - 1 }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{batch, begin, claim};
    use super::*;
    use std::fs;

    // contract 7.1: a look finds whole sessions, also one that is being written, and names the place of a damaged one
    #[test]
    fn damage_is_found_where_it_is() {
        let (state, mut model) = (tempfile::tempdir().unwrap(), Vec::new());
        assert_eq!(Examination::of(state.path(), u64::MAX).unwrap().sessions, 0);
        let (directory, mut claimed) = begin(state.path(), &mut model);
        claimed.writer.append(batch(&[100, 200], &mut model), None).unwrap();
        drop(claim(&directory, false, batch(&[300], &mut model)));
        let whole = Examination::of(state.path(), u64::MAX).unwrap();
        assert_eq!((whole.sessions, whole.damaged.len()), (1, 0));
        let session = directory.path("a");
        let bytes: u64 =
            fs::read_dir(&session).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert_eq!(whole.bytes, bytes);

        // Within an event of the first segment.
        let segment = session.join("1.log");
        let mut bytes = fs::read(&segment).unwrap();
        let middle = bytes.len() - 100;
        bytes[middle] ^= 1;
        fs::write(&segment, &bytes).unwrap();
        let damaged = Examination::of(state.path(), u64::MAX).unwrap().damaged;
        let [(path, error)] = &damaged[..] else { panic!("{damaged:?}") };
        assert_eq!(*path, session);
        assert_eq!(error.to_string(), "segment 1 of the session is damaged behind event 1");
        assert!(Examination::of(state.path(), 0).unwrap().damaged.is_empty(), "no event is read then");

        fs::write(session.join("2.log"), "no segment").unwrap();
        let found = Examination::of(state.path(), 0).unwrap();
        assert_eq!((found.sessions, found.damaged.len()), (1, 1), "where it stands is read always");
    }
}
