//! The signals of a keeper, as something to poll.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe::register;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Signals that the daemon inherited as ignored (`nohup`, a shell's `&`) would be ignored by the program as
/// well. One that has a handler here has its default action there.
pub(super) fn take_back_ignored() -> io::Result<()> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return Ok(()) };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGPIPE is ignored by this program itself, and restored for every program that it starts.
    let ignored = (1..32).filter(|signal| mask & (1 << (signal - 1)) != 0);
    for signal in ignored.filter(|signal| *signal != signal_hook::consts::SIGPIPE) {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    Ok(())
}

/// Signals as bytes on a socket: SIGCHLD wakes, SIGTERM and its like ask to stop.
pub(super) struct SignalPipe {
    child: UnixStream,
    stop: UnixStream,
}

impl SignalPipe {
    pub(super) fn open() -> io::Result<Self> {
        let (child, child_in) = UnixStream::pair()?;
        let (stop, stop_in) = UnixStream::pair()?;
        // One descriptor to poll: stop signals write to both.
        register(SIGCHLD, child_in.try_clone()?)?;
        for signal in [SIGTERM, SIGINT, SIGHUP] {
            register(signal, stop_in.try_clone()?)?;
            register(signal, child_in.try_clone()?)?;
        }
        child.set_nonblocking(true)?;
        stop.set_nonblocking(true)?;
        Ok(Self { child, stop })
    }

    /// Takes everything that is there; true when one of the signals asked to stop.
    pub(super) fn drain(&mut self) -> bool {
        let mut bytes = [0; 256];
        while matches!(self.child.read(&mut bytes), Ok(n) if n > 0) {}
        matches!(self.stop.read(&mut bytes), Ok(n) if n > 0)
    }
}

impl AsFd for SignalPipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.child.as_fd()
    }
}
