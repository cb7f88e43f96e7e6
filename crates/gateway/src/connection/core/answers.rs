//! Answers of the connection itself: how they are sent, and behind which events.

use super::{Call, ConnectionCore, Effect, Effects};
use crate::wire_error::{WireError, wire_error};
use acpd_host::HostError;
use acpd_wire::OwnedId;
use bytes::Bytes;

impl ConnectionCore {
    pub(super) fn answer(&self, request: OwnedId, body: Result<Bytes, WireError>, effects: &mut Effects) {
        self.answer_behind(0, request, body, effects);
    }

    /// The same behind event `after` of the session, if the client is shown its events.
    pub(super) fn answer_behind(
        &self,
        after: u64,
        request: OwnedId,
        body: Result<Bytes, WireError>,
        effects: &mut Effects,
    ) {
        let session = self.open.find(&request).and_then(|open| open.session.clone());
        effects.push(Effect::Answer { request, session, after, body });
    }

    pub(super) fn fail(&self, request: OwnedId, error: &HostError, effects: &mut Effects) {
        self.answer(request, Err(wire_error(error)), effects);
    }

    pub(super) fn refuse(&self, call: &Call, error: WireError, effects: &mut Effects) {
        let session = call.params.session().map(|named| match named {
            Ok(id) => id.to_string(),
            Err(text) => text.to_owned(),
        });
        effects.push(Effect::RecordRefusal { method: call.name.clone(), session, error: error.clone() });
        self.answer(call.id.clone(), Err(error), effects);
    }
}

/// The last event before the end of a run: answers to its requests stand in front of that end.
pub(super) fn last_before(end: u64) -> u64 {
    end.saturating_sub(1)
}
