//! What the index says of a session: what a list shows of it, and what other processes read of what it is doing.

use super::SessionCore;
use crate::listing::stored_state;
use crate::session::effects::Effects;
use acpd_api::SessionState;
use acpd_eventlog::IndexUpdate;
use acpd_record::{Event, TurnNumber};
use acpd_wire::UpdateKind;

/// What may have changed of what a list shows.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::session) struct Stale {
    /// Its title, model and mode.
    glance: bool,
    /// How its turns ended, what they used and what is asked in them.
    tally: bool,
}

/// What the index says.
#[derive(Debug)]
pub(in crate::session) struct Indexed {
    /// What the session is doing.
    told: SessionState,
    /// What is not so any more.
    pub(super) stale: Stale,
}

impl Default for Indexed {
    fn default() -> Self {
        Self { told: SessionState::Idle, stale: Stale::default() }
    }
}

impl Stale {
    /// An event is appended. Gives whether it may tell what was used.
    pub(super) fn see(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Update(message) => match message.kind() {
                UpdateKind::CurrentModeUpdate
                | UpdateKind::ConfigOptionUpdate
                | UpdateKind::SessionInfoUpdate => self.glance = true,
                // What is used within a turn the index learns at its end.
                UpdateKind::UsageUpdate => return true,
                _ => {}
            },
            Event::StateChanged(_) => self.glance = true,
            // What a list calls it.
            Event::Prompt(prompt) if prompt.turn == TurnNumber::default().next() => self.tally = true,
            Event::TurnEnded(_) => {
                self.tally = true;
                return true;
            }
            Event::PermissionRequested(_)
            | Event::PermissionResolved(_)
            | Event::ElicitationRequested(_)
            | Event::ElicitationResolved(_) => self.tally = true,
            _ => {}
        }
        false
    }
}

impl SessionCore {
    /// What a list shows, and what other processes read of what the session is doing: they learn it with the events that
    /// changed it.
    pub(super) fn update_index(&mut self, out: &mut Effects) {
        let Stale { glance, tally } = std::mem::take(&mut self.volatile.indexed.stale);
        let glance = glance.then(|| self.log.snapshot().glance()).filter(|new| *new != self.meta.glance());
        let tally = tally.then(|| self.log.tally(u64::MAX)).filter(|new| *new != self.meta.tally);
        if glance.is_some() || tally.is_some() {
            if let Some(glance) = glance {
                self.meta.describe(glance);
            }
            if let Some(tally) = tally {
                self.meta.tally = tally;
            }
            out.recording.index(IndexUpdate { info: Some(self.meta.write()), ..IndexUpdate::default() });
        }
        if self.facts.is_kept && !out.recording.is_empty() {
            out.recording.index(IndexUpdate {
                position: Some(self.volatile.continuation.position),
                ..IndexUpdate::default()
            });
        }
        let state = self.state();
        if state != self.volatile.indexed.told && !out.recording.is_empty() {
            self.volatile.indexed.told = state;
            out.recording.index(IndexUpdate { state: Some(stored_state(state)), ..IndexUpdate::default() });
        }
    }
}
