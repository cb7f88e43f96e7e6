//! What a host says beside the events of a session: it is looked at behind the events that were recorded before it.
//!
//! Pure. Invariant: it is looked at in its order, and never for ever kept. The host bounds how much there is.

use crate::client::Incoming;
use std::collections::VecDeque;

/// What waits for events.
#[derive(Default)]
pub(super) struct Late {
    waiting: VecDeque<(u64, Incoming)>,
    /// The last event that was shown.
    last: u64,
}

impl Late {
    /// It belongs behind event `behind`.
    pub(super) fn push(&mut self, behind: u64, incoming: Incoming) {
        self.waiting.push_back((behind, incoming));
    }

    /// Event `seq` was shown.
    pub(super) fn shown(&mut self, seq: u64) {
        self.last = seq;
    }

    /// The last event that was shown.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The next thing to look at. When no events come, nothing waits for them.
    pub(super) fn next(&mut self, events_come: bool) -> Option<Incoming> {
        let last = self.last;
        let is_due = |(behind, _): &mut (u64, Incoming)| !events_come || *behind <= last;
        self.waiting.pop_front_if(is_due).map(|(_, incoming)| incoming)
    }
}
