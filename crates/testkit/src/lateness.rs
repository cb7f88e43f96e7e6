//! The time by which a machine is late, for bounds on what a daemon does: what else runs there is no fault of the daemon's.

use crate::clock::Stopwatch;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A wait that is measured, over and over.
const WAIT: Duration = Duration::from_millis(200);
/// What a wait may be late by on any machine.
const NOISE: Duration = Duration::from_millis(20);
/// What is late here is late in each of the processes that a request goes through.
const PROCESSES: u32 = 4;

/// A thread that measures by how much its waits end too late, until that is asked for.
#[derive(Debug)]
pub struct Lateness {
    goes_on: SyncSender<()>,
    thread: JoinHandle<Duration>,
}

impl Lateness {
    /// From now on.
    pub fn measure() -> Self {
        let (goes_on, ends) = sync_channel::<()>(0);
        let thread = std::thread::spawn(move || {
            let mut late = Duration::ZERO;
            loop {
                let wait = Stopwatch::start();
                let is_over = ends.recv_timeout(WAIT) != Err(RecvTimeoutError::Timeout);
                late += wait.passed().saturating_sub(WAIT + NOISE);
                if is_over {
                    return late;
                }
            }
        });
        Self { goes_on, thread }
    }

    /// What may be added to the bound of a request meanwhile.
    ///
    /// # Panics
    /// When the thread did, which has no reason to.
    pub fn end(self) -> Duration {
        drop(self.goes_on);
        self.thread.join().expect("it only waits") * PROCESSES
    }
}
