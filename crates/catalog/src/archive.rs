//! Unpacks the archive of an agent, or takes one that is the program itself, into an empty directory.
//!
//! Invariants: only regular files and directories come of it, below that directory; links, devices and anything else are
//! refused, not left out; so is a path that leads elsewhere, or comes twice. No more is written than the bounds allow, also
//! where an archive says less than it has. Modes are 0755 and 0644. What an archive says of itself is looked through before
//! anything is written; what is wrong later leaves files behind, which the caller removes with the directory.

mod bunzip;
mod tarball;
mod zipped;

use crate::inside::{InsideError, InsidePath};
use crate::size::size;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tarball::Compression;
use thiserror::Error;

/// The mode of programs and directories.
const PROGRAM: u32 = 0o755;
/// The mode of other files.
const PLAIN: u32 = 0o644;

/// Bytes that are written at once.
const PIECE: usize = 256 * 1024;

/// Why an archive is not taken.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// It cannot be read, or its content cannot be written.
    #[error("cannot unpack the archive")]
    Io(#[from] io::Error),
    /// It is neither of the kinds of archive, nor a program.
    #[error("{0}; a tar.gz, a tar.bz2, a zip or an executable is taken")]
    Format(&'static str),
    /// It is damaged.
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    /// A path leads elsewhere.
    #[error("the archive is refused: {0}")]
    Path(#[from] InsideError),
    /// Something in it is neither a file nor a directory.
    #[error("the archive is refused: \"{}\" is {what}; only files and directories are taken", path.escape_debug())]
    Entry {
        /// As the archive has it.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// A path comes twice.
    #[error("the archive is refused: \"{}\" comes twice, or below a file", .0.display())]
    Twice(PathBuf),
    /// It has too much in it.
    #[error("the archive is refused: unpacked it has more than {}, the most that is taken", size(*.0))]
    Large(u64),
    /// It has too many entries.
    #[error("the archive is refused: it has more than {0} entries, the most that are taken")]
    Many(usize),
    /// It was given up.
    #[error("it was interrupted")]
    Stopped,
    /// The program is not in it.
    #[error("there is no file {} in the archive", .0.display())]
    NoProgram(PathBuf),
}

/// How much is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all files.
    pub bytes: u64,
    /// Files and directories.
    pub entries: usize,
}

/// What came of an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Unpacks `archive` into `dir`, which is empty and which nothing else writes into; `program` has to be a file of it then, and
/// can be run. What it is, is known by its first bytes; a file that is a program itself gets the name of `program`. `goes_on` is
/// asked with the bytes that were written so far.
///
/// # Errors
/// It is refused, or cannot be written.
pub fn unpack(
    archive: &Path,
    dir: &Path,
    program: &InsidePath,
    bounds: Bounds,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Unpacked, ArchiveError> {
    let mut first = [0; 6];
    let mut file = File::open(archive)?;
    let read = read_most(&mut file, &mut first)?;
    let mut target = Files { dir, bounds, done: Unpacked::default(), goes_on };
    match &first[..read] {
        [0x1f, 0x8b, ..] => tarball::unpack(archive, Compression::Gzip, &mut target)?,
        [b'B', b'Z', b'h', ..] => tarball::unpack(archive, Compression::Bzip2, &mut target)?,
        [b'P', b'K', ..] => zipped::unpack(archive, &mut target)?,
        // ELF, Mach-O of 32 and 64 bits in both orders and for several processors, a script.
        [0x7f, b'E', b'L', b'F', ..]
        | [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..]
        | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..]
        | [0xca, 0xfe, 0xba, 0xbe, ..]
        | [b'#', b'!', ..] => {
            let size = file.metadata()?.len();
            target.file(program, true, size, &mut File::open(archive)?)?;
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0] => return Err(ArchiveError::Format("it is compressed by xz")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => return Err(ArchiveError::Format("it is compressed by zstd")),
        _ => return Err(ArchiveError::Format("it is none of the known formats")),
    }
    let path = dir.join(program.as_path());
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => std::fs::set_permissions(&path, Permissions::from_mode(PROGRAM))?,
        _ => return Err(ArchiveError::NoProgram(program.as_path().to_owned())),
    }
    Ok(target.done)
}

fn read_most(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read(&mut buffer[read..])? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}

/// What an archive has, as it is added up before anything is written.
struct Sum {
    bounds: Bounds,
    bytes: u64,
    entries: usize,
}

impl Sum {
    fn of(bounds: Bounds) -> Self {
        Self { bounds, bytes: 0, entries: 0 }
    }

    fn add(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.entries > self.bounds.entries {
            return Err(ArchiveError::Many(self.bounds.entries));
        }
        if self.bytes > self.bounds.bytes {
            return Err(ArchiveError::Large(self.bounds.bytes));
        }
        Ok(())
    }
}

/// The directory that is filled.
struct Files<'a> {
    dir: &'a Path,
    bounds: Bounds,
    done: Unpacked,
    goes_on: &'a mut dyn FnMut(u64) -> bool,
}

impl Files<'_> {
    fn directory(&self, path: &InsidePath) -> Result<(), ArchiveError> {
        let made = DirBuilder::new().recursive(true).mode(PROGRAM).create(self.dir.join(path.as_path()));
        made.map_err(|error| twice_or(error, path))
    }

    /// Takes at most `size` bytes, which is what the archive says; more is damage.
    fn file(
        &mut self,
        path: &InsidePath,
        can_run: bool,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(), ArchiveError> {
        let place = self.dir.join(path.as_path());
        if let Some(parent) = place.parent() {
            let made = DirBuilder::new().recursive(true).mode(PROGRAM).create(parent);
            made.map_err(|error| twice_or(error, path))?;
        }
        let mode = if can_run { PROGRAM } else { PLAIN };
        let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&place);
        let mut file = opened.map_err(|error| twice_or(error, path))?;
        // Those that went before are within the bound.
        let room = size.min(self.bounds.bytes.saturating_sub(self.done.bytes));
        let mut content = content.take(room + 1);
        let mut piece = vec![0; PIECE];
        let mut written = 0;
        loop {
            if !(self.goes_on)(self.done.bytes + written) {
                return Err(ArchiveError::Stopped);
            }
            let read = content.read(&mut piece).map_err(damaged_or)?;
            if read == 0 {
                break;
            }
            file.write_all(&piece[..read])?;
            written += u64::try_from(read).expect("a piece is small");
        }
        if written > room {
            return Err(match room < size {
                true => ArchiveError::Large(self.bounds.bytes),
                false => {
                    ArchiveError::Damaged(format!("{} is longer than it says", path.as_path().display()))
                }
            });
        }
        self.done.files += 1;
        self.done.bytes += written;
        Ok(())
    }
}

fn twice_or(error: io::Error, path: &InsidePath) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            ArchiveError::Twice(path.as_path().to_owned())
        }
        _ => ArchiveError::Io(error),
    }
}

/// An error of what unpacks is about the archive; one of the system is about the system.
fn damaged_or(error: io::Error) -> ArchiveError {
    if error.raw_os_error().is_some() {
        ArchiveError::Io(error)
    } else {
        ArchiveError::Damaged(error.to_string())
    }
}

#[cfg(test)]
mod tests;
