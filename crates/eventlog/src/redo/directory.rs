//! Where redo files are: a directory for each log that writes some, `redo/` below the state directory.
//!
//! Who has a directory holds a lock of it, which the system gives back when it dies: so what is found unlocked is of a log that has
//! ended without its segments being synced. Whoever makes or looks for one holds the lock of `redo/` meanwhile, so that none is found
//! half made, and two that start together replay each only once.

use crate::disk_sync::{open_directory, sync_names};
use crate::flock::Flock;
use crate::named::Named;
use crate::session_files::{layout, new_nonce};
use rustix::fs::FlockOperation;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The names of the two files.
const NAMES: [&str; 2] = ["0", "1"];

/// The redo files of one log. Dropped, they stay and belong to nobody.
#[derive(Debug)]
pub struct RedoDirectory {
    path: PathBuf,
    /// Has its lock.
    _lock: Flock,
}

impl RedoDirectory {
    /// Makes a directory with two files that have no entries, all of which survives the loss of power.
    ///
    /// # Errors
    /// When that cannot be done.
    pub fn begin(state: &Path) -> io::Result<(Self, [File; 2])> {
        let all = layout::redo(state);
        make(&all)?;
        let alone = lock_all(&all)?;
        let path = all.join(format!("{:032x}", u128::from_le_bytes(new_nonce()?)));
        make(&path)?;
        let begun = Self::make_files(&path).and_then(|made| {
            sync_names(&alone)?;
            sync_names(&open_directory(state)?)?;
            Ok(made)
        });
        if begun.is_err() {
            drop(fs::remove_dir_all(&path));
        }
        let (lock, files) = begun?;
        Ok((Self { path, _lock: lock }, files))
    }

    fn make_files(path: &Path) -> io::Result<(Flock, [File; 2])> {
        let lock = Flock::take(open_directory(path)?, FlockOperation::NonBlockingLockExclusive)?;
        let lock = lock.ok_or(io::ErrorKind::WouldBlock)?;
        let mut options = OpenOptions::new();
        let make = |name| options.read(true).write(true).create_new(true).mode(0o600).open(path.join(name));
        let [first, second] = NAMES.map(make);
        let files = [first?, second?];
        sync_names(&lock)?;
        Ok((lock, files))
    }

    /// Those that are of no log any more, each with its lock, while `alone` is held.
    pub(super) fn find_left(all: &Path, _alone: &Flock) -> io::Result<Vec<Self>> {
        let mut left = Vec::new();
        for entry in fs::read_dir(all)? {
            let path = entry?.path();
            // What is no directory is not of ours.
            let Ok(handle) = open_directory(&path) else { continue };
            if let Some(lock) = Flock::take(handle, FlockOperation::NonBlockingLockExclusive)? {
                left.push(Self { path, _lock: lock });
            }
        }
        Ok(left)
    }

    /// What is in its files, as far as they are there.
    pub(super) fn read(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for name in NAMES {
            let path = self.path.join(name);
            match fs::read(&path) {
                Ok(bytes) => found.push(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.named(&path)),
            }
        }
        Ok(found)
    }

    /// Takes it away: the segments of all entries are synced.
    ///
    /// # Errors
    /// When that cannot be done. What is left is replayed, to no effect.
    pub fn remove(self) -> io::Result<()> {
        for name in NAMES {
            match fs::remove_file(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::remove_dir(&self.path)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The lock of all redo files of a state directory; waits for whoever has it.
pub(super) fn lock_all(all: &Path) -> io::Result<Flock> {
    let lock = Flock::take(open_directory(all)?, FlockOperation::LockExclusive)?;
    Ok(lock.ok_or(io::ErrorKind::WouldBlock)?)
}

fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_left(state: &Path) -> Vec<RedoDirectory> {
        let all = layout::redo(state);
        let alone = lock_all(&all).expect("nobody has it");
        RedoDirectory::find_left(&all, &alone).expect("it is read")
    }

    // design session-files 5: the redo files of a log that lives are its own, in this process as in any other
    #[test]
    fn files_are_left_when_their_log_is_gone() {
        let state = tempfile::tempdir().unwrap();
        let (one, files) = RedoDirectory::begin(state.path()).unwrap();
        let (other, _) = RedoDirectory::begin(state.path()).unwrap();
        assert!(find_left(state.path()).is_empty());
        drop((other, files));
        let found = find_left(state.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].read().unwrap(), [b"", b""]);
        assert!(find_left(state.path()).is_empty(), "who has found it has it");
        found.into_iter().next().unwrap().remove().unwrap();
        one.remove().unwrap();
        assert_eq!(fs::read_dir(state.path().join("redo")).unwrap().count(), 0);
        fs::write(state.path().join("redo/odd"), "").unwrap();
        assert!(find_left(state.path()).is_empty());
    }
}
