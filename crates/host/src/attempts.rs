//! Activations under way, and how many of each session there were lately.
//!
//! One at a time per session: the second waits, and then finds it live. An end of the session stops all attempts, those
//! that began a moment before it too.

use crate::activate::Ended;
use crate::error::HostError;
use crate::rate_limit::RateLimit;
use acpd_record::SessionId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Attempts by session.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    slots: Mutex<HashMap<SessionId, Arc<Slot>>>,
    lately: Mutex<HashMap<SessionId, RateLimit>>,
}

/// What the attempts at one session share. It costs nothing while there are none.
#[derive(Debug, Default)]
struct Slot {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Stops those that have begun; those that begin then have another.
    stop: Mutex<CancellationToken>,
}

/// An activation of one session, until it is dropped.
#[derive(Debug)]
pub struct Attempt {
    id: SessionId,
    stopped: CancellationToken,
    slot: Arc<Slot>,
    turn: Option<OwnedMutexGuard<()>>,
    /// What was read of the session when it was looked whether it can be activated.
    pub(crate) checked: Option<Box<Ended>>,
}

impl Attempts {
    /// From now on an end stops this attempt, too.
    pub(crate) fn begin(&self, id: &SessionId) -> Attempt {
        let slot = self.slot(id);
        let stopped = slot.stop.lock().clone();
        Attempt { id: id.clone(), stopped, slot, turn: None, checked: None }
    }

    /// Stops all who try, and waits until none does.
    pub(crate) async fn stop(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let slot = self.slot(id);
        std::mem::take(&mut *slot.stop.lock()).cancel();
        Arc::clone(&slot.turn).lock_owned().await
    }

    /// Waits until none tries who tries now, and stops none; those who come later wait until this is dropped.
    pub(crate) async fn turn(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let turn = Arc::clone(&self.slot(id).turn);
        turn.lock_owned().await
    }

    /// Keeps all out who would try, if none does; they wait until this is dropped.
    pub(crate) fn none(&self, id: &SessionId) -> Option<OwnedMutexGuard<()>> {
        let slot = self.slot(id);
        // The table has one, and this is the other.
        let is_tried = Arc::strong_count(&slot) > 2;
        if is_tried { None } else { Arc::clone(&slot.turn).try_lock_owned().ok() }
    }

    fn slot(&self, id: &SessionId) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        let is_used = |slot: &Arc<Slot>| Arc::strong_count(slot) > 1 || Arc::strong_count(&slot.turn) > 1;
        slots.retain(|_, slot| is_used(slot));
        Arc::clone(slots.entry(id.clone()).or_default())
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
    /// Waits for its turn, which it has then. After a wait the session may be live.
    pub(crate) async fn wait_for_turn(&mut self) {
        if self.turn.is_none() {
            self.turn = Some(Arc::clone(&self.slot.turn).lock_owned().await);
        }
    }

    /// Does `work`, unless the session is ended meanwhile.
    ///
    /// # Errors
    /// Those of the work; [`HostError::NotResumable`] when it was stopped, and then the work is dropped.
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, HostError>>,
    ) -> Result<T, HostError> {
        match self.stopped.run_until_cancelled(work).await {
            Some(done) => done,
            None => Err(HostError::not_resumable(&self.id, "it was ended while it was being taken up")),
        }
    }

    #[cfg(test)]
    fn is_stopped(&self) -> bool {
        self.stopped.is_cancelled()
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
        drop(attempts.begin(&id("t")));
        assert_eq!(attempts.slots.lock().len(), 1, "of those without an attempt none is kept");
    }

    // contract 7.3: what is being taken up is left alone, from the first step of it to the last
    #[tokio::test]
    async fn what_is_tried_is_told() {
        let attempts = Attempts::default();
        let s = id("s");
        let mut first = attempts.begin(&s);
        assert!(attempts.none(&s).is_none(), "it has begun");
        first.wait_for_turn().await;
        assert!(attempts.none(&s).is_none() && attempts.none(&id("t")).is_some());
        drop(first);
        let none = attempts.none(&s).expect("nothing is tried any more");
        let mut late = attempts.begin(&s);
        assert!(futures_poll(std::pin::pin!(late.wait_for_turn())).await.is_none(), "it waits");
        drop(none);
        late.wait_for_turn().await;
    }

    // contract 7.3: a request at a session whose run begins waits for that, and holds nothing up
    #[tokio::test]
    async fn a_turn_comes_behind_what_is_tried_and_stops_nothing() {
        let attempts = Attempts::default();
        let s = id("s");
        let mut first = attempts.begin(&s);
        first.wait_for_turn().await;
        let turn = attempts.turn(&s);
        tokio::pin!(turn);
        assert!(futures_poll(turn.as_mut()).await.is_none());
        assert!(!first.is_stopped());
        drop(first);
        drop(turn.await);
        assert!(attempts.none(&s).is_some(), "nothing is left of it");
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
