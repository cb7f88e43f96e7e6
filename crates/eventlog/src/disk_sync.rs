//! Has the disk confirm what was written: the one place where that is done for files of sessions.
//!
//! A name is confirmed by a sync of its directory, and what the file has by one of the file.

use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Returns when what was written to a file survives the loss of power.
///
/// # Errors
/// When that cannot be said: nothing that was written since the last sync may be trusted then.
pub(crate) fn sync_file(file: &File) -> io::Result<()> {
    #[cfg(test)]
    crate::power_loss::refuse(file)?;
    file.sync_data()?;
    #[cfg(test)]
    crate::power_loss::synced(file);
    Ok(())
}

/// The same of the names in a directory.
///
/// # Errors
/// As [`sync_file`].
pub(crate) fn sync_names(directory: impl AsFd) -> io::Result<()> {
    #[cfg(test)]
    crate::power_loss::refuse(&directory)?;
    loop {
        match rustix::fs::fsync(&directory) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    #[cfg(test)]
    crate::power_loss::synced(directory);
    Ok(())
}

/// Opens a directory.
///
/// # Errors
/// When there is none, or what is there is none.
pub(crate) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}
