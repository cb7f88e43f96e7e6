//! Whether the sessions that are read are still there, for readers that wait for nothing else.
//!
//! Owned by the log. It knows the sessions that have a cursor, or a reader that has let go of its cursor, and no others.
//! Invariant: a reader that has begun before a removal learns of it. What other processes remove is not known here; a
//! reader that goes on finds that out.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Whether a session is there.
pub struct Presence {
    id: String,
    all: Weak<Presences>,
    is_over: AtomicBool,
    told: Notify,
}

impl Presence {
    /// Waits until the session is removed in this process; for ever if it is not.
    ///
    /// # Cancel safety
    ///
    /// Safe: it only waits.
    pub async fn over(&self) {
        let mut told = std::pin::pin!(self.told.notified());
        // From here on it is not missed.
        told.as_mut().enable();
        if !self.is_over.load(Ordering::Acquire) {
            told.await;
        }
    }

    /// Waits until the session is removed, for ever without one.
    ///
    /// # Cancel safety
    ///
    /// As [`over`](Self::over).
    pub async fn over_if_any(presence: Option<&Self>) {
        match presence {
            Some(presence) => presence.over().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some(all) = self.all.upgrade() {
            let mut known = all.0.lock();
            // Another may have come in its place.
            if known.get(&self.id).is_some_and(|known| known.strong_count() == 0) {
                known.remove(&self.id);
            }
        }
    }
}

impl fmt::Debug for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presence").field("id", &self.id).finish_non_exhaustive()
    }
}

/// All that are asked for, by session.
#[derive(Default)]
pub(crate) struct Presences(Mutex<HashMap<String, Weak<Presence>>>);

impl Presences {
    pub(crate) fn of(self: &Arc<Self>, id: &str) -> Arc<Presence> {
        let mut known = self.0.lock();
        if let Some(presence) = known.get(id).and_then(Weak::upgrade) {
            return presence;
        }
        let presence = Arc::new(Presence {
            id: id.to_owned(),
            all: Arc::downgrade(self),
            is_over: AtomicBool::new(false),
            told: Notify::new(),
        });
        known.insert(id.to_owned(), Arc::downgrade(&presence));
        presence
    }

    /// A session was removed; one of the same id is another.
    pub(crate) fn end(&self, id: &str) {
        let presence = self.0.lock().remove(id).and_then(|presence| presence.upgrade());
        if let Some(presence) = presence {
            presence.is_over.store(true, Ordering::Release);
            presence.told.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: each reader of a removed session learns of it, and none of another one
    #[tokio::test]
    async fn a_removal_is_told_to_those_that_read_it() {
        let all = Arc::new(Presences::default());
        let (first, second, other) = (all.of("a"), all.of("a"), all.of("b"));
        assert!(Arc::ptr_eq(&first, &second));
        tokio::join!(first.over(), async { all.end("a") });
        second.over().await;
        let new = all.of("a");
        assert!(!Arc::ptr_eq(&new, &second), "a session that comes under its id is there");
        drop((first, second));
        assert_eq!(all.0.lock().len(), 2);
        drop((new, other));
        assert!(all.0.lock().is_empty());
    }
}
