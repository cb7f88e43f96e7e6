//! Sessions that are written in pieces: aside, until each comes to be all at once.

use super::append::{NextBatch, SEGMENT_BYTES, SegmentWriter};
use super::claim::{Claim, describe};
use super::directory::{NEW, SessionDirectory, make_directory};
use super::session_dir::{SessionDir, SessionFileError};
use super::storage::write_all;
use super::{Facts, layout};
use crate::batch::Batch;
use crate::named::Named;
use crate::segment::SegmentFlags;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::PathBuf;

/// A session that is being written. When it is dropped, nothing is left of it.
#[derive(Debug)]
pub struct Aside {
    path: PathBuf,
    directory: SessionDir,
    writer: SegmentWriter<File>,
    number: u32,
    /// Bytes of the segments before the last.
    before: u64,
    /// Bytes of the claim of its last segment.
    claim_bytes: u64,
    facts: Facts,
    is_finished: bool,
}

impl SessionDirectory {
    /// Begins a session that is written in pieces. Of the facts, its host counts.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin_aside(&self, facts: &Facts) -> io::Result<Aside> {
        let path = self.aside();
        make_directory(&path)?;
        let begin = || {
            let directory = self.open_session(&path)?.ok_or(io::ErrorKind::NotFound)?;
            let claimed = directory.begin(facts, Vec::new(), Batch::of_history())?;
            Ok((directory, claimed.ok_or(io::ErrorKind::AlreadyExists)?))
        };
        match begin() {
            Ok((directory, claimed)) => Ok(Aside {
                path,
                directory,
                claim_bytes: claimed.writer.end().0,
                writer: claimed.writer,
                number: claimed.header.number,
                before: 0,
                facts: facts.clone(),
                is_finished: false,
            }),
            Err(error) => {
                drop(fs::remove_dir_all(&path));
                Err(error)
            }
        }
    }

    /// The hosts that are writing sessions aside, or have left some half made.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn writers(&self) -> io::Result<BTreeSet<String>> {
        let mut writers = BTreeSet::new();
        for entry in fs::read_dir(self.sessions.join(NEW))? {
            let name = entry?.file_name();
            let host = name.to_str().and_then(|name| name.rsplit_once('-')).map(|(host, _)| host);
            writers.extend(host.and_then(layout::id_of));
        }
        Ok(writers)
    }

    /// Removes what this host has left half made.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn clear_own(&self) -> io::Result<()> {
        let own = layout::name_of(self.host());
        self.clear(|host| host != own)
    }

    /// Bytes of all sessions.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for spread in fs::read_dir(&self.sessions).named(&self.sessions)? {
            let spread = spread.named(&self.sessions)?.path();
            for session in fs::read_dir(&spread).named(&spread)? {
                let session = session.named(&spread)?.path();
                // One that is removed meanwhile takes nothing.
                if let Some(directory) = SessionDir::open(&session).named(&session)? {
                    bytes += directory.bytes().named(&session)?;
                }
            }
        }
        Ok(bytes)
    }
}

impl Aside {
    /// Bytes of its segments.
    pub fn bytes(&self) -> u64 {
        self.before + self.writer.end().0
    }

    /// The file of its last segment.
    pub fn file(&self) -> &File {
        self.writer.file()
    }

    /// Appends events behind the others.
    ///
    /// # Errors
    /// When they cannot be written, or it was removed from outside.
    pub fn append(&mut self, batch: Batch) -> Result<(), SessionFileError> {
        if self.directory.is_over(self.number, self.writer.file())? {
            return Err(SessionFileError::Empty);
        }
        if self.writer.end().0 >= SEGMENT_BYTES {
            self.claim_next(Batch::of_history())?;
        }
        let next = NextBatch::new(batch, self.writer.standing().last_seq);
        match self.writer.append_next(&next, None) {
            // At the limit of one file's size, which the next one begins anew.
            Err(error)
                if error.kind() == io::ErrorKind::FileTooLarge && self.writer.end().0 > self.claim_bytes =>
            {
                self.claim_next(Batch::of_history())?;
                Ok(self.writer.append_next(&next, None)?)
            }
            appended => Ok(appended?),
        }
    }

    /// Tries whether its file could be so long. Nothing more is written to it then.
    ///
    /// # Errors
    /// When it could not.
    pub(crate) fn try_length(&self, length: u64) -> io::Result<()> {
        write_all(self.writer.file(), &mut [IoSlice::new(&[0])], length - 1)
    }

    /// Makes it a session, with its last events. False: there is one of that id.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(
        &mut self,
        directory: &SessionDirectory,
        facts: &Facts,
        (info, mut batch): (Vec<u8>, Batch),
    ) -> Result<bool, SessionFileError> {
        self.facts = facts.clone();
        describe(&mut batch, facts, info);
        self.claim_next(batch)?;
        self.is_finished = directory.place(&self.path, &directory.path(&facts.id))?;
        Ok(self.is_finished)
    }

    fn claim_next(&mut self, batch: Batch) -> Result<(), SessionFileError> {
        let last = self.directory.last()?;
        let flags = SegmentFlags::default();
        let claim = Claim { flags, facts: &self.facts, goes_on: false, batch };
        // Nobody else knows that name, unless it was removed.
        let claimed = self.directory.claim(&last, claim)?.ok_or(SessionFileError::Empty)?;
        self.before = self.bytes();
        (self.writer, self.number) = (claimed.writer, claimed.header.number);
        self.claim_bytes = self.writer.end().0;
        Ok(())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.is_finished {
            // What stays for want of that is removed when its host is found dead.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}
