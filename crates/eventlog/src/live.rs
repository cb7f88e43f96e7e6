//! The sessions that have an appender in this process, and how far each is committed.
//!
//! Owned by the log; the writer thread is the only one that moves a session's progress. What wakes a reader is that a
//! number has moved, never a payload, so a slow reader is behind and costs nothing. No `watch`, which is three times as
//! big: it has lists for many more waiters than a session has.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::failure::WriteError;

/// The host that a session belongs to, if there is one.
pub(crate) type Owner = Option<Arc<str>>;

#[derive(Debug, Clone)]
pub(crate) struct Progress {
    pub(crate) committed: u64,
    /// Set once; nothing more is committed by this appender then.
    pub(crate) failure: Option<WriteError>,
    /// Set once, after the appender's last commit.
    pub(crate) closed: bool,
}

/// A session with an appender in this process.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) row: i64,
    /// The host that this appender writes for, as its own commits change it. Of use to the writer thread alone.
    owner: Mutex<Owner>,
    progress: Mutex<Progress>,
    /// Told of each change of the progress.
    moved: Notify,
    /// Told of a failure, for those that need not know of each commit.
    failed: Notify,
}

impl Live {
    pub(crate) fn new(id: String, row: i64, owner: Option<String>, committed: u64) -> Self {
        let progress = Progress { committed, failure: None, closed: false };
        Self {
            id,
            row,
            owner: Mutex::new(owner.map(Arc::from)),
            progress: Mutex::new(progress),
            moved: Notify::new(),
            failed: Notify::new(),
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner.lock().clone()
    }

    pub(crate) fn set_owner(&self, owner: Option<&str>) {
        *self.owner.lock() = owner.map(Arc::from);
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress().committed
    }

    pub(crate) fn failure(&self) -> Option<WriteError> {
        self.progress().failure.clone()
    }

    /// The last committed event, and whether there will be no more.
    pub(crate) fn reach(&self) -> (u64, bool) {
        let progress = self.progress();
        (progress.committed, progress.closed)
    }

    pub(crate) fn publish(&self, committed: u64) {
        self.change(|progress| progress.committed = committed);
    }

    pub(crate) fn fail(&self, error: WriteError) {
        self.change(|progress| progress.failure = Some(error));
        self.failed.notify_waiters();
    }

    /// Waits until `look` finds what it looks for.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub(crate) async fn wait_until<T>(&self, look: impl Fn(&Progress) -> Option<T>) -> T {
        wait_for(&self.moved, || look(&self.progress())).await
    }

    /// Waits for a failure, and for nothing else.
    async fn failed(&self) -> WriteError {
        wait_for(&self.failed, || self.failure()).await
    }

    pub(crate) fn close(&self) {
        self.change(|progress| progress.closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.moved.notify_waiters();
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }
}

/// Waits until `look`, which is asked again after each word of `told`, finds something.
async fn wait_for<T>(told: &Notify, look: impl Fn() -> Option<T>) -> T {
    loop {
        let mut told = std::pin::pin!(told.notified());
        // From here on none is missed.
        told.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        told.await;
    }
}

/// All live sessions of this process, by id.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions(Mutex<HashMap<String, Arc<Live>>>);

impl LiveSessions {
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        self.0.lock().get(id).cloned()
    }

    pub(crate) fn insert(&self, live: Arc<Live>) {
        self.0.lock().insert(live.id.clone(), live);
    }

    pub(crate) fn end(&self, live: &Live) {
        self.0.lock().remove(&live.id);
        live.close();
    }

    /// Ends them all: nothing is written any more.
    pub(crate) fn end_all(&self) {
        for (_, live) in self.0.lock().drain() {
            if live.failure().is_none() {
                live.fail(WriteError::Closed);
            }
            live.close();
        }
    }
}

/// How far a session is committed, for those who act after the commit.
#[derive(Debug, Clone)]
pub struct Committed(Arc<Live>);

impl Committed {
    pub(crate) fn new(live: &Arc<Live>) -> Self {
        Self(Arc::clone(live))
    }

    /// The last committed sequence number, 0 before the first.
    pub fn seq(&self) -> u64 {
        self.0.committed()
    }

    /// Why nothing more is committed, if so.
    pub fn failure(&self) -> Option<WriteError> {
        self.0.failure()
    }

    /// Waits until nothing more is committed, and says why. A commit wakes nothing here.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn failed(&self) -> WriteError {
        self.0.failed().await
    }

    /// Waits until `seq` is committed. Fails with the reason when that will not happen.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn wait_for(&self, seq: u64) -> Result<(), WriteError> {
        let look = |progress: &Progress| match progress {
            Progress { committed, .. } if *committed >= seq => Some(Ok(())),
            Progress { failure: Some(error), .. } => Some(Err(error.clone())),
            Progress { closed, .. } => closed.then_some(Err(WriteError::Closed)),
        };
        self.0.wait_until(look).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // architecture 5: a failure is seen whenever it came, and no commit is taken for one
    #[tokio::test]
    async fn a_failure_is_told_apart_from_commits() {
        let live = Arc::new(Live::new("a".to_owned(), 1, None, 0));
        let committed = Committed::new(&live);
        let mut waiting = Box::pin(committed.failed());
        assert!(poll_once(&mut waiting).await.is_none());
        live.publish(1);
        assert!(poll_once(&mut waiting).await.is_none());
        live.fail(WriteError::Closed);
        assert!(matches!(waiting.await, WriteError::Closed));
        assert!(matches!(committed.failed().await, WriteError::Closed), "also behind it");
    }

    /// What a future gives if it is polled now.
    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = std::future::ready(()) => None,
        }
    }
}
