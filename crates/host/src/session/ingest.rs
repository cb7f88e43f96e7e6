//! How messages become events: the agent's session id out, acpd's in, the rest byte for byte.

use crate::clock;
use acpd_eventlog::{Batch, IndexUpdate, PayloadWriter};
use acpd_record::EventKind;
use serde_json::Value;
use std::ops::Range;

/// Events that are recorded together.
pub(super) struct Record {
    batch: Batch,
    now_ms: i64,
}

impl Record {
    pub(super) fn new() -> Self {
        Self { batch: Batch::new(), now_ms: clock::now_ms() }
    }

    /// An event whose payload is an object of ours.
    pub(super) fn object(&mut self, kind: EventKind, payload: &Value) {
        self.batch.push(kind.number(), self.now_ms, payload.to_string().as_bytes());
    }

    /// An event whose payload is `head`, then raw JSON, then `tail`: an object of ours around a raw message.
    pub(super) fn around(&mut self, kind: EventKind, head: &str, raw: &[u8], tail: &str) {
        self.batch.push_with(kind.number(), self.now_ms, |payload| {
            payload.extend(head.as_bytes());
            payload.extend(raw);
            payload.extend(tail.as_bytes());
        });
    }

    /// An event whose payload is the agent's own message under our session id.
    pub(super) fn message(
        &mut self,
        kind: EventKind,
        line: &[u8],
        session: Option<Range<usize>>,
        id_json: &str,
    ) {
        self.batch
            .push_with(kind.number(), self.now_ms, |payload| put_message(payload, line, session, id_json));
    }

    /// A request of the agent, with the answer it got: `{"answer": ..., "message": ...}`.
    pub(super) fn request(
        &mut self,
        line: &[u8],
        session: Option<Range<usize>>,
        id_json: &str,
        answer: &Value,
    ) {
        self.batch.push_with(EventKind::AgentRequest.number(), self.now_ms, |payload| {
            payload.extend(format!("{{\"answer\":{answer},\"message\":").as_bytes());
            put_message(payload, line, session, id_json);
            payload.extend(b"}");
        });
    }

    pub(super) fn index(&mut self, update: IndexUpdate) {
        self.batch.update_index(IndexUpdate { updated_ms: self.now_ms, ..update });
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.now_ms
    }

    pub(super) fn len(&self) -> u64 {
        self.batch.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// The batch; the session counts as updated now.
    pub(super) fn into_batch(mut self) -> Batch {
        self.batch.update_index(IndexUpdate { updated_ms: self.now_ms, ..IndexUpdate::default() });
        self.batch
    }
}

/// The agent's message under our session id.
fn put_message(payload: &mut PayloadWriter<'_>, line: &[u8], session: Option<Range<usize>>, id_json: &str) {
    match session {
        Some(span) => {
            payload.extend(&line[..span.start]);
            payload.extend(id_json.as_bytes());
            payload.extend(&line[span.end..]);
        }
        None => payload.extend(line),
    }
}
