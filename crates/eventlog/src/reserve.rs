//! A file of incompressible bytes beside the log, which gives its room, a piece at a time, to what must be written
//! though the disk is full: the ends of sessions, deletions, and the start of a process.
//!
//! Owned by the writer thread; a process that starts cuts it before there is one. Invariants: last words leave the
//! part that a start needs; what was given is for those only, so nothing begins before it is whole again.

use crate::regular_file::open_regular;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// About a hundred last words of a few KiB each.
pub(crate) const RESERVE_BYTES: u64 = 4 * 1024 * 1024;

/// What it gives at once: a last word and what a commit writes beside it.
const PIECE_BYTES: u64 = 256 * 1024;

/// What a process writes while it starts: its host file, its lock, the index of the write-ahead file.
const START_BYTES: u64 = 256 * 1024;

/// It is filled only where so much is left beside it: a little room that was cleared is for other things.
const BESIDE_BYTES: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
    /// Something of it was given, or could not be had.
    missing: bool,
    /// It was said that it cannot be filled.
    told: bool,
    /// Something else found no room.
    is_short: bool,
}

impl Reserve {
    pub(crate) fn beside(database: &Path) -> Self {
        Self {
            path: path_in(database.parent().unwrap_or(database)),
            missing: true,
            told: false,
            is_short: false,
        }
    }

    /// What last words may have of it, in bytes.
    pub(crate) fn left(&self) -> u64 {
        length(&self.path).saturating_sub(START_BYTES)
    }

    /// Gives so many bytes to whatever is written next, or a piece if that is more. False when nothing was left to give.
    pub(crate) fn give(&mut self, bytes: u64) -> bool {
        let given = bytes.max(PIECE_BYTES).min(self.left());
        if given == 0 {
            return false;
        }
        self.missing = true;
        match cut(&self.path, given) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "the disk reserve could not be released");
                false
            }
        }
    }

    /// Whether something of it was given and cannot be had back, or would be needed next. One that never could be had was not given.
    pub(crate) fn is_owed(&mut self) -> bool {
        self.fill();
        self.is_short &= free_bytes(&self.path).is_some_and(|free| free < BESIDE_BYTES);
        self.is_short || (self.missing && self.path.exists())
    }

    /// The disk had no room for something. What is less still finds some, until none is left.
    pub(crate) fn see_full(&mut self) {
        self.is_short = true;
    }

    /// Makes it whole, if something is missing and there is room.
    pub(crate) fn fill(&mut self) {
        if !self.missing {
            return;
        }
        let have = length(&self.path);
        let wanted = RESERVE_BYTES.saturating_sub(have);
        let result = match free_bytes(&self.path) {
            _ if wanted == 0 => Ok(()),
            Some(free) if free < wanted + BESIDE_BYTES => Err(io::ErrorKind::StorageFull.into()),
            _ => grow(&self.path, have),
        };
        match result {
            Ok(()) => (self.missing, self.told) = (false, false),
            Err(error) if !self.told => {
                tracing::warn!(%error, "no room for the disk reserve");
                self.told = true;
            }
            Err(_) => {}
        }
    }
}

/// Cuts the reserve of the log in `dir` when the disk has less room than a process needs to start. Before anything is
/// made there.
pub fn make_room_to_start(dir: &Path) {
    let path = path_in(dir);
    let given = START_BYTES.min(length(&path));
    if given == 0 || free_bytes(&path).is_none_or(|free| free >= START_BYTES) {
        return;
    }
    if let Err(error) = cut(&path, given) {
        tracing::warn!(%error, "the disk reserve could not be released");
    }
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join("acpd.reserve")
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn cut(path: &Path, bytes: u64) -> io::Result<()> {
    open_regular(path, OpenOptions::new().write(true))?.set_len(length(path).saturating_sub(bytes))
}

/// Appends what is missing; what does not fit is taken back, so that one that is there was whole once.
fn grow(path: &Path, have: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = open_regular(path, options.write(true).create(true).truncate(false).mode(0o600))?;
    let written = write_from(&file, have);
    match written {
        Err(_) if have == 0 => fs::remove_file(path)?,
        Err(_) => file.set_len(have)?,
        Ok(()) => {}
    }
    written
}

/// Bytes that no file system compresses away.
fn write_from(file: &File, have: u64) -> io::Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ have;
    let wanted = RESERVE_BYTES.saturating_sub(have);
    let mut bytes = Vec::with_capacity(wanted as usize + 8);
    while (bytes.len() as u64) < wanted {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(wanted as usize);
    file.write_all_at(&bytes, have)
}

/// Returns the bytes that this process may still write to the disk that a file is on, as the file system reports it, with those kept for
/// root only for root. A quota or a limit on the size of files is not in it. The file, or its directory, exists. `None` where the file
/// system reports nothing.
pub fn free_bytes(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).or_else(|error| match path.parent() {
        Some(dir) => rustix::fs::statvfs(dir),
        None => Err(error),
    });
    // One that reports nothing has all zeros, as FUSE's default.
    let found = found.ok().filter(|found| found.f_blocks > 0 && found.f_frsize > 0)?;
    // Some of it is kept for root.
    let blocks = if rustix::process::geteuid().is_root() { found.f_bfree } else { found.f_bavail };
    Some(blocks.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: what is kept for the ends of sessions is given piece by piece, and a start finds some of it
    #[test]
    fn it_gives_a_piece_at_a_time_and_keeps_what_a_start_needs() {
        let dir = tempfile::TempDir::new().unwrap();
        let mut reserve = Reserve::beside(&dir.path().join("acpd.db"));
        assert!(!reserve.give(1), "there is none yet");
        reserve.fill();
        assert_eq!(length(&reserve.path), RESERVE_BYTES);
        assert!(reserve.give(1) && reserve.give(3 * PIECE_BYTES));
        assert_eq!(length(&reserve.path), RESERVE_BYTES - 4 * PIECE_BYTES);
        let pieces = std::iter::repeat_with(|| reserve.give(1)).take_while(|given| *given).count();
        assert_eq!(pieces as u64, (RESERVE_BYTES - START_BYTES) / PIECE_BYTES - 4);
        assert_eq!((length(&reserve.path), reserve.left()), (START_BYTES, 0));
        assert!(!reserve.is_owed());
        assert_eq!(length(&reserve.path), RESERVE_BYTES, "there is room again");
        reserve.see_full();
        assert!(!reserve.is_owed(), "there is room by now");
        // There is room: nothing has to be given for a start.
        make_room_to_start(dir.path());
        assert_eq!(length(&reserve.path), RESERVE_BYTES);
    }
}
