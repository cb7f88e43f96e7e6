//! The host files of a state directory: the hosts that live here, and those that died here (contract 6).
//!
//! Several acpd processes share a state directory. Each holds a lock on a file of its own for as long as it
//! lives; the operating system releases it however the process ends. A file whose lock is free belongs to a
//! host that is gone.

use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the state directory: {}", path.display())]
pub struct HostFileError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the operating system said.
    #[source]
    pub source: io::Error,
}

/// The directory of the keepers that wait for the next host, in the state directory.
pub const KEEPERS: &str = "keepers";

/// The lock that says that this host lives.
#[derive(Debug)]
pub struct HostFile {
    id: String,
    path: PathBuf,
    /// Holds the lock; none of a process that hosts nothing.
    file: Option<File>,
}

impl HostFile {
    /// Registers a new host in `state_dir`, which is created if it is not there (mode 0700).
    ///
    /// # Errors
    /// When a file cannot be made there.
    pub fn create(state_dir: &Path) -> Result<Self, HostFileError> {
        let dir = state_dir.join("hosts");
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| HostFileError { path, source }
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed(&dir))?;
        let id = uuid::Uuid::now_v7().to_string();
        let path = dir.join(&id);
        // Locked before it has its name, or another process could take it for a dead host's.
        let unnamed = dir.join(format!(".{id}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unnamed)
            .map_err(failed(&unnamed))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed(&unnamed)(error.into()))?;
        writeln!(file, "{}", std::process::id()).map_err(failed(&unnamed))?;
        std::fs::rename(&unnamed, &path).map_err(failed(&path))?;
        Ok(Self { id, path, file: Some(file) })
    }

    /// For a process that hosts nothing and only looks at the others.
    pub(crate) fn of_a_reader(state_dir: &Path) -> Self {
        let id = uuid::Uuid::now_v7().to_string();
        Self { path: state_dir.join("hosts").join(&id), id, file: None }
    }

    /// Where the keepers of the state directory listen.
    pub(crate) fn keepers(&self) -> PathBuf {
        let state = self.path.parent().and_then(Path::parent);
        state.unwrap_or(&self.path).join(KEEPERS)
    }

    /// The id of this host.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Fails when the file is not where it was: other processes then take this host for gone, and its sessions for lost.
    pub(crate) fn check_place(&self) -> Result<(), HostFileError> {
        let here = |source| HostFileError { path: self.path.clone(), source };
        let Some(file) = &self.file else { return Ok(()) };
        let (found, held) = (std::fs::metadata(&self.path).map_err(here)?, file.metadata().map_err(here)?);
        match (found.dev(), found.ino()) == (held.dev(), held.ino()) {
            true => Ok(()),
            false => Err(here(io::Error::other("another file is in its place"))),
        }
    }

    /// The process id of another host of this directory.
    pub(crate) fn pid_of(&self, host: &str) -> Option<u32> {
        let file = self.path.parent()?.join(host);
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    }

    /// That host, if it is gone, with the lock that keeps other processes from taking care of it too.
    pub(crate) fn dead_host(&self, host: &str) -> Option<DeadHost> {
        DeadHost::take(self.path.parent()?.join(host))
    }

    /// Whether that host is gone, and no process takes care of it. Another process may look at the same time.
    pub(crate) fn is_dead(&self, host: &str) -> bool {
        let file = self.path.parent().map(|hosts| File::open(hosts.join(host)));
        matches!(file, Some(Ok(file)) if flock(&file, FlockOperation::NonBlockingLockShared).is_ok())
    }

    /// Hosts that are gone, each with the lock that keeps other processes from taking care of it too.
    pub(crate) fn dead(&self) -> Vec<DeadHost> {
        let Some(Ok(entries)) = self.path.parent().map(std::fs::read_dir) else { return Vec::new() };
        let others = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| *path != self.path);
        others.filter_map(DeadHost::take).collect()
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        if self.file.is_none() {
            return;
        }
        // Left behind, it would only be found as a dead host without sessions.
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// A host that is gone.
#[derive(Debug)]
pub(crate) struct DeadHost {
    pub(crate) id: String,
    path: PathBuf,
    _file: File,
}

impl DeadHost {
    fn take(path: PathBuf) -> Option<Self> {
        let id = path.file_name()?.to_str()?.to_owned();
        // A file that is not named yet is about to be, by a process that lives.
        if id.starts_with('.') {
            return None;
        }
        let file = File::open(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self { id, path, _file: file })
    }

    /// Everything of it was taken care of.
    pub(crate) fn forget(self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: a process that finds a lock free that should be held knows that the host is gone
    #[test]
    fn only_hosts_that_are_gone_are_found_dead() {
        let state = tempfile::tempdir().expect("a scratch directory");
        let (one, two) = (HostFile::create(state.path()), HostFile::create(state.path()));
        let (one, two) = (one.expect("made"), two.expect("made"));
        assert_eq!(one.dead().len(), 0);
        // As after SIGKILL: the lock is gone, the file is not.
        let two_id = two.id().to_owned();
        let path = two.path.clone();
        drop(two);
        std::fs::write(&path, "1\n").expect("written");
        assert_eq!((one.is_dead(&two_id), one.is_dead(one.id())), (true, false));
        let dead = one.dead();
        assert_eq!(dead.iter().map(|host| host.id.as_str()).collect::<Vec<_>>(), [two_id.as_str()]);
        assert!(one.dead().is_empty() && !one.is_dead(&two_id), "it is being taken care of");
        dead.into_iter().for_each(DeadHost::forget);
        assert!(!path.exists());
    }

    #[test]
    fn the_directory_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let state = tempfile::tempdir().expect("a scratch directory");
        let dir = state.path().join("new");
        let _host = HostFile::create(&dir).expect("made");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&dir.join("hosts"))), (0o700, 0o700));
    }
}
