//! What a decision of a viewer leads to, as data.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Bytes after which lines are handed to the transport.
pub(super) const PIECE: usize = 256 * 1024;

/// Lines of fewer bytes are cheaper to copy than to hand over by themselves.
const SMALL: usize = 16 * 1024;

/// Something that the shell does.
#[derive(Debug)]
pub(super) enum Effect<T> {
    /// Writes lines.
    Write(Bytes),
    /// Writes an answer, and tells that it was written.
    Answer { body: Body, delivery: T },
    /// Joins where the client attached anew: takes a seat there if it is live, and opens its cursor or goes on with the one
    /// that is open.
    Join { opens_cursor: bool },
    /// Leaves the seat among the session's viewers.
    LeaveSeat,
    /// Lets go of the session's run, seat and all.
    LeaveRun,
    /// Drops the cursor.
    DropCursor,
    /// Asks how the run ended.
    AwaitEnd,
    /// So many attachments are over: their run has ended, or the client has left.
    Finished { attachments: u64 },
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// What was handed in.
    Given,
    /// How the run ended that was asked: what the answer stands behind was not recorded.
    EndOfRun,
}

/// Effects in order. Lines are gathered, so that the transport gets many at once.
#[derive(Debug)]
pub(super) struct Effects<T> {
    list: VecDeque<Effect<T>>,
    lines: BytesMut,
}

impl<T> Effects<T> {
    /// With room for so many bytes of lines.
    pub(super) fn with_room(bytes: usize) -> Self {
        Self { list: VecDeque::new(), lines: BytesMut::with_capacity(bytes) }
    }

    /// Where lines are written, behind all effects so far.
    pub(super) fn lines(&mut self) -> &mut BytesMut {
        &mut self.lines
    }

    /// Adds lines that others may have, too.
    pub(super) fn add(&mut self, lines: &Bytes) {
        if lines.len() < SMALL {
            self.lines.extend_from_slice(lines);
        } else {
            self.push(Effect::Write(lines.clone()));
        }
    }

    pub(super) fn push(&mut self, effect: Effect<T>) {
        self.flush();
        self.list.push_back(effect);
    }

    /// Lets no more lines be gathered.
    pub(super) fn flush(&mut self) {
        if !self.lines.is_empty() {
            self.list.push_back(Effect::Write(self.lines.split().freeze()));
        }
    }

    /// The next effect; None while there are only lines, and few of them.
    pub(super) fn next_due(&mut self) -> Option<Effect<T>> {
        if self.list.is_empty() && self.lines.len() >= PIECE {
            self.flush();
        }
        self.list.pop_front()
    }
}
