//! More than one turn on the screen: what is written below, what was said, and the next turn.

use std::io::{self, Write};
use std::time::Duration;

use super::page::{Block, Paragraph};
use super::wrap::Wrap;
use super::{Calls, Phase, Tally, View};
use crate::clean::{line, verbatim};
use crate::editor::Input;
use unicode_width::UnicodeWidthStr;

/// Rows that are shown of a prompt; it may be a file that was pasted.
const ROWS: usize = 20;
/// Characters of a row that are shown.
const WIDTH: usize = 1_000;

impl<O: Write, E: Write> View<O, E> {
    /// Shows the line that the person writes, on a screen of so many columns; or none any more.
    pub(crate) fn input(&mut self, input: Option<(Input, usize)>) -> io::Result<()> {
        self.page.set_input(input)
    }

    /// The screen shows something else now, and is ours again.
    pub(crate) fn drawn_anew(&mut self) -> io::Result<()> {
        match self.asking {
            Some(_) => self.back_on_screen(),
            None => {
                self.page.forget_drawn();
                Ok(())
            }
        }
    }

    /// Another turn begins.
    pub(crate) fn turn_begins(&mut self) {
        (self.calls, self.tally, self.message) = (Calls::default(), Tally::default(), None);
        (self.phase, self.elapsed) = (Phase::Turn, Duration::ZERO);
    }

    /// A prompt: the person's own, or that of another client by its name.
    pub(crate) fn said(&mut self, by: Option<&str>, text: &str) -> io::Result<()> {
        let paint = self.page.paint();
        let by = by.map(|by| format!("{}: ", line(by, 60))).unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        let mark = |at: usize| match at {
            0 => format!("{} {by}", paint.kind("›")),
            _ => "  ".to_owned(),
        };
        let columns = self.page.columns().unwrap_or(usize::MAX);
        let row = |(at, row): (usize, &&str)| {
            let taken = if at == 0 { 2 + by.width() } else { 2 };
            let mut wrap = Wrap::new(taken, 2);
            let row = wrap.piece(&verbatim(row, WIDTH), columns) + &wrap.finish(columns);
            format!("{}{row}", mark(at))
        };
        let mut rows: Vec<String> = all.iter().take(ROWS).enumerate().map(row).collect();
        if let Some(more) = all.len().checked_sub(ROWS).filter(|more| *more > 0) {
            rows.push(paint.dim(format_args!("  … {more} more lines")));
        }
        self.page.block(Block::Input, Paragraph::Ends, &rows)
    }

    /// Whether the screen can be changed.
    pub(crate) fn is_terminal(&self) -> bool {
        self.page.is_terminal()
    }

    /// Whether a question is on the screen.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Whether there may be colours.
    pub(crate) fn is_coloured(&self) -> bool {
        self.page.is_coloured()
    }

    /// The options of the question that is asked, for a screen that is not changed.
    pub(crate) fn menu(&self) -> Vec<String> {
        self.asking.as_ref().map(super::asking::Asking::options).unwrap_or_default()
    }

    /// The same where an answer is a line.
    pub(crate) fn plain_menu(&self) -> Vec<String> {
        self.asking.as_ref().map(super::asking::Asking::plain_options).unwrap_or_default()
    }

    /// Lines that were shown before, as they were.
    pub(crate) fn past(&mut self, lines: &[String]) -> io::Result<()> {
        match lines {
            [] => Ok(()),
            lines => self.page.block(Block::Answer, Paragraph::Ends, lines),
        }
    }

    /// Lines of acpd's own that belong together.
    pub(crate) fn told(&mut self, lines: &[String]) -> io::Result<()> {
        let paint = self.page.paint();
        let lines: Vec<String> = lines.iter().map(|one| paint.dim(verbatim(one, 2_000))).collect();
        match lines.is_empty() {
            true => Ok(()),
            false => self.page.block(Block::Note, Paragraph::GoesOn, &lines),
        }
    }
}
