//! Puts text on the two streams so that it looks right: the answer on stdout, everything else on stderr.
//!
//! Owned by the view, which decides what is said. Invariants: no line breaks into another; the answer is written
//! as it comes and flushed; on a terminal, the *live* lines at the bottom (progress, open tool calls) are
//! taken away before anything is written and put back after. So are the rows of a line that the person writes (the
//! *input*), which are below them, and also below an answer in the middle of a line. Not here: what anything means.

use std::io::{self, Write};

use super::paint::{Paint, Screen};
use super::wrap::Wrap;
use crate::editor::Input;
use unicode_width::UnicodeWidthChar;

/// At most this many live lines; more would scroll on a small terminal and could not be taken back.
const LIVE_LINES: usize = 6;
/// Notes wait for the end of a line; beyond this the oldest are forgotten.
const WAITING_NOTES: usize = 32;

/// Kinds of text that are set apart by an empty line on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    Answer,
    Thought,
    Calls,
    Plan,
    Note,
    Question,
    Ending,
    Input,
}

/// Whether a block ends the paragraph of the answer it comes after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paragraph {
    /// The answer goes on in a new line, also in a file.
    Ends,
    /// A remark; the answer may go on where it was.
    GoesOn,
}

pub(super) struct Page<O, E> {
    pub(super) out: O,
    pub(super) err: E,
    screen: Screen,
    paint: Paint,
    /// The answer on stdout is in the middle of a line.
    out_open: bool,
    /// A thought on stderr is in the middle of a line.
    err_open: bool,
    last: Option<Block>,
    live: Vec<String>,
    /// What the live lines are.
    live_block: Block,
    drawn: usize,
    notes: Vec<String>,
    input: Option<Below>,
    /// What the answer is broken into rows by, while somebody writes below it.
    wrap: Wrap,
}

/// A line that the person writes, and what is above it.
#[derive(Default)]
struct Below {
    input: Input,
    columns: usize,
    /// Columns that the text in the middle of a line takes in its last row.
    column: usize,
    /// Rows from the first that is drawn down to the cursor.
    cursor_row: usize,
    /// A row was begun below the text in the middle of a line.
    below: bool,
}

impl<O: Write, E: Write> Page<O, E> {
    pub(super) fn new(out: O, err: E, screen: Screen) -> Self {
        Page {
            out,
            err,
            screen,
            paint: Paint::new(screen.colour),
            out_open: false,
            err_open: false,
            last: None,
            live: Vec::new(),
            live_block: Block::Calls,
            drawn: 0,
            notes: Vec::new(),
            input: None,
            wrap: Wrap::default(),
        }
    }

    /// Columns of the screen, while they are known.
    pub(super) fn columns(&self) -> Option<usize> {
        self.input.as_ref().map(|below| below.columns).filter(|columns| *columns > 0)
    }

    /// Shows a line that the person writes, on a screen of so many columns; or none any more.
    pub(super) fn set_input(&mut self, input: Option<(Input, usize)>) -> io::Result<()> {
        let unchanged = match (&self.input, &input) {
            (Some(shown), Some((input, columns))) => shown.input == *input && shown.columns == *columns,
            (None, None) => true,
            _ => false,
        };
        if !self.screen.terminal || (unchanged && self.drawn > 0) {
            return Ok(());
        }
        let taken = self.take_live();
        let column = self.input.as_ref().map_or(0, |below| below.column);
        self.input = input.map(|(input, columns)| Below { input, columns, column, ..Below::default() });
        let put = self.live_text();
        self.say(&(taken + &put))
    }

    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.screen.terminal
    }

    pub(super) fn is_coloured(&self) -> bool {
        self.screen.colour
    }

    /// Whether the answer is in the middle of a line.
    pub(super) fn answer_open(&self) -> bool {
        self.is_open()
    }

    /// A piece of the answer, clean.
    pub(super) fn answer(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if self.err_open {
            self.end_line(Paragraph::GoesOn)?;
        }
        let mut before = self.take_live();
        if self.screen.shared && !self.is_open() {
            self.separate(Block::Answer, &mut before);
        }
        self.say(&before)?;
        let shown = match self.columns() {
            Some(columns) => self.wrap.piece(text, columns),
            None => self.wrap.finish(usize::MAX) + text,
        };
        self.write_answer(&shown)?;
        if !self.is_open() {
            self.say_notes()?;
        }
        self.put_live()
    }

    fn write_answer(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        self.advance(text);
        self.out_open = !text.ends_with('\n');
        Ok(())
    }

    /// Whether the answer is in the middle of a line, on the screen or with a word that is held.
    fn is_open(&self) -> bool {
        self.out_open || self.wrap.is_holding()
    }

    /// Writes the word of the answer that waits for what follows it.
    fn write_held(&mut self) -> io::Result<()> {
        let held = self.wrap.finish(self.columns().unwrap_or(usize::MAX));
        self.write_answer(&held)
    }

    /// A piece of a thought, clean.
    pub(super) fn thought(&mut self, text: &str) -> io::Result<()> {
        let text = if self.last == Some(Block::Thought) { text } else { text.trim_start_matches('\n') };
        if text.is_empty() {
            return Ok(());
        }
        if self.screen.shared && self.is_open() {
            self.end_line(Paragraph::GoesOn)?;
        }
        let mut said = self.take_live();
        self.separate(Block::Thought, &mut said);
        for piece in text.split_inclusive('\n') {
            if !self.err_open {
                said.push_str(&self.paint.dim("┆ "));
                self.advance("┆ ");
            }
            let content = piece.trim_end_matches('\n');
            if !content.is_empty() {
                said.push_str(&self.paint.dim(content));
            }
            self.advance(piece);
            self.err_open = !piece.ends_with('\n');
            if !self.err_open {
                said.push('\n');
            }
        }
        self.say(&said)?;
        if !self.err_open {
            self.say_notes()?;
        }
        self.put_live()
    }

    /// Whole lines on stderr.
    pub(super) fn block(&mut self, block: Block, paragraph: Paragraph, lines: &[String]) -> io::Result<()> {
        self.end_line(paragraph)?;
        self.say_lines(block, lines)?;
        self.put_live()
    }

    fn say_lines(&mut self, block: Block, lines: &[String]) -> io::Result<()> {
        let mut said = self.take_live();
        self.separate(block, &mut said);
        lines.iter().for_each(|line| said.extend([line, "\n"]));
        self.say(&said)
    }

    /// A remark that can wait for the end of the line.
    pub(super) fn note(&mut self, line: String) -> io::Result<()> {
        if self.err_open || (self.screen.shared && self.is_open()) {
            if self.notes.len() == WAITING_NOTES {
                self.notes.remove(0);
            }
            self.notes.push(line);
            return Ok(());
        }
        self.block(Block::Note, Paragraph::GoesOn, &[line])
    }

    /// Ends what is in the middle of a line.
    pub(super) fn end_line(&mut self, paragraph: Paragraph) -> io::Result<()> {
        let mut said = self.take_live();
        if std::mem::take(&mut self.err_open) {
            said.push('\n');
            self.advance("\n");
        }
        self.say(&said)?;
        self.close_answer(paragraph)?;
        self.say_notes()?;
        self.put_live()
    }

    /// The screen shows something else now: there are no live lines on it to take away.
    pub(super) fn forget_drawn(&mut self) {
        self.drawn = 0;
        if let Some(below) = &mut self.input {
            *below =
                Below { input: std::mem::take(&mut below.input), columns: below.columns, ..Below::default() };
        }
    }

    /// Text goes behind what is in the middle of a line.
    fn advance(&mut self, text: &str) {
        let Some(below) = &mut self.input else { return };
        for c in text.chars() {
            let wide = match c {
                '\n' => {
                    below.column = 0;
                    continue;
                }
                '\t' => (8 - below.column % 8).min(below.columns.saturating_sub(below.column + 1)),
                c => c.width().unwrap_or_default(),
            };
            below.column = match below.column + wide <= below.columns {
                true => below.column + wide,
                false => wide,
            };
        }
    }

    /// Replaces the live lines by those of a question, which has to know how many fit the screen.
    pub(super) fn set_menu(&mut self, lines: Vec<String>) -> io::Result<()> {
        self.draw(Block::Question, lines)
    }

    /// Replaces the live lines. They show on a terminal only, and only while nothing is in the middle of a line.
    pub(super) fn set_live(&mut self, mut lines: Vec<String>) -> io::Result<()> {
        let more = lines.len().saturating_sub(LIVE_LINES);
        if more > 0 {
            lines.truncate(LIVE_LINES - 1);
            lines.push(self.paint.dim(format_args!("  and {} more", more + 1)));
        }
        self.draw(Block::Calls, lines)
    }

    fn draw(&mut self, block: Block, lines: Vec<String>) -> io::Result<()> {
        if !self.screen.terminal || (lines == self.live && self.drawn > 0) {
            return Ok(());
        }
        let taken = self.take_live();
        self.live_block = block;
        self.live = lines;
        let put = self.live_text();
        self.say(&(taken + &put))
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.err.write_all(text.as_bytes())?;
        self.err.flush()
    }

    fn say_notes(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.notes) {
            notes if notes.is_empty() => Ok(()),
            notes => self.say_lines(Block::Note, &notes),
        }
    }

    fn separate(&mut self, block: Block, said: &mut String) {
        if self.screen.terminal && self.is_apart(block) {
            said.push('\n');
        }
        self.last = Some(block);
    }

    /// Whether an empty line goes before that block. Remarks stand among the tool calls.
    fn is_apart(&self, block: Block) -> bool {
        let among = |block| matches!(block, Block::Calls | Block::Note);
        self.last.is_some_and(|last| last != block && !(among(last) && among(block)))
    }

    fn close_answer(&mut self, paragraph: Paragraph) -> io::Result<()> {
        if self.is_open() && (self.screen.shared || paragraph == Paragraph::Ends) {
            self.write_held()?;
            self.wrap = Wrap::default();
            self.out_open = false;
            self.out.write_all(b"\n")?;
            self.out.flush()?;
            self.advance("\n");
        }
        Ok(())
    }

    /// What takes the live lines off the screen.
    fn take_live(&mut self) -> String {
        let drawn = std::mem::take(&mut self.drawn);
        if drawn == 0 {
            return String::new();
        }
        let (up, below) = match &mut self.input {
            Some(below) => (below.cursor_row, std::mem::take(&mut below.below).then_some(below.column)),
            None => (drawn - 1, None),
        };
        let mut taken = "\r".to_owned();
        if up > 0 {
            taken.push_str(&format!("\u{1b}[{up}A"));
        }
        taken.push_str("\u{1b}[J");
        // Behind the text that is in the middle of a line.
        if let Some(column) = below {
            taken.push_str(&format!("\u{1b}[1A\u{1b}[{column}C"));
        }
        taken
    }

    fn put_live(&mut self) -> io::Result<()> {
        let put = self.live_text();
        self.say(&put)
    }

    /// What puts the live lines on the screen: without line wrapping, so that a line is one row, and without a
    /// newline at the end.
    fn live_text(&mut self) -> String {
        let open = self.err_open || (self.screen.shared && self.out_open);
        let block = if self.live.is_empty() { Block::Input } else { self.live_block };
        let apart = !open && self.is_apart(block);
        let mut input = self.input.as_mut();
        if self.drawn > 0 || (open && input.is_none()) || (self.live.is_empty() && input.is_none()) {
            return String::new();
        }
        let mut text = String::new();
        if let Some(below) = &mut input {
            // A full row is followed by the next one by itself: the cursor is there already.
            let is_full = below.column > 0 && below.column == below.columns;
            below.below = open && !is_full;
            if open && is_full {
                below.column = 0;
            }
        }
        if open {
            text.push_str("\r\n");
        }
        text.push_str(if apart { "\n" } else { "" });
        text.push_str("\u{1b}[?7l");
        text.push_str(&self.live.join("\n"));
        let above = self.live.len() + usize::from(apart);
        self.drawn = above;
        if let Some(below) = input {
            let rows = &below.input.rows;
            text.push_str(if self.live.is_empty() { "" } else { "\n" });
            text.push_str(&rows.join("\n"));
            let (row, column) = below.input.cursor;
            let up = rows.len().saturating_sub(row + 1);
            text.push('\r');
            if up > 0 {
                text.push_str(&format!("\u{1b}[{up}A"));
            }
            if column > 0 {
                text.push_str(&format!("\u{1b}[{column}C"));
            }
            below.cursor_row = above + row;
            self.drawn = above + rows.len();
        } else if let Some(below) = &mut self.input {
            below.cursor_row = above.saturating_sub(1);
        }
        text.push_str("\u{1b}[?7h");
        text
    }
}
