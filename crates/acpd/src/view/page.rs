//! Puts text on the two streams so that it looks right: the answer on stdout, everything else on stderr.
//!
//! Owned by the view, which decides what is said. Invariants: no line breaks into another; the answer is written
//! as it comes and flushed; on a terminal, the *live* lines at the bottom (progress, open tool calls) are
//! taken away before anything is written and put back after. Not here: what anything means.

use std::io::{self, Write};

use super::paint::{Paint, Screen};

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
        }
    }

    pub(super) fn paint(&self) -> Paint {
        self.paint
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.screen.terminal
    }

    /// Whether the answer is in the middle of a line.
    pub(super) fn answer_open(&self) -> bool {
        self.out_open
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
        if self.screen.shared && !self.out_open {
            self.separate(Block::Answer, &mut before);
        }
        self.say(&before)?;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        self.out_open = !text.ends_with('\n');
        if !self.out_open {
            self.say_notes()?;
        }
        self.put_live()
    }

    /// A piece of a thought, clean.
    pub(super) fn thought(&mut self, text: &str) -> io::Result<()> {
        let text = if self.last == Some(Block::Thought) { text } else { text.trim_start_matches('\n') };
        if text.is_empty() {
            return Ok(());
        }
        if self.screen.shared && self.out_open {
            self.end_line(Paragraph::GoesOn)?;
        }
        let mut said = self.take_live();
        self.separate(Block::Thought, &mut said);
        for piece in text.split_inclusive('\n') {
            if !self.err_open {
                said.push_str(&self.paint.dim("┆ "));
            }
            let content = piece.trim_end_matches('\n');
            if !content.is_empty() {
                said.push_str(&self.paint.dim(content));
            }
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
        if self.err_open || (self.screen.shared && self.out_open) {
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
        }
        self.say(&said)?;
        self.close_answer(paragraph)?;
        self.say_notes()?;
        self.put_live()
    }

    /// The screen shows something else now: there are no live lines on it to take away.
    pub(super) fn forget_drawn(&mut self) {
        self.drawn = 0;
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
        if self.out_open && (self.screen.shared || paragraph == Paragraph::Ends) {
            self.out_open = false;
            self.out.write_all(b"\n")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// What takes the live lines off the screen.
    fn take_live(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            1 => "\r\u{1b}[J".to_owned(),
            rows => format!("\r\u{1b}[{}A\u{1b}[J", rows - 1),
        }
    }

    fn put_live(&mut self) -> io::Result<()> {
        let put = self.live_text();
        self.say(&put)
    }

    /// What puts the live lines on the screen: without line wrapping, so that a line is one row, and without a
    /// newline at the end.
    fn live_text(&mut self) -> String {
        let open = self.err_open || (self.screen.shared && self.out_open);
        if self.live.is_empty() || self.drawn > 0 || open {
            return String::new();
        }
        let apart = self.is_apart(self.live_block);
        self.drawn = self.live.len() + usize::from(apart);
        let gap = if apart { "\n" } else { "" };
        format!("{gap}\u{1b}[?7l{}\u{1b}[?7h", self.live.join("\n"))
    }
}
