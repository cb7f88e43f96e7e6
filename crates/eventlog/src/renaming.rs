//! Another id for a session that has ended, so that the one it had is free for another session.
//!
//! A process that is killed leaves the session under the one id or the other, and what belongs to it comes along: events, checkpoint,
//! words, notes, and what waits. A reader of the old id learns that nothing is there any more, as after a removal. Not here: which
//! ids, and how the files get them (`session_files/renaming.rs`).

use crate::failure::WriteError;
use crate::files::Files;
use crate::log::{EventLog, Shared};
use crate::sizes::Unchanged;

/// What a session is from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// Its id, unique for ever.
    pub id: String,
    /// The host's own description, opaque here.
    pub info: Vec<u8>,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
}

impl EventLog {
    /// Gives a session that has ended, and has not changed since it was seen, another id and description, for `host`, one of this
    /// process. False: it has changed, is
    /// live, or is gone. As [`EventLog::delete`] does, it may use the reserve.
    ///
    /// # Errors
    ///
    /// [`WriteError::Exists`] if there is a session of the new id; nothing has changed then.
    pub async fn rename(
        &self,
        id: &str,
        host: &str,
        seen: Unchanged,
        renamed: Renamed,
    ) -> Result<bool, WriteError> {
        let (id, host) = (id.to_owned(), host.to_owned());
        self.shared.until_left(&id).await;
        let rename =
            move |shared: &Shared, files: &Files| shared.rename_files(files, (&id, &host), seen, renamed);
        self.shared.with_files(rename).await
    }
}
