//! Whether a session could begin: what must be free for that, and what the disk has said of itself.

use super::{Files, NO_HOST};
use crate::batch::Batch;
use crate::failure::WriteError;
use crate::log::Shared;
use crate::named::system_code;
use crate::reserve::free_bytes;
use crate::session_files::{Facts, SessionFileError};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Bytes that a first segment must find room for: twice what is written at once.
const ROOM_BYTES: u64 = 2 * 1024 * 1024;

/// Bytes that are written to try it: the description of a session, and some events.
const TRIED_BYTES: usize = 64 * 1024;

/// How long a disk is not trusted after it failed, though what is tried may go well.
const DOUBTED: Duration = Duration::from_secs(60);

/// The last time that the disk failed, other than for want of room.
#[derive(Debug, Default)]
pub(super) struct FailingDisk(Mutex<Option<(Instant, WriteError)>>);

impl FailingDisk {
    /// Takes notice of an error.
    pub(super) fn see(&self, error: &io::Error, failed: &WriteError) {
        if is_of_device(error) {
            *self.0.lock() = Some((super::live_segment::now(), failed.clone()));
        }
    }

    fn check(&self, now: Instant) -> Result<(), WriteError> {
        match &*self.0.lock() {
            Some((at, failed)) if now.saturating_duration_since(*at) < DOUBTED => Err(failed.clone()),
            _ => Ok(()),
        }
    }
}

/// Whether an error says that the disk, or what is on it, is out of order.
fn is_of_device(error: &io::Error) -> bool {
    let code = system_code(error).map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::IO | Errno::NXIO | Errno::NODEV | Errno::UCLEAN | Errno::STALE))
}

impl Shared {
    /// Whether a session could begin now. The index is not needed for that.
    pub(crate) async fn check_files(self: &Arc<Self>) -> Result<(), WriteError> {
        // One at a time: those who ask again and again take no second thread.
        let turn = self.files.check_turn().await;
        let check = move |_: &Self, files: &Files| {
            let _turn = turn;
            files.check()
        };
        self.with_files(check).await
    }
}

impl Files {
    /// Nothing begins in the room that is kept for ends, or beyond the limit.
    pub(super) fn check_beginning(&self) -> Result<(), WriteError> {
        if self.reserve.lock().is_owed() {
            return Err(self.full("the reserve of the log is not whole"));
        }
        self.check_limit(0)
    }

    /// Waits until nobody else tries whether a session could begin, which takes as long as a disk stands still. Held meanwhile.
    pub(super) async fn check_turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.checks).acquire_owned().await.ok()
    }

    /// Whether a session could begin now. Nothing is written, but for a session aside that is gone again.
    fn check(&self) -> Result<(), WriteError> {
        self.disk.check(super::live_segment::now())?;
        self.check_beginning()?;
        self.anybody.check_place().map_err(|error| self.failed(error))?;
        if let Some(redo) = &self.redo {
            redo.check().map_err(|error| WriteError::from_files(&error))?;
        }
        // It is not taken to try it: that could be what another session needs at this moment.
        if free_bytes(&self.state).is_some_and(|free| free < ROOM_BYTES) {
            return Err(self.full("less is free than a session may need"));
        }
        // What fails here is tried again the next time, and so no reason for doubts.
        self.try_to_begin().map_err(|error| match error {
            SessionFileError::Io(error) => WriteError::from_files(&error),
            error => WriteError::from_damage(&error),
        })
    }

    /// What a session that begins does, and whether its segment could grow.
    fn try_to_begin(&self) -> Result<(), SessionFileError> {
        let mut aside = self.anybody.begin_aside(&Facts { host: NO_HOST.to_owned(), ..Facts::default() })?;
        let mut batch = Batch::of_history();
        batch.push(0, 0, &[0; TRIED_BYTES]);
        aside.append(batch)?;
        aside.try_length(ROOM_BYTES)?;
        Ok(self.unsynced.check(aside.file())?)
    }

    pub(super) fn full(&self, why: &'static str) -> WriteError {
        self.failed(io::Error::new(io::ErrorKind::StorageFull, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // design session-files 8: a disk that failed is not one to begin on, until a minute has passed without another failure
    #[test]
    fn a_disk_that_failed_is_doubted_for_a_minute() {
        let disk = FailingDisk::default();
        let began = super::super::live_segment::now();
        for (error, is_seen) in [
            (Errno::NOSPC, false),
            (Errno::DQUOT, false),
            (Errno::FBIG, false),
            (Errno::NOENT, false),
            (Errno::IO, true),
            (Errno::UCLEAN, true),
        ] {
            let error = io::Error::from(error);
            disk.see(&error, &WriteError::from_files(&error));
            assert_eq!(disk.check(began).is_err(), is_seen, "{error}");
        }
        let seen = disk.0.lock().as_ref().expect("the last one was").0;
        assert!(disk.check(seen + DOUBTED - Duration::from_secs(1)).is_err());
        assert!(disk.check(seen + DOUBTED).is_ok());
    }
}
