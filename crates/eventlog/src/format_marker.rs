//! The file by which earlier versions refuse a state directory of session files.
//!
//! They keep all sessions in the database `acpd.db` and begin an empty one where there is none: beside session files they would
//! find no session. So a directory of session files has under that name one page of SQLite with a format that they do not know, at
//! which they stop before they change anything. Invariants: the marker has its name whole or not at all; nothing that has the name
//! is replaced but an empty file. SQLite never opens it here. Not here: when it is put there (`state_form.rs`).

use crate::log_files::beside;
use crate::named::Named;
use crate::old_tables::{DATABASE, DATABASE_FORMAT};
use crate::regular_file::open_regular;
use crate::schema::hold_open_lock;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The format of a directory of session files.
pub(crate) const FILES_FORMAT: i64 = DATABASE_FORMAT + 1;

/// Bytes of a marker: the smallest page of SQLite, which no database of a log has.
const BYTES: usize = 512;

/// The first bytes of every file of SQLite.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Where a file of SQLite says its format and whose it is, each in four bytes with the highest first.
const FORMAT_AT: usize = 60;
const APPLICATION_AT: usize = 68;

/// What has the name of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseFile {
    Missing,
    /// A database that is being made, or whose maker has died.
    Empty,
    /// The marker of a directory of session files.
    Marker {
        format: i64,
    },
    /// A database, or what only SQLite can tell from one.
    Database,
}

impl DatabaseFile {
    /// Looks at it, without a change and without a lock of SQLite's.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(crate) fn find(dir: &Path) -> io::Result<Self> {
        let path = path_in(dir);
        // One look tells what is there, as others make it meanwhile; only of a link there is a second one, at what it names.
        let found = match fs::symlink_metadata(&path) {
            Err(error) if is_missing(&error) => return Ok(Self::Missing),
            found => found.named(&path)?,
        };
        let found = if found.is_symlink() { look_behind(&path)? } else { found };
        Ok(match found.len() {
            _ if !found.is_file() => Self::Database,
            0 => Self::Empty,
            // Only then is it opened: a descriptor of a database takes SQLite's locks along when it is closed.
            length if length == BYTES as u64 => Self::of_page(&path).named(&path)?,
            _ => Self::Database,
        })
    }

    fn of_page(path: &Path) -> io::Result<Self> {
        let mut page = [0; BYTES];
        open_regular(path, OpenOptions::new().read(true))?.read_exact(&mut page)?;
        let is_ours = page.starts_with(MAGIC) && number(&page, APPLICATION_AT) == DATABASE.application_id;
        Ok(if is_ours { Self::Marker { format: number(&page, FORMAT_AT).into() } } else { Self::Database })
    }
}

/// Puts the marker in its place. False: something else has it. An empty file is what somebody has left who died: whoever makes a
/// database in one has the lock that is held here.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn put(dir: &Path) -> io::Result<bool> {
    let path = path_in(dir);
    let lock = beside(&path, "-open");
    let _held = hold_open_lock(&lock).named(&lock)?;
    let put: fn(&Path, &Path) -> io::Result<()> = match DatabaseFile::find(dir)? {
        // A link, as only that does not replace what an acpd without the lock has begun meanwhile.
        DatabaseFile::Missing => |aside, path| fs::hard_link(aside, path),
        DatabaseFile::Empty => |aside, path| fs::rename(aside, path),
        _ => return Ok(false),
    };
    let aside = aside_in(dir);
    write_aside(dir).named(&aside)?;
    let done = put(&aside, &path);
    clear_aside(dir);
    match done {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        done => done.map(|()| true).named(&path),
    }
}

/// Takes away what one has left who died while it put the marker in its place. Only where that has its name.
pub(crate) fn clear_aside(dir: &Path) {
    // What stays is written over by the next.
    drop(fs::remove_file(aside_in(dir)));
}

/// Writes the marker aside, under the lock of who makes a database.
fn write_aside(dir: &Path) -> io::Result<()> {
    let aside = aside_in(dir);
    clear_aside(dir);
    let written = || -> io::Result<()> {
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(&PAGE)?;
        // A loss of power would leave a file that is no marker.
        file.sync_all()
    };
    written().inspect_err(|_| clear_aside(dir))
}

/// Writes the marker to a path where nothing is that counts.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&PAGE)?;
    // A loss of power would leave a file that is no marker.
    file.sync_all()
}

/// Looks at what a link names.
fn look_behind(link: &Path) -> io::Result<Metadata> {
    fs::metadata(link).map_err(|error| {
        if !is_missing(&error) {
            return error.named(link);
        }
        io::Error::other(format!(
            "{} is a link to what is not there: bring that back, or remove it",
            link.display()
        ))
    })
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(DATABASE.file)
}

fn aside_in(dir: &Path) -> PathBuf {
    beside(&path_in(dir), "-new")
}

/// Whether nothing is at a path.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn number(page: &[u8; BYTES], at: usize) -> i32 {
    i32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// A database without tables (<https://www.sqlite.org/fileformat.html>), not in write-ahead mode: who opens it makes no file beside it.
const PAGE: [u8; BYTES] = {
    let page = with(&[0; BYTES], 0, MAGIC);
    // The size of a page; rollback journals; no bytes reserved; three fractions that have one value each.
    let page = with(&page, 16, &[2, 0, 1, 1, 0, 64, 32, 32]);
    // One change, one page.
    let page = with(&page, 24, &[0, 0, 0, 1, 0, 0, 0, 1]);
    // The format of tables, of which there are none, and UTF-8.
    let page = with(&page, 44, &[0, 0, 0, 4]);
    let page = with(&page, 56, &[0, 0, 0, 1]);
    let page = with(&page, FORMAT_AT, &(FILES_FORMAT as i32).to_be_bytes());
    let page = with(&page, APPLICATION_AT, &DATABASE.application_id.to_be_bytes());
    // The change behind which its size counts.
    let page = with(&page, 92, &[0, 0, 0, 1]);
    // The list of tables: a leaf without cells, which would stand at the end of the page.
    with(&page, 100, &[13, 0, 0, 0, 0, 2, 0, 0])
};

/// A page with these bytes at a place.
const fn with(page: &[u8; BYTES], at: usize, bytes: &[u8]) -> [u8; BYTES] {
    let mut page = *page;
    let mut done = 0;
    while done < bytes.len() {
        page[at + done] = bytes[done];
        done += 1;
    }
    page
}

#[cfg(test)]
mod tests;
