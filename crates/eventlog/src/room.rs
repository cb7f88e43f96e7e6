//! Room in the writer's queue, for sessions that decide at once what they append.

use std::fmt;
use std::sync::Arc;

use crate::log::Shared;

/// Whether the writer's queue has room.
#[derive(Clone)]
pub struct QueueRoom(Arc<Shared>);

impl QueueRoom {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Whether there is room now, or never will be because the log is closed.
    pub fn is_free(&self) -> bool {
        self.0.queue.has_room()
    }

    /// Waits until all that was queued before is committed, or cannot be.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn flushed(&self) {
        // A closed log writes nothing more.
        let _closed = self.0.ask(0, |_| ()).await;
    }

    /// Waits until there is room, first come first served, or the log is closed.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn wait(&self) {
        if !self.is_free() {
            self.0.queue.room().await;
        }
    }
}

impl fmt::Debug for QueueRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueRoom").field(&self.is_free()).finish()
    }
}
