//! A session whose host is gone and whose agent is not: another host goes on with it where it stands.
//!
//! Who may do that, and whether the host is gone, is decided above.

use std::sync::Arc;

use crate::appender::Appender;
use crate::batch::Batch;
use crate::failure::WriteError;
use crate::files::Files;
use crate::log::{EventLog, Shared};

impl EventLog {
    /// Makes `owner` the host of a session that host `from` has live, in one commit with a batch, and gives its appender.
    /// Its state and position stay as they are but for what the batch changes; what the batch says of the owner does not
    /// count. From then on nothing is written by an appender that was opened for `from`.
    ///
    /// # Errors
    ///
    /// [`WriteError::Ended`] if it has ended, [`WriteError::TakenOver`] if another host has it, [`WriteError::Conflict`] if
    /// none has, [`WriteError::Live`] if it has an appender here.
    pub async fn adopt(
        &self,
        id: &str,
        from: &str,
        owner: &str,
        mut batch: Batch,
    ) -> Result<Appender, WriteError> {
        batch.check_size()?;
        if let Some(index) = &mut batch.index {
            index.owner = None;
        }
        let shared = Arc::clone(&self.shared);
        let (id, from, owner) = (id.to_owned(), from.to_owned(), owner.to_owned());
        shared.until_left(&id).await;
        shared.begin_host(&owner).await?;
        let left = shared.derive_notes(&id, &from).await?;
        let adopt = move |shared: &Shared, files: &Files| {
            shared.adopt_files(files, &id, (&from, &owner), (&batch, left))
        };
        let live = shared.with_files(adopt).await?;
        Ok(Appender::new(Arc::clone(&shared), live))
    }
}
