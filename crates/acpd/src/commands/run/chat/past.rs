//! What was before: the end of a session's history, as it was shown when it happened.
//!
//! Owned by the chat until it has caught up. Invariant: what is kept is bounded, unless all of it is wanted.

use super::telling::{Fact, Teller};
use crate::daemon::Event;
use crate::view::{Screen, View};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Events that are looked at for the end of the history.
pub(super) const EVENTS: u64 = 2_000;

/// How much is shown of what was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Much {
    /// So many lines.
    Lines(usize),
    All,
}

impl Much {
    /// The event behind which the history begins that is looked at, of so many.
    pub(super) fn after(self, events: u64) -> u64 {
        match self {
            Self::Lines(0) => events,
            Self::Lines(_) => events.saturating_sub(EVENTS),
            Self::All => 0,
        }
    }
}

/// The history so far.
pub(super) struct Past {
    /// The last event of it.
    pub(super) until: u64,
    view: View<Buffer, Buffer>,
    buffer: Buffer,
    much: Much,
    lines: VecDeque<String>,
    /// There is more before.
    cut: bool,
}

impl Past {
    pub(super) fn new(until: u64, after: u64, much: Much, colour: bool, cwd: &Path) -> Self {
        let (buffer, screen) = (Buffer::default(), Screen { terminal: false, colour, shared: true });
        let view = View::new(buffer.clone(), buffer.clone(), screen, Some(cwd.to_owned()));
        Self { until, view, buffer, much, lines: VecDeque::new(), cut: after > 0 }
    }

    pub(super) fn tell(&mut self, teller: &mut Teller, event: &Event) -> io::Result<Fact> {
        let fact = teller.tell(&mut self.view, event)?;
        self.take(false);
        Ok(fact)
    }

    /// The lines that are shown, and whether there is more before them.
    pub(super) fn finish(mut self) -> (Vec<String>, bool) {
        self.take(true);
        (self.lines.into(), self.cut)
    }

    /// Takes the lines that are whole; at the end, all.
    fn take(&mut self, all: bool) {
        let text = self.buffer.take(all);
        self.lines.extend(text.lines().map(str::to_owned));
        if let Much::Lines(most) = self.much {
            while self.lines.len() > most {
                self.lines.pop_front();
                self.cut = true;
            }
        }
    }
}

/// Text that is written by a view, and read here.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    /// Takes the whole lines out, or everything.
    fn take(&self, all: bool) -> String {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = match all {
            true => bytes.len(),
            false => bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let taken: Vec<u8> = bytes.drain(..whole).collect();
        String::from_utf8_lossy(&taken).into_owned()
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        self.take(true)
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &str) -> Event {
        let json = serde_json::json!({"seq": 1, "kind": "update", "message": {"params": {"update":
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}}});
        Event::read(&json.to_string()).expect("an event")
    }

    // contract 7.1: attach shows the end of the history; how much of it can be chosen
    #[test]
    fn the_end_of_the_history_is_kept() {
        for (much, lines, cut) in [
            (Much::Lines(2), vec!["2", "3"], true),
            (Much::Lines(9), vec!["1", "2", "3"], false),
            (Much::Lines(0), vec![], true),
            (Much::All, vec!["1", "2", "3"], false),
        ] {
            let mut past = Past::new(1, 0, much, false, Path::new("/"));
            let mut teller = Teller::default();
            for text in ["1\n2", "\n", "3"] {
                past.tell(&mut teller, &chunk(text)).expect("it is kept");
            }
            assert_eq!(past.finish(), (lines.into_iter().map(str::to_owned).collect(), cut), "{much:?}");
        }
        for (much, events, after) in [
            (Much::Lines(20), 5_000, 3_000),
            (Much::Lines(20), 5, 0),
            (Much::Lines(0), 5, 5),
            (Much::All, 5_000, 0),
        ] {
            assert_eq!(much.after(events), after);
        }
    }
}
