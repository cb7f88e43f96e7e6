//! A session that is written in pieces and comes to be all at once.
//!
//! Its files are aside until it is whole, so no reader finds them. What is given up, here or by the death of its host, goes. Not here:
//! what is written.

use std::fmt;
use std::sync::Arc;

use crate::batch::Batch;
use crate::failure::WriteError;
use crate::files::{Files, PartialFiles};
use crate::log::{EventLog, NewSession, Shared};

/// A session that is being written. When it is dropped, nothing is left of it.
pub struct Partial {
    shared: Arc<Shared>,
    /// None while a piece is written.
    files: Option<Box<PartialFiles>>,
}

impl EventLog {
    /// Begins a session that host `owner` writes in pieces.
    ///
    /// # Errors
    ///
    /// When there is no room for it.
    pub async fn begin_partial(&self, owner: &str) -> Result<Partial, WriteError> {
        let (shared, owner) = (Arc::clone(&self.shared), owner.to_owned());
        let begun = shared.with_files(move |_, files| files.begin_partial(&owner)).await?;
        Ok(Partial { shared, files: Some(Box::new(begun)) })
    }

    /// Gives up the sessions that host `owner` was writing when it died.
    ///
    /// # Errors
    ///
    /// When that cannot be written.
    pub async fn discard_partials(&self, owner: &str) -> Result<(), WriteError> {
        let (shared, owner) = (&self.shared, owner.to_owned());
        let host = owner.clone();
        let discard = move |_: &Shared, files: &Files| {
            files.discard_partials(&host)?;
            files.released_by(&host)
        };
        for id in shared.with_files(discard).await? {
            // What is left of them could not be written, and is derived with the next look.
            if !shared.derive_notes(&id, &owner).await?.is_empty() {
                return Ok(());
            }
        }
        let look = move |_: &Shared, files: &Files| Ok(files.has_nothing(&owner)?.then_some(owner));
        let Some(nobody) = shared.with_files(look).await? else { return Ok(()) };
        shared.write_rows_first().await;
        // Otherwise the next look forgets it.
        if !shared.files.rows.is_behind() {
            let host = nobody.clone();
            shared.ask(0, move |writer| writer.forget_noting(&host)).await?;
            shared.with_files(move |_, files| files.forget_host(&nobody)).await?;
        }
        Ok(())
    }
}

impl Partial {
    /// Appends events; they are written when this returns.
    ///
    /// # Errors
    ///
    /// When there is no room, or the session was given up from outside.
    pub async fn append(&mut self, batch: Batch) -> Result<(), WriteError> {
        batch.check_size()?;
        let mut taken = self.files.take().ok_or_else(given_up)?;
        let append = move |_: &Shared, files: &Files| {
            let appended = taken.append(files, batch);
            Ok((taken, appended))
        };
        let (taken, appended) = self.shared.with_files(append).await?;
        self.files = Some(taken);
        appended
    }

    /// Makes it a session, with its last events and what the index says in the batch of `new`; it has no appender.
    ///
    /// # Errors
    ///
    /// [`WriteError::Exists`] if there is one of that id, and those of [`append`](Self::append). Nothing is left of it then.
    pub async fn finish(mut self, new: NewSession) -> Result<(), WriteError> {
        new.events.check_size()?;
        let taken = self.files.take().ok_or_else(given_up)?;
        let finish = move |shared: &Shared, files: &Files| taken.finish(shared, files, new);
        self.shared.with_files(finish).await
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(files) = self.files.take() {
            files.give_up(&self.shared.files);
        }
    }
}

impl fmt::Debug for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partial").finish_non_exhaustive()
    }
}

pub(crate) fn given_up() -> WriteError {
    WriteError::Conflict { id: "that is being written".to_owned() }
}
