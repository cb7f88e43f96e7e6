//! What a keeper does with a program's stdout: which bytes it takes out of the pipe, and which it retains.
//!
//! Sans-IO. Positions are bytes of stdout since the start. Every byte is in exactly one of three places: in the pipe, from
//! `consumed` on; retained here, below that; settled, below the retained ones. A controller reads the pipe without taking
//! anything out of it and says how far it has read; nothing beyond that is consumed while it is there. Invariant: as much
//! is retained as the bounds allow, and `consumed <= read` as long as there is a controller. Without one, a line may go
//! beyond the first bound only if nothing but that line is retained; with one, whatever it has read may: it may have to
//! read on before it can settle anything.

use std::collections::VecDeque;

/// Bytes in one piece of what is retained, at most.
const PIECE: usize = 64 * 1024;
/// Bytes taken at once beyond the bound: so much of the next line may come with the end of one.
const BEYOND: usize = 4 * 1024;

/// What is to be taken out of the pipe next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// So many bytes, which nothing needs any more.
    Discard(usize),
    /// So many bytes, which are to be retained.
    Retain(usize),
}

/// Bytes that are retained, in the order in which they came. Read where they stay, since a copy would be felt.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    filled: usize,
}

impl Piece {
    fn is_full(&self) -> bool {
        self.filled == self.bytes.len()
    }
}

#[derive(Debug)]
pub(super) struct Output {
    /// Up to here everything is settled.
    committed: u64,
    consumed: u64,
    /// Up to here a controller has read. Without one: no limit.
    read: Option<u64>,
    pieces: VecDeque<Piece>,
    /// Pieces that are settled, for those to come: while a program writes much, pieces come and go.
    spare: Vec<Piece>,
    /// Bytes of the first piece that are settled.
    settled: usize,
    retained: usize,
    bound: usize,
    /// Bytes beyond the bound.
    line: usize,
    /// Up to here whole lines were consumed.
    lines: u64,
    /// Nothing more can come.
    is_over: bool,
}

/// A controller said what cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Impossible;

impl Output {
    pub(super) fn new(bound: usize) -> Self {
        Self {
            committed: 0,
            consumed: 0,
            read: Some(0),
            pieces: VecDeque::new(),
            spare: Vec::new(),
            settled: 0,
            retained: 0,
            bound,
            line: 0,
            lines: 0,
            is_over: false,
        }
    }

    /// Retains at most `bound` bytes, and at most `line` beyond.
    pub(super) fn bound_to(&mut self, bound: usize, line: usize) {
        (self.bound, self.line) = (bound, line);
    }

    /// How much more may be retained.
    fn free(&self) -> usize {
        let all = self.bound.saturating_add(self.line).saturating_sub(self.retained);
        if !self.is_detached() {
            return all;
        }
        let has_line = self.lines > self.consumed - self.retained as u64;
        match self.bound.saturating_sub(self.retained) {
            0 if has_line => 0,
            0 => all.min(BEYOND),
            free => free,
        }
    }

    /// A controller has read up to `read`, and nothing below `committed` is needed any more. What is to be consumed for it
    /// comes from [`next`](Self::next).
    pub(super) fn told(&mut self, read: u64, committed: u64) -> Result<(), Impossible> {
        if committed > read || self.read.is_none() {
            return Err(Impossible);
        }
        self.read = self.read.max(Some(read));
        self.committed = self.committed.max(committed);
        self.settle();
        Ok(())
    }

    /// The controller is gone.
    pub(super) fn detach(&mut self) {
        self.read = None;
    }

    /// There is a new controller, which is given all that is retained.
    pub(super) fn attach(&mut self) {
        // Ahead only if the last one said more than there was.
        self.committed = self.committed.min(self.consumed);
        self.read = Some(self.consumed);
    }

    pub(super) fn is_detached(&self) -> bool {
        self.read.is_none()
    }

    /// What is to be taken next, if anything.
    pub(super) fn next(&self) -> Option<Take> {
        self.within(self.free())
    }

    /// The same without regard to the bound: the program has ended, and nothing but what fits into a pipe can come.
    pub(super) fn next_of_the_rest(&self) -> Option<Take> {
        self.within(PIECE)
    }

    fn within(&self, room: usize) -> Option<Take> {
        if self.is_over {
            return None;
        }
        let end = self.read.unwrap_or(u64::MAX);
        let needless = self.committed.min(end).saturating_sub(self.consumed);
        if needless > 0 {
            return Some(Take::Discard(usize::try_from(needless).unwrap_or(usize::MAX)));
        }
        let wanted = usize::try_from(end.saturating_sub(self.consumed)).unwrap_or(usize::MAX);
        let wanted = wanted.min(room).min(PIECE);
        (wanted > 0).then_some(Take::Retain(wanted))
    }

    /// So many bytes were thrown away.
    pub(super) fn discarded(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
    }

    /// Room for what is to be retained: not empty, and at most `wanted` bytes.
    pub(super) fn room(&mut self, wanted: usize) -> &mut [u8] {
        if self.pieces.back().is_none_or(Piece::is_full) {
            // Zeroed memory of this size is given as it is used.
            let piece = self.spare.pop().unwrap_or_else(|| Piece { bytes: vec![0; PIECE], filled: 0 });
            self.pieces.push_back(piece);
        }
        let last = self.pieces.back_mut().expect("there is one");
        let end = (last.filled + wanted).min(last.bytes.len());
        &mut last.bytes[last.filled..end]
    }

    /// So many bytes were taken into that room.
    pub(super) fn retain(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
        self.retained += bytes;
        if let Some(last) = self.pieces.back_mut() {
            let new = &last.bytes[last.filled..last.filled + bytes];
            if let Some(end) = new.iter().rposition(|byte| *byte == b'\n') {
                self.lines = self.consumed - (bytes - end - 1) as u64;
            }
            last.filled += bytes;
        }
    }

    /// No writer is left, and the pipe is empty.
    pub(super) fn over(&mut self) {
        self.is_over = true;
    }

    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// How much is retained.
    pub(super) fn retained(&self) -> usize {
        self.retained
    }

    /// What is retained, from `offset` on: as much of it as lies in one piece.
    pub(super) fn retained_from(&self, offset: usize) -> &[u8] {
        let mut offset = offset + self.settled;
        for piece in &self.pieces {
            if offset < piece.filled {
                return &piece.bytes[offset..piece.filled];
            }
            offset -= piece.filled;
        }
        &[]
    }

    /// Drops what is settled.
    fn settle(&mut self) {
        let first = self.consumed - self.retained as u64;
        let settled = self.committed.saturating_sub(first).min(self.retained as u64);
        let settled = usize::try_from(settled).expect("it is held");
        self.retained -= settled;
        self.settled += settled;
        while let Some(mut first) = self.pieces.pop_front_if(|first| first.filled <= self.settled) {
            self.settled -= first.filled;
            first.filled = 0;
            self.spare.push(first);
        }
        if self.pieces.is_empty() {
            // A program that says little keeps no room for what it said.
            (self.pieces, self.spare) = Default::default();
        }
    }
}
