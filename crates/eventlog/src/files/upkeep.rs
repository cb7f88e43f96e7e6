//! The work on a log's files that nobody waits for, and the threads that do it: sealing and syncing.

use super::Files;
use super::sealer::Sealer;
use super::syncing::SyncFile;
use crate::live::LiveSessions;
use crate::queue::Queue;
use crate::thread::Thread;
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The time from a session's release until it is sealed: one that is resumed at once is not.
const SEAL_AFTER: Duration = Duration::from_secs(60);
/// The time for which the disk may lack what was written.
const SYNC_EVERY: Duration = Duration::from_secs(10);

/// The times of that work, and how the disk is asked.
#[derive(Clone)]
pub(crate) struct UpkeepOptions {
    pub(crate) seal_after: Duration,
    pub(crate) sync_every: Duration,
    pub(crate) sync: SyncFile,
}

impl Default for UpkeepOptions {
    fn default() -> Self {
        Self { seal_after: SEAL_AFTER, sync_every: SYNC_EVERY, sync: Arc::new(File::sync_data) }
    }
}

/// The threads of a log over session files. They end when this is dropped.
pub(crate) struct Upkeep {
    files: Arc<Files>,
    threads: Mutex<Vec<Thread>>,
}

impl Upkeep {
    /// Starts the threads. `databases` are the index and that of the notes.
    pub(crate) fn start(
        (files, live, queue): (Arc<Files>, Arc<LiveSessions>, Arc<Queue>),
        databases: (PathBuf, PathBuf),
    ) -> io::Result<Self> {
        // From here on they end with it, also when not all of them can be had.
        let upkeep = Self { files: Arc::clone(&files), threads: Mutex::default() };
        let syncs = Arc::clone(&files);
        let sealer = move || Sealer::new(files, live, queue, databases).run();
        let syncer = Thread::start("event-log-sync", move || syncs.sync_changes())?;
        upkeep.threads.lock().push(syncer);
        let sealer = Thread::start_at_lowest_priority("event-log-seal", sealer)?;
        upkeep.threads.lock().push(sealer);
        Ok(upkeep)
    }

    /// Ends the threads once each has done the piece of work that it is at.
    pub(crate) async fn close(&self) {
        self.stop();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            if !thread.ended().await {
                tracing::error!("a thread of the event log died");
            }
        }
    }

    fn stop(&self) {
        self.files.seals.stop();
        self.files.unsynced.stop();
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.stop();
    }
}
