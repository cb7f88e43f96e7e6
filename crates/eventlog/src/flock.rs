//! Locks of files and directories, for one handle of all processes.
//!
//! Invariant: a lock ends with what holds it, and with the process. A child that is being started at that moment has a copy of the
//! handle until it becomes another program; it does not keep the lock.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A handle that has the lock of what it is open for.
#[derive(Debug)]
pub(crate) struct Flock(OwnedFd);

impl Flock {
    /// Takes the lock. None: another has it, and that is not to be waited for.
    ///
    /// # Errors
    /// When the file system has no locks, or no room for one more.
    pub(crate) fn take(handle: impl Into<OwnedFd>, how: FlockOperation) -> io::Result<Option<Self>> {
        let handle = handle.into();
        loop {
            match flock(&handle, how) {
                Ok(()) => return Ok(Some(Self(handle))),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Flock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Flock {
    fn drop(&mut self) {
        // Where that fails, it ends with the last copy of the handle.
        let _held = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    // design session-files 5: a lock that is let go of is free at once, though a child of this moment has its handle, too
    #[test]
    fn a_copy_of_the_handle_does_not_keep_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let take = || {
            let handle = File::open(directory.path()).unwrap();
            let copy = handle.try_clone().unwrap();
            Flock::take(handle, FlockOperation::NonBlockingLockExclusive).unwrap().map(|lock| (lock, copy))
        };
        let (lock, _copy) = take().unwrap();
        assert!(take().is_none());
        drop(lock);
        assert!(take().is_some());
    }
}
