//! Files of a state directory, in whose place another process of the user may have put something that is no file.
//!
//! Opening a pipe, or reading from a device, could take for ever, and a file may be of any size. Not here: what is in the
//! files.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file as `options` say, and waits for nobody.
///
/// # Errors
/// When it is anything else, or the operating system refuses.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let odd = || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
    let file = match options.custom_flags(flags.bits().cast_signed()).open(path) {
        // A pipe that nobody reads.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(odd()),
        opened => opened?,
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(odd()) }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// When it is longer, or as [`open_regular`].
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path, OpenOptions::new().read(true))?;
    let long = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {most} bytes"));
    if file.metadata()?.len() > most {
        return Err(long());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(long()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    // contract 6: what is no file, or is too long, is refused at once
    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = |name: &str| dir.path().join(name);
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        std::fs::create_dir(path("directory")).expect("made");
        std::fs::write(path("file"), "12345").expect("written");
        std::os::unix::fs::symlink("/dev/zero", path("endless")).expect("a link");
        File::create(path("sparse")).and_then(|file| file.set_len(3 << 30)).expect("made");
        let read = |name: &str, most| read_regular(&path(name), most).map_err(|error| error.kind());
        assert_eq!(read("file", 5), Ok(b"12345".to_vec()));
        assert_eq!(read("file", 4), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(read("sparse", 1 << 20), Err(io::ErrorKind::FileTooLarge));
        for name in ["pipe", "directory", "endless"] {
            assert_eq!(read(name, 5), Err(io::ErrorKind::InvalidInput), "{name}");
        }
        assert!(open_regular(&path("pipe"), OpenOptions::new().write(true)).is_err());
    }
}
