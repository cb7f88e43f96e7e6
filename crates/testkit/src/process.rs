//! What the operating system knows of a process: its end, its memory, its time, its descriptors, its children.
//!
//! Linux only, like the tests that need it.

use crate::clock::{Deadline, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process, pidfd_open, prlimit};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::Duration;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Waits for the end of a process of any parent. False when it did not come in time.
pub(crate) fn ends_within(pid: u32, within: Duration) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let deadline = Deadline::after(within);
    loop {
        let left = deadline.left();
        let wait = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&wait)) {
            Ok(0) if deadline.is_over() => return false,
            Ok(0) | Err(_) => {}
            Ok(_) => return true,
        }
    }
}

/// Waits for a child and reaps it.
///
/// # Panics
/// When it was reaped by another.
pub fn exit_of(child: &mut Child, within: Duration) -> Option<Exit> {
    if !ends_within(child.id(), within) {
        return None;
    }
    let status = child.wait().expect("it is our child");
    Some(match status.signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.code().unwrap_or(-1)),
    })
}

/// A pipe that is an error to read when nothing comes for a long time.
#[derive(Debug)]
pub struct ReadTimeout<R>(pub R);

impl<R: Read + AsFd> Read for ReadTimeout<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wait = Timespec { tv_sec: 60, tv_nsec: 0 };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&wait))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.0.read(out),
        }
    }
}

/// Stops a process by SIGSTOP, and waits until all of it stands still: on a busy machine a thread may go on, and answer, before the
/// one runs that takes the signal.
///
/// # Panics
/// When it is gone already.
pub fn suspend(pid: u32) {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(process, Signal::STOP).expect("the process lives");
    until("all of it stands still", || stands_still(pid).then_some(()));
}

/// Each thread of a process is stopped.
fn stands_still(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives").flatten();
    // One that has ended meanwhile does nothing any more.
    let mut stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
}

/// How many descriptors a process has open.
///
/// # Panics
/// When it is gone.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process lives").count()
}

/// Limits the size of a running process's files, in bytes; None: not any more. With 0 it can write to no file.
///
/// # Panics
/// When it is gone.
pub fn limit_files(pid: u32, bytes: Option<u64>) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(pid, Resource::Fsize, limit).expect("it may be changed");
}

/// The most memory that a process has had resident, in bytes.
///
/// # Panics
/// When it is gone.
pub fn peak_memory(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

/// The memory that a process has for itself, in bytes: its anonymous pages, since those of files are shared and
/// reclaimed.
///
/// # Panics
/// When it is gone.
pub fn anonymous_memory(pid: u32) -> u64 {
    memory(pid, "RssAnon:")
}

fn memory(pid: u32, which: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix(which)).expect("Linux tells it");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib * 1024
}

/// The names of a process's threads.
///
/// # Panics
/// When it is gone.
pub fn thread_names(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("the process lives").flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

/// Children of a process that are dead and were not waited for.
pub fn zombie_children(parent: u32) -> Vec<u32> {
    processes().filter(|pid| state_and_parent(*pid) == Some(('Z', parent))).collect()
}

/// Processes by the parent of each.
pub fn families() -> HashMap<u32, Vec<u32>> {
    let mut families = HashMap::<_, Vec<u32>>::new();
    for (pid, (_, parent)) in processes().filter_map(|pid| Some((pid, state_and_parent(pid)?))) {
        families.entry(parent).or_default().push(pid);
    }
    families
}

/// The time that processors have spent on a process, in its own code and in the system's; none when it is gone.
pub fn processor_time(pid: u32) -> Duration {
    let stat = stat(pid).unwrap_or_default();
    let ticks = stat.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u32>().ok());
    // In units of a hundredth of a second, whatever the kernel counts in.
    Duration::from_millis(10) * ticks.sum::<u32>()
}

/// What runs, a line each: pid, parent, state, time of processors, command. Those with the most time come first.
pub fn running() -> Vec<String> {
    let line = |pid| {
        let (state, parent) = state_and_parent(pid)?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|command| !command.is_empty())?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let (time, command) = (processor_time(pid), command.chars().take(200).collect::<String>());
        Some((time, format!("{pid:>8} {parent:>8} {state} {:>9.2} s  {command}", time.as_secs_f64())))
    };
    let mut lines: Vec<_> = processes().filter_map(line).collect();
    lines.sort_by(|a, b| b.cmp(a));
    lines.into_iter().map(|(_, line)| line).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = stat(pid)?;
    let mut fields = stat.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// What Linux tells of a process, from its state on.
fn stat(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, parentheses too.
    Some(stat.rsplit_once(')')?.1.to_owned())
}

/// A process that is being replaced by another program is looked at so often: some seconds.
const LOOKS: usize = 100_000;

/// What a process was started with: its `environ` or its `cmdline`; empty when there is none to be read. A process that
/// is just being replaced by another program has none for a moment, and is looked at again.
pub(crate) fn started_with(pid: u32, file: &str) -> Vec<u8> {
    let mut was_settled = false;
    for _ in 0..LOOKS {
        // Gone meanwhile, or not ours to look at.
        let Ok(found) = fs::read(format!("/proc/{pid}/{file}")) else { return Vec::new() };
        if !found.is_empty() {
            return found;
        }
        let stat = stat(pid).unwrap_or_default();
        let field = |number| stat.split_whitespace().nth(number);
        // The size of its memory, and where in it the environment ends, which is behind the command line.
        let is_settled = match (field(20), field(48)) {
            // It has ended, or is a thread of the kernel.
            (None | Some("0"), _) => return found,
            (_, Some("0")) => false,
            _ => true,
        };
        // What has settled since the look at it is looked at once more.
        if is_settled && was_settled {
            return found;
        }
        was_settled = is_settled;
        std::thread::yield_now();
    }
    Vec::new()
}

/// Waits until no child of a process is dead and was not waited for.
///
/// # Panics
/// When one stays.
pub(crate) fn has_no_zombies(parent: u32) {
    let deadline = Deadline::after(crate::PATIENCE);
    while !zombie_children(parent).is_empty() {
        assert!(!deadline.is_over(), "zombies: {:?}", zombie_children(parent));
        std::thread::yield_now();
    }
}
