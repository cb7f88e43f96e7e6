//! The sessions that have an appender in this process, and how far each is committed.
//!
//! Owned by the log; the writer thread is the only one that moves a session's progress. A `watch` carries the number
//! and never a payload, so a slow reader is behind and costs nothing.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use crate::failure::WriteError;

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
    progress: watch::Sender<Progress>,
    /// Told of a failure, for those that need not know of each commit.
    failed: Notify,
}

impl Live {
    pub(crate) fn new(id: String, row: i64, committed: u64) -> Self {
        let progress = Progress { committed, failure: None, closed: false };
        Self { id, row, progress: watch::Sender::new(progress), failed: Notify::new() }
    }

    pub(crate) fn committed(&self) -> u64 {
        self.progress.borrow().committed
    }

    pub(crate) fn failure(&self) -> Option<WriteError> {
        self.progress.borrow().failure.clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    pub(crate) fn publish(&self, committed: u64) {
        self.progress.send_modify(|progress| progress.committed = committed);
    }

    pub(crate) fn fail(&self, error: WriteError) {
        self.progress.send_modify(|progress| progress.failure = Some(error));
        self.failed.notify_waiters();
    }

    /// Waits for a failure, and for nothing else.
    async fn failed(&self) -> WriteError {
        loop {
            let mut told = std::pin::pin!(self.failed.notified());
            // From here on none is missed.
            told.as_mut().enable();
            if let Some(error) = self.failure() {
                return error;
            }
            told.await;
        }
    }

    pub(crate) fn close(&self) {
        self.progress.send_modify(|progress| progress.closed = true);
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
pub struct Committed {
    progress: watch::Receiver<Progress>,
    live: Arc<Live>,
}

impl Committed {
    pub(crate) fn new(live: &Arc<Live>) -> Self {
        Self { progress: live.watch(), live: Arc::clone(live) }
    }

    /// The last committed sequence number, 0 before the first.
    pub fn seq(&self) -> u64 {
        self.progress.borrow().committed
    }

    /// Why nothing more is committed, if so.
    pub fn failure(&self) -> Option<WriteError> {
        self.progress.borrow().failure.clone()
    }

    /// Waits until nothing more is committed, and says why. A commit wakes nothing here.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn failed(&self) -> WriteError {
        self.live.failed().await
    }

    /// Waits until `seq` is committed. Fails with the reason when that will not happen.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn wait_for(&mut self, seq: u64) -> Result<(), WriteError> {
        let over =
            |progress: &Progress| progress.committed >= seq || progress.failure.is_some() || progress.closed;
        match self.progress.wait_for(over).await {
            Ok(progress) if progress.committed >= seq => Ok(()),
            Ok(progress) => Err(progress.failure.clone().unwrap_or(WriteError::Closed)),
            Err(_) => Err(WriteError::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // architecture 5: a failure is seen whenever it came, and no commit is taken for one
    #[tokio::test]
    async fn a_failure_is_told_apart_from_commits() {
        let live = Arc::new(Live::new("a".to_owned(), 1, 0));
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
