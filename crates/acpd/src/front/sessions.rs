//! How far the client has seen each session that it is attached to.
//!
//! Pure. Invariant: of each event it is told all or nothing, once, in order; what a replay tells is counted by itself.

use bytes::Bytes;
use std::collections::BTreeMap;

/// A session.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// The client is attached to it. Else it is about to be, by a request that is open.
    pub(super) is_attached: bool,
    /// The last event that the client was told, or that it does not want to be told.
    pub(super) cursor: u64,
    replay: Replay,
    /// Lines of an event of which more is to come.
    partial: Vec<Bytes>,
    /// The end of the run, which waits for answers that belong before it.
    held: Option<(u64, Bytes)>,
}

/// What is replayed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Replay {
    #[default]
    Nothing,
    /// It was asked for.
    Asked,
    /// It has come up to this event.
    At(u64),
}

/// Which event a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub(super) struct Position {
    pub(super) seq: u64,
    #[serde(default)]
    pub(super) more: bool,
}

impl Session {
    /// A load was asked for.
    pub(super) fn asks_replay(&mut self) {
        self.replay = match self.is_attached {
            true => Replay::Asked,
            false => Replay::At(0),
        };
    }

    /// Whether it is attached to again where it was: not when a replay that has begun is asked for again.
    pub(super) fn goes_on(&self) -> bool {
        self.is_attached && !matches!(self.replay, Replay::At(_))
    }

    /// Takes a line of an event: what the client is told now.
    pub(super) fn take(&mut self, position: Position, line: Bytes) -> Vec<Bytes> {
        if self.replay == Replay::Asked && position.seq <= self.cursor {
            self.replay = Replay::At(0);
        }
        let told = match &mut self.replay {
            Replay::At(told) => told,
            Replay::Nothing | Replay::Asked => &mut self.cursor,
        };
        if position.seq <= *told {
            return Vec::new();
        }
        self.partial.push(line);
        if position.more {
            return Vec::new();
        }
        *told = position.seq;
        std::mem::take(&mut self.partial)
    }

    /// There is no replay after all. Whether it is attached.
    pub(super) fn is_not_replayed(&mut self) -> bool {
        self.replay = Replay::Nothing;
        self.is_attached
    }

    /// Whether an event is one that the client was told.
    pub(super) fn knows(&self, seq: u64) -> bool {
        self.replay == Replay::Nothing && seq <= self.cursor
    }

    /// It was asked what this event is about, or has been asked before.
    pub(super) fn saw(&mut self, seq: u64) {
        if !matches!(self.replay, Replay::At(_)) {
            self.cursor = self.cursor.max(seq);
        }
    }

    /// The end of the run is told later.
    pub(super) fn hold(&mut self, seq: u64, line: Bytes) {
        self.held = Some((seq, line));
    }

    /// The end that was held.
    pub(super) fn release(&mut self) -> Option<Bytes> {
        let (seq, line) = self.held.take()?;
        self.cursor = self.cursor.max(seq);
        Some(line)
    }

    /// The client is attached, and has seen all up to this event, or does not want to.
    pub(super) fn attached(&mut self, seq: u64) {
        (self.is_attached, self.replay) = (true, Replay::Nothing);
        self.cursor = self.cursor.max(seq);
    }

    /// The link is lost: what was not told whole comes again.
    pub(super) fn lost(&mut self) {
        self.partial.clear();
        self.held = None;
    }
}

/// All of them.
pub(super) type Sessions = BTreeMap<String, Session>;

#[cfg(test)]
mod tests {
    use super::*;

    fn take(session: &mut Session, events: &[(u64, bool)]) -> usize {
        let position = |(seq, more): &(u64, bool)| Position { seq: *seq, more: *more };
        events.iter().map(|event| session.take(position(event), Bytes::new()).len()).sum()
    }

    // contract 7.3: of each event the client is told all or nothing, once
    #[test]
    fn an_event_is_told_once_and_whole() {
        let mut session = Session::default();
        session.attached(4);
        assert_eq!(take(&mut session, &[(3, false), (4, false), (5, false), (5, false)]), 1);
        assert_eq!(take(&mut session, &[(7, true), (7, true)]), 0);
        session.lost();
        assert_eq!((session.cursor, session.goes_on()), (5, true));
        assert_eq!(take(&mut session, &[(7, true), (7, true), (7, false), (7, false)]), 3);
        session.hold(9, Bytes::new());
        assert!(session.cursor == 7 && session.release().is_some() && session.release().is_none());
        assert_eq!(session.cursor, 9);
    }

    // contract 7.3, SE-4: a replay that was cut goes on where it was, and so does what is live
    #[test]
    fn a_replay_goes_on_where_it_was() {
        let mut session = Session::default();
        session.asks_replay();
        assert_eq!(take(&mut session, &[(1, false), (2, false), (3, true)]), 2);
        session.lost();
        assert!(!session.goes_on());
        assert_eq!(take(&mut session, &[(1, false), (2, false), (3, true), (3, false)]), 2);
        session.attached(3);
        // Once more while it is attached: what is live comes before it begins.
        session.asks_replay();
        assert_eq!(take(&mut session, &[(4, false)]), 1);
        session.lost();
        assert!(session.goes_on() && session.cursor == 4);
        assert_eq!(take(&mut session, &[(5, false), (1, false), (2, false)]), 3);
        session.lost();
        assert!(!session.goes_on());
        assert_eq!(take(&mut session, &[(1, false), (2, false), (4, false)]), 1);
        session.attached(5);
        assert_eq!(take(&mut session, &[(5, false), (6, false)]), 1);
    }
}
