//! The limit on log lines about refusals: [`LINES`] in a [`WINDOW`], the others are only counted.
//!
//! Without IO and without a clock: `now` comes in, and the caller logs.

use std::time::Duration;
use tokio::time::Instant;

/// Refusals in a window that are logged one by one.
pub(crate) const LINES: u32 = 5;
/// How long a window lasts.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// The refusals since a window began.
#[derive(Debug)]
pub(crate) struct RefusalWindow {
    began: Instant,
    logged: u32,
    left_out: u64,
}

impl RefusalWindow {
    pub(crate) fn new(now: Instant) -> Self {
        Self { began: now, logged: 0, left_out: 0 }
    }

    /// Whether its time has passed.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began) >= WINDOW
    }

    /// Counts a refusal; true if it is to be logged.
    pub(crate) fn count(&mut self) -> bool {
        let is_logged = self.logged < LINES;
        if is_logged {
            self.logged += 1;
        } else {
            self.left_out += 1;
        }
        is_logged
    }

    /// Refusals that were not logged.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }
}
