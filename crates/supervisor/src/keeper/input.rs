//! What waits for a program's stdin, in frames that have come whole.
//!
//! Sans-IO. Invariant: each frame goes to stdin once, whole and in order, or, when the program reads no more, nowhere.
//! Not here: how much may wait, which is for the daemon to heed; it is told what is done with.

use std::collections::VecDeque;
use tokio_util::bytes::{Buf, Bytes};

/// The daemon is told after so many bytes.
const TELL_AFTER: u64 = 256 * 1024;
/// More than any daemon leaves waiting, and a frame of the longest line.
const MOST: u64 = 2 << 30;

#[derive(Debug, Default)]
pub(super) struct Input {
    waiting: VecDeque<Waiting>,
    /// Bytes of whole frames that wait.
    undrained: u64,
    /// Bytes of frames that are done with and of which the daemon was not told.
    untold: u64,
    state: State,
}

#[derive(Debug)]
struct Waiting {
    bytes: Bytes,
    /// Bytes of the whole frame.
    cost: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// What waits is still to be written.
    Closing,
    Closed,
}

impl Input {
    /// Takes bytes for stdin, out of a frame of `cost` bytes; false when that is more than ever may wait.
    #[must_use]
    pub(super) fn accept(&mut self, bytes: Bytes, cost: usize) -> bool {
        let cost = cost as u64;
        if self.undrained + cost > MOST {
            return false;
        }
        if self.state != State::Open || bytes.is_empty() {
            self.untold += cost;
            return true;
        }
        self.undrained += cost;
        self.waiting.push_back(Waiting { bytes, cost });
        true
    }

    /// What is to be written next.
    pub(super) fn next(&self) -> Option<&[u8]> {
        self.waiting.front().map(|first| first.bytes.as_ref())
    }

    /// So many bytes of it were written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        let Some(first) = self.waiting.front_mut() else { return };
        first.bytes.advance(bytes);
        if first.bytes.is_empty() {
            self.undrained -= first.cost;
            self.untold += first.cost;
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
        }
    }

    /// Nothing more is taken; what waits is still written.
    pub(super) fn close(&mut self) {
        if self.state == State::Open {
            self.state = State::Closing;
        }
    }

    /// The program reads no more: what waits is of no use.
    pub(super) fn no_reader(&mut self) {
        self.state = State::Closed;
        self.waiting = VecDeque::new();
        self.untold += std::mem::take(&mut self.undrained);
    }

    /// Whether our end of stdin is to be closed.
    pub(super) fn is_to_close(&self) -> bool {
        self.state != State::Open && self.waiting.is_empty()
    }

    /// Whether the program cannot be written to.
    pub(super) fn is_closed(&self) -> bool {
        self.state != State::Open
    }

    /// Bytes of frames that are not done with, as the daemon counts.
    pub(super) fn undrained(&self) -> u64 {
        self.undrained
    }

    /// What the daemon is to be told now.
    pub(super) fn take_told(&mut self) -> Option<u64> {
        (self.untold >= TELL_AFTER).then(|| std::mem::take(&mut self.untold))
    }

    /// There is a new controller, which is told of the rest.
    pub(super) fn attach(&mut self) {
        self.untold = 0;
    }
}
