//! The files of the logs that this process has open, which it must not open a second time.
//!
//! POSIX locks belong to a process and a file: closing *any* descriptor of the file releases every lock that the
//! process holds on it, and SQLite's locks are of this kind. Another process that then closes the database takes itself
//! for the last one and removes the write-ahead file, into which this one goes on writing. So whoever opens a file by a
//! name that somebody else chose holds it first, by `O_PATH`, which takes and releases no lock, asks here, and then
//! opens what it holds.
//!
//! Owned by the process, like its locks. Not here: SQLite's own descriptors, which it keeps apart by itself.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// Bounded by the logs that are open at once.
static OPEN: Mutex<Vec<Arc<LogFiles>>> = Mutex::new(Vec::new());

/// The flag of `open` by which a file is held and not opened.
#[cfg(target_os = "linux")]
pub const HOLD: i32 = rustix::fs::OFlags::PATH.bits().cast_signed();
/// Elsewhere nothing holds a file without opening it.
#[cfg(not(target_os = "linux"))]
pub const HOLD: i32 = 0;

/// Device and inode.
type FileId = (u64, u64);

#[derive(Debug)]
struct LogFiles {
    /// Without links in it.
    directory: PathBuf,
    /// The database and what SQLite keeps beside it.
    names: [PathBuf; 4],
    /// Which files those were when the log was opened: they stay its own when they are moved.
    held: [Option<FileId>; 4],
}

/// The entry of an open log. Its files may be opened again when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenLog(Arc<LogFiles>);

impl OpenLog {
    /// Registers the log of a database that SQLite has opened.
    pub(crate) fn register(database: &Path) -> Self {
        let database = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
        let names = ["", "-wal", "-shm", "-journal"].map(|ending| beside(&database, ending));
        let held = names.each_ref().map(|name| file_id(name).ok());
        let directory = database.parent().unwrap_or(Path::new("/")).to_owned();
        let files = Arc::new(LogFiles { directory, names, held });
        OPEN.lock().push(Arc::clone(&files));
        Self(files)
    }

    /// Fails if the database is not where it was: what is written then goes to a file that is not found again.
    pub(crate) fn check_place(&self) -> io::Result<()> {
        let [database, ..] = &self.0.names;
        match (file_id(database), self.0.held[0]) {
            (Ok(found), Some(held)) if found != held => Err(io::Error::other("another file is in its place")),
            (Ok(_), _) => Ok(()),
            (Err(error), _) => Err(error),
        }
    }
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        OPEN.lock().retain(|files| !Arc::ptr_eq(files, &self.0));
    }
}

impl LogFiles {
    fn has(&self, file: FileId) -> bool {
        self.held.contains(&Some(file))
            || self.names.iter().any(|name| file_id(name).is_ok_and(|id| id == file))
    }
}

/// Returns true if a file belongs to a log that is open in this process, under whatever name it was found.
pub fn is_log_file(device: u64, inode: u64) -> bool {
    OPEN.lock().iter().any(|files| files.has((device, inode)))
}

/// Returns true if a path without links lies below the directory of a log that is open in this process.
pub fn is_in_log_directory(path: &Path) -> bool {
    OPEN.lock().iter().any(|files| path.starts_with(&files.directory) && path != files.directory)
}

/// Returns the present name of an open or held file, without links.
///
/// # Errors
/// When the system does not tell.
pub fn name_of(file: impl AsFd) -> io::Result<PathBuf> {
    fs::read_link(descriptor(file))
}

/// Opens a file that is held: the same one, whatever its name has come to mean.
///
/// # Errors
/// As [`OpenOptions::open`].
pub fn reopen(held: impl AsFd, options: &OpenOptions) -> io::Result<File> {
    options.open(descriptor(held))
}

/// Opens a file by a name that somebody else chose.
///
/// # Errors
/// As [`OpenOptions::open`], and for the files of a log that this process has open.
pub fn open_foreign(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let held = OpenOptions::new().read(true).custom_flags(HOLD).open(path)?;
    let found = held.metadata()?;
    if is_log_file(found.dev(), found.ino()) {
        return Err(io::Error::other(
            "a file of the log that acpd has open; name a copy, made by `sqlite3 acpd.db \".backup COPY\"`",
        ));
    }
    reopen(&held, options)
}

fn descriptor(file: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// A file beside the database, as SQLite names it.
pub(crate) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn file_id(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventLog, Options};

    /// The locks of this process on a file.
    fn locks(path: &Path) -> usize {
        let (inode, process) =
            (format!(":{}", fs::metadata(path).unwrap().ino()), std::process::id().to_string());
        let held = fs::read_to_string("/proc/locks").unwrap();
        let of_file = |line: &&str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            fields.contains(&"POSIX") && fields.contains(&process.as_str()) && fields[5].ends_with(&inode)
        };
        held.lines().filter(of_file).count()
    }

    // contract 6: nothing that opens a file by somebody's name takes the locks of the log away
    #[tokio::test]
    async fn the_files_of_an_open_log_are_refused_under_any_name() {
        let dir = tempfile::TempDir::new().unwrap();
        let state = dir.path().join("state");
        let log = EventLog::open(&state, Options::default()).unwrap();
        log.committed().await.unwrap();
        let (database, shared, logged) =
            (state.join("acpd.db"), state.join("acpd.db-shm"), state.join("acpd.db-wal"));
        let before = (locks(&database), locks(&shared));
        assert!(before.0 > 0 && before.1 > 0, "{before:?}");
        let [linked, named, moved] = ["linked", "named", "moved"].map(|name| dir.path().join(name));
        fs::hard_link(&shared, &linked).unwrap();
        std::os::unix::fs::symlink(&database, &named).unwrap();
        for options in
            [OpenOptions::new().read(true), OpenOptions::new().write(true), OpenOptions::new().append(true)]
        {
            for path in [&database, &shared, &logged, &linked, &named] {
                let refused = open_foreign(path, options).unwrap_err();
                assert!(refused.to_string().contains("a file of the log"), "{refused}");
            }
        }
        fs::rename(&database, &moved).unwrap();
        open_foreign(&moved, OpenOptions::new().read(true)).unwrap_err();
        fs::rename(&moved, &database).unwrap();
        assert_eq!((locks(&database), locks(&shared)), before);
        // What an ordinary open does, so that this test sees what it is about.
        drop(File::open(&database).unwrap());
        assert_eq!((locks(&database), locks(&shared)), (0, before.1));
        log.close().await;
        open_foreign(&database, OpenOptions::new().read(true)).unwrap();
    }

    // contract 6: what is held is what is opened, also when another file has taken its name
    #[test]
    fn a_held_file_is_opened_whatever_its_name_means() {
        let dir = tempfile::TempDir::new().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        fs::write(&one, "one").unwrap();
        fs::write(&other, "other").unwrap();
        let held = OpenOptions::new().read(true).custom_flags(HOLD).open(&one).unwrap();
        fs::rename(&other, &one).unwrap();
        let opened = reopen(&held, OpenOptions::new().read(true)).unwrap();
        assert_eq!(io::read_to_string(opened).unwrap(), "one");
        assert_eq!(
            io::read_to_string(open_foreign(&one, OpenOptions::new().read(true)).unwrap()).unwrap(),
            "other"
        );
    }
}
