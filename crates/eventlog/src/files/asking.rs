//! How callers of a log come to its files: on threads where they may block, behind what is queued for those.

use super::Files;
use crate::failure::WriteError;
use crate::log::Shared;
use crate::writer::Writer;
use std::sync::Arc;

impl Shared {
    /// Has the index say all that it is to say. One that cannot be written stays as it is.
    pub(crate) async fn write_rows_first(&self) {
        if self.files.rows.is_behind() {
            drop(self.ask(0, Writer::write_rows).await);
        }
    }

    /// The files that an appender writes itself: not where the writer thread syncs what many append.
    pub(crate) fn own_files(&self) -> Option<&Arc<Files>> {
        Some(&self.files).filter(|files| files.redo.is_none())
    }

    /// Does something with the files of sessions on a thread where it may block.
    pub(crate) async fn with_files<T: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self, &Files) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, WriteError> {
        let shared = Arc::clone(self);
        let done = self.readers.run(move || act(&shared, &shared.files)).await;
        done.unwrap_or(Err(WriteError::Closed))
    }
}
