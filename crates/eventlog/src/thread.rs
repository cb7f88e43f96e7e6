//! Threads of the log, which exist from its opening to its end: one that is needed later may not be had then.

use std::io;
use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

/// A thread whose end can be waited for without another thread that waits.
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

    /// Waits for its end. False: it panicked.
    pub(crate) async fn ended(self) -> bool {
        let _dropped = self.over.await;
        // It has nothing left to do but to go.
        self.handle.join().is_ok()
    }
}
