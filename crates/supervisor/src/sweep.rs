//! Finding processes by their mark, when no keeper is left to ask.
//!
//! Every program carries `ACPD_PROCESS=<host>.<n>` in its environment and hands it on to all below it; below a host that
//! is itself below another one, the marks of the outer ones follow, separated by commas. A sweep reads `/proc/*/environ`
//! and kills what carries a mark. Only for what outlived its keeper: it is slower and blinder (a program may clear its
//! environment) than a keeper's own reaping.

use crate::metrics;
use crate::procfs::{self, Environment};
use rustix::process::{Pid, Signal};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The environment variable that marks a program and its descendants.
pub const MARK: &str = "ACPD_PROCESS";
/// The environment variable of the keeper itself, which is never swept.
pub(crate) const KEEPER_MARK: &str = "ACPD_KEEPER";

/// What is swept may fork while it is being killed.
const ROUNDS: usize = 50;
/// How long one round waits for what it killed.
const ROUND_WAIT: Duration = Duration::from_millis(100);
/// How long a round waits for a process that is just being replaced by another program, and shows no mark meanwhile.
const SETTLING: Duration = Duration::from_millis(5);
/// How often that is waited for, five seconds in all: it may have to wait for a processor.
const SETTLING_ROUNDS: usize = 1000;
/// After so many rounds everything is looked at again: what forks that fast may have come by a number that was seen.
const LOOK_AGAIN: usize = 8;

/// The mark of one program: `<host>.<n>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessMark(String);

impl ProcessMark {
    pub(crate) fn new(host: &str, n: u64) -> Self {
        Self(format!("{host}.{n}"))
    }

    /// What [`as_str`](Self::as_str) gave, if it can be that.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, n) = text.rsplit_once('.')?;
        let is_plain =
            |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let is_mark = !host.is_empty() && !host.starts_with('.') && is_plain(host);
        (is_mark && n.parse::<u64>().is_ok()).then(|| Self(text.to_owned()))
    }

    /// As it stands in the environment.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The marks in the value of [`MARK`], the innermost first.
    pub(crate) fn all_in(value: &str) -> impl Iterator<Item = Self> {
        value.split(',').map(|mark| Self(mark.to_owned()))
    }

    /// Whether a program of this host has it.
    pub(crate) fn is_of(&self, host: &str) -> bool {
        self.0.strip_prefix(host).is_some_and(|rest| rest.starts_with('.'))
    }
}

/// Whose processes to sweep.
#[derive(Clone, Debug)]
pub enum Sweep {
    /// Of these programs, whose keepers are known to be gone.
    Programs(HashSet<ProcessMark>),
    /// Of a host that is gone; programs whose keeper still lives are left to it.
    Host(String),
    /// Of a host that is gone, keeper or not.
    WholeHost(String),
}

impl Sweep {
    fn covers(&self, mark: &ProcessMark) -> bool {
        match self {
            Self::Programs(marks) => marks.contains(mark),
            Self::Host(host) | Self::WholeHost(host) => mark.is_of(host),
        }
    }

    /// The covered mark among those of a process.
    fn covered(&self, value: &str) -> Option<ProcessMark> {
        ProcessMark::all_in(value).find(|mark| self.covers(mark))
    }
}

/// Kills everything that carries a covered mark; returns how many processes were killed. Blocks.
pub fn sweep(which: &Sweep) -> u32 {
    sweep_each(which).values().sum()
}

/// The same, for each mark.
pub(crate) fn sweep_each(which: &Sweep) -> HashMap<ProcessMark, u32> {
    let mut look = Look::default();
    let mut killed: HashMap<Pid, ProcessMark> = HashMap::new();
    let (mut rounds, mut settling) = (0, 0);
    while rounds < ROUNDS && settling < SETTLING_ROUNDS {
        if (rounds + settling + 1) % LOOK_AGAIN == 0 {
            look.settled.clear();
        }
        let found = look.found(which);
        if found.is_empty() && !look.is_unsettled {
            break;
        }
        let mut ends = Vec::new();
        for (pid, mark) in found {
            if let Some(end) = kill_marked(pid, which) {
                ends.push(end);
                killed.insert(pid, mark);
            }
        }
        if ends.is_empty() {
            settling += 1;
            std::thread::park_timeout(SETTLING);
        } else {
            rounds += 1;
            wait_for_ends(&ends, ROUND_WAIT);
        }
    }
    let mut counts = HashMap::new();
    for mark in killed.into_values() {
        *counts.entry(mark).or_default() += 1;
    }
    metrics::swept(counts.values().sum());
    counts
}

/// What a sweep has found out about the running processes. The environment of one that it does not cover is read once.
#[derive(Debug, Default)]
struct Look {
    settled: HashSet<Pid>,
    /// The last look came upon one of which it cannot be told yet.
    is_unsettled: bool,
    #[cfg(test)]
    reads: HashMap<Pid, u32>,
}

impl Look {
    /// All processes with a covered mark that are not left to a keeper.
    fn found(&mut self, which: &Sweep) -> Vec<(Pid, ProcessMark)> {
        let (mut found, mut kept) = (Vec::new(), HashSet::new());
        self.is_unsettled = false;
        for pid in all_processes().filter(|pid| *pid != rustix::process::getpid()) {
            if self.settled.contains(&pid) {
                continue;
            }
            #[cfg(test)]
            {
                *self.reads.entry(pid).or_default() += 1;
            }
            let environment = match procfs::environment(pid) {
                Environment::Is(environment) => environment,
                Environment::Hidden => Vec::new(),
                Environment::Unsettled => {
                    self.is_unsettled = true;
                    continue;
                }
            };
            if let Some(mark) = procfs::variable(&environment, MARK).and_then(|value| which.covered(value)) {
                found.push((pid, mark));
            } else if let Some(mark) = kept_by(&environment, which) {
                // It has lost its host and ends by itself, unless its program has stopped it.
                let _gone = rustix::process::kill_process(pid, Signal::CONT);
                kept.insert(mark);
            } else {
                self.settled.insert(pid);
            }
        }
        found.retain(|(_, mark)| !kept.contains(mark));
        found
    }
}

/// The program of a keeper to which it is to be left.
fn kept_by(environment: &[u8], which: &Sweep) -> Option<ProcessMark> {
    let Sweep::Host(_) = which else { return None };
    which.covered(procfs::variable(environment, KEEPER_MARK)?)
}

pub(crate) fn all_processes() -> impl Iterator<Item = Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten();
    processes.filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
}

/// The mark of a process that is covered.
fn mark_of(pid: Pid, which: &Sweep) -> Option<ProcessMark> {
    which.covered(procfs::variable(&procfs::environment(pid).known(), MARK)?)
}

/// Waits until nothing that is covered lives, and kills what does after `within`; returns how many processes were killed.
/// Blocks.
pub fn wait_until_gone(which: &Sweep, within: Duration) -> u32 {
    #[expect(clippy::disallowed_methods, reason = "a shell: it only bounds a wait")]
    let now = std::time::Instant::now;
    let deadline = now() + within;
    loop {
        let mut look = Look::default();
        let found = look.found(which);
        if found.is_empty() && !look.is_unsettled {
            return 0;
        }
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return sweep(which);
        }
        match found.first() {
            Some((pid, _)) => wait_for_end(*pid, left),
            None => std::thread::park_timeout(SETTLING),
        }
    }
}

#[cfg(target_os = "linux")]
fn wait_for_end(pid: Pid, within: Duration) {
    use rustix::process::{PidfdFlags, pidfd_open};
    // One that is gone already need not be waited for.
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) {
        wait_for_ends(&[handle], within);
    }
}

#[cfg(not(target_os = "linux"))]
fn wait_for_end(_pid: Pid, within: Duration) {
    std::thread::park_timeout(within.min(ROUND_WAIT));
}

/// Kills through a handle on the process, after looking at the mark again: the pid may be another's by now. What is
/// returned is for [`wait_for_ends`].
#[cfg(target_os = "linux")]
fn kill_marked(pid: Pid, which: &Sweep) -> Option<std::os::fd::OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    mark_of(pid, which)?;
    pidfd_send_signal(&handle, Signal::KILL).ok()?;
    Some(handle)
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(pid: Pid, _which: &Sweep) -> Option<()> {
    rustix::process::kill_process(pid, Signal::KILL).ok()
}

/// Waits for the ends of processes, all of them together no longer than `within`.
#[cfg(target_os = "linux")]
fn wait_for_ends(handles: &[std::os::fd::OwnedFd], within: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    #[expect(clippy::disallowed_methods, reason = "a shell: it only bounds a wait")]
    let now = std::time::Instant::now;
    let deadline = now() + within;
    for handle in handles {
        let wait = Timespec::try_from(deadline.saturating_duration_since(now())).ok();
        let _gone = poll(&mut [PollFd::new(handle, PollFlags::IN)], wait.as_ref());
    }
}

#[cfg(not(target_os = "linux"))]
fn wait_for_ends(_ends: &[()], within: Duration) {
    std::thread::park_timeout(within);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_covers_its_own_host_only() {
        let mark = |text: &str| ProcessMark(text.to_owned());
        let host = Sweep::Host("abc".into());
        assert!(host.covers(&mark("abc.1")) && host.covers(&mark("abc.12")));
        assert!(!["abcd.1", "abc", "x.abc.1"].into_iter().any(|other| host.covers(&mark(other))));
        let programs = Sweep::Programs(HashSet::from([mark("abc.1"), mark("abc.3")]));
        assert!(programs.covers(&mark("abc.3")) && !programs.covers(&mark("abc.12")));
    }

    // SU-3: what a host below another one started is found by the outer one too
    #[test]
    fn the_marks_of_outer_hosts_count() {
        let of = |host: &str, value: &str| Sweep::Host(host.into()).covered(value).map(|mark| mark.0);
        assert_eq!(of("outer", "inner.3,outer.1"), Some("outer.1".to_owned()));
        assert_eq!(of("inner", "inner.3,outer.1"), Some("inner.3".to_owned()));
        assert_eq!(of("other", "inner.3,outer.1"), None);
    }

    fn sleeper(mark: Option<&str>) -> std::process::Child {
        #[expect(clippy::disallowed_methods, reason = "it stands for what has lost its keeper")]
        let mut command = std::process::Command::new("sleep");
        command.arg("1000").env_remove(MARK);
        if let Some(mark) = mark {
            command.env(MARK, mark);
        }
        command.spawn().expect("sleep starts")
    }

    // SU-3: a sweep reads the environment of what does not concern it once, however many rounds it takes
    #[test]
    fn the_environment_of_others_is_read_once() {
        let host = uuid::Uuid::new_v4().to_string();
        let mut others: Vec<_> = (0..3).map(|_| sleeper(None)).collect();
        let mut marked: Vec<_> = (1..=4).map(|n| sleeper(Some(&format!("{host}.{n}")))).collect();
        let which = Sweep::Host(host);
        let mut look = Look::default();
        for child in &others {
            while procfs::environment(pid_of(child)) == Environment::Unsettled {}
        }
        for child in &marked {
            wait_for_mark(child, &which);
        }
        assert_eq!(look.found(&which).len(), 4);
        assert_eq!(look.found(&which).len(), 4, "what concerns it is looked at again");
        for child in &mut marked {
            child.kill().expect("it lives");
        }
        for child in &marked {
            wait_for_end(pid_of(child), Duration::from_secs(10));
        }
        assert_eq!(look.found(&which), []);
        for child in &mut others {
            assert_eq!(look.reads.get(&pid_of(child)), Some(&1));
            child.kill().expect("it lives");
        }
        assert_eq!(look.reads.get(&pid_of(&marked[0])), Some(&3), "and a zombie once");
        assert_eq!(look.found(&which), []);
        assert_eq!(look.reads.get(&pid_of(&marked[0])), Some(&3));
        for child in others.iter_mut().chain(&mut marked) {
            child.wait().expect("it is ours");
        }
    }

    // SU-3: a process is found also while one program in it is being replaced by another, when it shows no mark
    #[test]
    fn what_replaces_itself_all_the_time_is_swept() {
        const AGAIN: &str = "exec sh -c \"$0\" \"$0\"";
        for _ in 0..40 {
            let host = uuid::Uuid::new_v4().to_string();
            #[expect(clippy::disallowed_methods, reason = "it stands for what has lost its keeper")]
            let mut command = std::process::Command::new("sh");
            let mut child =
                command.args(["-c", AGAIN, AGAIN]).env(MARK, format!("{host}.1")).spawn().expect("sh starts");
            let which = Sweep::Host(host);
            wait_for_mark(&child, &which);
            let swept = sweep(&which);
            child.kill().expect("it was not reaped");
            child.wait().expect("it is ours");
            assert_eq!(swept, 1);
        }
    }

    /// A child that is just being started still shows the environment of its parent.
    fn wait_for_mark(child: &std::process::Child, which: &Sweep) {
        while mark_of(pid_of(child), which).is_none() {}
    }

    fn pid_of(child: &std::process::Child) -> Pid {
        Pid::from_child(child)
    }
}
