//! SIGTERM, SIGINT and SIGHUP: the first asks to stop, the second kills what has not ended. SIGUSR2 asks a daemon to hand over.

use crate::runtime::if_any;
use nix::sys::signal::{SigSet, Signal as Number};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
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

/// The signals that a daemon acts on.
const OF_DAEMON: [Number; 4] = [Number::SIGHUP, Number::SIGINT, Number::SIGTERM, Number::SIGUSR2];

/// The names of the signals that a daemon of this version acts on though they were sent to the image before it.
pub(crate) fn held_signals() -> Vec<String> {
    OF_DAEMON.iter().map(|signal| signal.as_str().to_owned()).collect()
}

/// Blocks the signals of a daemon in this thread, in all that it starts, and in the program that this process becomes by it:
/// they wait. To be called before there is a second thread.
pub(crate) fn hold() -> io::Result<()> {
    Ok(SigSet::from_iter(OF_DAEMON).thread_block()?)
}

/// Lets the signals of a daemon in to this thread, but for those of these names.
pub(crate) fn release_all_but(names: &[String]) -> io::Result<()> {
    let is_held = |signal: &Number| names.iter().any(|name| name == signal.as_str());
    let released: SigSet = OF_DAEMON.into_iter().filter(|signal| !is_held(signal)).collect();
    Ok(released.thread_unblock()?)
}

/// The one thread of a daemon that its signals interrupt. None is lost to an exec behind its end: a signal that another thread
/// had taken would be.
#[derive(Debug)]
pub(crate) struct SignalThread {
    end: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl SignalThread {
    /// Lets in what was held so far, and what comes. To be called when all that listens does.
    pub(crate) fn start() -> io::Result<Self> {
        let (end, ends) = sync_channel(0);
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            release_all_but(&[])?;
            // Its handlers run meanwhile.
            let _ended = ends.recv();
            hold()
        })?;
        Ok(Self { end, thread })
    }

    /// Holds what comes from now on. What came before has been noted.
    pub(crate) fn end(self) -> io::Result<()> {
        drop(self.end);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread for signals has panicked")))
    }
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
