//! Pieces of logs in the archive.

use crate::record::Epoch;
use bytes::Bytes;
use std::ops::RangeInclusive;

/// The most bytes of a piece.
pub const MOST_BYTES: usize = 512 * 1024;

/// A run of events of one session, packed by the log. What it says of itself is beside it, so that it can be judged unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The claim under which it was written.
    pub epoch: Epoch,
    /// Its events. An empty run opens an epoch: behind it nothing of an older one is taken.
    pub first: u64,
    /// One before `first` where there are none.
    pub last: u64,
    /// Packed.
    pub bytes: Bytes,
}

impl Piece {
    /// What opens an epoch behind the event `last`.
    pub fn opening(epoch: Epoch, last: u64) -> Self {
        Self { epoch, first: last + 1, last, bytes: Bytes::new() }
    }

    /// Its events; empty for what opens an epoch.
    pub fn events(&self) -> RangeInclusive<u64> {
        self.first..=self.last
    }
}

/// A place in the archive of one session: of the last piece that is there. 0: nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);
