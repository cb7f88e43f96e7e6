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
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::migration;
use crate::redo::REDO_MAGIC;
use crate::schema::APPLICATIONS;
use crate::segment::MAGIC;
use crate::session_files::{CLAIMS_HEAD, layout};

/// Bounded by the logs that are open at once.
static OPEN: Mutex<Vec<Arc<LogFiles>>> = Mutex::new(Vec::new());

/// The flag of `open` by which a file is held and not opened.
#[cfg(target_os = "linux")]
pub const HOLD: i32 = rustix::fs::OFlags::PATH.bits().cast_signed();
/// Elsewhere nothing holds a file without opening it.
#[cfg(not(target_os = "linux"))]
pub const HOLD: i32 = 0;

/// What the files begin with in which sessions are kept, but for databases.
const SESSION_FILES: [&[u8]; 3] = [MAGIC, REDO_MAGIC, CLAIMS_HEAD.as_bytes()];
/// What a database begins with, and where it says whose it is (SQLite, "Database File Format", 1.3).
const DATABASE: &[u8] = b"SQLite format 3\0";
const APPLICATION: std::ops::Range<usize> = 68..72;
/// The bytes that are looked at.
const HEAD: usize = APPLICATION.end;

/// Device and inode.
type FileId = (u64, u64);

#[derive(Debug)]
struct LogFiles {
    /// Without links in it.
    directory: PathBuf,
    /// The database and what SQLite keeps beside it.
    names: [PathBuf; 4],
    /// Which files those were when the log was opened: they stay its own when they are moved.
    held: [Option<NamedFile>; 4],
}

/// One of a log's files, by identity.
///
/// Held where the system can hold a file without opening it: the system gives the number of a removed file to the next
/// one that is made, which may be an agent's, and SQLite removes what lies beside the database when it closes it.
#[derive(Debug)]
struct NamedFile {
    id: FileId,
    #[cfg(target_os = "linux")]
    _held: File,
}

impl NamedFile {
    #[cfg(target_os = "linux")]
    fn find(path: &Path) -> io::Result<Self> {
        let held = hold(path)?;
        let found = held.metadata()?;
        Ok(Self { id: (found.dev(), found.ino()), _held: held })
    }

    #[cfg(not(target_os = "linux"))]
    fn find(path: &Path) -> io::Result<Self> {
        file_id(path).map(|id| Self { id })
    }
}

/// The entry of an open log. Its files may be opened again when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenLog(Arc<LogFiles>);

impl OpenLog {
    /// Registers the log of a database that SQLite has opened.
    pub(crate) fn register(database: &Path) -> Self {
        let database = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
        let names = ["", "-wal", "-shm", "-journal"].map(|ending| beside(&database, ending));
        let held = names.each_ref().map(|name| NamedFile::find(name).ok());
        let directory = database.parent().unwrap_or(Path::new("/")).to_owned();
        let files = Arc::new(LogFiles { directory, names, held });
        OPEN.lock().push(Arc::clone(&files));
        Self(files)
    }
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        OPEN.lock().retain(|files| !Arc::ptr_eq(files, &self.0));
    }
}

impl LogFiles {
    fn has(&self, file: FileId) -> bool {
        self.held.iter().flatten().any(|held| held.id == file)
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

/// Returns true if a path without links lies where a log that is open in this process keeps sessions.
pub fn is_among_sessions(path: &Path) -> bool {
    let keeps = |state: &Path| {
        let [copy, whole] = migration::DIRECTORIES.map(|name| state.join(name));
        let own = [layout::sessions(state), layout::claims(state), layout::redo(state), copy, whole];
        own.iter().any(|own| path.starts_with(own))
    };
    OPEN.lock().iter().any(|files| keeps(&files.directory))
}

/// Returns true if a regular file that is held begins as one in which sessions are kept. There may be too many of those to look for it
/// among them: one that has several names is taken for one.
///
/// # Errors
/// When it cannot be read.
pub fn is_session_file(held: impl AsFd) -> io::Result<bool> {
    let mut head = [0; HEAD];
    let file = reopen(held, OpenOptions::new().read(true))?;
    let mut read = 0;
    while read < head.len() {
        match file.read_at(&mut head[read..], read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let head = &head[..read];
    let application =
        || head.get(APPLICATION).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    let is_database =
        || head.starts_with(DATABASE) && application().is_some_and(|id| APPLICATIONS.contains(&id));
    Ok(SESSION_FILES.iter().any(|begin| head.starts_with(begin)) || is_database())
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
    let held = hold(path)?;
    let found = held.metadata()?;
    if is_log_file(found.dev(), found.ino()) {
        return Err(io::Error::other(
            "a file of the log that acpd has open; name a copy, or a file that `acpd sessions export` has written",
        ));
    }
    reopen(&held, options)
}

fn hold(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(HOLD).open(path)
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
    use crate::database_locks::lasting_locks;
    use crate::{EventLog, Options};

    fn locks(path: &Path) -> usize {
        lasting_locks(std::process::id(), path)
    }

    // contract 6: nothing that opens a file by somebody's name takes the locks of the log away
    #[tokio::test]
    async fn the_files_of_an_open_log_are_refused_under_any_name() {
        for name in ["index-1.db", "hooks.db"] {
            are_refused(name).await;
        }
    }

    async fn are_refused(name: &str) {
        let dir = tempfile::TempDir::new().expect("a directory");
        let state = dir.path().join("state");
        let log = EventLog::open(&state, Options::default()).expect("the log opens");
        log.committed().await.expect("it is open");
        let [database, shared, logged] =
            ["", "-shm", "-wal"].map(|ending| state.join(format!("{name}{ending}")));
        let before = (locks(&database), locks(&shared));
        assert_eq!(before, (1, 1));
        let [linked, named, moved] = ["linked", "named", "moved"].map(|name| dir.path().join(name));
        fs::hard_link(&shared, &linked).expect("it works");
        std::os::unix::fs::symlink(&database, &named).expect("it works");
        for options in
            [OpenOptions::new().read(true), OpenOptions::new().write(true), OpenOptions::new().append(true)]
        {
            for path in [&database, &shared, &logged, &linked, &named] {
                let refused = open_foreign(path, options).expect_err("refused");
                assert!(refused.to_string().contains("a file of the log"), "{refused}");
            }
        }
        fs::rename(&database, &moved).expect("it works");
        open_foreign(&moved, OpenOptions::new().read(true)).expect_err("refused");
        fs::rename(&moved, &database).expect("it works");
        assert_eq!((locks(&database), locks(&shared)), before);
        // What an ordinary open does, so that this test sees what it is about.
        drop(File::open(&database).expect("it works"));
        assert_eq!((locks(&database), locks(&shared)), (0, 1));
        log.close().await;
        open_foreign(&database, OpenOptions::new().read(true)).expect("it works");
    }

    // contract 6: what is held is what is opened, also when another file has taken its name
    #[test]
    fn a_held_file_is_opened_whatever_its_name_means() {
        let dir = tempfile::TempDir::new().unwrap();
        let [one, other] = ["one", "other"].map(|name| dir.path().join(name));
        fs::write(&one, "one").unwrap();
        fs::write(&other, "other").unwrap();
        let held = hold(&one).unwrap();
        fs::rename(&other, &one).unwrap();
        let opened = reopen(&held, OpenOptions::new().read(true)).unwrap();
        assert_eq!(io::read_to_string(opened).unwrap(), "one");
        assert_eq!(
            io::read_to_string(open_foreign(&one, OpenOptions::new().read(true)).unwrap()).unwrap(),
            "other"
        );
    }

    // issue 28: a file of sessions is known by what it begins with: segments, claims, redo files, databases of acpd, and none of others
    #[test]
    fn a_file_of_sessions_is_known_by_its_head() {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("file");
        let database = |application: i32| {
            let mut page = vec![0; 512];
            page[..DATABASE.len()].copy_from_slice(DATABASE);
            page[APPLICATION].copy_from_slice(&application.to_be_bytes());
            page
        };
        let of_acpd = APPLICATIONS.map(database);
        let cases = [
            (MAGIC.to_vec(), true),
            (format!("{CLAIMS_HEAD}\"host\"\n").into_bytes(), true),
            (REDO_MAGIC.to_vec(), true),
            (database(0), false),
            (database(APPLICATIONS[0])[..APPLICATION.start].to_vec(), false),
            (MAGIC[..MAGIC.len() - 1].to_vec(), false),
            (b"an agent's".to_vec(), false),
            (Vec::new(), false),
        ];
        for (bytes, expected) in cases.into_iter().chain(of_acpd.map(|page| (page, true))) {
            fs::write(&path, &bytes).unwrap();
            let held = hold(&path).unwrap();
            assert_eq!(is_session_file(&held).unwrap(), expected, "{bytes:?}");
        }
    }

    // issue 28: no directory in which sessions are, or are being put, is one that agents work in
    #[tokio::test]
    async fn what_lies_among_sessions_is_known_by_its_place() {
        let dir = tempfile::TempDir::new().unwrap();
        let state = dir.path().canonicalize().unwrap();
        let log = EventLog::open(&state, Options::default()).expect("the log opens");
        for name in ["sessions/00/a", "claims", "redo/one", "migrating/sessions", "migrated"] {
            assert!(is_among_sessions(&state.join(name)), "{name}");
        }
        for name in ["", "agents/x", "sessions-of-mine"] {
            assert!(!is_among_sessions(&state.join(name)), "{name}");
        }
        log.close().await;
    }

    // contract 2.2: a file that took the number of one that the log has lost is an agent's like any other
    #[test]
    fn a_file_is_not_the_logs_because_one_of_it_was_removed() {
        let dir = tempfile::TempDir::new().unwrap();
        let database = dir.path().join("acpd.db");
        let logged = beside(&database, "-wal");
        fs::write(&database, "").unwrap();
        fs::write(&logged, "").unwrap();
        let registered = OpenLog::register(&database);
        fs::remove_file(&logged).unwrap();
        for number in 0..100 {
            let (device, inode) = {
                let path = dir.path().join(number.to_string());
                fs::write(&path, "an agent's").unwrap();
                file_id(&path).unwrap()
            };
            assert!(!is_log_file(device, inode), "file {number}");
        }
        drop(registered);
    }
}
