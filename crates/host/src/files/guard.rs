//! What of acpd's own no agent is served: the files of its log, under any name, and what lies in its state directory.
//!
//! Asked of what is held by handle, so that nothing can take its name in between. Invariant: a database of the log is never
//! opened, not even to look at it: closing it would release the log's locks (`acpd_eventlog::log_files`). A file of sessions has
//! no locks; under another name it is known by what it begins with.

use super::FileError;
use super::roots::ResolvedPath;
use acpd_eventlog::log_files::{self, HOLD};
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt};
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// A file that is held and not open: the same one, whatever its name comes to mean.
#[derive(Debug)]
pub(super) struct HeldFile(File);

impl HeldFile {
    /// Holds a file below a directory; a link is followed unless the flags say otherwise.
    pub(super) fn hold(directory: &Dir, below: &Path, flags: i32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(HOLD | flags);
        directory.open_with(below, &options).map(Self)
    }

    pub(super) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Opens it. The caller has looked at it: see [`check_file`].
    pub(super) fn open(&self, options: &std::fs::OpenOptions) -> io::Result<std::fs::File> {
        log_files::reopen(&self.0, options)
    }
}

/// Fails for a regular file that acpd keeps for itself.
pub(super) fn check_file(path: &str, resolved: &ResolvedPath<'_>, held: &HeldFile) -> Result<(), FileError> {
    let fail = |error| FileError::of_io(path, error);
    let metadata = held.metadata().map_err(fail)?;
    check_identity(path, &metadata)?;
    if metadata.nlink() > 1 && log_files::is_session_file(&held.0).map_err(fail)? {
        return Err(FileError::AcpdOwn(path.to_owned()));
    }
    check_place(path, resolved, &name_of(&held.0).map_err(fail)?)
}

/// Fails for a name at which acpd keeps something for itself, or would find what an agent put there.
pub(super) fn check_name(
    path: &str,
    resolved: &ResolvedPath<'_>,
    directory: &Dir,
    name: &OsStr,
) -> Result<(), FileError> {
    let directory = name_of(directory).map_err(|error| FileError::of_io(path, error))?;
    check_place(path, resolved, &directory.join(name))
}

/// Fails for a file of the log, whatever it is called.
pub(super) fn check_identity(path: &str, metadata: &Metadata) -> Result<(), FileError> {
    match log_files::is_log_file(metadata.dev(), metadata.ino()) {
        true => Err(FileError::AcpdOwn(path.to_owned())),
        false => Ok(()),
    }
}

fn check_place(path: &str, resolved: &ResolvedPath<'_>, place: &Path) -> Result<(), FileError> {
    match log_files::is_in_log_directory(place) && !resolved.in_state_directory {
        true => Err(FileError::AcpdOwn(path.to_owned())),
        false => Ok(()),
    }
}

/// The system's answer about a handle is none about the path.
fn name_of(held: impl AsFd) -> io::Result<PathBuf> {
    log_files::name_of(held)
        .map_err(|error| io::Error::other(format!("the place of the file is unknown: {error}")))
}
