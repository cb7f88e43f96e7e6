//! Reads server-sent events (WHATWG HTML, "interpreting an event stream").
//!
//! Sans IO: bytes come in as they were torn, events come out. Invariants: memory is bounded by the limit and one read;
//! an event is given when the empty line behind it has come, so a torn one is none. Lines end with LF or CR LF, as every
//! server in use writes them; a lone CR, which no JSON has unescaped, is no line end here.

use acpd_wire::{LineBuffer, LineTooLong};

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its own `id:`; None when it has none.
    pub(crate) id: Option<String>,
    /// `event:`; empty when it is not said.
    pub(crate) kind: String,
    /// All `data:` lines.
    pub(crate) data: String,
}

/// A stream of events.
pub(crate) struct SseReader {
    lines: LineBuffer,
    limit: usize,
    event: SseEvent,
    has_data: bool,
    at_start: bool,
}

impl SseReader {
    /// For events with at most `limit` bytes of data.
    pub(crate) fn new(limit: usize) -> Self {
        // The name of the field comes before the data.
        let lines = LineBuffer::new(limit.saturating_add(16));
        Self { lines, limit, event: SseEvent::default(), has_data: false, at_start: true }
    }

    /// Takes bytes that were read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// The next event that is complete. An error when one is longer than it may be; nothing is right after that.
    pub(crate) fn next_event(&mut self) -> Result<Option<SseEvent>, LineTooLong> {
        while let Some(line) = self.lines.next_line()? {
            let line = match std::mem::take(&mut self.at_start) {
                true => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
                false => &line[..],
            };
            if !line.is_empty() {
                self.field(line)?;
                continue;
            }
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn field(&mut self, line: &[u8]) -> Result<(), LineTooLong> {
        let text = String::from_utf8_lossy(line);
        let (name, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                if self.event.data.len() + value.len() >= self.limit.saturating_add(1) {
                    return Err(LineTooLong { limit: self.limit });
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            "event" => self.event.kind = value.to_owned(),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            // Comments have an empty name; `retry` is the caller's own business; the rest is to be ignored.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: a comment\n\nid: 1\nevent: update\ndata: {\"a\":\ndata:  1}\n\n\
        id:2\r\ndata\r\n\r\nevent: nothing\nid: 9\n\nretry: 5\nunknown: x\ndata: é漢\nid: a\0b\n\ndata: torn\n";

    fn event(id: Option<&str>, kind: &str, data: &str) -> SseEvent {
        SseEvent { id: id.map(str::to_owned), kind: kind.to_owned(), data: data.to_owned() }
    }

    // contract 1.6: the event stream, wherever it is torn
    #[test]
    fn events_are_read_however_they_are_torn() {
        let expected =
            [event(Some("1"), "update", "{\"a\":\n 1}"), event(Some("2"), "", ""), event(None, "", "é漢")];
        for size in (1..40).chain([STREAM.len()]) {
            let mut reader = SseReader::new(1000);
            let mut events = Vec::new();
            for piece in STREAM.as_bytes().chunks(size) {
                reader.push(piece);
                while let Some(event) = reader.next_event().expect("it is within the limit") {
                    events.push(event);
                }
            }
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    // contract 1.6: an endless event is an error and not memory
    #[test]
    fn an_endless_event_is_bounded() {
        let mut reader = SseReader::new(100);
        reader.push(format!("data: {}", "x".repeat(200)).as_bytes());
        assert!(reader.next_event().is_err());
        let mut reader = SseReader::new(100);
        reader.push("data: 0123456789\n".repeat(20).as_bytes());
        assert!(reader.next_event().is_err());
        let mut reader = SseReader::new(10);
        reader.push(b"data: 0123456789\n\n");
        assert_eq!(reader.next_event(), Ok(Some(event(None, "", "0123456789"))));
    }
}
