//! What is known of a keeper without asking it.

use crate::attach::keeper_versions;
use crate::keeper::frames::{Frame, HEAD};
use crate::keeper::listening::{END, SOCKET, file_of, within};
use crate::keeper::protocol::FromKeeper;
use crate::kept_process::report_of;
use crate::procfs;
use crate::regular_file::open_regular;
use crate::report::ExitReport;
use crate::start::Supervisor;
use crate::sweep::{KEEPER_MARK, ProcessMark, all_processes};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;
use std::collections::HashSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often it is looked whether a keeper listens.
const LOOK: Duration = Duration::from_millis(5);
/// The longest head of a frame that is looked at, in bytes: all that a keeper knows but its program's output.
const LONGEST_HEAD: u32 = 16 << 20;

/// Since when a program may be [attached](crate::Supervisor::attach), whose host is gone: its keeper listens, or has left word
/// of its end. None: neither is there. Blocks.
pub fn detached_since(directory: &Path, mark: &ProcessMark) -> Option<SystemTime> {
    let look = |what| std::fs::symlink_metadata(directory.join(file_of(mark.as_str(), what))).ok();
    let socket = look(SOCKET).filter(|_| !is_deserted(directory, mark));
    // What is no file was left by no keeper.
    socket.or_else(|| look(END).filter(Metadata::is_file))?.modified().ok()
}

/// Whether the socket of a keeper is there and nothing listens at it: the keeper was killed. Blocks.
fn is_deserted(directory: &Path, mark: &ProcessMark) -> bool {
    let connect = || {
        let directory = rustix::fs::open(directory, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let name = SocketAddrUnix::new(within(&directory, &file_of(mark.as_str(), SOCKET)))?;
        rustix::net::connect(&socket, &name)
    };
    connect() == Err(Errno::CONNREFUSED)
}

/// Removes the sockets of keepers that were killed. Blocks.
pub fn forget_killed(directory: &Path) {
    for mark in marks_with(directory, SOCKET) {
        // One that is just about to listen lives.
        if is_deserted(directory, &mark) && keeper_of(&mark).is_none() {
            let _gone = std::fs::remove_file(directory.join(file_of(mark.as_str(), SOCKET)));
        }
    }
}

/// The programs whose keepers have left word of their end in `directory`. Blocks.
pub fn ends_left(directory: &Path) -> Vec<ProcessMark> {
    marks_with(directory, END)
}

fn marks_with(directory: &Path, what: &str) -> Vec<ProcessMark> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mark_of = |name: String| ProcessMark::parse(name.strip_suffix(what)?.strip_suffix('.')?);
    names.filter_map(mark_of).collect()
}

/// The end of a program that no host was there to see.
#[derive(Clone, Debug)]
pub struct EndLeft {
    /// When its keeper left word of it.
    pub at: SystemTime,
    /// How it ended; what it wrote to stderr may have secrets. None: the keeper was of a version that is not known here.
    pub report: Option<ExitReport>,
}

/// What a keeper has left of the end of its program. Blocks.
pub fn end_left(directory: &Path, mark: &ProcessMark) -> Option<EndLeft> {
    let path = directory.join(file_of(mark.as_str(), END));
    let file = open_regular(&path, OpenOptions::new().read(true)).ok()?;
    let metadata = file.metadata().ok()?;
    let at = metadata.modified().ok()?;
    let report = match head_of(file, metadata.len()).and_then(|frame| FromKeeper::read(frame).ok().flatten())
    {
        Some(FromKeeper::Attached(head, _)) if keeper_versions().contains(&head.version) => {
            head.exited.map(|exited| report_of(head.running, exited))
        }
        _ => None,
    };
    Some(EndLeft { at, report })
}

/// The frame in such a file, without the output at its end. None: it is cut off, or none.
fn head_of(mut file: File, length: u64) -> Option<Frame> {
    let mut start = [0; 4 + HEAD];
    file.read_exact(&mut start).ok()?;
    let number = |at: usize| start[at..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    let (whole, head) = (number(0)?, number(HEAD)?);
    if 4 + u64::from(whole) != length || head > LONGEST_HEAD {
        return None;
    }
    let mut body = start[HEAD..].to_vec();
    file.take(head.into()).read_to_end(&mut body).ok()?;
    Some(Frame { kind: start[4], body: body.into() })
}

impl Supervisor {
    /// Removes the word that keepers have left of their end, but for programs that this supervisor has taken over: those it
    /// removes itself, once the end is recorded. Blocks.
    pub fn forget_ends(&self, directory: &Path, marks: &[ProcessMark]) {
        for mark in marks.iter().filter(|mark| !self.has(mark)) {
            let _gone = std::fs::remove_file(directory.join(file_of(mark.as_str(), END)));
        }
    }
}

/// Waits until each of these keepers listens, has left word, or is gone, and no longer than `within`: one whose host has
/// died a moment after it told it to outlive it does not listen yet. Blocks.
pub fn wait_for_keepers(directory: &Path, mut marks: HashSet<ProcessMark>, within: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a shell: it only bounds a wait")]
    let now = std::time::Instant::now;
    let deadline = now() + within;
    loop {
        marks.retain(|mark| detached_since(directory, mark).is_none());
        if marks.is_empty() {
            return;
        }
        let running: HashSet<ProcessMark> = all_processes().filter_map(kept_by).collect();
        marks.retain(|mark| running.contains(mark));
        if marks.is_empty() || now() >= deadline {
            return;
        }
        std::thread::park_timeout(LOOK);
    }
}

/// The process that is the keeper of this program, if there is one. Blocks.
pub(crate) fn keeper_of(mark: &ProcessMark) -> Option<Pid> {
    all_processes().find(|pid| is_keeper_of(*pid, mark))
}

/// Whether this process is the keeper of this program.
pub(crate) fn is_keeper_of(pid: Pid, mark: &ProcessMark) -> bool {
    kept_by(pid).as_ref() == Some(mark)
}

/// The program that a process is the keeper of.
fn kept_by(pid: Pid) -> Option<ProcessMark> {
    let environment = procfs::environment(pid).known();
    ProcessMark::parse(procfs::variable(&environment, KEEPER_MARK)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    // contract 7.2: a keeper that was killed is not waited for, though its socket has still a name; one that listens is
    #[test]
    fn a_socket_at_which_nothing_listens_is_no_keeper() {
        let directory = tempfile::tempdir().expect("a scratch directory");
        let host = uuid::Uuid::now_v7().to_string();
        let (mark, killed) = (ProcessMark::new(&host, 1), ProcessMark::new(&host, 2));
        let path = |mark: &ProcessMark| directory.path().join(file_of(mark.as_str(), SOCKET));
        let _listens = UnixListener::bind(path(&mark)).expect("a socket");
        drop(UnixListener::bind(path(&killed)).expect("a socket"));
        let since = |mark| detached_since(directory.path(), mark);
        // A child that another test starts listens at it, too, until it is a program of its own.
        while since(&killed).is_some() {
            std::thread::yield_now();
        }
        assert!(since(&mark).is_some());
        forget_killed(directory.path());
        assert!(path(&mark).exists() && !path(&killed).exists());
        // What cannot be read is there all the same, and says nothing of how the program ended.
        std::fs::write(directory.path().join(file_of(killed.as_str(), END)), "").expect("written");
        let end = end_left(directory.path(), &killed).expect("it is there");
        assert!(end.report.is_none() && since(&killed).is_some());
    }

    // contract 7.2: what is no regular file has no word of an end; a long file is not read through for one
    #[test]
    fn an_end_is_a_regular_file() {
        use rustix::fs::{CWD, FileType, mknodat};
        let directory = tempfile::tempdir().expect("a scratch directory");
        let mark = |n| ProcessMark::new("host", n);
        let path = |n| directory.path().join(file_of(mark(n).as_str(), END));
        mknodat(CWD, path(1), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        std::fs::create_dir(path(2)).expect("made");
        File::create(path(3)).and_then(|file| file.set_len(3 << 30)).expect("made");
        for n in [1, 2] {
            assert!(end_left(directory.path(), &mark(n)).is_none(), "{n}");
            assert!(detached_since(directory.path(), &mark(n)).is_none(), "{n}");
        }
        assert!(end_left(directory.path(), &mark(3)).is_some_and(|end| end.report.is_none()));
    }
}
