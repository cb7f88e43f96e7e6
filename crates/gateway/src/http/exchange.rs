//! Whose turn it is on a connection of HTTP/1.1: what its client owes, and what it means when it says no more.
//!
//! Pure; time comes in. The socket reports the bytes, the service the requests.

use std::time::Duration;
use tokio::time::Instant;

/// How long a client may take for the whole head of a request, from its first byte; for the first one, or for the
/// preface of HTTP/2, from when it was accepted.
const HEAD: Duration = Duration::from_secs(10);
/// How long an answer is worked on for a client that has closed its half of the connection: it may wait for it, or it
/// may be gone, which looks the same.
const HALF_CLOSED: Duration = Duration::from_secs(5);
/// What a client that speaks HTTP/2 begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    turn: Turn,
    /// Bytes of the preface that came; None once it cannot be one any more.
    preface: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The client's: a head is due when it has begun.
    Head { begun: Option<Instant> },
    /// Ours. Since `closed` the client has said no more.
    Answer { streams: bool, closed: Option<Instant> },
    /// Another protocol, which has bounds of its own.
    Other,
}

/// What the end of a client's words means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is over.
    Over,
    /// The client may wait for its answer.
    Waits,
}

/// What a client owes until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) since: Instant,
    pub(super) patience: Duration,
}

impl Exchange {
    /// With a client that was accepted just now.
    pub(super) fn new(now: Instant) -> Self {
        Self { turn: Turn::Head { begun: Some(now) }, preface: Some(0) }
    }

    /// These bytes came.
    pub(super) fn heard(&mut self, bytes: &[u8], now: Instant) {
        if let Turn::Head { begun } = &mut self.turn {
            begun.get_or_insert(now);
        }
        if let Some(seen) = self.preface {
            let rest = &PREFACE[seen..];
            let new = bytes.len().min(rest.len());
            self.preface = (bytes[..new] == rest[..new]).then_some(seen + new);
            if self.preface == Some(PREFACE.len()) {
                self.turn = Turn::Other;
                self.preface = None;
            }
        }
    }

    /// The head of a request is complete.
    pub(super) fn requested(&mut self) {
        if self.turn != Turn::Other {
            self.turn = Turn::Answer { streams: false, closed: None };
        }
    }

    /// The answer is a stream without an end of its own.
    pub(super) fn streaming(&mut self) {
        if let Turn::Answer { streams, .. } = &mut self.turn {
            *streams = true;
        }
    }

    /// Client and server have agreed on another protocol.
    pub(super) fn switched(&mut self) {
        self.turn = Turn::Other;
    }

    /// The answer is complete.
    pub(super) fn answered(&mut self) {
        if matches!(self.turn, Turn::Answer { .. }) {
            self.turn = Turn::Head { begun: None };
        }
    }

    /// The client says no more.
    pub(super) fn closed(&mut self, now: Instant) -> End {
        match &mut self.turn {
            // The body may be there and not yet taken; one that breaks off is known as such when the time is over. A reader
            // of a stream that closes has left: nothing else would show it before the next event.
            Turn::Answer { streams: false, closed } => {
                closed.get_or_insert(now);
                End::Waits
            }
            Turn::Answer { .. } | Turn::Head { .. } | Turn::Other => End::Over,
        }
    }

    /// What is due, if anything is.
    pub(super) fn due(&self) -> Option<Due> {
        match self.turn {
            Turn::Head { begun: Some(since) } => Some(Due { since, patience: HEAD }),
            Turn::Answer { closed: Some(since), .. } => Some(Due { since, patience: HALF_CLOSED }),
            Turn::Head { begun: None } | Turn::Answer { closed: None, .. } | Turn::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens, at a second.
    #[derive(Clone, Copy, Debug)]
    enum Happens {
        Heard(&'static str),
        Requested,
        Streaming,
        Switched,
        Answered,
        Closed(End),
    }
    use Happens::{Answered, Closed, Heard, Requested, Streaming, Switched};

    /// Until which second something is due at the end.
    fn due(story: &[(u64, Happens)]) -> Option<u64> {
        let begun = Instant::now();
        let mut exchange = Exchange::new(begun);
        for (second, happens) in story {
            let now = begun + Duration::from_secs(*second);
            match *happens {
                Heard(bytes) => exchange.heard(bytes.as_bytes(), now),
                Requested => exchange.requested(),
                Streaming => exchange.streaming(),
                Switched => exchange.switched(),
                Answered => exchange.answered(),
                Closed(end) => assert_eq!(exchange.closed(now), end, "{story:?}"),
            }
        }
        exchange.due().map(|due| (due.since + due.patience).duration_since(begun).as_secs())
    }

    const ASKED: (u64, Happens) = (1, Requested);

    // HT-12: the whole head is due 10 s after it began, the first one after the client came; nothing is due between
    // requests, while one is answered, or when another protocol is spoken
    #[test]
    fn a_head_is_due_when_it_has_begun() {
        for (story, expected) in [
            (&[][..], Some(10)),
            (&[(1, Heard("GET / HT")), (9, Heard("T"))], Some(10)),
            (&[(1, Heard("GET / HTTP/1.1\r\n\r\n")), ASKED], None),
            (&[ASKED, (5, Answered)], None),
            (&[ASKED, (5, Answered), (60, Heard("G")), (65, Heard("E"))], Some(70)),
            (&[ASKED, (50, Heard("body"))], None),
            (&[(1, Heard("PRI * HTTP/2.0\r\n\r\nSM\r\n\r"))], Some(10)),
            (&[(1, Heard("PRI * HTTP/2.0\r\n\r\n")), (2, Heard("SM\r\n\r\n"))], None),
            (&[(1, Heard("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore")), (2, Answered)], None),
            (&[(1, Heard("PRI * HTTP/1.1\r\n\r\nSM\r\n\r\n"))], Some(10)),
            (&[ASKED, (2, Switched), (2, Answered), (60, Heard("x"))], None),
        ] {
            assert_eq!(due(story), expected, "{story:?}");
        }
    }

    // HT-12: a client that closes its half behind a whole request may wait for the answer, for a while; one that reads
    // a stream, breaks off in a head, or owes nothing is gone
    #[test]
    fn a_client_that_closes_its_half_may_wait() {
        for (story, expected) in [
            (&[ASKED, (2, Closed(End::Waits)), (3, Closed(End::Waits))][..], Some(7)),
            (&[ASKED, (2, Closed(End::Waits)), (3, Answered), (3, Closed(End::Over))], None),
            (&[ASKED, (2, Closed(End::Waits)), (3, Streaming), (3, Closed(End::Over))], Some(7)),
            (&[ASKED, (2, Heard("body")), (2, Closed(End::Waits))], Some(7)),
            (&[ASKED, (2, Streaming), (9, Closed(End::Over))], None),
            (&[(1, Heard("GET")), (2, Closed(End::Over))], Some(10)),
            (&[ASKED, (2, Switched), (3, Closed(End::Over))], None),
        ] {
            assert_eq!(due(story), expected, "{story:?}");
        }
    }
}
