//! The mark by which every process of one test is found, whatever became of its parents.
//!
//! That is a variable in the environment, or, for keepers, which have none of it, the directory they were started
//! in. A zombie has neither; zombies are looked for by their parent instead.

use crate::clock::Deadline;
use crate::process::{ends_within, started_with};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The environment variable that carries the mark.
const VARIABLE: &str = "E2E_RUN";

/// Unique to one test.
#[derive(Clone, Debug)]
pub struct RunMark {
    value: String,
    dir: PathBuf,
}

/// A live process of a test.
#[derive(Clone, Debug)]
pub struct Marked {
    /// Its id.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

impl RunMark {
    /// A mark for what is started with its variable, and in `dir` or below.
    pub(crate) fn new(dir: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let value = format!("{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self { value, dir: dir.to_owned() }
    }

    /// The variable that carries it, for what is started by others.
    pub fn variable(&self) -> (&'static str, &str) {
        (VARIABLE, &self.value)
    }

    /// All live processes of the test.
    pub fn processes(&self) -> Vec<Marked> {
        let entry = format!("{VARIABLE}={}", self.value);
        marked(|value| value == entry.as_bytes(), |dir| dir.starts_with(&self.dir))
    }

    /// Live processes whose command line contains `part`.
    pub fn running(&self, part: &str) -> Vec<Marked> {
        self.processes().into_iter().filter(|process| process.command.contains(part)).collect()
    }

    /// Waits until nothing but `spared` lives. What was forgotten lives for minutes in each test; what is ending may be slow where the
    /// machine is busy, and no second was promised.
    ///
    /// # Errors
    /// What lives when a test has waited long enough.
    pub fn only_left(&self, spared: &[u32]) -> Result<(), Vec<Marked>> {
        let deadline = Deadline::after(crate::PATIENCE);
        loop {
            let mut living = self.processes();
            living.retain(|process| !spared.contains(&process.pid));
            let Some(first) = living.first() else { return Ok(()) };
            if !ends_within(first.pid, deadline.left()) {
                return Err(living);
            }
        }
    }

    /// Kills what lives; for tests that have failed already.
    pub(crate) fn kill_all(&self) {
        kill_until_none(|| self.processes());
    }
}

/// The beginning of the names of scratch directories of a test program.
pub(crate) fn scratch_prefix(program: u32) -> String {
    format!("acpd-test-{program}-")
}

/// Kills what a test program has left behind, which has ended: its processes by their marks, or by the scratch directory that
/// they were started in. A test that fails beside a thread that holds its scratch does not get so far by itself.
pub fn end_left_behind(program: u32) -> Vec<Marked> {
    let entry = format!("{VARIABLE}={program}.");
    let prefix = scratch_prefix(program);
    let is_scratch = |dir: &Path| {
        let mut names = dir.components().map(|part| part.as_os_str().to_string_lossy());
        names.any(|name| name.starts_with(&prefix))
    };
    kill_until_none(|| marked(|value| value.starts_with(entry.as_bytes()), is_scratch))
}

/// Kills what `living` finds, until it finds nothing: what is found may start something before it dies. What was found at first.
fn kill_until_none(living: impl Fn() -> Vec<Marked>) -> Vec<Marked> {
    let deadline = Deadline::after(Duration::from_secs(10));
    let first = living();
    let mut left = first.clone();
    while !left.is_empty() && !deadline.is_over() {
        for process in &left {
            if let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) {
                // One that is gone meanwhile is as good as killed.
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
        for process in &left {
            ends_within(process.pid, deadline.left());
        }
        left = living();
    }
    first
}

/// The live processes with a variable in their environment, or a working directory, of which these are true.
fn marked(has_variable: impl Fn(&[u8]) -> bool, has_directory: impl Fn(&Path) -> bool) -> Vec<Marked> {
    let all = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_mark = |pid: &u32| {
        let environment = started_with(*pid, "environ");
        let is_here = || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| has_directory(&cwd));
        environment.split(|byte| *byte == 0).any(&has_variable) || is_here()
    };
    let marked = |pid| {
        let command = started_with(pid, "cmdline");
        Marked { pid, command: String::from_utf8_lossy(&command).replace('\0', " ") }
    };
    pids.filter(has_mark).map(marked).collect()
}
