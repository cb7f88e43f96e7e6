//! Breaks text at words for a screen of so many columns, as it comes.
//!
//! Pure. Invariants: only blanks are dropped, at the places where a row is broken; a word that is longer than a row is left
//! to the terminal. What is held is one word, and that only near the end of a row.

use unicode_width::UnicodeWidthChar;

/// So far from the end of a row a word is shown before it is whole: most fit then, and a person reads on without a wait.
const ROOM: usize = 20;

/// Text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Wrap {
    column: usize,
    /// Blanks before the word.
    gap: String,
    word: String,
    /// Begins each row but the first of a line.
    indent: usize,
    /// The beginning of the word is shown already.
    torn: bool,
}

impl Wrap {
    /// Rows behind the first begin with so many blanks; so many columns of the first are taken already.
    pub(super) fn new(column: usize, indent: usize) -> Self {
        Self { column, indent, ..Self::default() }
    }

    /// What can be shown of a piece. The word at its end waits for what follows.
    pub(super) fn piece(&mut self, text: &str, columns: usize) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' => {
                    self.flush_into(&mut out, columns);
                    out.push('\n');
                    (self.column, self.torn) = (0, false);
                }
                ' ' | '\t' => {
                    if !self.word.is_empty() {
                        self.flush_into(&mut out, columns);
                    }
                    self.torn = false;
                    self.gap.push(c);
                }
                c => self.word.push(c),
            }
        }
        let end = self.column + width(&self.gap) + width(&self.word);
        if !self.word.is_empty() && end.saturating_add(ROOM) <= columns {
            self.flush_into(&mut out, columns);
            self.torn = true;
        }
        out
    }

    /// Whether there is anything that was not shown yet.
    pub(super) fn is_holding(&self) -> bool {
        !self.word.is_empty() || !self.gap.is_empty()
    }

    /// What was held.
    pub(super) fn finish(&mut self, columns: usize) -> String {
        let mut out = String::new();
        self.flush_into(&mut out, columns);
        out
    }

    fn flush_into(&mut self, out: &mut String, columns: usize) {
        let (gap, word) = (std::mem::take(&mut self.gap), std::mem::take(&mut self.word));
        let (blanks, letters) = (width(&gap), width(&word));
        let breaks = !word.is_empty()
            && !self.torn
            && self.column > self.indent
            && self.column + blanks + letters > columns;
        if breaks {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', self.indent));
            self.column = self.indent + letters;
        } else {
            out.push_str(&gap);
            self.column += blanks + letters;
        }
        if self.column > columns {
            // The terminal goes on in the next row by itself.
            self.column = (self.column - 1) % columns.max(1) + 1;
        }
        out.push_str(&word);
    }
}

fn width(text: &str) -> usize {
    text.chars().map(|c| if c == '\t' { 8 } else { c.width().unwrap_or_default() }).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 28, T2: rows end between words, however the text is torn, and what is not to be broken is not
    #[test]
    fn rows_end_between_words() {
        for (text, columns, shown) in [
            ("one two three", 8, "one two\nthree"),
            ("one two three\nfour", 8, "one two\nthree\nfour"),
            ("one  two", 8, "one  two"),
            ("one  twos", 8, "one\ntwos"),
            ("  code()  x", 9, "  code()\nx"),
            ("a https://long.test/path b", 8, "a\nhttps://long.test/path b"),
            ("漢字 漢字", 8, "漢字\n漢字"),
            ("end ", 8, "end "),
            ("\n\n", 8, "\n\n"),
            ("", 8, ""),
            ("one two", 0, "one\ntwo"),
        ] {
            for size in [1, 3, 100] {
                let (mut wrap, mut out) = (Wrap::default(), String::new());
                let chars: Vec<char> = text.chars().collect();
                for piece in chars.chunks(size) {
                    out.push_str(&wrap.piece(&piece.iter().collect::<String>(), columns));
                }
                out.push_str(&wrap.finish(columns));
                assert_eq!(out, shown, "{columns} columns, in pieces of {size}");
            }
        }
        // Far from the end of a row nothing waits.
        let mut wide = Wrap::default();
        assert_eq!(wide.piece("selected al", 80), "selected al");
        assert_eq!((wide.piece("low", 80), wide.is_holding()), ("low".to_owned(), false));
        let mut indented = Wrap::new(2, 2);
        let text = indented.piece("one two three", 8) + &indented.finish(8);
        assert_eq!(text, "one\n  two\n  three");
    }
}
