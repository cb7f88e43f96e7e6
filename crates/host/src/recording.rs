//! Events on their way into the log and out of it.
//!
//! Not here: what an event leads to.

use crate::clock;
use acpd_eventlog::{Batch, Event as StoredEvent, IndexUpdate};
use acpd_record::{Event, Position, Projection, SessionMeta, TerminationInfo};

/// Adds an event to those that are appended together.
pub(crate) fn push(batch: &mut Batch, at_ms: i64, event: &Event<'_>) {
    let written = batch.push_with(event.number(), at_ms, |payload| event.write(payload));
    written.expect("a batch takes whatever is written to it, and all members of an event are JSON");
}

/// Takes the next event of a log; gives it if it can be read.
pub(crate) fn read<'a>(projection: &mut Projection, stored: &StoredEvent<'a>) -> Option<Event<'a>> {
    read_beside(projection, stored, |_, _| {})
}

/// The same; `see` gets the event before the projection has it.
pub(crate) fn read_beside<'a>(
    projection: &mut Projection,
    stored: &StoredEvent<'a>,
    see: impl FnOnce(&Projection, &Event<'a>),
) -> Option<Event<'a>> {
    let at = Position { seq: stored.seq, at_ms: stored.at_ms };
    let event = Event::read(stored.kind, stored.payload).ok();
    match &event {
        Some(event) => {
            see(projection, event);
            projection.apply(at, event);
        }
        // It counts as skipped there.
        None => projection.see(at, stored.kind, stored.payload),
    }
    event
}

/// The last event of a run, and what the index says from then on.
pub(crate) fn ended_batch(end: &TerminationInfo, meta: &SessionMeta) -> Batch {
    let now = clock::now_ms();
    let mut batch = Batch::new();
    push(&mut batch, now, &Event::Ended(Box::new(end.clone())));
    batch.update_index(IndexUpdate {
        updated_ms: now,
        ended: Some(true),
        owner: Some(None),
        info: Some(meta.write()),
        ..IndexUpdate::default()
    });
    batch
}
