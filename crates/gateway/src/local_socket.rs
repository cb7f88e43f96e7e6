//! The Unix socket of the daemon that serves a state directory (contract 6): its path, and the right to hold it.
//!
//! One daemon at a time: a lock beside the socket says so, however the last one ended. Only the owner of the directory
//! can open the socket, and a client says nothing to what may be another user's.

use acpd_host::{open_regular, read_regular};
use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum LocalSocketError {
    /// Another daemon serves this directory.
    #[error("a daemon{} serves this state directory already: {}", pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), dir.display())]
    Taken {
        /// The state directory.
        dir: PathBuf,
        /// The daemon.
        pid: Option<u32>,
    },
    /// The socket that a service manager has passed in is at another place than the one where commands look.
    #[error(
        "the socket that was passed in is {}, and commands of this machine look for {}: `ListenStream={}` in the socket \
         unit", given.display(), wanted.display(), wanted.display()
    )]
    Elsewhere {
        /// Its path.
        given: PathBuf,
        /// The path that is wanted.
        wanted: PathBuf,
    },
    /// The operating system refuses.
    #[error("cannot listen on {}", path.display())]
    Failed {
        /// The socket, or its lock.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

/// The socket of a state directory.
pub fn local_socket_path(state_dir: &Path) -> PathBuf {
    state_dir.join("acpd.sock")
}

/// The longest text of a process id that is read, in bytes.
const PID_BYTES: u64 = 32;

fn lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.lock")
}

/// The process that holds the lock of a state directory, also where its socket was taken away. The lock is not tried, as a
/// daemon that starts meanwhile would find it taken. None where the operating system does not tell.
pub fn local_holder(state_dir: &Path) -> Option<u32> {
    let path = lock_path(state_dir);
    let text = read_regular(&path, PID_BYTES).ok()?;
    let pid: u32 = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
    let inode = path.metadata().ok()?.ino();
    let all_locks = std::fs::read_to_string("/proc/locks").ok()?;
    // The number of a process that was killed stays in the file.
    let holds = holds_lock(&all_locks, pid, inode) || locks_of(pid).any(|told| holds_lock(&told, pid, inode));
    holds.then_some(pid)
}

/// What is told of each descriptor of a process, with its locks. The list of all locks comes in pieces, and misses some
/// when processes take and release others meanwhile. Nothing where the process is another user's.
fn locks_of(pid: u32) -> impl Iterator<Item = String> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    descriptors.filter_map(|descriptor| std::fs::read_to_string(descriptor.path()).ok())
}

/// Whether a process has a whole file locked, by proc_locks(5) or proc_pid_fdinfo(5). The device is not compared: on some
/// file systems it is another one than the file's.
fn holds_lock(locks: &str, pid: u32, inode: u64) -> bool {
    let (pid, inode) = (pid.to_string(), inode.to_string());
    locks.lines().any(|line| {
        let words = line.strip_prefix("lock:").unwrap_or(line).split_whitespace();
        let words: Vec<&str> = words.collect();
        let [_, "FLOCK", _, _, holder, file, ..] = words[..] else { return false };
        holder == pid && file.rsplit(':').next() == Some(inode.as_str())
    })
}

/// A socket that is listened on already.
#[derive(Debug)]
pub struct PassedSocket {
    /// The socket.
    pub listener: std::os::unix::net::UnixListener,
    /// acpd has made it, as an earlier image of this process: it goes with this process. One of a service manager stays.
    pub is_ours: bool,
}

/// Says that this process is the daemon of a state directory, until it is dropped; then the socket is gone too, unless a
/// service manager holds it.
#[derive(Debug)]
pub struct LocalSocket {
    path: PathBuf,
    is_ours: bool,
    /// Holds the lock.
    lock: File,
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        // While the lock is held: afterwards it may be another daemon's, as this process's number may be reused.
        if self.is_ours {
            let _gone = std::fs::remove_file(&self.path);
        }
        let _stays = self.lock.set_len(0);
    }
}

impl LocalSocket {
    /// Listens on the socket of `state_dir`, which exists, with mode 0600; on the one that was passed in, if there is one.
    ///
    /// # Errors
    /// When another daemon does, what was passed in is at another place, or the operating system refuses.
    pub fn listen(
        state_dir: &Path,
        passed: Option<PassedSocket>,
    ) -> Result<(Self, UnixListener), LocalSocketError> {
        let path = local_socket_path(state_dir);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LocalSocketError::Failed { path, source }
        };
        let lock_path = lock_path(state_dir);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = open_regular(&lock_path, options).map_err(failed(&lock_path))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut text = String::new();
            let _unreadable = lock.take(PID_BYTES).read_to_string(&mut text);
            return Err(LocalSocketError::Taken { dir: state_dir.to_owned(), pid: text.trim().parse().ok() });
        }
        lock.set_len(0)
            .and_then(|()| writeln!(&lock, "{}", std::process::id()))
            .map_err(failed(&lock_path))?;
        if let Some(PassedSocket { listener, is_ours }) = passed {
            if !is_ours {
                is_at(&listener, &path)?;
            }
            let listener = listener.set_nonblocking(true).and_then(|()| UnixListener::from_std(listener));
            return Ok((Self { path: path.clone(), is_ours, lock }, listener.map_err(failed(&path))?));
        }
        // With the lock in hand, a socket that is there is a dead daemon's.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&path)(error)),
            _ => {}
        }
        let listener = through_short_path(&path, |path| UnixListener::bind(path)).map_err(failed(&path))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed(&path))?;
        Ok((Self { path, is_ours: true, lock }, listener))
    }
}

/// Whether commands find a socket at this path.
fn is_at(listener: &std::os::unix::net::UnixListener, wanted: &Path) -> Result<(), LocalSocketError> {
    let bound = listener.local_addr().ok().and_then(|address| address.as_pathname().map(Path::to_owned));
    let given = bound.unwrap_or_default();
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if real(&given) == real(wanted) {
        return Ok(());
    }
    Err(LocalSocketError::Elsewhere { given, wanted: wanted.to_owned() })
}

/// Why nothing is said to what listens on a socket.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is none, or the operating system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The state directory is another user's.
    #[error(
        "the state directory {} belongs to another user (uid {owner}), and so does what listens there: choose another \
         with --state-dir, or call as that user", dir.display()
    )]
    ForeignDirectory {
        /// The state directory.
        dir: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Any user could have put a socket there.
    #[error(
        "others can write in the state directory {} (mode {mode:04o}), so that what listens there may be theirs: \
         `chmod 700 {}`", dir.display(), dir.display()
    )]
    OpenDirectory {
        /// The state directory.
        dir: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is another user's.
    #[error(
        "what listens on {} runs as another user (uid {uid}), neither as this one nor as root: nothing is said to it",
        path.display()
    )]
    ForeignDaemon {
        /// The socket.
        path: PathBuf,
        /// That user.
        uid: u32,
    },
}

/// Connects to the daemon of a state directory, if it is this user's or root's. For root it may also be that of the
/// directory's owner, where no other user can have put it.
///
/// # Errors
/// When there is none, it may be another user's, or the operating system refuses.
pub async fn connect_local(state_dir: &Path) -> Result<UnixStream, ConnectError> {
    let stream = connect_socket(&local_socket_path(state_dir)).await?;
    let directory = std::fs::metadata(state_dir)?;
    let (dir, owner, mode) = (state_dir.to_owned(), directory.uid(), directory.mode() & 0o7777);
    match judge(geteuid().as_raw(), owner, mode) {
        Judged::Fine => Ok(stream),
        Judged::Foreign => Err(ConnectError::ForeignDirectory { dir, owner }),
        Judged::Open => Err(ConnectError::OpenDirectory { dir, mode }),
    }
}

/// Connects to a daemon by its socket, if it is this user's or root's; for root as in [`connect_local`].
///
/// # Errors
/// When there is none, it is another user's, or the operating system refuses.
pub async fn connect_socket(path: &Path) -> Result<UnixStream, ConnectError> {
    let connected = through_short_path(path, |path| std::os::unix::net::UnixStream::connect(path))?;
    connected.set_nonblocking(true)?;
    let stream = UnixStream::from_std(connected)?;
    let (ours, uid) = (geteuid().as_raw(), stream.peer_cred()?.uid());
    if uid == ours || uid == 0 {
        return Ok(stream);
    }
    let is_in_place = || {
        let directory = path.parent().and_then(|dir| std::fs::metadata(dir).ok());
        directory.is_some_and(|dir| dir.uid() == uid && judge(ours, uid, dir.mode()) == Judged::Fine)
    };
    match ours == 0 && is_in_place() {
        true => Ok(stream),
        false => Err(ConnectError::ForeignDaemon { path: path.to_owned(), uid }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Fine,
    Foreign,
    Open,
}

/// Whether a directory is one in which only its owner can have put a socket, and that one is trusted.
fn judge(ours: u32, owner: u32, mode: u32) -> Judged {
    if owner != ours && owner != 0 && ours != 0 {
        return Judged::Foreign;
    }
    if mode & 0o022 != 0 { Judged::Open } else { Judged::Fine }
}

/// The longest address of a Unix socket, in bytes.
const LONGEST: usize = 107;

/// State directories may be deeper than an address of a Unix socket is long; the directory, once open, has a short name.
fn through_short_path<T>(path: &Path, open: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    if path.as_os_str().len() <= LONGEST {
        return open(path);
    }
    use std::os::fd::AsRawFd;
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return open(path) };
    let dir = File::open(dir)?;
    open(&Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    // SC-1: a socket is trusted where only its owner can have put it
    #[test]
    fn a_directory_of_others_is_not_trusted() {
        for (ours, owner, mode, judged) in [
            (7, 7, 0o700, Judged::Fine),
            (7, 7, 0o755, Judged::Fine),
            (7, 0, 0o755, Judged::Fine),
            (0, 7, 0o700, Judged::Fine),
            (7, 8, 0o700, Judged::Foreign),
            (7, 8, 0o777, Judged::Foreign),
            (7, 7, 0o770, Judged::Open),
            (7, 7, 0o702, Judged::Open),
            (7, 0, 0o1777, Judged::Open),
            (0, 7, 0o720, Judged::Open),
        ] {
            assert_eq!(judge(ours, owner, mode), judged, "{ours} {owner} {mode:o}");
        }
    }

    // contract 7.1: whether a lock is held is read, for what tries it would keep a daemon from starting
    #[test]
    fn the_holder_of_a_lock_is_read() {
        let held =
            "1: FLOCK  ADVISORY  WRITE 42 fe:00:7 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 43 fe:00:8 0 EOF\n";
        for (locks, holds) in [
            (held, true),
            ("pos:\t0\nflags:\t02100000\nlock:\t1: FLOCK  ADVISORY  WRITE 42 fe:00:7 0 EOF\n", true),
            ("9: POSIX  ADVISORY  WRITE 42 fe:00:7 0 EOF", false),
            ("9: FLOCK  ADVISORY  WRITE 41 fe:00:7 0 EOF", false),
            ("9: FLOCK  ADVISORY  WRITE 42 fe:00:17 0 EOF", false),
            ("", false),
        ] {
            assert_eq!(holds_lock(locks, 42, 7), holds, "{locks}");
        }
        assert!(!holds_lock(held, 43, 8), "it waits");
    }

    // contract 6, SC-1: one daemon for a directory, a socket for its owner only, however deep the directory is
    #[tokio::test]
    async fn one_daemon_holds_the_socket() {
        let scratch = tempfile::TempDir::new().expect("a directory");
        let dir = scratch.path().join("deep".repeat(40));
        std::fs::create_dir(&dir).expect("a directory");
        assert!(connect_local(&dir).await.is_err());
        let (held, listener) = LocalSocket::listen(&dir, None).expect("the socket is free");
        let mode = std::fs::metadata(local_socket_path(&dir)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let taken = LocalSocket::listen(&dir, None).expect_err("the socket is taken").to_string();
        assert!(taken.contains(&format!("pid {}", std::process::id())), "{taken}");
        assert_eq!(local_holder(&dir), Some(std::process::id()));
        let mut client = connect_local(&dir).await.expect("it is listened to");
        let (mut served, _) = listener.accept().await.expect("a client");
        client.write_all(b"x").await.expect("sent");
        assert_eq!(served.read_u8().await.expect("received"), b'x');
        drop((held, listener));
        assert_eq!(std::fs::read(dir.join("daemon.lock")).expect("it stays"), b"");
        assert!(!local_socket_path(&dir).exists());
        // What a killed daemon leaves is no obstacle, and no daemon.
        std::fs::write(scratch.path().join("daemon.lock"), std::process::id().to_string()).expect("a file");
        assert_eq!(local_holder(scratch.path()), None);
        drop(std::os::unix::net::UnixListener::bind(scratch.path().join("acpd.sock")).expect("a socket"));
        assert!(LocalSocket::listen(scratch.path(), None).is_ok());
    }

    // contract 7.2: a socket that was passed in is listened on where commands look, and stays when it is another's
    #[tokio::test]
    async fn a_socket_is_passed_in() {
        use std::os::unix::net::UnixListener as Passed;
        let scratch = tempfile::TempDir::new().expect("a directory");
        let (dir, path) = (scratch.path(), scratch.path().join("acpd.sock"));
        let elsewhere = Passed::bind(dir.join("other.sock")).expect("a socket");
        let passed = PassedSocket { listener: elsewhere, is_ours: false };
        let refused = LocalSocket::listen(dir, Some(passed)).expect_err("commands do not look there");
        assert!(refused.to_string().contains(&format!("ListenStream={}", path.display())), "{refused}");
        let listener = Passed::bind(&path).expect("a socket");
        for (is_ours, stays) in [(false, true), (true, false)] {
            let passed = PassedSocket { listener: listener.try_clone().expect("a copy"), is_ours };
            let (held, listening) = LocalSocket::listen(dir, Some(passed)).expect("it is free");
            assert!(connect_local(dir).await.is_ok() && listening.accept().await.is_ok());
            let taken = LocalSocket::listen(dir, None).expect_err("one at a time");
            assert!(matches!(taken, LocalSocketError::Taken { .. }), "{taken}");
            drop(held);
            assert_eq!(path.exists(), stays);
        }
    }
}
