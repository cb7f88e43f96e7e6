//! What a machine that loses power keeps of a state directory, for tests: what was synced, and of the rest as much as the test has it
//! keep.
//!
//! A recording sees each sync below its directory ([`disk_sync`](crate::disk_sync)) and stands still for none else meanwhile, so that
//! what is written at the same time is written before the next sync returns. Not recorded: SQLite's files, which are an index.

use crate::redo::RedoHeader;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What is done at each sync: the recording as it is behind it.
type AtSync = Box<dyn FnMut(&Disk) + Send>;

static RECORDINGS: Mutex<Vec<Arc<Recording>>> = Mutex::new(Vec::new());

struct Recording {
    root: PathBuf,
    state: Mutex<(Disk, AtSync)>,
    /// What the paths have in them that the disk does not confirm.
    refused: Mutex<String>,
}

/// An inode: its number, which others have before and after it, and when it was made.
type Identity = (u64, Option<SystemTime>);

/// What is on the disk for certain.
#[derive(Clone, Default)]
pub(crate) struct Disk(BTreeMap<Identity, Inode>);

#[derive(Clone)]
enum Inode {
    File(Arc<[u8]>),
    Directory(BTreeMap<String, Identity>),
}

/// What becomes of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// It is lost.
    Lost,
    /// It is there, as when no power was lost.
    Kept,
    /// Files are as long as they were, with zeros for what was lost.
    Zeros,
    /// Each file and directory by itself is one of these, as the number says.
    Mixed(u64),
}

/// Ends a recording when it is dropped.
pub(crate) struct Recorder(Arc<Recording>);

impl Recorder {
    /// Records the syncs below a directory from now on, and calls `at_sync` behind each.
    pub(crate) fn begin(root: &Path, at_sync: impl FnMut(&Disk) + Send + 'static) -> Self {
        let state = Mutex::new((Disk::default(), Box::new(at_sync) as AtSync));
        let recording = Arc::new(Recording { root: root.to_owned(), state, refused: Mutex::default() });
        RECORDINGS.lock().push(Arc::clone(&recording));
        Self(recording)
    }

    /// Has syncs fail from now on of all that have this in their paths; none if it is empty.
    pub(crate) fn fail(&self, path: &str) {
        path.clone_into(&mut self.0.refused.lock());
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        RECORDINGS.lock().retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

fn recording_of(path: &Path) -> Option<Arc<Recording>> {
    RECORDINGS.lock().iter().find(|recording| path.starts_with(&recording.root)).cloned()
}

fn handle(of: impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", of.as_fd().as_raw_fd()).into()
}

/// A file or a directory is about to be synced: the error that the test has there.
pub(crate) fn refuse(synced: impl AsFd) -> io::Result<()> {
    let path = fs::read_link(handle(&synced))?;
    let Some(recording) = recording_of(&path) else { return Ok(()) };
    let refused = recording.refused.lock();
    match !refused.is_empty() && path.to_string_lossy().contains(refused.as_str()) {
        true => Err(io::Error::from_raw_os_error(Errno::IO.raw_os_error())),
        false => Ok(()),
    }
}

/// A file or a directory was synced.
pub(crate) fn synced(synced: impl AsFd) {
    let handle = handle(&synced);
    let path = fs::read_link(&handle).expect("it is open");
    let Some(recording) = recording_of(&path) else { return };
    let (disk, at_sync) = &mut *recording.state.lock();
    let file = File::open(&handle).expect("it is open");
    let metadata = file.metadata().expect("it is open");
    let inode = match metadata.is_dir() {
        true => Inode::Directory(names_in(&handle)),
        false => Inode::File(content(&file).into()),
    };
    disk.0.insert(identity(&metadata), inode);
    at_sync(disk);
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.ino(), metadata.created().ok())
}

fn names_in(directory: &Path) -> BTreeMap<String, Identity> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let number = identity(&fs::symlink_metadata(entry.path()).ok()?);
        Some((entry.file_name().into_string().ok()?, number))
    });
    names.collect()
}

fn content(mut file: &File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("it is readable");
    bytes
}

impl Disk {
    /// Makes `to` what is left of the directory `root`, as the next boot of the machine finds it.
    pub(crate) fn lose_power(&self, root: &Path, to: &Path, mut unsynced: Unsynced) {
        let number = identity(&fs::metadata(root).expect("it is there"));
        // What the state directory has beside sessions does not matter here.
        self.put_directory((number, Some(root)), to, &mut unsynced, &|name| {
            ["sessions", "claims", "redo"].contains(&name)
        });
        boot(&to.join("redo"));
    }

    fn put_directory(
        &self,
        (number, now): (Identity, Option<&Path>),
        to: &Path,
        unsynced: &mut Unsynced,
        takes: &dyn Fn(&str) -> bool,
    ) {
        fs::create_dir_all(to).expect("it is made");
        let kept = match self.0.get(&number) {
            Some(Inode::Directory(names)) => names.clone(),
            _ => BTreeMap::new(),
        };
        let names = match (unsynced.next(), now) {
            (Unsynced::Kept, Some(now)) => names_in(now),
            _ => kept,
        };
        for (name, number) in names.into_iter().filter(|(name, _)| takes(name)) {
            // The same one, if it is there still.
            let now = now.map(|now| now.join(&name));
            let now =
                now.filter(|now| fs::symlink_metadata(now).is_ok_and(|found| identity(&found) == number));
            let is_directory = match self.0.get(&number) {
                Some(inode) => matches!(inode, Inode::Directory(_)),
                None => now.as_deref().is_some_and(Path::is_dir),
            };
            let to = to.join(name);
            match is_directory {
                true => self.put_directory((number, now.as_deref()), &to, unsynced, &|_| true),
                false => {
                    fs::write(to, self.bytes(number, now.as_deref(), unsynced.next())).expect("it is made")
                }
            }
        }
    }

    fn bytes(&self, number: Identity, now: Option<&Path>, unsynced: Unsynced) -> Vec<u8> {
        let mut kept = match self.0.get(&number) {
            Some(Inode::File(bytes)) => bytes.to_vec(),
            _ => Vec::new(),
        };
        let now = now.and_then(|now| fs::read(now).ok());
        match (unsynced, now) {
            (Unsynced::Kept, Some(now)) => now,
            (Unsynced::Zeros, Some(now)) => {
                kept.resize(now.len().max(kept.len()), 0);
                kept
            }
            _ => kept,
        }
    }
}

impl Unsynced {
    /// What becomes of the next file.
    fn next(&mut self) -> Self {
        match self {
            Self::Mixed(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                [Self::Lost, Self::Kept, Self::Zeros][(*state % 3) as usize]
            }
            other => *other,
        }
    }
}

/// Has redo files be of an earlier boot.
fn boot(redo: &Path) {
    for directory in fs::read_dir(redo).into_iter().flatten().flatten() {
        for entry in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
            let file = File::options().read(true).write(true).open(entry.path()).expect("it is there");
            if let Ok(header) = RedoHeader::decode(&content(&file)) {
                let earlier = RedoHeader { boot: [7; 16], ..header };
                file.write_all_at(&earlier.encode(), 0).expect("it is written");
            }
        }
    }
}

mod faults;
mod tests;
