//! Events from the files of a session, a piece at a time.

use super::Files;
use crate::block::Block;
use crate::failure::WriteError;
use crate::session_files::{Read, SessionFileError, SessionReader};

/// What a piece of a session's files has.
pub(crate) enum FilesRead {
    /// Events, and the reader for what is behind them.
    Blocks(Vec<Block>, Box<SessionReader>),
    /// The session is gone.
    Gone,
    /// The next event cannot be read, though it was there.
    Damaged,
}

/// The events of a session from `from` on, to `upto` at most. Blocks the thread.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn read_piece(
    files: &Files,
    id: &str,
    reader: Option<Box<SessionReader>>,
    (from, upto): (u64, u64),
) -> Result<FilesRead, WriteError> {
    let mut reader = match reader.filter(|reader| reader.next_seq() == from) {
        Some(reader) => match reader.is_at(&files.anybody.path(id)) {
            Ok(true) => reader,
            Ok(false) => return Ok(FilesRead::Gone),
            Err(error) => return Err(files.failed(error)),
        },
        None => match files.directory_of(id)? {
            Some(directory) => Box::new(SessionReader::new(directory, from - 1)),
            None => return Ok(FilesRead::Gone),
        },
    };
    match reader.read(upto) {
        Ok(Read::Blocks(blocks)) => Ok(FilesRead::Blocks(blocks, reader)),
        // It had them: what is there now is another session, or none.
        Ok(Read::End) => {
            Ok(if files.directory_of(id)?.is_none() { FilesRead::Gone } else { FilesRead::Damaged })
        }
        Err(error) if error.is_gone() && files.directory_of(id)?.is_none() => Ok(FilesRead::Gone),
        Err(error @ SessionFileError::Io(_)) => Err(files.unreadable(error)),
        Err(_) => Ok(FilesRead::Damaged),
    }
}
