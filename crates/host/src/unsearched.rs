//! What is to be indexed: news of sessions for the task that keeps the index up (`search/indexing.rs`).
//!
//! Bounded by the number of sessions: each stands in it once.

use acpd_record::SessionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// Sessions in which turns have ended since they were indexed, each once, with an event up to which they are to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsearched(Arc<News>);

#[derive(Debug, Default)]
struct News {
    sessions: Mutex<BTreeMap<SessionId, u64>>,
    arrived: Notify,
}

impl Unsearched {
    /// What stands up to event `seq` of a session can be indexed. That may not be committed yet.
    pub(crate) fn note(&self, session: &SessionId, seq: u64) {
        {
            let mut sessions = self.0.sessions.lock();
            let upto = sessions.entry(session.clone()).or_default();
            *upto = seq.max(*upto);
        }
        self.0.arrived.notify_one();
    }

    /// One of them.
    pub(crate) fn take(&self) -> Option<(SessionId, u64)> {
        self.0.sessions.lock().pop_first()
    }

    /// Waits until there may be one.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn arrived(&self) {
        self.0.arrived.notified().await;
    }
}
