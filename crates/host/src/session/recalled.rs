//! What the log of a session says of it, read from its beginning: the state that [`Snapshot`] keeps while a session is
//! live, for one that has ended, that another process has, or that is activated again.
//!
//! Pure: events come in, in their order. Invariant: after the last event it is what the session's task knew then.

use super::Snapshot;
use acpd_eventlog::Event;
use acpd_record::EventKind;
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is known of a session from its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recalled {
    pub(crate) snapshot: Snapshot,
    /// Turns that began.
    pub(crate) turns: u64,
    /// Agent processes that had it.
    pub(crate) runs: u64,
    /// Permission requests that nobody has answered, by their numbers.
    open: BTreeMap<u64, Value>,
}

/// A permission request in the log.
#[derive(Deserialize)]
struct AskedQuestion<'a> {
    request: u64,
    #[serde(default)]
    unasked: bool,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

impl Recalled {
    pub(crate) fn see(&mut self, event: &Event<'_>) {
        let payload = event.payload;
        let parsed = || serde_json::from_slice::<Value>(payload).unwrap_or_default();
        match EventKind::from_number(event.kind) {
            Some(EventKind::Update) => drop(self.snapshot.see_line(payload)),
            // Nearly all are about something else.
            Some(EventKind::Notification) if memmem::find(payload, b"\"tools\"").is_some() => {
                self.snapshot.see_tools(&parsed()["params"]);
            }
            Some(EventKind::StateChanged) => self.snapshot.see_state(&parsed()),
            Some(EventKind::RunStarted) => {
                self.runs += 1;
                self.turn_ended();
                self.snapshot.see_state(&parsed()["state"]);
            }
            Some(EventKind::Prompt) => self.turns += 1,
            Some(EventKind::TurnEnded | EventKind::Ended) => self.turn_ended(),
            Some(EventKind::PermissionRequested) => {
                if let Ok(AskedQuestion { request, unasked: false, message: Some(message) }) =
                    serde_json::from_slice(payload)
                {
                    self.open.insert(request, entry(request, message.get().as_bytes()));
                }
            }
            Some(EventKind::PermissionResolved) => {
                if let Ok(AskedQuestion { request, .. }) = serde_json::from_slice(payload) {
                    self.open.remove(&request);
                }
            }
            _ => {}
        }
    }

    /// Nobody works on it any more, as far as this log goes.
    pub(crate) fn turn_ended(&mut self) {
        self.snapshot.turn_ended();
        self.open.clear();
    }

    /// Everything of contract 1.5.
    pub(crate) fn to_json(&self) -> Value {
        with_open_requests(&self.snapshot, self.open.values().cloned().collect())
    }
}

/// An open permission request as clients see it in a snapshot: its number and the raw message.
pub(super) fn entry(request: u64, message: &[u8]) -> Value {
    json!({"request": request, "message": serde_json::from_slice::<Value>(message).unwrap_or_default()})
}

/// Everything of contract 1.5.
pub(super) fn with_open_requests(snapshot: &Snapshot, open: Vec<Value>) -> Value {
    let mut all = snapshot.to_json();
    all["openPermissionRequests"] = Value::Array(open);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recalled(events: &[(EventKind, Value)]) -> Recalled {
        let mut recalled = Recalled::default();
        for (seq, (kind, payload)) in (1..).zip(events) {
            let payload = payload.to_string();
            recalled.see(&Event { seq, kind: kind.number(), at_ms: 0, payload: payload.as_bytes() });
        }
        recalled
    }

    fn update(update: &Value) -> Value {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
    }

    fn asked(number: u64) -> (EventKind, Value) {
        (EventKind::PermissionRequested, json!({"request": number, "message": {"method": "x"}}))
    }

    // contract 1.5: updates, answers and tools lists of all runs; the latest counts
    #[test]
    fn the_whole_log_tells_the_state() {
        let mode = |mode: &str| json!({"currentModeId": mode, "modes": {"currentModeId": mode}});
        let got = recalled(&[
            (EventKind::Created, json!({"agent": "x"})),
            (EventKind::RunStarted, json!({"pid": 1, "state": mode("a")})),
            (EventKind::Notification, json!({"method": "session/started", "params": {"tools": ["t"]}})),
            (EventKind::Prompt, json!({"turn": 1})),
            (EventKind::Update, update(&json!({"sessionUpdate": "session_info_update", "title": "One"}))),
            (EventKind::Update, update(&json!({"sessionUpdate": "tool_call", "toolCallId": "1"}))),
            (
                EventKind::StateChanged,
                json!({"by": "me", "currentModeId": "b", "modes": {"currentModeId": "b"}}),
            ),
            asked(8),
            (EventKind::Ended, json!({"reason": "error"})),
            (EventKind::RunStarted, json!({"pid": 2})),
        ]);
        assert_eq!((got.turns, got.runs), (1, 2));
        let expected = json!({
            "title": "One", "currentModeId": "b", "modes": {"currentModeId": "b"}, "tools": ["t"],
            "openToolCalls": [], "openPermissionRequests": [],
        });
        assert_eq!(got.to_json(), expected);
    }

    // contract 1.5: a permission request is open until it is answered or its turn is over
    #[test]
    fn open_questions_are_told() {
        let unasked = (EventKind::PermissionRequested, json!({"request": 3, "unasked": true, "message": {}}));
        let mut events =
            vec![asked(1), asked(2), unasked, (EventKind::PermissionResolved, json!({"request": 1}))];
        let open = json!([{"request": 2, "message": {"method": "x"}}]);
        assert_eq!(recalled(&events).to_json()["openPermissionRequests"], open);
        events.push((EventKind::TurnEnded, json!({"turn": 1})));
        assert_eq!(recalled(&events).to_json()["openPermissionRequests"], json!([]));
    }
}
