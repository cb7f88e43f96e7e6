//! A session that is written in pieces, in a directory aside until it is whole.

use super::{Files, FilesHost, signed};
use crate::batch::Batch;
use crate::failure::WriteError;
use crate::log::{NewSession, Shared};
use crate::partial;
use crate::session_files::{Aside, Facts, SessionDirectory, SessionFileError};
use std::sync::Arc;

/// The files of such a session. When they are dropped, nothing is left of them.
pub(crate) struct PartialFiles {
    host: Arc<FilesHost>,
    aside: Aside,
    /// Bytes of it that count towards the limit.
    bytes: u64,
}

impl Files {
    /// Begins one of a host.
    pub(crate) fn begin_partial(&self, owner: &str) -> Result<PartialFiles, WriteError> {
        self.check_beginning()?;
        let host = self.host(owner).map_err(|error| self.failed(error))?;
        let facts = Facts { host: owner.to_owned(), ..Facts::default() };
        let aside = host.directory.begin_aside(&facts).map_err(|error| self.failed(error))?;
        Ok(PartialFiles { host, aside, bytes: 0 })
    }

    /// Removes what a host was writing when it died.
    pub(crate) fn discard_partials(&self, owner: &str) -> Result<(), WriteError> {
        let directory = SessionDirectory::open(&self.state, owner).map_err(|error| self.failed(error))?;
        directory.clear_own().map_err(|error| self.failed(error))
    }
}

impl PartialFiles {
    /// Appends events; they are written when this returns.
    pub(crate) fn append(&mut self, files: &Files, batch: Batch) -> Result<(), WriteError> {
        files.check_beginning()?;
        self.aside.append(batch).map_err(|error| given_up(files, error))?;
        self.count(files);
        Ok(())
    }

    /// Counts what was written since this was done last.
    fn count(&mut self, files: &Files) {
        let before = std::mem::replace(&mut self.bytes, self.aside.bytes());
        files.count(signed(self.bytes) - signed(before));
    }

    /// Makes it a session that has no appender.
    pub(crate) fn finish(
        mut self,
        shared: &Shared,
        files: &Files,
        new: NewSession,
    ) -> Result<(), WriteError> {
        let _owning = files.owning.lock();
        let id = new.id.clone();
        if let Err(error) = self.try_finish(files, new) {
            self.give_up(files);
            return Err(error);
        }
        self.count(files);
        if let Some(directory) = files.directory_of(&id)? {
            files.unsynced.put_directory(&id, directory);
        }
        shared.row_has_changed(files, &id)
    }

    fn try_finish(&mut self, files: &Files, mut new: NewSession) -> Result<(), WriteError> {
        files.check_beginning()?;
        let batch = std::mem::take(&mut new.events);
        let facts = super::owning::facts_of(&new);
        files.claiming(&self.host, &new.id, || {
            let finished = self.aside.finish(&self.host.directory, &facts, (new.info, batch));
            match finished.map_err(|error| given_up(files, error))? {
                true => Ok(()),
                false => Err(WriteError::Exists { id: new.id.clone() }),
            }
        })
    }

    /// Nothing is left of it: what it took counts no more.
    pub(crate) fn give_up(self, files: &Files) {
        files.count(-signed(self.bytes));
    }
}

/// Why nothing more is written of it.
fn given_up(files: &Files, error: SessionFileError) -> WriteError {
    match error.is_gone() {
        true => partial::given_up(),
        false => files.unreadable(error),
    }
}
