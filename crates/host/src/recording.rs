//! Events on their way into the log and out of it.
//!
//! Not here: what an event leads to.

use acpd_eventlog::{Batch, Event as StoredEvent};
use acpd_record::{Event, Position, Projection};

/// Adds an event to those that are appended together.
pub(crate) fn push(batch: &mut Batch, at_ms: i64, event: &Event<'_>) {
    let written = batch.push_with(event.number(), at_ms, |payload| event.write(payload));
    written.expect("a batch takes whatever is written to it, and all members of an event are JSON");
}

/// The place of a stored event.
pub(crate) fn position(stored: &StoredEvent<'_>) -> Position {
    Position { seq: stored.seq, at_ms: stored.at_ms }
}

/// Takes the next event of a log; gives it if it can be read.
pub(crate) fn read<'a>(projection: &mut Projection, stored: &StoredEvent<'a>) -> Option<Event<'a>> {
    let at = position(stored);
    let event = Event::read(stored.kind, stored.payload).ok();
    match &event {
        Some(event) => projection.apply(at, event),
        // It counts as skipped there.
        None => projection.see(at, stored.kind, stored.payload),
    }
    event
}
