//! Pieces of logs in the archive: how a run of events becomes pieces, and comes out of them again.
//!
//! Invariant: what is read has each event once, in order, and only whole events; what an owner did not finish writing does not
//! count. Pure. Not here: what a run is packed from, and where pieces go.

use crate::record::Epoch;
use bytes::{Bytes, BytesMut};
use std::ops::RangeInclusive;

/// The most bytes of a piece; fewer where the engine takes no more in one write.
pub const MOST_BYTES: usize = 512 * 1024;

/// Events of one session in a row, packed by its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its first event.
    pub first: u64,
    /// Its last event.
    pub last: u64,
    /// Packed.
    pub bytes: Bytes,
}

/// A run of events of one session, or a part of one. What it says of itself is beside it, so that it can be judged unread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The claim under which it was written.
    pub epoch: Epoch,
    /// Its events. An empty run opens an epoch: behind it nothing of an older one is taken.
    pub first: u64,
    /// One before `first` where there are none.
    pub last: u64,
    /// Which piece of its run it is, from 0: an event may be longer than a piece.
    pub part: u32,
    /// How many pieces its run has.
    pub parts: u32,
    /// Packed.
    pub bytes: Bytes,
}

impl Piece {
    /// What opens an epoch behind the event `last`.
    pub fn opening(epoch: Epoch, last: u64) -> Self {
        Self { epoch, first: last + 1, last, part: 0, parts: 1, bytes: Bytes::new() }
    }

    /// The pieces of a run.
    pub fn of_run(epoch: Epoch, run: &Run) -> Vec<Self> {
        Self::of_run_within(epoch, run, MOST_BYTES)
    }

    /// The pieces of a run for an engine that takes so many bytes at most.
    pub fn of_run_within(epoch: Epoch, run: &Run, most_bytes: usize) -> Vec<Self> {
        let most_bytes = most_bytes.clamp(1, MOST_BYTES);
        let mut rest = run.bytes.clone();
        let mut parts = vec![rest.split_to(rest.len().min(most_bytes))];
        while !rest.is_empty() {
            parts.push(rest.split_to(rest.len().min(most_bytes)));
        }
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let piece =
            |(part, bytes)| Self { epoch, first: run.first, last: run.last, part, parts: count, bytes };
        (0..).zip(parts).map(piece).collect()
    }

    /// Its events; empty for what opens an epoch.
    pub fn events(&self) -> RangeInclusive<u64> {
        self.first..=self.last
    }

    /// Whether its run is whole with it.
    fn is_end(&self) -> bool {
        self.part.saturating_add(1) >= self.parts
    }

    /// The last event that is whole where this is the last piece.
    pub fn whole_until(&self) -> u64 {
        if self.is_end() { self.last } else { self.first.saturating_sub(1) }
    }
}

/// A place in the archive of one session: of the last piece that is there. 0: nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// Runs out of pieces, as they are read one by one.
#[derive(Debug, Default)]
pub struct Assembly {
    /// The last piece of a run that is not whole, and the bytes of all of it.
    begun: Option<(Piece, BytesMut)>,
}

impl Assembly {
    /// Takes the next piece; the run that is whole with it. What has no begin or no end is no run.
    pub fn take(&mut self, piece: Piece) -> Option<Run> {
        let begun = self.begun.take().filter(|(before, _)| {
            Piece { part: before.part + 1, bytes: piece.bytes.clone(), ..before.clone() } == piece
        });
        let (first, last, is_end) = (piece.first, piece.last, piece.is_end());
        let bytes = match begun {
            None if piece.part > 0 || piece.events().is_empty() => return None,
            None if is_end => piece.bytes,
            begun => {
                let mut bytes = begun.map(|(_, bytes)| bytes).unwrap_or_default();
                bytes.extend_from_slice(&piece.bytes);
                if !is_end {
                    self.begun = Some((piece, bytes));
                    return None;
                }
                bytes.freeze()
            }
        };
        Some(Run { first, last, bytes })
    }
}

/// How an owner goes on with the archive of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoesOn {
    /// Behind a piece, with the event after this one.
    From {
        /// The piece.
        behind: Position,
        /// The last event that is there.
        after: u64,
        /// Whether its epoch is still to be opened.
        opens: bool,
    },
    /// Not at all: a later claim has written there.
    Behind(Epoch),
}

/// How the owner by a claim goes on behind the last piece that is there; where none is, the archive has kept what it was to keep of the
/// events up to `told`.
pub fn goes_on(last: Option<(&Piece, Position)>, claim: Epoch, told: u64) -> GoesOn {
    match last {
        None => GoesOn::From { behind: Position::default(), after: told, opens: false },
        Some((piece, _)) if piece.epoch > claim => GoesOn::Behind(piece.epoch),
        Some((piece, behind)) => {
            GoesOn::From { behind, after: piece.whole_until(), opens: piece.epoch < claim }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, last: u64, bytes: usize) -> Run {
        let bytes = (0..bytes).map(|at| (at / MOST_BYTES) as u8).collect::<Vec<_>>().into();
        Run { first, last, bytes }
    }

    fn assembled(pieces: impl IntoIterator<Item = Piece>) -> Vec<Run> {
        let mut assembly = Assembly::default();
        pieces.into_iter().filter_map(|piece| assembly.take(piece)).collect()
    }

    // design fleet, log archive: blocks of 512 KiB at most, whatever the length of an event
    #[test]
    fn a_run_of_any_length_comes_back() {
        for (bytes, count) in [(1, 1), (MOST_BYTES, 1), (MOST_BYTES + 1, 2), (3 * MOST_BYTES, 3)] {
            let pieces = Piece::of_run(Epoch(1), &run(4, 9, bytes));
            assert_eq!(pieces.len(), count, "{bytes}");
            assert!(pieces.iter().all(|piece| piece.bytes.len() <= MOST_BYTES));
            let whole: Vec<_> = pieces.iter().map(Piece::whole_until).collect();
            assert_eq!(whole.split_last(), Some((&9, &[3].repeat(count - 1)[..])));
            assert_eq!(assembled(pieces), [run(4, 9, bytes)], "{bytes}");
        }
        // An engine that takes less gets more of them.
        for most in [0, 1, 100, 60_000] {
            let pieces = Piece::of_run_within(Epoch(1), &run(4, 9, 1_000), most);
            assert!(pieces.iter().all(|piece| (1..=most.max(1)).contains(&piece.bytes.len())), "{most}");
            assert_eq!(
                (pieces.len(), assembled(pieces)),
                (1_000_usize.div_ceil(most.max(1)), vec![run(4, 9, 1_000)])
            );
        }
    }

    // design fleet, log archive: what an owner that was killed or replaced has not finished does not count
    #[test]
    fn half_a_run_is_none() {
        let long = Piece::of_run(Epoch(1), &run(1, 2, 3 * MOST_BYTES));
        let short = Piece::of_run(Epoch(1), &run(1, 1, 5));
        let again = Piece::of_run(Epoch(2), &run(1, 2, 2 * MOST_BYTES));
        let half = &long[..2];
        for (what, pieces, whole) in [
            ("begun again", [half, &short].concat(), vec![run(1, 1, 5)]),
            (
                "by another owner",
                [half, &[Piece::opening(Epoch(2), 0)], &again].concat(),
                vec![run(1, 2, 2 * MOST_BYTES)],
            ),
            ("by another owner's end", [half, &again[1..]].concat(), vec![]),
            ("of which the begin was removed", long[1..].to_vec(), vec![]),
            ("of which a part is not there", [&long[..1], &long[2..]].concat(), vec![]),
        ] {
            assert_eq!(assembled(pieces), whole, "{what}");
        }
    }

    // design fleet, fence: an owner goes on behind what is there, unless a later claim has written
    #[test]
    fn an_owner_goes_on_behind_the_last_piece() {
        let mine = Epoch(5);
        let last = |piece: Piece| goes_on(Some((&piece, Position(7))), mine, 1);
        let from = |after, opens| GoesOn::From { behind: Position(7), after, opens };
        let pieces = |epoch| Piece::of_run(Epoch(epoch), &run(4, 9, MOST_BYTES + 1));
        assert_eq!(goes_on(None, mine, 3), GoesOn::From { behind: Position(0), after: 3, opens: false });
        assert_eq!(last(pieces(5).remove(1)), from(9, false));
        assert_eq!(last(pieces(5).remove(0)), from(3, false), "its rest was not written");
        assert_eq!(last(pieces(4).remove(1)), from(9, true));
        assert_eq!(last(Piece::opening(mine, 9)), from(9, false));
        assert_eq!(last(Piece::opening(Epoch(6), 9)), GoesOn::Behind(Epoch(6)));
    }
}
