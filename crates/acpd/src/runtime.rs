//! The async runtime, with all threads that it cannot do without from the start: one that is needed later may not be
//! had then, at a limit of processes, and the runtime panics where it finds none for what blocks.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Threads for what blocks that are there from the start: standard input may hold one for ever.
const HELD: usize = 4;
/// So many there are at most; what blocks beyond that waits.
const MOST: usize = 48;
/// A thread for what blocks stays, in case it is the last that could be had.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How long a thread may take to begin.
const BEGINS: Duration = Duration::from_secs(10);

/// Why there is no runtime.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the threads that acpd needs: raise the limit of processes (ulimit -u, TasksMax=)")]
pub(crate) struct RuntimeError {
    #[source]
    source: io::Error,
}

/// A runtime for many clients, or for one.
///
/// # Errors
/// When a thread cannot be had. The process should end then: others may have begun.
pub(crate) fn start(many: bool) -> Result<Runtime, RuntimeError> {
    // One client needs one thread; a daemon serves many.
    let mut builder = if many { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.enable_all().max_blocking_threads(MOST).thread_keep_alive(FOR_EVER);
    // It panics where it cannot start a thread, which is no more than an error here.
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    let built = catch_unwind(AssertUnwindSafe(|| {
        let runtime = builder.build()?;
        begin_threads(&runtime)?;
        Ok(runtime)
    }));
    set_hook(hook);
    let refused = || io::Error::from(rustix::io::Errno::AGAIN);
    built.unwrap_or_else(|_| Err(refused())).map_err(|source| RuntimeError { source })
}

/// The output of something that may not be there; else there is never one.
///
/// # Cancel safety
/// As the future's.
pub(crate) async fn if_any<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Has the threads begin that wait for what blocks.
fn begin_threads(runtime: &Runtime) -> io::Result<()> {
    let (begun, beginnings) = sync_channel(HELD);
    // Each is held until all are there, or one could serve for all.
    let mut held = Vec::with_capacity(HELD);
    for _ in 0..HELD {
        let (hold, held_back) = sync_channel::<()>(0);
        held.push(hold);
        let begun = begun.clone();
        drop(runtime.spawn_blocking(move || {
            let _unheard = begun.send(());
            let _released = held_back.recv();
        }));
        match beginnings.recv_timeout(BEGINS) {
            Ok(()) => {}
            // It waits for those that are held: there is no thread for it.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(rustix::io::Errno::AGAIN.into());
            }
        }
    }
    Ok(())
}
