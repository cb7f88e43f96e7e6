//! An event as REST shows it: one JSON object with `seq`, `kind` and `at`, and the raw ACP message or acpd's own
//! members (contract 1.6).
//!
//! Pure. Raw messages are copied byte for byte. What only concerns connections is left out.

use crate::outbox::sse_event;
use acpd_eventlog::{Block, Event};
use acpd_host::{EventKind, iso8601};
use bytes::{BufMut, BytesMut};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Writes events one after the other, as REST shows them.
#[derive(Debug, Default)]
pub struct Renderer {
    /// Events of one commit have one time.
    at: Option<(i64, String)>,
    /// Events so far.
    #[cfg(test)]
    pub(super) rendered: u64,
}

impl Renderer {
    /// As an event of a stream: `id`, `event`, `data`.
    pub(super) fn sse(&mut self, event: &Event<'_>, out: &mut BytesMut) {
        let (id, name) = (event.seq, kind_name(event));
        sse_event(out, Some(format_args!("{id}")), Some(name), |out| self.json(event, out));
    }

    /// As JSON, in one line.
    pub fn json(&mut self, event: &Event<'_>, out: &mut BytesMut) {
        #[cfg(test)]
        {
            self.rendered += 1;
        }
        let (seq, kind, at) = (event.seq, kind_name(event), self.time(event.at_ms));
        // Into memory, which takes everything.
        let _written = write!(out, r#"{{"seq":{seq},"kind":"{kind}","at":"{at}""#);
        match EventKind::from_number(event.kind) {
            Some(EventKind::Update | EventKind::Notification | EventKind::Echo) => {
                put_member(out, "message", event.payload);
            }
            Some(EventKind::Ended) => put_member(out, "terminationInfo", event.payload),
            _ => put_members(out, event.payload),
        }
        out.put_u8(b'}');
    }

    fn time(&mut self, at_ms: i64) -> &str {
        let known = self.at.take().filter(|(ms, _)| *ms == at_ms);
        &self.at.insert(known.unwrap_or_else(|| (at_ms, iso8601(at_ms)))).1
    }
}

fn kind_name(event: &Event<'_>) -> &'static str {
    // A later acpd may have written something that this one has no word for.
    EventKind::from_number(event.kind).map_or("unknown", EventKind::name)
}

fn put_member(out: &mut BytesMut, name: &str, json: &[u8]) {
    out.put_slice(b",\"");
    out.put_slice(name.as_bytes());
    out.put_slice(b"\":");
    out.put_slice(json);
}

/// The members of an object of ours, but for the connections in it: `via` and `only`.
fn put_members(out: &mut BytesMut, object: &[u8]) {
    let Ok(members) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(object) else { return };
    for (name, value) in members.iter().filter(|(name, _)| !matches!(name.as_str(), "via" | "only")) {
        put_member(out, name, value.get().as_bytes());
    }
}

/// About how many bytes a block takes as events of a stream.
pub(super) fn expected_bytes(block: &Block) -> usize {
    let events = usize::try_from(block.last() - block.first() + 1).unwrap_or(usize::MAX);
    block.bytes().saturating_add(events.saturating_mul(110))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(kind: EventKind, payload: &str) -> Event<'_> {
        Event { seq: 12, kind: kind.number(), at_ms: 0, payload: payload.as_bytes() }
    }

    fn rendered(kind: EventKind, payload: &str) -> Value {
        let mut out = BytesMut::new();
        Renderer::default().json(&event(kind, payload), &mut out);
        serde_json::from_slice(&out).expect("JSON")
    }

    // contract 1.6: `message` is the raw ACP message; id, event and data
    #[test]
    fn an_update_is_shown_raw() {
        let mut out = BytesMut::new();
        let raw = r#"{"jsonrpc":"2.0","params":{"x":1.0,"big":12345678901234567890}}"#;
        Renderer::default().sse(&event(EventKind::Update, raw), &mut out);
        let expected = format!(
            "id: 12\nevent: update\ndata: {{\"seq\":12,\"kind\":\"update\",\"at\":\"1970-01-01T00:00:00.000Z\",\"message\":{raw}}}\n\n"
        );
        assert_eq!(out, expected.as_bytes());
    }

    // contract 1.6: a carriage return between tokens does not cut an event in two
    #[test]
    fn white_space_of_json_ends_no_line() {
        let mut out = BytesMut::new();
        Renderer::default().sse(&event(EventKind::Update, "{\"a\":\r1}"), &mut out);
        assert!(std::str::from_utf8(&out).expect("text").ends_with("{\"a\": 1}}\n\n"));
    }

    // SC-3: no connection's id is shown
    #[test]
    fn own_objects_are_members_without_connections() {
        let prompt = rendered(EventKind::Prompt, r#"{"turn":3,"by":"x","via":"secret","prompt":[]}"#);
        let at = "1970-01-01T00:00:00.000Z";
        let expected = json!({"seq": 12, "kind": "prompt", "at": at, "turn": 3, "by": "x", "prompt": []});
        assert_eq!(prompt, expected);
        let ended = rendered(EventKind::Ended, r#"{"reason":"completed"}"#);
        assert_eq!(ended["terminationInfo"], json!({"reason": "completed"}));
    }
}
