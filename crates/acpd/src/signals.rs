//! SIGTERM, SIGINT and SIGHUP: the first asks to stop, the second kills what has not ended.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that people, terminals and service managers send.
pub(crate) struct StopSignals {
    term: Signal,
    interrupt: Signal,
    /// None when it was inherited as ignored, as from `nohup`.
    hangup: Option<Signal>,
}

impl StopSignals {
    pub(crate) fn listen() -> io::Result<Self> {
        let hangup = match hangup_is_ignored() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Self::with_hangup(hangup)
    }

    /// For a daemon, to which SIGHUP means something else.
    pub(crate) fn without_hangup() -> io::Result<Self> {
        Self::with_hangup(None)
    }

    fn with_hangup(hangup: Option<Signal>) -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup,
        })
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
            () = next_of(self.hangup.as_mut()) => {}
        }
    }
}

/// SIGHUP, which asks a daemon to read its configuration anew.
pub(crate) struct Reloads(Option<Signal>);

impl Reloads {
    pub(crate) fn listen() -> io::Result<Self> {
        match hangup_is_ignored() {
            true => Ok(Self(None)),
            false => Ok(Self(Some(signal(SignalKind::hangup())?))),
        }
    }

    /// Waits for the next one.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) {
        next_of(self.0.as_mut()).await;
    }
}

async fn next_of(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Listening would undo it, so it has to be known before. Where `/proc` does not tell, it counts as not ignored.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is number 1, the lowest bit.
    mask.is_some_and(|mask| mask & 1 == 1)
}
