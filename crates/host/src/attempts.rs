//! Activations under way, and how many of each session there were lately.
//!
//! One at a time per session: the second waits, and then finds it live. An end of the session stops all attempts, those
//! that began a moment before it too.

use crate::error::HostError;
use crate::keyed_locks::KeyedLocks;
use crate::rate_limit::RateLimit;
use acpd_record::SessionId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What stops each attempt.
type Trying = Arc<Mutex<HashMap<SessionId, Vec<CancellationToken>>>>;

/// Attempts by session.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    taking: Arc<KeyedLocks>,
    trying: Trying,
    lately: Mutex<HashMap<SessionId, RateLimit>>,
}

/// An activation of one session, until it is dropped.
#[derive(Debug)]
pub struct Attempt {
    id: SessionId,
    stopped: CancellationToken,
    taking: Arc<KeyedLocks>,
    trying: Trying,
    lock: Option<OwnedMutexGuard<()>>,
}

impl Attempts {
    /// From now on an end stops this attempt, too.
    pub(crate) fn begin(&self, id: &SessionId) -> Attempt {
        let stopped = CancellationToken::new();
        self.trying.lock().entry(id.clone()).or_default().push(stopped.clone());
        let (id, taking, trying) = (id.clone(), Arc::clone(&self.taking), Arc::clone(&self.trying));
        Attempt { id, stopped, taking, trying, lock: None }
    }

    /// Stops all who try, and waits until none does.
    pub(crate) async fn stop(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        for stopped in self.trying.lock().get(id).into_iter().flatten() {
            stopped.cancel();
        }
        self.taking.lock(id.as_str()).await
    }

    /// Whether a try would not be refused; else the wait until the next.
    pub(crate) fn may(&self, id: &SessionId, now: Instant) -> Result<(), Duration> {
        self.lately.lock().get(id).map_or(Ok(()), |limit| limit.may(now))
    }

    /// Counts a try; refuses the one too many, with the wait until the next.
    pub(crate) fn count(&self, id: &SessionId, now: Instant) -> Result<(), Duration> {
        let mut lately = self.lately.lock();
        lately.retain(|_, limit| !limit.is_forgotten(now));
        lately.entry(id.clone()).or_default().count(now)
    }
}

impl Attempt {
    /// Waits for its turn. After a wait the session may be live.
    pub async fn wait_for_turn(&mut self) {
        self.lock = Some(self.taking.lock(self.id.as_str()).await);
    }

    /// Does `work`, unless the session is ended meanwhile.
    ///
    /// # Errors
    /// Those of the work; [`HostError::NotResumable`] when it was stopped, and then the work is dropped.
    pub async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, HostError>>,
    ) -> Result<T, HostError> {
        match self.stopped.run_until_cancelled(work).await {
            Some(done) => done,
            None => Err(HostError::NotResumable {
                id: self.id.to_string(),
                reason: "it was ended while it was being taken up".to_owned(),
            }),
        }
    }

    #[cfg(test)]
    fn is_stopped(&self) -> bool {
        self.stopped.is_cancelled()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut trying = self.trying.lock();
        if let Some(tokens) = trying.get_mut(&self.id) {
            // Each has a token of its own; those that were stopped need none any more.
            self.stopped.cancel();
            tokens.retain(|token| !token.is_cancelled());
            if tokens.is_empty() {
                trying.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::{ATTEMPTS, WINDOW};

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).expect("an id")
    }

    // SU-6: each session has its own tries
    #[test]
    fn tries_are_counted_by_session() {
        let attempts = Attempts::default();
        let (now, s, another) = (Instant::now(), id("s"), id("another"));
        for _ in 0..ATTEMPTS {
            assert_eq!(attempts.count(&s, now), Ok(()));
        }
        assert_eq!((attempts.may(&s, now), attempts.may(&another, now)), (Err(WINDOW), Ok(())));
        assert_eq!(attempts.count(&s, now), Err(WINDOW));
        assert_eq!(attempts.count(&another, now), Ok(()));
    }

    // contract 1.1: an end stops those who try, and those who wait to
    #[tokio::test]
    async fn an_end_stops_all_who_try() {
        let attempts = Arc::new(Attempts::default());
        let (mut first, mut second) = (attempts.begin(&id("s")), attempts.begin(&id("s")));
        first.wait_for_turn().await;
        assert!(
            futures_poll(std::pin::pin!(second.wait_for_turn())).await.is_none(),
            "it waits for its turn"
        );
        let s = id("s");
        let stopping = attempts.stop(&s);
        tokio::pin!(stopping);
        assert!(futures_poll(stopping.as_mut()).await.is_none());
        let work = first.unless_stopped(std::future::pending::<Result<(), HostError>>());
        assert!(matches!(work.await, Err(HostError::NotResumable { .. })));
        drop(first);
        assert!(second.is_stopped());
        drop(second);
        drop(stopping.await);
        assert!(!attempts.begin(&id("s")).is_stopped());
        assert!(attempts.trying.lock().is_empty());
    }

    /// Polls once.
    async fn futures_poll<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match future.as_mut().poll(context) {
                std::task::Poll::Ready(done) => Some(done),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
