//! How much of the file work that is done at once one session may have.
//!
//! Invariant: a session has always a permit of its own, whatever the requests of all others do, and however long.

use super::threads::{NotDone, Threads};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests that all sessions have under way, beside one of each. Full: they wait.
const COMMON: usize = 32;

/// What the file requests of all sessions of a host share: the threads that serve them, and how many are served at once.
/// Clones share it.
#[derive(Clone, Debug)]
pub struct FileSlots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    common: Arc<Semaphore>,
    threads: Threads,
}

impl Default for FileSlots {
    fn default() -> Self {
        Self(Arc::new(Shared { common: Arc::new(Semaphore::new(COMMON)), threads: Threads::start() }))
    }
}

impl FileSlots {
    /// Does `work` on a thread that may block.
    ///
    /// # Cancel safety
    ///
    /// Safe: what was not begun is not done then.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        self.0.threads.run(work).await
    }
}

/// The permits of one session. Clones are of the same session.
#[derive(Clone, Debug)]
pub(super) struct FilePermits {
    own: Arc<Semaphore>,
    slots: FileSlots,
}

impl FilePermits {
    pub(super) fn new(slots: &FileSlots) -> Self {
        Self { own: Arc::new(Semaphore::new(1)), slots: slots.clone() }
    }

    pub(super) fn slots(&self) -> &FileSlots {
        &self.slots
    }

    /// Waits for a permit: the session's own, else one of those for all. The work for a request drops it when it is over: a
    /// thread that hangs keeps it.
    ///
    /// # Cancel safety
    ///
    /// Safe, but the turn in the line is lost.
    pub(super) async fn take(&self) -> OwnedSemaphorePermit {
        let held = tokio::select! {
            biased;
            own = Arc::clone(&self.own).acquire_owned() => own,
            common = Arc::clone(&self.slots.0.common).acquire_owned() => common,
        };
        held.expect("neither is ever closed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.2: eight sessions with all that they may have under way leave a ninth its place
    #[tokio::test]
    async fn a_session_has_always_a_place() {
        let slots = FileSlots::default();
        let mut held = Vec::new();
        let mut sessions: Vec<FilePermits> = (0..8).map(|_| FilePermits::new(&slots)).collect();
        // As many as there are, and more than eight sessions would get.
        for _ in 0..8 + COMMON {
            held.push(sessions[held.len() % 8].take().await);
        }
        let ninth = FilePermits::new(&slots);
        let own = ninth.take().await;
        let mut second = Box::pin(ninth.take());
        tokio::select! {
            biased;
            taken = &mut second => panic!("there is no further place: {taken:?}"),
            () = std::future::ready(()) => {}
        }
        drop(own);
        // Its own again.
        let own = second.await;
        drop(own);
        // One of those for all goes to the first that waits for it.
        let eighth = sessions.pop().expect("there are eight");
        let mut waiting = Box::pin(eighth.take());
        tokio::select! {
            biased;
            taken = &mut waiting => panic!("there is no further place: {taken:?}"),
            () = std::future::ready(()) => {}
        }
        held.clear();
        drop(waiting.await);
        assert_eq!(slots.0.common.available_permits(), COMMON);
    }
}
