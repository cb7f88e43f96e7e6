//! The children of a keeper: everything that its program left behind.
//!
//! A child that was not reaped keeps its pid, so killing by pid is safe here. Not here: the program itself.

use crate::containment::Containment;
use crate::procfs::{is_alive, stat};
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::HashSet;

/// Makes this process adopt whatever below it loses its parent; says how far that reaches here.
pub(super) fn become_reaper() -> Containment {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        return Containment::Subreaper;
    }
    Containment::ProcessGroup
}

/// Counts what outlived the program.
#[derive(Debug, Default)]
pub(super) struct Children {
    outlived: HashSet<Pid>,
    leaked: u32,
}

impl Children {
    /// Reaps every dead child but the program. Without `/proc` there is none: nothing is adopted there.
    pub(super) fn reap_others(&mut self, leader: Pid) {
        for pid in own_children().into_iter().filter(|pid| *pid != leader) {
            if let Ok(Some(_)) = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG) {
                self.reaped(pid);
            }
        }
    }

    /// Whether anything but the program lives.
    pub(super) fn live_beside(&self, leader: Pid) -> bool {
        own_children().into_iter().any(|pid| pid != leader && is_alive(pid))
    }

    /// The program is dead and not reaped, and what it left has no more time: whatever else lives now has outlived it.
    pub(super) fn see_leftovers(&mut self, leader: Pid) {
        for pid in own_children().into_iter().filter(|pid| *pid != leader && is_alive(*pid)) {
            self.count(pid);
        }
    }

    /// Sends SIGKILL to every child there is.
    pub(super) fn kill_all(&mut self) {
        for pid in own_children() {
            if is_alive(pid) {
                self.count(pid);
                let _gone = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    pub(super) fn reaped(&mut self, pid: Pid) {
        self.outlived.remove(&pid);
    }

    /// How many descendants outlived the program.
    pub(super) fn leaked(&self) -> u32 {
        self.leaked
    }

    fn count(&mut self, pid: Pid) {
        if self.outlived.insert(pid) {
            self.leaked += 1;
        }
    }
}

/// All children of this process, dead or alive. Without `/proc` the process group has to be enough.
fn own_children() -> Vec<Pid> {
    let me = std::process::id();
    if let Ok(list) = std::fs::read_to_string(format!("/proc/{me}/task/{me}/children")) {
        return list.split_ascii_whitespace().filter_map(parse_pid).collect();
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .filter_map(|entry| parse_pid(entry.ok()?.file_name().to_str()?))
        .filter(|pid| stat(*pid).is_some_and(|(_, parent)| parent == me))
        .collect()
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}
