//! What a command writes, piece by piece, for a reader that keeps a log of it.
//!
//! A machine without IO and without a clock. It gathers what comes within a short time, holds a bounded amount
//! while the reader is slow, drops from the middle (what was told is told, the latest is kept) and counts what it
//! dropped. A budget keeps a command that floods for hours from filling the log.
//! Not here: the channel, and the final output.

use crate::text_queue::TextQueue;
use std::time::{Duration, Instant};

/// How fast and in what pieces output is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedPace {
    /// How long output is gathered before it is told. Default: 50 ms.
    pub interval: Duration,
    /// Bytes of one piece at most; that many are told without waiting. At least 4. Default: 64 KiB.
    pub piece: usize,
    /// Bytes held for a slow reader at most. Less than a piece and what one read can bring (192 KiB) would make
    /// quick readers miss something too. Default: 256 KiB.
    pub held: usize,
    /// Bytes that are told before the rate matters. Default: 4 MiB.
    pub burst: u64,
    /// Bytes a second that are told of a command that writes on and on. Default: 64 KiB.
    pub rate: u64,
}

impl Default for FeedPace {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(50),
            piece: 64 * 1024,
            held: 256 * 1024,
            burst: 4 * 1024 * 1024,
            rate: 64 * 1024,
        }
    }
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Bytes left out right before it.
    pub(crate) dropped: u64,
    pub(crate) text: String,
}

/// What is to be told of one command.
#[derive(Debug)]
pub(crate) struct Feed {
    pace: FeedPace,
    waiting: TextQueue,
    /// Since when the first byte of `waiting` waits.
    since: Instant,
    dropped: u64,
    /// Bytes that might be told at `counted`, as far as the budget goes.
    budget: u64,
    counted: Instant,
    ended: bool,
    /// Bytes that were told before they came again.
    known: u64,
}

impl Feed {
    pub(crate) fn new(pace: FeedPace, now: Instant) -> Self {
        Self::after(0, 0, pace, now)
    }

    /// For what comes behind `begin` bytes of text, where the first `told` were told before.
    pub(crate) fn after(told: u64, begin: u64, pace: FeedPace, now: Instant) -> Self {
        Self {
            pace,
            waiting: TextQueue::default(),
            since: now,
            dropped: begin.saturating_sub(told),
            budget: pace.burst,
            counted: now,
            ended: false,
            known: told.saturating_sub(begin),
        }
    }

    pub(crate) fn push(&mut self, text: &str, now: Instant) {
        let known = usize::try_from(self.known).unwrap_or(usize::MAX).min(text.len());
        self.known -= known as u64;
        let text = &text[text.ceil_char_boundary(known)..];
        if self.waiting.is_empty() {
            self.since = now;
        }
        self.waiting.push(text);
        self.dropped += self.waiting.shorten_to(self.pace.held) as u64;
    }

    /// Nothing more will come: what waits is due.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// From when on a piece may be told; None when nothing waits.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.waiting.is_empty() {
            return None;
        }
        if self.ended {
            return Some(self.since);
        }
        let full = self.waiting.len() >= self.pace.piece;
        let gathered = if full { self.since } else { self.since + self.pace.interval };
        let next = self.waiting.len().min(self.pace.piece) as u64;
        let missing = next.min(self.pace.burst).saturating_sub(self.budget);
        #[expect(clippy::cast_precision_loss, reason = "a piece and a rate are far below 2^52")]
        let saved = Duration::from_secs_f64(missing as f64 / self.pace.rate.max(1) as f64);
        Some(gathered.max(self.counted + saved))
    }

    /// Takes the piece that is due.
    pub(crate) fn take(&mut self, now: Instant) -> Piece {
        let text = self.waiting.take(self.pace.piece);
        let earned =
            u128::from(self.pace.rate) * now.saturating_duration_since(self.counted).as_micros() / 1_000_000;
        let earned = u64::try_from(earned).unwrap_or(u64::MAX);
        let budget = self.budget.saturating_add(earned).min(self.pace.burst);
        self.budget = budget.saturating_sub(text.len() as u64);
        (self.counted, self.since) = (now, now);
        Piece { dropped: std::mem::take(&mut self.dropped), text }
    }
}

#[cfg(test)]
mod tests;
