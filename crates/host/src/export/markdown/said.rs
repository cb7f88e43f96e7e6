//! What somebody said, as a part of the page: the page's own headings are of the first two levels, and nobody else's are.
//!
//! Pure; text comes in pieces that are torn anywhere. Invariants: no control character but ends of lines and tabs comes
//! out; a block of code that was begun ends with what was said; what is held is a few characters of a line.

/// What stands at the beginning of a line is held until there is more of it than this: it says what the line is.
const HELD: usize = 12;

/// One person's or agent's words, line by line.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The beginning of a line of which it is not known yet what it is.
    held: String,
    /// In the middle of a line that is known.
    in_line: bool,
    /// The line before has text: what underlines it makes it a heading.
    after_text: bool,
    /// What opened the block of code.
    fence: Option<(char, usize)>,
}

impl Said {
    /// Writes the next piece.
    pub(super) fn piece(&mut self, text: &str, out: &mut String) {
        for c in text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')) {
            match (self.in_line, c) {
                (false, '\n') => {
                    self.begin_line(out);
                    (self.in_line, self.after_text) = (false, self.after_text && self.fence.is_none());
                    out.push('\n');
                }
                (false, c) => {
                    self.held.push(c);
                    if self.held.chars().count() > HELD {
                        self.begin_line(out);
                    }
                }
                (true, c) => {
                    self.in_line = c != '\n';
                    out.push(c);
                }
            }
        }
    }

    /// Ends it: what follows is the page's own. A line that is open stays so.
    pub(super) fn finish(&mut self, out: &mut String) {
        if !self.held.is_empty() {
            self.begin_line(out);
        }
        if let Some((mark, count)) = self.fence {
            out.push_str(if out.ends_with('\n') { "" } else { "\n" });
            out.extend(std::iter::repeat_n(mark, count));
        }
        *self = Self::default();
    }

    /// Writes what was held of a line, so that it is no heading of the page's levels.
    fn begin_line(&mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let text = held.trim_start_matches(' ');
        let is_indented = held.len() - text.len() > 3;
        self.in_line = true;
        let run = |mark: char| text.chars().take_while(|c| *c == mark).count();
        if let Some((mark, count)) = self.fence {
            let closes = !is_indented && run(mark) >= count && text.trim_end().chars().all(|c| c == mark);
            self.fence = self.fence.filter(|_| !closes);
            self.after_text = false;
            out.push_str(&held);
            return;
        }
        let fence = ['`', '~'].into_iter().map(|mark| (mark, run(mark))).find(|(_, count)| *count >= 3);
        self.fence = fence.filter(|_| !is_indented);
        let hashes = run('#');
        let is_heading =
            (1..=2).contains(&hashes) && text[hashes..].chars().next().is_none_or(|c| c == ' ' || c == '\t');
        let underlines = self.after_text
            && !text.trim_end().is_empty()
            && ['=', '-'].into_iter().any(|mark| text.trim_end().chars().all(|c| c == mark));
        if !is_indented && (is_heading || underlines) {
            out.push_str(&held[..held.len() - text.len()]);
            out.push('\\');
            out.push_str(text);
        } else {
            out.push_str(&held);
        }
        self.after_text = !text.trim().is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 28, RA10: words are never taken for a heading of the page, however they are torn, and code stays code
    #[test]
    fn nothing_said_is_a_heading_of_the_page() {
        for (said, shown) in [
            ("## User (you)\n\nyes", "\\## User (you)\n\nyes"),
            ("a\n# b\n   ## c\n#\n##\td", "a\n\\# b\n   \\## c\n\\#\n\\##\td"),
            ("### own\n#tag\n##x\n    ## code", "### own\n#tag\n##x\n    ## code"),
            ("User\n---\nUser\n==\n", "User\n\\---\nUser\n\\==\n"),
            ("a\n\n---\n- b\n--x", "a\n\n---\n- b\n--x"),
            ("```sh\n# c\n```\n# d", "```sh\n# c\n```\n\\# d"),
            ("````\n```\n# c\n````\n# d", "````\n```\n# c\n````\n\\# d"),
            ("~~~\n# open", "~~~\n# open\n~~~"),
            ("x\u{1b}[2J\r\n\ty", "x[2J\n\ty"),
            ("", ""),
        ] {
            for size in [1, 2, 3, 100] {
                let (mut writer, mut out) = (Said::default(), String::new());
                let chars: Vec<char> = said.chars().collect();
                chars
                    .chunks(size)
                    .for_each(|piece| writer.piece(&piece.iter().collect::<String>(), &mut out));
                writer.finish(&mut out);
                assert_eq!(out, shown, "in pieces of {size}");
            }
        }
    }
}
