//! Room in the writer's queue, for sessions that decide at once what they append.

use std::fmt;
use std::sync::Arc;

use crate::live::LiveProgress;
use crate::log::Shared;

/// Whether what a session appends finds room, and nobody stands in a write of it. Keeps no file of the session open.
#[derive(Clone)]
pub struct QueueRoom {
    shared: Arc<Shared>,
    progress: Arc<LiveProgress>,
}

impl QueueRoom {
    pub(crate) fn new(shared: Arc<Shared>, progress: Arc<LiveProgress>) -> Self {
        Self { shared, progress }
    }

    /// Whether there is room now, or never will be because the log is closed. Not while a thread writes for the session: who
    /// holds a lock meanwhile is waited for by whoever takes that.
    pub fn is_free(&self) -> bool {
        self.shared.queue.has_room() && self.progress.is_idle()
    }

    /// Whether no thread writes for the session now.
    pub fn is_idle(&self) -> bool {
        self.progress.is_idle()
    }

    /// Waits until all that was appended before is committed, or cannot be.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn flushed(&self) {
        match self.shared.own_files() {
            Some(_) => self.progress.flushed().await,
            // A closed log writes nothing more.
            None => drop(self.shared.ask(0, |_| ()).await),
        }
    }

    /// Waits until there is room, first come first served, or the log is closed.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn wait(&self) {
        if !self.shared.queue.has_room() {
            self.shared.queue.room().await;
        }
        self.idle().await;
    }

    /// Waits until no thread writes for the session, which takes as long as a disk stands still; room is not waited for.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn idle(&self) {
        self.progress.idle().await;
    }
}

impl fmt::Debug for QueueRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueRoom").field(&self.is_free()).finish()
    }
}
