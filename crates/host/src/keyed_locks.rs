//! A lock for each key, for work on one thing that must not run twice at a time.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// Locks by key; a key costs nothing while its lock is neither held nor awaited.
#[derive(Debug, Default)]
pub(crate) struct KeyedLocks(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl KeyedLocks {
    /// Waits for the lock of `key`.
    pub(crate) async fn lock(&self, key: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock();
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(key.to_owned()).or_default())
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_key_excludes_and_another_does_not() {
        let locks = KeyedLocks::default();
        let held = locks.lock("a").await;
        let _other = locks.lock("b").await;
        let again = locks.lock("a");
        tokio::pin!(again);
        assert!(futures_are_pending(again.as_mut()).await);
        drop(held);
        drop(again.await);
        drop(locks.lock("c").await);
        assert!(locks.0.lock().len() <= 2);
    }

    /// Polls once.
    async fn futures_are_pending(future: impl Future) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }
}
