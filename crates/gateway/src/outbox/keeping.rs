//! How much all clients over HTTP together have kept for them, to be given again.
//!
//! Each client's streams count themselves. Above the limit nothing is refused: the task that watches them all is woken
//! and has them forget, the oldest first, of whichever client.

use super::Streams;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is this young goes last, and all at once.
const YOUNG: Duration = Duration::from_secs(2);

/// The bytes of all, and how many they may be.
#[derive(Debug)]
pub(crate) struct Keeping {
    limit: usize,
    bytes: AtomicUsize,
    over: Notify,
}

impl Keeping {
    /// Nothing is kept yet, and `limit` bytes may be.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, bytes: AtomicUsize::new(0), over: Notify::new() }
    }

    /// A client keeps `after` bytes instead of `before`.
    pub(super) fn change(&self, before: usize, after: usize) {
        // Wraps around where it became less.
        self.bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        if after > before && self.is_over() {
            self.over.notify_one();
        }
    }

    /// Has all forget the oldest, which is kept for `kept_for` at most, until there is room.
    pub(crate) fn make_room<'a>(
        &self,
        all: impl Iterator<Item = &'a Streams> + Clone,
        kept_for: Duration,
        now: Instant,
    ) {
        let mut age = kept_for;
        while self.is_over() && !age.is_zero() {
            age = if age > YOUNG { age / 2 } else { Duration::ZERO };
            all.clone().for_each(|streams| streams.forget_older(age, now));
        }
    }

    /// Whether it is more than it may be.
    fn is_over(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.limit
    }

    /// Waits until it has become too much.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn too_much(&self) {
        self.over.notified().await;
    }
}
