//! One stream of events: the connection's, or a session's. Without a lock, a clock or IO: its owner has those.
//!
//! Invariants: events are numbered as they are given to a reader, from 1, without holes; one reader at a time; what waits
//! is what no reader was given.

use super::closing::Closing;
use super::event_id::{EventId, LONGEST};
use super::recent::Recent;
use super::sse_event;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Bytes that may wait; a larger piece waits alone. Full: the sender waits.
const QUEUE: usize = 512 * 1024;
/// Bytes after which no more is put together. A reader that takes less in the time it has is a stalled one.
const PIECE: usize = 128 * 1024;
/// What the last reader was given this long before its end may have gone into a dead socket (HT-8), or into that of a
/// client that took nothing any more: a missing comment is not noticed sooner, as one is due every 15 s.
const DOUBTFUL: Duration = Duration::from_secs(30);

/// The one reader of a stream.
#[derive(Debug)]
pub(super) struct StreamReader {
    number: u64,
    taken_at: Instant,
    /// It has not taken all that it is given again.
    pub(super) is_behind: bool,
    closing: Arc<OnceLock<Closing>>,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    tag: u32,
    /// The number of the last event that a reader was given.
    given: u64,
    waiting: Waiting,
    pub(super) recent: Recent,
    reader: Option<StreamReader>,
    /// Readers so far.
    readers: u64,
    /// When the last one ended.
    left_at: Option<Instant>,
    /// Pieces that were queued, and that were taken.
    pub(super) queued: u64,
    pub(super) taken: u64,
    /// Tells the reader that something came, or that it is closed.
    pub(super) ready: Arc<Notify>,
    /// Tells senders that there may be room, or a reader.
    pub(super) room: Arc<Notify>,
}

/// What no reader was given yet.
#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    since: Option<Instant>,
}

/// What a new reader has.
#[derive(Debug)]
pub(super) struct Opened {
    /// Its place among the readers of the stream.
    pub(super) number: u64,
    /// Set when it is closed.
    pub(super) closing: Arc<OnceLock<Closing>>,
    /// What it is given again, first.
    pub(super) again: VecDeque<Bytes>,
}

/// Why a stream is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenRefused {
    /// The connection is over.
    Gone,
    /// Too many streams.
    Full,
    /// Too many streams of sessions that the connection does not know.
    Unconfirmed,
    /// The last event is not of this stream.
    Foreign,
    /// The last event has not been yet.
    Future,
    /// Some of what follows the last event is not kept any more.
    Forgotten,
}

impl Stream {
    pub(super) fn new(tag: u32) -> Self {
        Self { tag, ..Self::default() }
    }

    pub(super) fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    pub(super) fn had_reader(&self) -> bool {
        self.readers > 0
    }

    /// Nothing is in it that could still be read.
    pub(super) fn is_blank(&self) -> bool {
        self.reader.is_none() && self.waiting.pieces.is_empty() && self.recent.bytes() == 0
    }

    /// Queues whole lines. False when there is no room.
    pub(super) fn push(&mut self, lines: &Bytes, now: Instant) -> bool {
        if !self.waiting.pieces.is_empty() && self.waiting.bytes + lines.len() > QUEUE {
            return false;
        }
        self.push_anyway(lines.clone(), now);
        true
    }

    fn push_anyway(&mut self, lines: Bytes, now: Instant) {
        self.waiting.since.get_or_insert(now);
        self.waiting.bytes += lines.len();
        self.queued += 1;
        self.waiting.pieces.push_back(lines);
        self.ready.notify_waiters();
    }

    /// Hands what waits to another stream.
    pub(super) fn move_to(&mut self, other: &mut Self, now: Instant) {
        for lines in self.waiting.pieces.drain(..) {
            self.taken += 1;
            other.push_anyway(lines, now);
        }
        (self.waiting.bytes, self.waiting.since) = (0, None);
    }

    /// A new reader, in place of an earlier one.
    pub(super) fn open(&mut self, seen: Option<EventId>, now: Instant) -> Result<Opened, OpenRefused> {
        let again = match seen {
            Some(seen) if seen.tag != self.tag => return Err(OpenRefused::Foreign),
            Some(seen) if seen.number > self.given => return Err(OpenRefused::Future),
            Some(seen) => {
                let again = self.recent.again_after(seen.number, self.given, now);
                again.ok_or(OpenRefused::Forgotten)?
            }
            None if self.readers == 0 => VecDeque::new(),
            None => {
                let left_at = self.left_at.filter(|_| self.reader.is_none()).unwrap_or(now);
                self.recent.again_since(left_at.checked_sub(DOUBTFUL).unwrap_or(left_at), now)
            }
        };
        self.close(Closing::Replaced, now);
        self.readers += 1;
        let closing = Arc::new(OnceLock::new());
        let (number, is_behind) = (self.readers, !again.is_empty());
        self.reader = Some(StreamReader { number, taken_at: now, is_behind, closing: Arc::clone(&closing) });
        self.room.notify_waiters();
        Ok(Opened { number, closing, again })
    }

    /// Closes the stream for its reader, if there is one.
    pub(super) fn close(&mut self, closing: Closing, now: Instant) {
        if let Some(reader) = self.reader.take() {
            let _closed_before = reader.closing.set(closing);
            self.left_at = Some(now);
            self.ready.notify_waiters();
        }
    }

    /// A reader has left by itself.
    pub(super) fn left(&mut self, number: u64, now: Instant) {
        if self.reader.take_if(|reader| reader.number == number).is_some() {
            self.left_at = Some(now);
        }
    }

    /// The reader of that number, if no other replaced it; it has just taken something.
    pub(super) fn reader(&mut self, number: u64, now: Instant) -> Option<&mut StreamReader> {
        let reader = self.reader.as_mut().filter(|reader| reader.number == number)?;
        reader.taken_at = now;
        Some(reader)
    }

    /// What waits, as events; None when nothing does.
    pub(super) fn take(&mut self, now: Instant) -> Option<Bytes> {
        let (mut pieces, mut bytes) = (0, 0);
        for lines in &self.waiting.pieces {
            if pieces > 0 && bytes + lines.len() > PIECE {
                break;
            }
            (pieces, bytes) = (pieces + 1, bytes + lines.len());
        }
        if pieces == 0 {
            return None;
        }
        let lines = self
            .waiting
            .pieces
            .iter()
            .take(pieces)
            .map(|lines| memchr::memchr_iter(b'\n', lines).count() + 1);
        let mut out = BytesMut::with_capacity(bytes + lines.sum::<usize>() * (LONGEST + 16));
        let first = self.given + 1;
        for lines in self.waiting.pieces.drain(..pieces) {
            put_events(self.tag, &mut self.given, &lines, &mut out);
        }
        self.waiting.bytes -= bytes;
        self.waiting.since = (!self.waiting.pieces.is_empty()).then_some(now);
        self.taken += pieces as u64;
        self.room.notify_waiters();
        let events = shrunk(out);
        if self.given >= first {
            self.recent.push(first, self.given, events.clone(), now);
        }
        Some(events)
    }

    /// Whether its reader has taken nothing for too long while something waited for it.
    pub(super) fn has_stalled(&self, patience: Duration, now: Instant, resumed: Instant) -> bool {
        let Some(reader) = &self.reader else { return false };
        let since = match self.waiting.since {
            _ if reader.is_behind => reader.taken_at,
            Some(since) => since.max(reader.taken_at),
            None => return false,
        };
        now.duration_since(since.max(resumed)) > patience
    }
}

/// Each line as an event of two lines and a blank one.
fn put_events(tag: u32, number: &mut u64, lines: &[u8], out: &mut BytesMut) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', lines).chain([lines.len()]) {
        let line = &lines[start..end];
        start = end + 1;
        if line.is_empty() {
            continue;
        }
        *number += 1;
        let id = EventId { tag, number: *number };
        sse_event(out, Some(format_args!("{id}")), None, |out| out.put_slice(line));
    }
}

/// The bytes without room that was not needed, which would be kept as long as they are.
fn shrunk(out: BytesMut) -> Bytes {
    let spare = out.capacity() - out.len();
    if spare > out.len() / 4 { Bytes::copy_from_slice(&out) } else { out.freeze() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Option<Bytes>) -> String {
        String::from_utf8(bytes.unwrap_or_default().to_vec()).expect("text")
    }

    // HT-6: every event has an id; what was given is numbered without holes, each line is one event
    #[test]
    fn each_line_is_an_event_with_an_id() {
        let (mut stream, now) = (Stream::new(0xab), Instant::now());
        assert!(stream.push(&Bytes::from_static(b"{\"a\":1}\n{\"b\":\r2}\n"), now));
        assert!(stream.push(&Bytes::from_static(b"{}\n"), now));
        let expected = "id: 000000ab-1\ndata: {\"a\":1}\n\nid: 000000ab-2\ndata: {\"b\": 2}\n\nid: 000000ab-3\ndata: {}\n\n";
        assert_eq!(text(stream.take(now)), expected);
        assert_eq!(stream.take(now), None);
    }

    // HT-6: a cursor of another stream, of the future, and one that is too old are told apart
    #[test]
    fn a_cursor_is_of_this_stream_or_refused() {
        let (mut stream, now) = (Stream::new(1), Instant::now());
        stream.push(&Bytes::from_static(b"1\n2\n"), now);
        stream.open(None, now).expect("it opens");
        stream.take(now);
        let open = |stream: &mut Stream, tag, number| {
            stream.open(Some(EventId { tag, number }), now).map(|opened| opened.again.len())
        };
        assert_eq!(open(&mut stream, 2, 1), Err(OpenRefused::Foreign));
        assert_eq!(open(&mut stream, 1, 3), Err(OpenRefused::Future));
        assert_eq!((open(&mut stream, 1, 2), open(&mut stream, 1, 1)), (Ok(0), Ok(1)));
        stream.recent.shrink_to(0);
        assert_eq!((open(&mut stream, 1, 2), open(&mut stream, 1, 1)), (Ok(0), Err(OpenRefused::Forgotten)));
    }

    // HT-7, HT-8: a reader that is replaced is told so, and what it was given a moment ago is given again
    #[test]
    fn a_new_reader_takes_over() {
        let (mut stream, now) = (Stream::new(1), Instant::now());
        let Opened { number: first, closing, again } = stream.open(None, now).expect("it opens");
        assert_eq!(again.len(), 0);
        stream.push(&Bytes::from_static(b"1\n"), now);
        stream.take(now);
        let later = now + Duration::from_secs(40);
        stream.push(&Bytes::from_static(b"2\n"), later);
        stream.take(later);
        let Opened { number: second, again, .. } = stream.open(None, later).expect("it opens");
        assert_eq!(closing.get(), Some(&Closing::Replaced));
        assert_eq!(again, [Bytes::from_static(b"id: 00000001-2\ndata: 2\n\n")]);
        assert!(stream.reader(first, later).is_none() && stream.reader(second, later).is_some());
    }

    // UP-2: a reader has stalled when something waited for it for too long, not when nothing came, nor when acpd stood still
    #[test]
    fn a_reader_stalls_only_when_something_waits() {
        let (mut stream, now) = (Stream::new(1), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        let stalls = |stream: &Stream, seconds, resumed| {
            stream.has_stalled(Duration::from_secs(30), at(seconds), at(resumed))
        };
        stream.open(None, now).expect("it opens");
        assert!(!stalls(&stream, 1_000, 0));
        stream.push(&Bytes::from_static(b"1\n"), at(1_000));
        assert!(!stalls(&stream, 1_020, 0));
        assert!(stalls(&stream, 1_031, 0));
        assert!(!stalls(&stream, 1_031, 1_031) && !stalls(&stream, 1_061, 1_031));
        assert!(stalls(&stream, 1_062, 1_031));
        stream.take(at(1_031));
        assert!(!stalls(&stream, 2_000, 0));
    }
}
