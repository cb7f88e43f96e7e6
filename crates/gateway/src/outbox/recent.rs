//! What a stream's readers were given lately, as it was written, in case they did not get it.
//!
//! Bounded by bytes and by age. Every event is two lines and a blank one, so it can be cut between any two.

use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Newlines of one event.
const ROWS: usize = 3;

#[derive(Debug)]
struct Piece {
    first: u64,
    last: u64,
    given_at: Instant,
    events: Bytes,
}

/// The latest events of a stream that were given to a reader, without holes.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Recent {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the events `first` to `last`, which follow what is there.
    pub(super) fn push(&mut self, first: u64, last: u64, events: Bytes, given_at: Instant) {
        self.bytes += events.len();
        self.pieces.push_back(Piece { first, last, given_at, events });
    }

    /// Forgets the oldest while there are more than so many bytes.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes {
            self.forget_one();
        }
    }

    /// Forgets what was given longer ago than `age`.
    pub(super) fn forget_older(&mut self, age: Duration, now: Instant) {
        while self.pieces.front().is_some_and(|piece| now.duration_since(piece.given_at) > age) {
            self.forget_one();
        }
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }

    fn forget_one(&mut self) {
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes -= piece.events.len();
        }
    }

    /// What follows the event `seen`, to be given again; None if some of that is forgotten. `given`: the last event of
    /// the stream that a reader was given.
    pub(super) fn again_after(&mut self, seen: u64, given: u64, now: Instant) -> Option<VecDeque<Bytes>> {
        if seen == given {
            return Some(VecDeque::new());
        }
        let first = self.pieces.front()?.first;
        if first > seen + 1 {
            return None;
        }
        let missing = self.pieces.iter_mut().filter(|piece| piece.last > seen);
        let cut = missing.map(|piece| {
            piece.given_at = now;
            let skipped = usize::try_from((seen + 1).saturating_sub(piece.first)).unwrap_or(usize::MAX);
            behind(&piece.events, skipped)
        });
        Some(cut.collect())
    }

    /// What was given at `since` or later, to be given again.
    pub(super) fn again_since(&mut self, since: Instant, now: Instant) -> VecDeque<Bytes> {
        let late = self.pieces.iter_mut().filter(|piece| piece.given_at >= since);
        let events = late.map(|piece| {
            piece.given_at = now;
            piece.events.clone()
        });
        events.collect()
    }
}

/// A piece without its first events.
fn behind(events: &Bytes, skipped: usize) -> Bytes {
    match skipped * ROWS {
        0 => events.clone(),
        rows => {
            let end = memchr::memchr_iter(b'\n', events).nth(rows - 1).map_or(events.len(), |at| at + 1);
            events.slice(end..)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(now: Instant) -> Recent {
        let mut recent = Recent::default();
        recent.push(1, 2, Bytes::from_static(b"id: 1\ndata: a\n\nid: 2\ndata: b\n\n"), now);
        recent.push(3, 3, Bytes::from_static(b"id: 3\ndata: c\n\n"), now + Duration::from_secs(10));
        recent
    }

    fn after(recent: &mut Recent, seen: u64) -> Option<Vec<u8>> {
        let given = recent.again_after(seen, 3, Instant::now());
        given.map(|pieces| pieces.iter().flat_map(|piece| piece.iter().copied()).collect())
    }

    // HT-6: exactly what is missing, cut within a piece too; nothing at all when some of it is forgotten
    #[test]
    fn what_follows_an_event_is_given_again() {
        let now = Instant::now();
        let all = b"id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n";
        for (seen, at) in [(0, 0), (1, 15), (2, 30), (3, 45)] {
            assert_eq!(after(&mut recent(now), seen).as_deref(), Some(&all[at..]), "after {seen}");
        }
        let mut short = recent(now);
        short.shrink_to(44);
        assert_eq!((short.bytes(), after(&mut short, 1)), (15, None));
        assert_eq!(after(&mut short, 2).as_deref(), Some(&all[30..]));
        let mut old = recent(now);
        old.forget_older(Duration::from_secs(5), now + Duration::from_secs(11));
        assert_eq!((old.bytes(), after(&mut old, 0)), (15, None));
        old.forget_older(Duration::from_secs(5), now + Duration::from_secs(60));
        assert_eq!((old.bytes(), after(&mut old, 2)), (0, None));
        assert_eq!(after(&mut old, 3).as_deref(), Some(&b""[..]), "nothing is missing");
    }

    // HT-8: what was given a moment ago, and only that
    #[test]
    fn what_was_given_late_is_given_again() {
        let now = Instant::now();
        let again = |since: u64| recent(now).again_since(now + Duration::from_secs(since), now).len();
        assert_eq!((again(0), again(1), again(11)), (2, 1, 0));
    }
}
