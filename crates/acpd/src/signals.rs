//! SIGTERM, SIGINT and SIGHUP: the first asks to stop, the second kills what has not ended. SIGUSR2 asks a daemon to hand over.

use crate::runtime::if_any;
use nix::sys::signal::{SigSet, Signal as Number};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which one it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopSignal {
    Terminate,
    Interrupt,
    /// The terminal was closed, or its line was lost.
    Hangup,
}

/// The signals that people, terminals and service managers send.
pub(crate) struct StopSignals {
    term: Signal,
    interrupt: Signal,
    /// None when it was inherited as ignored, as from `nohup`.
    hangup: Option<Signal>,
    /// One of the first two has come, also one that was not waited for.
    came: Arc<AtomicBool>,
    /// From then on one ends this process as if nothing listened.
    is_fatal: Arc<AtomicBool>,
}

impl StopSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { hangup: hangups()?, ..Self::without_hangup()? })
    }

    /// For a daemon, to which SIGHUP means something else.
    pub(crate) fn without_hangup() -> io::Result<Self> {
        let (came, is_fatal) = (Arc::default(), Arc::default());
        for number in [SIGTERM, SIGINT] {
            flag::register_conditional_default(number, Arc::clone(&is_fatal))?;
            flag::register(number, Arc::clone(&came))?;
        }
        let (term, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self { term, interrupt, hangup: None, came, is_fatal })
    }

    /// From here on a signal ends this process, which listens no more. Says whether one has come before.
    pub(crate) fn listen_no_more(&self) -> bool {
        self.is_fatal.store(true, Ordering::SeqCst);
        self.have_come()
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) {
        self.next_one().await;
    }

    /// Waits for the next one, and says which it is.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next_one(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.term.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = if_any(self.hangup.as_mut().map(Signal::recv)) => StopSignal::Hangup,
        }
    }

    /// Whether one has come so far.
    pub(crate) fn have_come(&self) -> bool {
        self.came.load(Ordering::SeqCst)
    }
}

/// The signals that ask a daemon for something else than its end, and end a process that has no handler for them.
fn requests() -> SigSet {
    [Number::SIGUSR2, Number::SIGHUP].into_iter().collect()
}

/// Blocks them in this thread, and in the program that this process becomes by it: they wait there until it has handlers.
pub(crate) fn hold_requests() -> io::Result<()> {
    Ok(requests().thread_block()?)
}

/// Has them lead nowhere rather than to the end of this process until the daemon listens, and lets those in that have
/// waited since the image before. To be called before there is a second thread: no agent inherits the block.
pub(crate) fn survive_requests() -> io::Result<()> {
    // Handlers, because agents would inherit a signal that is ignored.
    flag::register(SIGUSR2, Arc::default())?;
    if !hangup_is_ignored() {
        flag::register(SIGHUP, Arc::default())?;
    }
    Ok(requests().thread_unblock()?)
}

/// SIGUSR2, which asks a daemon to hand over to the binary that is on disk now.
pub(crate) fn handovers() -> io::Result<Signal> {
    signal(SignalKind::user_defined2())
}

/// SIGHUP, which asks a daemon to read its configuration anew. None when it was inherited as ignored.
pub(crate) fn hangups() -> io::Result<Option<Signal>> {
    if hangup_is_ignored() { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}

/// Listening would undo it, so it has to be known before. Where `/proc` does not tell, it counts as not ignored.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is number 1, the lowest bit.
    mask.is_some_and(|mask| mask & 1 == 1)
}
