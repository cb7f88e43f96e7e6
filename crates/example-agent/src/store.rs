//! Where sessions are kept between processes: one file of JSON lines each, or memory. Owned by the agent.
//!
//! Invariants: an id is created once, also by two processes at the same time; a file only grows; a change is one
//! write, so a killed agent leaves at most one torn line behind.
//! Not a reader of what the lines mean: that is history's.

use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

/// Why a session could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("cannot make the state directory {path}: {source}")]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// All sessions that can be listed and loaded.
#[derive(Debug)]
pub(crate) enum Store {
    Directory(PathBuf),
    Memory(Mutex<HashMap<String, Kept>>),
}

/// A session in memory.
#[derive(Debug)]
pub(crate) struct Kept {
    lines: String,
    modified: SystemTime,
}

impl Store {
    pub(crate) fn in_memory() -> Self {
        Self::Memory(Mutex::new(HashMap::new()))
    }

    /// Keeps a new session and returns its id. Ids are random: the directory is shared and never locked.
    pub(crate) fn create(&self, first_lines: &str) -> Result<String, StoreError> {
        loop {
            let id = format!("example-{:016x}", RandomState::new().hash_one(std::process::id()));
            match self.create_as(&id, first_lines) {
                Ok(()) => return Ok(id),
                Err(StoreError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn create_as(&self, id: &str, lines: &str) -> Result<(), StoreError> {
        match self {
            Self::Directory(directory) => {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(directory)
                    .map_err(|source| StoreError::Directory { path: directory.clone(), source })?;
                let path = file(directory, id);
                let created = File::options().write(true).create_new(true).mode(0o600).open(&path);
                created
                    .and_then(|mut file| file.write_all(lines.as_bytes()))
                    .map_err(|source| StoreError::File { path, source })
            }
            Self::Memory(kept) => {
                let session = Kept { lines: lines.to_owned(), modified: now() };
                kept.lock().expect("no holder panics").insert(id.to_owned(), session);
                Ok(())
            }
        }
    }

    /// Adds whole lines to a session. One that was deleted meanwhile stays deleted.
    pub(crate) fn append(&self, id: &str, lines: &str) -> Result<(), StoreError> {
        match self {
            Self::Directory(directory) => {
                let path = file(directory, id);
                let opened = File::options().append(true).open(&path);
                match opened.and_then(|mut file| file.write_all(lines.as_bytes())) {
                    Err(source) if source.kind() != io::ErrorKind::NotFound => {
                        Err(StoreError::File { path, source })
                    }
                    _ => Ok(()),
                }
            }
            Self::Memory(kept) => {
                if let Some(session) = kept.lock().expect("no holder panics").get_mut(id) {
                    session.lines.push_str(lines);
                    session.modified = now();
                }
                Ok(())
            }
        }
    }

    /// All lines of a session; `None` if there is no such session.
    pub(crate) fn read(&self, id: &str) -> Option<String> {
        match self {
            Self::Directory(directory) if is_id(id) => {
                let bytes = std::fs::read(file(directory, id)).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Self::Directory(_) => None,
            Self::Memory(kept) => {
                kept.lock().expect("no holder panics").get(id).map(|session| session.lines.clone())
            }
        }
    }

    pub(crate) fn remove(&self, id: &str) {
        match self {
            Self::Directory(directory) if is_id(id) => {
                std::fs::remove_file(file(directory, id)).ok();
            }
            Self::Directory(_) => {}
            Self::Memory(kept) => {
                kept.lock().expect("no holder panics").remove(id);
            }
        }
    }

    /// Ids and times of the last change, in no order.
    pub(crate) fn entries(&self) -> Vec<(String, SystemTime)> {
        match self {
            Self::Directory(directory) => {
                let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
                files
                    .filter_map(|entry| {
                        let name = entry.file_name().into_string().ok()?;
                        let id = name.strip_suffix(".ndjson").filter(|id| is_id(id))?;
                        Some((id.to_owned(), entry.metadata().ok()?.modified().ok()?))
                    })
                    .collect()
            }
            Self::Memory(kept) => {
                let kept = kept.lock().expect("no holder panics");
                kept.iter().map(|(id, session)| (id.clone(), session.modified)).collect()
            }
        }
    }
}

fn file(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.ndjson"))
}

/// Ids come from clients and become file names.
fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[expect(clippy::disallowed_methods, reason = "stands in for the time that a file system would note")]
fn now() -> SystemTime {
    SystemTime::now()
}
