//! A line that a person writes: text over one or more rows, with the lines that were written before.
//!
//! Sans IO but for the file of the [`History`]: strokes come in, what they lead to goes out. Invariants: what is kept of a
//! line is bounded; a line is entered as it was written, but for backslashes that were there to go on in the next row.
//! Not here: where strokes come from, how it looks ([`layout`]), what is completed.

mod history;
mod layout;

pub(crate) use history::History;
pub(crate) use layout::{Input, layout};

use crate::keyboard::Stroke;
use rustyline::line_buffer::{ChangeListener, DeleteListener, Direction, LineBuffer};
use rustyline::{At, Word};

/// The longest line, in bytes: that of a paste.
const MOST: usize = 1 << 20;

/// What a stroke led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Edited {
    Nothing,
    /// The line looks different now.
    Changed,
    /// The line is written; a new one begins.
    Entered(String),
    /// The word before the cursor is to be completed.
    Complete,
    /// There was a line to discard, and it is discarded.
    Discarded,
    /// Ctrl-C at an empty line.
    Interrupt,
    /// Ctrl-D at an empty line.
    EndOfInput,
    Escape,
    Redraw,
    Suspend,
    Quit,
}

/// The line.
pub(crate) struct Editor {
    line: LineBuffer,
    /// What was deleted last, to be put back.
    deleted: String,
    history: History,
    /// The line of the history that is shown, counted from its beginning.
    shown: Option<usize>,
    /// What was written before the history was looked through.
    draft: String,
    /// What the history is searched for, as long as nothing else is done.
    sought: Option<String>,
}

impl Editor {
    pub(crate) fn new(history: History) -> Self {
        let line = LineBuffer::with_capacity(MOST);
        Self { line, deleted: String::new(), history, shown: None, draft: String::new(), sought: None }
    }

    pub(crate) fn text(&self) -> &str {
        self.line.as_str()
    }

    /// The bytes before the cursor.
    pub(crate) fn cursor(&self) -> usize {
        self.line.pos()
    }

    /// Puts another text into the line, the cursor behind it.
    pub(crate) fn set(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MOST)];
        self.line.update(text, text.len(), &mut Unheard);
    }

    /// Replaces what is between `start` and the cursor.
    pub(crate) fn complete(&mut self, start: usize, text: &str) {
        let end = self.line.pos();
        if self.line.len() + text.len() <= MOST {
            self.line.replace(start..end, text, &mut Unheard);
        }
    }

    /// Keeps a line that was entered for later, here and in the file.
    pub(crate) fn remember(&mut self, line: &str) {
        self.history.add(line);
    }

    /// A person did something at the line.
    pub(crate) fn stroke(&mut self, stroke: Stroke) -> Edited {
        if stroke != Stroke::Search {
            self.sought = None;
        }
        let changed = match stroke {
            Stroke::Text(text) | Stroke::Paste(text) => self.line.yank(&text, 1, &mut Unheard).is_some(),
            Stroke::NewLine => self.line.yank("\n", 1, &mut Unheard).is_some(),
            Stroke::Enter => return self.enter(),
            Stroke::Backspace => self.line.backspace(1, &mut Unheard),
            Stroke::Delete => self.line.delete(1, &mut Unheard).is_some(),
            Stroke::Left => self.line.move_backward(1),
            Stroke::Right => self.line.move_forward(1),
            Stroke::Home => self.line.move_home(),
            Stroke::End => self.line.move_end(),
            Stroke::WordLeft => self.line.move_to_prev_word(Word::Emacs, 1),
            Stroke::WordRight => self.line.move_to_next_word(At::AfterEnd, Word::Emacs, 1),
            Stroke::Up => self.up(),
            Stroke::Down => self.down(),
            Stroke::Search => self.search(),
            Stroke::DeleteWordLeft => {
                self.deleting(|line, deleted| line.delete_prev_word(Word::Big, 1, deleted))
            }
            Stroke::DeleteWordRight => {
                self.deleting(|line, deleted| line.delete_word(At::AfterEnd, Word::Emacs, 1, deleted))
            }
            Stroke::DeleteToStart => self.deleting(LineBuffer::discard_line),
            Stroke::DeleteToEnd => self.deleting(LineBuffer::kill_line),
            Stroke::PutBack => {
                let deleted = std::mem::take(&mut self.deleted);
                let put = self.line.yank(&deleted, 1, &mut Unheard).is_some();
                self.deleted = deleted;
                put
            }
            Stroke::Tab => return Edited::Complete,
            Stroke::BackTab => false,
            Stroke::Escape => return Edited::Escape,
            Stroke::Interrupt if self.line.is_empty() => return Edited::Interrupt,
            Stroke::Interrupt => {
                self.clear();
                return Edited::Discarded;
            }
            Stroke::EndOfInput if self.line.is_empty() => return Edited::EndOfInput,
            Stroke::EndOfInput => self.line.delete(1, &mut Unheard).is_some(),
            Stroke::Redraw => return Edited::Redraw,
            Stroke::Suspend => return Edited::Suspend,
            Stroke::Quit => return Edited::Quit,
        };
        if changed { Edited::Changed } else { Edited::Nothing }
    }

    /// A backslash at the end goes on in the next row, two are one.
    fn enter(&mut self) -> Edited {
        let text = self.line.as_str();
        let backslashes = text.len() - text.trim_end_matches('\\').len();
        if backslashes % 2 == 1 && self.line.is_cursor_at_end() {
            self.line.backspace(1, &mut Unheard);
            self.line.yank("\n", 1, &mut Unheard);
            return Edited::Changed;
        }
        let text = text.to_owned();
        self.clear();
        Edited::Entered(text)
    }

    fn clear(&mut self) {
        self.set("");
        (self.shown, self.draft) = (None, String::new());
    }

    /// To the row above, or else to the line that was written before.
    fn up(&mut self) -> bool {
        let (text, at) = (self.line.as_str(), self.line.pos());
        let Some(end) = text[..at].rfind('\n') else { return self.look_back() };
        let column = text[end + 1..at].chars().count();
        let start = text[..end].rfind('\n').map_or(0, |before| before + 1);
        self.move_in_row(start, end, column)
    }

    fn down(&mut self) -> bool {
        let (text, at) = (self.line.as_str(), self.line.pos());
        let Some(end) = text[at..].find('\n').map(|end| at + end) else { return self.look_forward() };
        let own = text[..at].rfind('\n').map_or(0, |before| before + 1);
        let column = text[own..at].chars().count();
        let below = text[end + 1..].find('\n').map_or(text.len(), |after| end + 1 + after);
        self.move_in_row(end + 1, below, column)
    }

    /// To a character of the row between two places, or to its end.
    fn move_in_row(&mut self, start: usize, end: usize, column: usize) -> bool {
        let row = &self.line.as_str()[start..end];
        let at = row.char_indices().nth(column).map_or(end, |(at, _)| start + at);
        self.line.set_pos(at);
        true
    }

    fn look_back(&mut self) -> bool {
        let last = self.shown.unwrap_or(self.history.len());
        let Some(at) = last.checked_sub(1) else { return false };
        if self.shown.is_none() {
            self.draft = self.line.as_str().to_owned();
        }
        self.show(at)
    }

    /// To the last line that was written before this one and has in it what is written here; once more, to the one before.
    fn search(&mut self) -> bool {
        let sought = self.sought.get_or_insert_with(|| self.line.as_str().to_owned());
        let last = self.shown.unwrap_or(self.history.len());
        let has = |at: &usize| self.history.get(*at).is_some_and(|line| line.contains(&*sought));
        let Some(at) = (0..last).rev().find(has) else { return false };
        if self.shown.is_none() {
            self.draft.clone_from(sought);
        }
        self.show(at)
    }

    fn look_forward(&mut self) -> bool {
        let Some(at) = self.shown else { return false };
        if at + 1 < self.history.len() {
            return self.show(at + 1);
        }
        self.shown = None;
        let draft = std::mem::take(&mut self.draft);
        self.set(&draft);
        true
    }

    fn show(&mut self, at: usize) -> bool {
        let Some(line) = self.history.get(at) else { return false };
        self.shown = Some(at);
        self.set(&line);
        true
    }

    fn deleting(&mut self, delete: impl FnOnce(&mut LineBuffer, &mut Deleted) -> bool) -> bool {
        let mut deleted = Deleted::default();
        let changed = delete(&mut self.line, &mut deleted);
        if changed {
            self.deleted = deleted.0;
        }
        changed
    }
}

/// What a change of the line deletes.
#[derive(Default)]
struct Deleted(String);

impl DeleteListener for Deleted {
    fn delete(&mut self, _at: usize, text: &str, _direction: Direction) {
        self.0.push_str(text);
    }
}

/// A change of which nothing is to be known.
struct Unheard;

impl DeleteListener for Unheard {
    fn delete(&mut self, _at: usize, _text: &str, _direction: Direction) {}
}

impl ChangeListener for Unheard {
    fn insert_char(&mut self, _at: usize, _c: char) {}

    fn insert_str(&mut self, _at: usize, _text: &str) {}

    fn replace(&mut self, _at: usize, _old: &str, _new: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Stroke {
        Stroke::Text(text.to_owned())
    }

    fn editor(lines: &[&str]) -> Editor {
        let mut editor = Editor::new(History::default());
        lines.iter().for_each(|line| editor.remember(line));
        editor
    }

    // contract 7.1: chat has a line editor
    #[test]
    fn strokes_change_the_line() {
        use Stroke::{
            Backspace, Delete, DeleteToEnd, DeleteToStart, DeleteWordLeft, DeleteWordRight, End, Home, Left,
            NewLine, PutBack, Right, WordLeft, WordRight,
        };
        // | is the cursor.
        for (strokes, line) in [
            (vec![typed("ab"), Left, typed("x")], "ax|b"),
            (vec![typed("ab"), Backspace, Backspace, Backspace], "|"),
            (vec![typed("ab"), Home, Delete], "|b"),
            (vec![typed("a e\u{301}👩\u{200d}🚀"), Backspace], "a e\u{301}|"),
            (vec![typed("a e\u{301}"), Left, Left], "a| e\u{301}"),
            (vec![typed("one two"), WordLeft, typed("x"), WordRight], "one xtwo|"),
            (vec![typed("one two"), DeleteWordLeft], "one |"),
            (vec![typed("one two"), Home, DeleteWordRight], "| two"),
            (vec![typed("one two"), WordLeft, DeleteToEnd, Home, PutBack], "two|one "),
            (vec![typed("one"), DeleteToStart, typed("x"), PutBack], "xone|"),
            (vec![typed("one"), NewLine, typed("two"), Home, typed("x"), End, Right], "one\nxtwo|"),
            (vec![Stroke::Paste("a\nb".to_owned()), Stroke::Up, typed("x")], "ax|\nb"),
            (vec![Stroke::Paste("abc\nd".to_owned()), Stroke::Up, End, Stroke::Down], "abc\nd|"),
            (vec![typed("ab"), Stroke::EndOfInput, Home, Stroke::EndOfInput], "|b"),
            (vec![typed("a\\"), Stroke::Enter, typed("b")], "a\nb|"),
        ] {
            let mut editor = editor(&[]);
            let told = format!("{strokes:?}");
            strokes.into_iter().for_each(|stroke| drop(editor.stroke(stroke)));
            let (before, after) = editor.text().split_at(editor.cursor());
            assert_eq!(format!("{before}|{after}"), line, "{told}");
        }
    }

    // contract 7.1: what leaves the line; Ctrl-C and Ctrl-D mean something else at an empty one
    #[test]
    fn a_line_is_entered_or_left() {
        for (written, stroke, edited) in [
            ("a b", Stroke::Enter, Edited::Entered("a b".to_owned())),
            ("", Stroke::Enter, Edited::Entered(String::new())),
            ("a\\\\", Stroke::Enter, Edited::Entered("a\\\\".to_owned())),
            ("a\nb", Stroke::Enter, Edited::Entered("a\nb".to_owned())),
            ("a", Stroke::Interrupt, Edited::Discarded),
            ("", Stroke::Interrupt, Edited::Interrupt),
            ("", Stroke::EndOfInput, Edited::EndOfInput),
            ("/c", Stroke::Tab, Edited::Complete),
            ("a", Stroke::Escape, Edited::Escape),
        ] {
            let mut editor = editor(&[]);
            editor.set(written);
            assert_eq!(editor.stroke(stroke.clone()), edited, "{written:?} {stroke:?}");
            let is_kept = matches!(edited, Edited::Complete | Edited::Escape);
            assert_eq!(editor.text(), if is_kept { written } else { "" });
        }
    }

    // contract 7.1: chat's history is searched for what is written, backwards; what was written is there again behind it
    #[test]
    fn lines_are_searched_for() {
        use Stroke::{Backspace, Down, Search, Up};
        let lines = ["make test", "look", "run test twice", "stop"];
        for (strokes, line) in [
            (vec![typed("test"), Search], "run test twice"),
            (vec![typed("test"), Search, Search], "make test"),
            // It stays at the last one that there is.
            (vec![typed("test"), Search, Search, Search], "make test"),
            (vec![typed("nothing"), Search], "nothing"),
            (vec![Search, Search], "run test twice"),
            (vec![typed("test"), Search, Down, Down], "test"),
            (vec![typed("test"), Search, Search, Up], "make test"),
            // What is changed is sought anew.
            (vec![typed("testx"), Backspace, Search, typed("!")], "run test twice!"),
            (vec![Up, Search], "stop"),
        ] {
            let mut editor = editor(&lines);
            let told = format!("{strokes:?}");
            strokes.into_iter().for_each(|stroke| drop(editor.stroke(stroke)));
            assert_eq!(editor.text(), line, "{told}");
        }
    }

    // contract 7.1: chat has history; what was being written is there again behind it
    #[test]
    fn lines_come_back() {
        let mut editor = editor(&["one", "two\nrows", "", " hidden", "three", "three"]);
        editor.set("draft");
        for (stroke, text) in [
            (Stroke::Up, "three"),
            (Stroke::Up, "two\nrows"),
            // From the last row to the first, and then to the line before.
            (Stroke::Up, "two\nrows"),
            (Stroke::Up, "one"),
            (Stroke::Up, "one"),
            (Stroke::Down, "two\nrows"),
            (Stroke::Down, "three"),
            (Stroke::Down, "draft"),
            (Stroke::Down, "draft"),
        ] {
            editor.stroke(stroke.clone());
            assert_eq!(editor.text(), text, "{stroke:?}");
        }
    }

    // contract 7.1: a line is bounded, and what is too much changes nothing
    #[test]
    fn a_line_is_bounded() {
        let mut editor = editor(&[]);
        editor.set(&"é".repeat(MOST));
        assert!(editor.text().len() <= MOST);
        assert_eq!(editor.stroke(typed("more")), Edited::Nothing);
    }
}
