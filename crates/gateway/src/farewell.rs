//! Why all streams end when they end with acpd: it stops, or its next image goes on in its place, which clients can come
//! back to at once.

use crate::outbox::Closing;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What clients are told; known before the first stream ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Farewell(Arc<AtomicBool>);

impl Farewell {
    /// The next image goes on.
    pub(crate) fn hand_over(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn hands_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn closing(&self) -> Closing {
        if self.hands_over() { Closing::Handover } else { Closing::Shutdown }
    }
}
