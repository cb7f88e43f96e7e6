//! Files beside the log, in whose place another process of the user may have put something that is no file: a pipe would
//! keep whoever opens it waiting for ever.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file as `options` say, and waits for nobody. Anything else is an error.
pub(crate) fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK;
    let odd = || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    let file = match options.custom_flags(flags.bits().cast_signed()).open(path) {
        // A pipe that nobody reads.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(odd()),
        opened => opened?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(odd()) }
}
