//! The host files of a state directory: the hosts that live here, and those that died here (contract 6).
//!
//! Several acpd processes share a state directory. Each holds a lock on a file of its own for as long as it
//! lives; the operating system releases it however the process ends. A file whose lock is free belongs to a
//! host that is gone, and so does an id without a file. Only a host that has ended in order removes its file.

use acpd_supervisor::{open_regular, read_regular};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
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

/// The longest text of a process id that is read from a host file, in bytes.
const PID_BYTES: u64 = 32;

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
        let text = read_regular(&self.path_of(host)?, PID_BYTES).ok()?;
        std::str::from_utf8(&text).ok()?.trim().parse().ok()
    }

    /// That host, if it is gone, with the lock that keeps other processes from taking care of it too. A host without a
    /// file gets one again, for that lock.
    pub(crate) fn dead_host(&self, host: &str) -> Option<DeadHost> {
        DeadHost::take(self.path_of(host)?)
    }

    /// Whether that host is gone, and no process takes care of it. Another process may look at the same time.
    pub(crate) fn is_dead(&self, host: &str) -> bool {
        let file = self.path_of(host).map(|path| open_regular(&path, OpenOptions::new().read(true)));
        match file {
            Some(Ok(file)) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
            Some(Err(error)) => error.kind() == io::ErrorKind::NotFound,
            None => false,
        }
    }

    /// Hosts that are gone, each with the lock that keeps other processes from taking care of it too: those with a file,
    /// and those of `owners` without one.
    pub(crate) fn dead(&self, owners: &[String]) -> Vec<DeadHost> {
        let entries =
            self.path.parent().and_then(|hosts| std::fs::read_dir(hosts).ok()).into_iter().flatten();
        let named = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let hosts: BTreeSet<String> = named.chain(owners.iter().cloned()).collect();
        hosts.iter().filter(|host| **host != self.id).filter_map(|host| self.dead_host(host)).collect()
    }

    /// The file of a host; `None` of what cannot be the id of one.
    fn path_of(&self, host: &str) -> Option<PathBuf> {
        // A file that is not named yet is about to be, by a process that lives.
        let is_name = !host.is_empty() && !host.starts_with('.') && !host.contains('/');
        is_name.then(|| self.path.parent().map(|hosts| hosts.join(host))).flatten()
    }

    /// Removes the file: this host has ended in order, and no session is its own. Without this call the host counts as
    /// dead from the end of its process on, as after a crash.
    pub(crate) fn remove(&self) {
        if self.file.is_some() {
            // Left behind, it would only be found as a dead host without sessions.
            let _gone = std::fs::remove_file(&self.path);
        }
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
        let mut file =
            open_regular(&path, OpenOptions::new().read(true).append(true).create(true).mode(0o600)).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let held = file.metadata().ok()?;
        // Another process may have taken care of it, and removed the file, between the two steps above.
        let named = std::fs::metadata(&path).ok()?;
        if (named.dev(), named.ino()) != (held.dev(), held.ino()) {
            return None;
        }
        if held.len() == 0 {
            // Whose the sessions are meanwhile; without it they are only shown without a process id.
            let _full = writeln!(file, "{}", std::process::id());
        }
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
        assert_eq!(one.dead(&[two.id().to_owned()]).len(), 0);
        // As after SIGKILL: the lock is gone, the file is not.
        let two_id = two.id().to_owned();
        let path = two.path.clone();
        drop(two);
        assert_eq!((one.is_dead(&two_id), one.is_dead(one.id())), (true, false));
        let dead = one.dead(&[]);
        assert_eq!(dead.iter().map(|host| host.id.as_str()).collect::<Vec<_>>(), [two_id.as_str()]);
        assert!(one.dead(&[]).is_empty() && !one.is_dead(&two_id), "it is being taken care of");
        dead.into_iter().for_each(DeadHost::forget);
        assert!(!path.exists());
    }

    // contract 6: sessions of a host that left no file are recovered as those of any dead host, by one process at a time
    #[test]
    fn an_owner_without_a_file_is_a_dead_host() {
        let state = tempfile::tempdir().expect("a scratch directory");
        let one = HostFile::create(state.path()).expect("made");
        let other = HostFile::create(state.path()).expect("made");
        let owners = ["gone".to_owned(), one.id().to_owned(), other.id().to_owned(), "../x".to_owned()];
        assert!(one.is_dead("gone") && !one.is_dead("../x"));
        let dead = one.dead(&owners);
        assert_eq!(dead.iter().map(|host| host.id.as_str()).collect::<Vec<_>>(), ["gone"]);
        assert!(
            other.dead(&owners).is_empty() && other.dead_host("gone").is_none() && !other.is_dead("gone")
        );
        assert_eq!(other.pid_of("gone"), Some(std::process::id()));
        dead.into_iter().for_each(DeadHost::forget);
        assert!(other.dead_host("gone").is_some());
    }

    // contract 6: only an end in order removes the file
    #[test]
    fn a_host_that_is_dropped_counts_as_dead() {
        let state = tempfile::tempdir().expect("a scratch directory");
        let (one, two) = (HostFile::create(state.path()), HostFile::create(state.path()));
        let (one, two) = (one.expect("made"), two.expect("made"));
        let (id, ended) = (two.id().to_owned(), HostFile::create(state.path()).expect("made"));
        ended.remove();
        drop((two, ended));
        assert_eq!(one.dead(&[]).into_iter().map(|host| host.id).collect::<Vec<_>>(), [id]);
    }

    // contract 6: a file that is no regular file holds nobody up
    #[test]
    fn a_pipe_among_the_host_files_is_passed_over() {
        let state = tempfile::tempdir().expect("a scratch directory");
        let one = HostFile::create(state.path()).expect("made");
        let hosts = state.path().join("hosts");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let made =
            rustix::fs::mknodat(rustix::fs::CWD, hosts.join("pipe"), rustix::fs::FileType::Fifo, mode, 0);
        made.expect("a pipe");
        std::fs::create_dir(hosts.join("directory")).expect("made");
        assert!(one.dead(&["pipe".to_owned()]).is_empty());
        assert_eq!((one.pid_of("pipe"), one.is_dead("pipe"), one.is_dead("directory")), (None, false, false));
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
