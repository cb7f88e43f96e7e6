//! What a segment is written to: a file, or what a test puts in its place.

use crate::disk_sync::sync_file;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

/// A file that is written at places of the writer's choice.
pub trait StoredFile {
    /// Writes some of these bytes, in order, at a place; says how many.
    ///
    /// # Errors
    /// When none could be written.
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;

    /// Cuts it off behind so many bytes.
    ///
    /// # Errors
    /// When it stays as long as it is.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Returns when what was written survives the loss of power.
    ///
    /// # Errors
    /// When that cannot be said.
    fn sync(&self) -> io::Result<()>;
}

impl StoredFile for File {
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        #[cfg(test)]
        super::held_file::meet(self)?;
        rustix::io::pwritev(self, pieces, offset).map_err(io::Error::from)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        sync_file(self)
    }
}

/// Writes all of these bytes at a place, in as many writes as it takes.
///
/// # Errors
/// When a part could not be written; what was before it may be.
pub(crate) fn write_all(
    file: &impl StoredFile,
    mut pieces: &mut [IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_at(pieces, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads so many bytes at a place.
///
/// # Errors
/// When they cannot be read, or the file ends before them.
pub(super) fn read_at(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}
