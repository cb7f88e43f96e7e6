//! The process of a keeper: a child of this one, or one that an earlier daemon has started.

use rustix::process::{Pid, Signal, WaitOptions, kill_process};
use std::io;
use tokio::net::unix::pipe;
use tokio::process::Child;

/// How it is waited for.
pub(crate) enum KeeperProcess {
    Child(Child),
    /// Found by its socket. `end` can be read once it has ended.
    Found {
        pid: Pid,
        end: pipe::Receiver,
    },
}

impl KeeperProcess {
    /// One that lives, and has this id.
    #[cfg(target_os = "linux")]
    pub(crate) fn found(pid: Pid) -> io::Result<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        // No pipe, but it becomes readable like one, which is all that counts.
        let end = pipe::Receiver::from_owned_fd_unchecked(pidfd_open(pid, PidfdFlags::empty())?)?;
        Ok(Self::Found { pid, end })
    }

    /// A program may stop its keeper, which then reads nothing.
    pub(crate) fn wake(&self) {
        match self {
            Self::Child(child) => wake(child),
            Self::Found { end, .. } => signal(end, Signal::CONT),
        }
    }

    /// Asks one that was found to climb its ladder, whichever version it speaks.
    pub(crate) fn ask_to_end(&self) {
        if let Self::Found { end, .. } = self {
            signal(end, Signal::TERM);
        }
        self.wake();
    }

    pub(crate) fn start_kill(&mut self) {
        match self {
            Self::Child(child) => drop(child.start_kill()),
            Self::Found { end, .. } => signal(end, Signal::KILL),
        }
    }

    /// Waits for its end.
    ///
    /// # Cancel safety
    /// It can be called again.
    pub(crate) async fn wait(&mut self) {
        match self {
            Self::Child(child) => drop(child.wait().await),
            Self::Found { pid, end } => {
                drop(end.readable().await);
                // It is ours to reap if this very process has started it, and has been replaced by another program since. It
                // cannot have handed on its number before that.
                let _not_ours = rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG);
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn signal(process: &pipe::Receiver, signal: Signal) {
    let _gone = rustix::process::pidfd_send_signal(process, signal);
}

#[cfg(not(target_os = "linux"))]
fn signal(_process: &pipe::Receiver, _signal: Signal) {}

/// A program may stop its keeper, which then reads nothing.
pub(crate) fn wake(keeper: &Child) {
    let pid = keeper.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    if let Some(pid) = pid {
        // It is our child and was not reaped yet, so the id is still its own.
        let _gone = kill_process(pid, Signal::CONT);
    }
}
