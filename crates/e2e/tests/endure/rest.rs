//! A viewer over REST that breaks off and comes back, and what it has seen over all its connections.

use acpd_e2e::{Events, Http, connect};
use serde_json::Value;
use std::net::SocketAddr;

/// `GET` of a JSON document.
pub(crate) fn get(address: SocketAddr, path: &str) -> Value {
    let answer = Http::on(connect(address)).request("GET", path, &[], "");
    assert_eq!(answer.status, 200, "{path}");
    answer.json()
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// An event of the session, with its kind.
    Event(String),
    /// The daemon closes the stream, and says why.
    Closed(String),
    /// The stream is over.
    Nothing,
}

/// One who follows a session.
#[derive(Debug)]
pub(crate) struct Viewer {
    session: String,
    /// All events from the first on, each as it was sent. Its place is its number.
    pub(crate) seen: Vec<String>,
}

impl Viewer {
    pub(crate) fn of(session: &str) -> Self {
        Self { session: session.to_owned(), seen: Vec::new() }
    }

    /// Opens the stream behind what was seen.
    pub(crate) fn open(&self, address: SocketAddr) -> Events {
        let path = format!("/v1/sessions/{}/events", self.session);
        let last = self.seen.len().to_string();
        let headers = [("Last-Event-ID", last.as_str())];
        let headers = if self.seen.is_empty() { &[][..] } else { &headers[..] };
        Http::on(connect(address)).events(&path, headers).expect("a stream of events")
    }

    /// Takes the next event.
    ///
    /// # Panics
    /// When it is not the one behind those that were seen: no hole, and nothing twice.
    pub(crate) fn take(&mut self, events: &mut Events) -> Came {
        let Some(event) = events.next_data() else { return Came::Nothing };
        let Some(id) = &event.id else {
            assert_eq!(event.event.as_deref(), Some("closed"), "only that has no id");
            return Came::Closed(event.json()["reason"].as_str().expect("a word").to_owned());
        };
        let data = event.data.expect("it has data");
        let expected = (self.seen.len() + 1).to_string();
        assert_eq!(*id, expected);
        assert!(data.starts_with(&format!("{{\"seq\":{expected},")), "{data}");
        self.seen.push(data);
        Came::Event(event.event.expect("it has a kind"))
    }

    /// Reads on until an event of this kind came.
    pub(crate) fn read_to(&mut self, kind: &str, events: &mut Events) {
        loop {
            match self.take(events) {
                Came::Event(came) if came == kind => return,
                Came::Event(_) => {}
                other => panic!("{other:?} behind {} events", self.seen.len()),
            }
        }
    }

    /// Reads on until the session has ended and the stream is over.
    pub(crate) fn read_to_end(&mut self, events: &mut Events) {
        self.read_to("ended", events);
        assert_eq!(self.take(events), Came::Nothing, "nothing follows the end");
    }

    /// The last event.
    pub(crate) fn last(&self) -> Value {
        serde_json::from_str(self.seen.last().expect("something was seen")).expect("it is JSON")
    }

    /// Checks that `chunks` texts of the example agent's `stream` were seen, each once and in order.
    pub(crate) fn has_chunks(&self, chunks: usize) {
        let mut numbers = Numbers::default();
        for data in &self.seen {
            numbers.see(&serde_json::from_str::<Value>(data).expect("it is JSON")["message"]);
        }
        assert_eq!(numbers.seen(), chunks);
    }
}

/// Counts the texts of the example agent's `stream`.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    first: Option<usize>,
    next: usize,
}

impl Numbers {
    /// Sees a message, which may be something else.
    ///
    /// # Panics
    /// When a number is missing, or comes twice.
    pub(crate) fn see(&mut self, message: &Value) {
        let update = &message["params"]["update"];
        if update["sessionUpdate"] != "agent_message_chunk" {
            return;
        }
        let text = update["content"]["text"].as_str().expect("a chunk has a text");
        let Some(number) = text.get(..8).and_then(|number| number.parse().ok()) else { return };
        let first = *self.first.get_or_insert(number);
        let expected = first + self.seen();
        assert_eq!(number, expected, "each once, in order");
        self.next = number + 1;
    }

    /// How many there were.
    pub(crate) fn seen(&self) -> usize {
        self.first.map_or(0, |first| self.next.saturating_sub(first))
    }

    /// Whether it began with the first of all.
    pub(crate) fn is_whole(&self) -> bool {
        self.first == Some(0)
    }
}
