//! The whole window of a terminal, for as long as something is watched in it.
//!
//! Invariant: dropped, it gives the screen back as it was: what was there, the cursor, and lines that wrap.

use crate::streams::{stdout, window};
use std::io::{self, Write};

/// The other screen; no cursor; long lines are cut.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// A window that does not tell its size.
const SIZE: (usize, usize) = (80, 24);

/// The window of stdout.
pub(super) struct Window {
    entered: bool,
}

impl Window {
    pub(super) fn open() -> io::Result<Self> {
        let mut window = Self { entered: false };
        window.enter()?;
        Ok(window)
    }

    pub(super) fn enter(&mut self) -> io::Result<()> {
        self.entered = true;
        put(ENTER)
    }

    pub(super) fn leave(&mut self) -> io::Result<()> {
        self.entered = false;
        put(LEAVE)
    }

    /// Draws the lines that `make` makes for the columns there are; rows below the window are left out.
    pub(super) fn draw(&self, make: impl FnOnce(usize) -> Vec<String>) -> io::Result<()> {
        let (columns, rows) = window().unwrap_or(SIZE);
        put(&frame(&make(columns), rows))
    }
}

/// One picture, over the one before.
fn frame(lines: &[String], rows: usize) -> String {
    let mut frame = String::from("\x1b[H");
    for (row, line) in lines.iter().take(rows).enumerate() {
        if row > 0 {
            frame.push_str("\r\n");
        }
        frame.push_str(line);
        frame.push_str("\x1b[K");
    }
    frame.push_str("\x1b[J");
    frame
}

fn put(text: &str) -> io::Result<()> {
    let mut out = stdout();
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.entered {
            // A terminal that is gone has no screen.
            let _gone = self.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: acpd top fits the window
    #[test]
    fn a_picture_fits_the_rows() {
        let lines: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(frame(&lines, 2), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
        assert_eq!(frame(&lines, 9), "\x1b[Ha\x1b[K\r\nb\x1b[K\r\nc\x1b[K\x1b[J");
    }
}
