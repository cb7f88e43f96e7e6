//! Events of a session, in pages from its log.

use super::error::DaemonError;
use super::request::Daemon;
use super::sessions::plain;
use crate::address::encoded;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Events a page.
const PAGE: usize = 500;

/// One event of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// From 1, without holes.
    pub(crate) seq: u64,
    pub(crate) kind: String,
    /// The object as the daemon wrote it, in one line.
    pub(crate) json: String,
}

#[derive(Deserialize)]
struct Head {
    seq: u64,
    kind: String,
}

impl Event {
    /// Reads an event's object.
    pub(crate) fn read(json: &str) -> Result<Self, serde_json::Error> {
        let Head { seq, kind } = serde_json::from_str(json)?;
        // JSON has none of them in its texts, only between its parts.
        let json = match json.contains(['\n', '\r']) {
            true => json.replace(['\n', '\r'], " "),
            false => json.to_owned(),
        };
        Ok(Self { seq, kind, json })
    }
}

/// Goes through the events of a session that are there.
pub(crate) struct EventPages<'a> {
    daemon: &'a Daemon,
    id: &'a str,
    /// The last one that was read.
    last: u64,
    after: String,
    over: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    events: Vec<Box<RawValue>>,
    next_cursor: Option<Value>,
}

impl Daemon {
    /// The events of a session after one of them.
    pub(crate) fn events<'a>(&'a self, id: &'a str, after: u64) -> EventPages<'a> {
        EventPages { daemon: self, id, last: after, after: after.to_string(), over: false }
    }
}

impl EventPages<'_> {
    /// The next page; None after the last.
    pub(crate) async fn next_page(&mut self) -> Result<Option<Vec<Event>>, DaemonError> {
        if self.over {
            return Ok(None);
        }
        let (id, after) = (encoded(self.id), encoded(&self.after));
        let page: Page =
            self.daemon.get(&format!("/v1/sessions/{id}/events?after={after}&limit={PAGE}")).await?;
        let mut events = Vec::with_capacity(page.events.len());
        for raw in &page.events {
            let event = Event::read(raw.get()).map_err(|error| self.daemon.unreadable(&error))?;
            if event.seq != self.last + 1 {
                let gap = format!("event {} follows on {}", event.seq, self.last);
                return Err(self.daemon.unreadable(&gap));
            }
            self.last = event.seq;
            events.push(event);
        }
        match page.next_cursor.as_ref().and_then(plain) {
            Some(next) if !events.is_empty() && next != self.after => self.after = next,
            _ => self.over = true,
        }
        Ok(Some(events))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.6: an event is its object, in one line
    #[test]
    fn events_are_read_and_kept_as_they_are() {
        let event =
            Event::read("{\"seq\":7,\n \"kind\":\"update\",\"message\":{\"x\":1.0}}").expect("an event");
        assert_eq!((event.seq, event.kind.as_str()), (7, "update"));
        assert_eq!(event.json, "{\"seq\":7,  \"kind\":\"update\",\"message\":{\"x\":1.0}}");
        assert!(Event::read("{\"seq\":-1,\"kind\":\"update\"}").is_err());
        assert!(Event::read("{\"kind\":\"update\"}").is_err());
    }
}
