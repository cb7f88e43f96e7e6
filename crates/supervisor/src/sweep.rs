//! Finding processes by their mark, when no keeper is left to ask.
//!
//! Every program carries `ACPD_PROCESS=<host>.<n>` in its environment and hands it on to all below it. A sweep
//! reads `/proc/*/environ` and kills what carries a mark. Only for what outlived its keeper: it is slower and
//! blinder (a program may clear its environment) than a keeper's own reaping.

use crate::metrics;
use rustix::process::{Pid, Signal};
use std::collections::HashSet;
use std::time::Duration;

/// The environment variable that marks a program and its descendants.
pub const MARK: &str = "ACPD_PROCESS";
/// The environment variable of the keeper itself, which is never swept.
pub(crate) const KEEPER_MARK: &str = "ACPD_KEEPER";

/// What is swept may fork while it is being killed.
const ROUNDS: usize = 50;
/// How long one round waits for what it killed.
const ROUND_WAIT: Duration = Duration::from_millis(100);

/// The mark of one program: `<host>.<n>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessMark(String);

impl ProcessMark {
    pub(crate) fn new(host: &str, n: u64) -> Self {
        Self(format!("{host}.{n}"))
    }

    /// As it stands in the environment.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whose processes to sweep.
#[derive(Clone, Debug)]
pub enum Sweep {
    /// Of one program, whose keeper is known to be gone.
    Process(ProcessMark),
    /// Of a host that is gone; programs whose keeper still lives are left to it.
    Host(String),
    /// Of a host that is gone, keeper or not.
    WholeHost(String),
}

impl Sweep {
    fn covers(&self, mark: &str) -> bool {
        match self {
            Self::Process(own) => own.0 == mark,
            Self::Host(host) | Self::WholeHost(host) => {
                mark.strip_prefix(host.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
        }
    }
}

/// Kills everything that carries a covered mark; returns how many processes were killed. Blocks.
pub fn sweep(which: &Sweep) -> u32 {
    let mut killed = HashSet::new();
    for _round in 0..ROUNDS {
        let kept: HashSet<String> = match which {
            Sweep::Host(_) => living_keepers(which).collect(),
            Sweep::Process(_) | Sweep::WholeHost(_) => HashSet::new(),
        };
        let found: Vec<Pid> = marked(MARK)
            .into_iter()
            .filter(|(pid, mark)| {
                which.covers(mark)
                    && !kept.contains(mark)
                    && pid.as_raw_nonzero().get() as u32 != std::process::id()
            })
            .map(|(pid, _)| pid)
            .collect();
        if found.is_empty() {
            break;
        }
        killed.extend(found.iter().filter(|pid| kill_marked(**pid, which)).copied());
    }
    let killed = u32::try_from(killed.len()).unwrap_or(u32::MAX);
    metrics::swept(killed);
    killed
}

/// The marks of keepers. A covered one has lost its host and ends by itself, unless its program has stopped it: it is
/// made to go on.
fn living_keepers(which: &Sweep) -> impl Iterator<Item = String> {
    marked(KEEPER_MARK).into_iter().map(|(pid, mark)| {
        if which.covers(&mark) {
            let _gone = rustix::process::kill_process(pid, Signal::CONT);
        }
        mark
    })
}

/// Waits until no program of a host that is gone lives, and kills what does after `within`; returns how many processes
/// were killed. Blocks.
pub fn outlive(host: &str, within: Duration) -> u32 {
    let which = Sweep::WholeHost(host.to_owned());
    #[expect(clippy::disallowed_methods, reason = "a shell: it only bounds a wait")]
    let now = std::time::Instant::now;
    let deadline = now() + within;
    loop {
        let mut living = marked(MARK).into_iter().filter(|(_, mark)| which.covers(mark));
        let Some((pid, _)) = living.next() else { return 0 };
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return sweep(&which);
        }
        wait_for_end(pid, left);
    }
}

#[cfg(target_os = "linux")]
fn wait_for_end(pid: Pid, within: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    // One that is gone already need not be waited for.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    let wait = Timespec::try_from(within).ok();
    let _gone = poll(&mut [PollFd::new(&handle, PollFlags::IN)], wait.as_ref());
}

#[cfg(not(target_os = "linux"))]
fn wait_for_end(_pid: Pid, within: Duration) {
    std::thread::park_timeout(within.min(ROUND_WAIT));
}

/// Kills through a handle on the process, after looking at the mark again: the pid may be another's by now.
#[cfg(target_os = "linux")]
fn kill_marked(pid: Pid, which: &Sweep) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    if !mark_of(pid, MARK).is_some_and(|mark| which.covers(&mark)) {
        return false;
    }
    if pidfd_send_signal(&handle, Signal::KILL).is_err() {
        return false;
    }
    let wait = Timespec { tv_sec: 0, tv_nsec: ROUND_WAIT.subsec_nanos().into() };
    let _gone = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&wait));
    true
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(pid: Pid, _which: &Sweep) -> bool {
    rustix::process::kill_process(pid, Signal::KILL).is_ok()
}

/// All processes that have `variable` in their environment, with its value.
fn marked(variable: &str) -> Vec<(Pid, String)> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?)?;
            Some((pid, mark_of(pid, variable)?))
        })
        .collect()
}

/// A zombie has no environment left, so it is never found.
fn mark_of(pid: Pid, variable: &str) -> Option<String> {
    let environ = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    environ.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(variable.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_covers_its_own_host_only() {
        let host = Sweep::Host("abc".into());
        assert!(host.covers("abc.1") && host.covers("abc.12"));
        assert!(!host.covers("abcd.1") && !host.covers("abc") && !host.covers("x.abc.1"));
        let process = Sweep::Process(ProcessMark::new("abc", 1));
        assert!(process.covers("abc.1") && !process.covers("abc.12"));
    }
}
