//! What a session was given and has not begun with: no events yet, and not to be lost with the host.
//!
//! Written with the batches of its host, and gone when the session has no host or another, unless that one goes on in its
//! place. What the bytes mean is the host's to know.

use crate::log::EventLog;
use crate::query::QueryError;

impl EventLog {
    /// What a session was given and has not begun with, in the order of the numbers.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub async fn waiting(&self, id: &str) -> Result<Vec<(u64, Vec<u8>)>, QueryError> {
        let id = id.to_owned();
        Ok(self.shared.with_files(move |_, files| files.waiting(&id)).await?)
    }
}
