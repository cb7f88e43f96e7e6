//! Threads of the log, which exist from its opening to its end: one that is needed later may not be had then.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

/// A thread whose end can be waited for without another thread that waits.
#[derive(Debug)]
pub(crate) struct Thread {
    handle: JoinHandle<()>,
    over: oneshot::Receiver<()>,
}

impl Thread {
    /// Starts one.
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (ends, over) = oneshot::channel::<()>();
        let handle = Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped at the end, also that of a panic.
            let _ends = ends;
            work();
        })?;
        Ok(Self { handle, over })
    }

    /// Starts one that works while nothing else needs the processor, and next to nothing the disk.
    pub(crate) fn start_at_lowest_priority(
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        Self::start(name, move || {
            lower_priority();
            work();
        })
    }

    /// Waits for its end on another thread. False: it panicked.
    pub(crate) fn join(self) -> bool {
        self.handle.join().is_ok()
    }

    /// Waits for its end. False: it panicked.
    pub(crate) async fn ended(self) -> bool {
        let _dropped = self.over.await;
        // It has nothing left to do but to go.
        self.handle.join().is_ok()
    }
}

/// Gives the calling thread the lowest priority, also at the disk, which takes it from that (ioprio_set(2)).
fn lower_priority() {
    // Linux has a priority for each thread, others for the whole process (setpriority(2)).
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::debug!(%error, "work in the background has the priority of everything else");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    // design session-files 5: what is done in the background has the lowest priority, and nothing else has
    #[tokio::test]
    async fn a_thread_has_the_lowest_priority_alone() {
        let own = getpriority_process(None).unwrap();
        let (tells, told) = std::sync::mpsc::sync_channel(1);
        let look = move || tells.send(getpriority_process(None).unwrap()).unwrap();
        assert!(Thread::start_at_lowest_priority("a test", look).unwrap().ended().await);
        assert_eq!((told.recv().unwrap(), getpriority_process(None).unwrap()), (19, own));
    }
}
