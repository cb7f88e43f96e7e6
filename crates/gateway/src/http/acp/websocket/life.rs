//! What reader and writer of a socket know together: when the client was last there, and why it ends.

use super::ending::Ending;
use crate::http::pulse::Pulse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Life {
    pulse: Arc<Pulse>,
    since: Instant,
    /// Milliseconds from `since`.
    heard: AtomicU64,
    ending: OnceLock<Ending>,
    settled: CancellationToken,
    hung_up: CancellationToken,
}

impl Life {
    pub(super) fn new(pulse: Arc<Pulse>) -> Self {
        Self {
            pulse,
            since: Instant::now(),
            heard: AtomicU64::new(0),
            ending: OnceLock::new(),
            settled: CancellationToken::new(),
            hung_up: CancellationToken::new(),
        }
    }

    /// The client has just said something, or taken something that waited for it.
    pub(super) fn heard(&self) {
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    /// Until when it may say nothing. When acpd itself stood still it was not asked: it has the whole time again, and with
    /// it a ping to answer.
    pub(super) fn until(&self, silence: Duration) -> Instant {
        self.pulse.until(self.since + Duration::from_millis(self.heard.load(Ordering::Relaxed)), silence)
    }

    /// Whether acpd itself runs.
    pub(super) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Why it ends; the first cause counts.
    pub(super) fn end(&self, why: Ending) {
        let _ended_before = self.ending.set(why);
    }

    pub(super) fn ending(&self) -> Ending {
        self.ending.get().copied().unwrap_or(Ending::Left)
    }

    /// The connection is over: it is known why.
    pub(super) fn settle(&self) {
        self.settled.cancel();
    }

    pub(super) fn settled(&self) -> &CancellationToken {
        &self.settled
    }

    /// Nothing more is written but why it ends.
    pub(super) fn hang_up(&self) {
        self.hung_up.cancel();
    }

    pub(super) fn hung_up(&self) -> &CancellationToken {
        &self.hung_up
    }
}
