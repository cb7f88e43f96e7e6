//! What is known of a keeper without asking it.

use crate::keeper::listening::{END, SOCKET, file_of};
use crate::procfs;
use crate::start::Supervisor;
use crate::sweep::{KEEPER_MARK, ProcessMark, all_processes};
use rustix::process::Pid;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How often it is looked whether a keeper listens.
const LOOK: Duration = Duration::from_millis(5);

/// Since when a program may be [attached](crate::Supervisor::attach), whose host is gone: its keeper listens, or has left word
/// of its end. None: neither is there. Blocks.
pub fn detached_since(directory: &Path, mark: &ProcessMark) -> Option<SystemTime> {
    let files = [SOCKET, END].map(|what| directory.join(file_of(mark.as_str(), what)));
    files.iter().find_map(|file| std::fs::symlink_metadata(file).ok()?.modified().ok())
}

/// The programs whose keepers have left word of their end in `directory`. Blocks.
pub fn ends_left(directory: &Path) -> Vec<ProcessMark> {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let mark_of = |name: String| ProcessMark::parse(name.strip_suffix(END)?.strip_suffix('.')?);
    names.filter_map(mark_of).collect()
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
