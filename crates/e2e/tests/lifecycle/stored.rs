//! What stands in the log of a session, read by a third party after acpd has ended.

#![allow(dead_code, reason = "each test program uses its own part")]

use acpd_e2e::Scratch;
use acpd_eventlog::{EventLog, ListQuery, Options};
use serde_json::Value;

pub(crate) const RUN_STARTED: u16 = 2;
pub(crate) const PROMPT: u16 = 3;
pub(crate) const UPDATE: u16 = 4;
pub(crate) const TURN_ENDED: u16 = 6;
pub(crate) const ENDED: u16 = 9;

/// One event.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) kind: u16,
    pub(crate) text: String,
}

impl Stored {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("payloads are JSON")
    }
}

/// All events of a session.
pub(crate) fn stored(scratch: &Scratch, session: &str) -> Vec<Stored> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let log = EventLog::open(&scratch.state(), Options::default()).expect("the log opens");
        let mut cursor = log.cursor(session, 0).await.expect("the session is there");
        let mut events = Vec::new();
        while let Some(block) = cursor.next().await.expect("its events can be read") {
            let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("payloads are text");
            events.extend(block.events().map(|event| Stored { kind: event.kind, text: text(event.payload) }));
        }
        log.close().await;
        events
    })
}

/// The payloads of one kind.
pub(crate) fn of_kind(events: &[Stored], kind: u16) -> Vec<&str> {
    events.iter().filter(|event| event.kind == kind).map(|event| event.text.as_str()).collect()
}

/// The kinds of updates that were stored, in order.
pub(crate) fn update_kinds(events: &[Stored]) -> Vec<String> {
    let updates = events.iter().filter(|event| event.kind == UPDATE).map(Stored::json);
    updates.map(|line| line["params"]["update"]["sessionUpdate"].as_str().unwrap_or("").to_owned()).collect()
}

/// Every session that the log knows.
pub(crate) fn ids(scratch: &Scratch) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let log = EventLog::open(&scratch.state(), Options::default()).expect("the log opens");
        let rows = log.list(ListQuery::default()).await.expect("the index can be read");
        log.close().await;
        rows.into_iter().map(|row| row.id).collect()
    })
}
