//! The core of a live session, for its task, which alone changes it, and for readers, which need not wait for the task.

use super::core::SessionCore;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The core of a live session.
#[derive(Clone, Debug)]
pub(crate) struct SharedCore(Arc<Mutex<SessionCore>>);

impl SharedCore {
    pub(crate) fn new(core: SessionCore) -> Self {
        Self(Arc::new(Mutex::new(core)))
    }

    /// The core; nothing is awaited while it is held.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SessionCore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
