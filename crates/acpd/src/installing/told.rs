//! What is told while something is installed: lines on stderr, and on a terminal one more that moves.

use crate::streams::{remark, remark_over};
use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::time::Duration;
use tokio::time::Instant;

/// How often the line moves.
const STEP: Duration = Duration::from_millis(100);
/// Seconds between two lines where no line moves.
const SELDOM: u64 = 30;
const MIB: u64 = 1024 * 1024;

/// Tells a person who waits.
pub(crate) struct Told {
    is_terminal: bool,
    is_moving: Cell<bool>,
    next: Cell<Instant>,
}

impl Told {
    pub(crate) fn new() -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { is_terminal, is_moving: Cell::new(false), next: Cell::new(Instant::now()) }
    }

    /// A line that stays.
    pub(crate) fn line(&self, text: &str) {
        self.still();
        remark(text);
    }

    /// The line that moves, on a terminal.
    pub(crate) fn moving(&self, text: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.is_terminal && now >= self.next.get() {
            self.next.set(now + STEP);
            self.is_moving.set(true);
            remark_over(&text());
        }
    }

    /// For how long something takes already: each second on a terminal, elsewhere now and then.
    pub(crate) fn waiting(&self, what: &str, seconds: u64) {
        let text = || format!("{what} ... {seconds} s");
        match self.is_terminal {
            true => self.moving(text),
            false if seconds.is_multiple_of(SELDOM) => self.line(&text()),
            false => {}
        }
    }

    /// How many bytes of how many.
    pub(crate) fn bytes(&self, what: &str, done: u64, all: Option<u64>) {
        self.moving(|| match all {
            Some(all) => format!("{what} {} of {} MiB", done / MIB, all.div_ceil(MIB)),
            None => format!("{what} {} MiB", done / MIB),
        });
    }

    /// Takes the moving line away.
    pub(crate) fn still(&self) {
        if self.is_moving.replace(false) {
            remark_over("");
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.still();
    }
}
