//! Makes an agent's text safe to print: no control character of it reaches the terminal, so it can neither move
//! the cursor nor change colours, titles or the clipboard. Newlines and tabs stay; the rest becomes visible.

use std::borrow::Cow;

/// Bidirectional overrides and isolates, which can make a line read as something else than it is.
fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || reorders(c)
}

/// A visible stand-in: the control pictures for the ASCII ones.
fn picture(c: char) -> char {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

/// `text` without control characters but for newlines and tabs.
fn neutral(text: &str) -> Cow<'_, str> {
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").chars().map(|c| if harmful(c) { picture(c) } else { c }).collect())
}

/// Cleans a text that comes in pieces; a CR LF torn between two of them is still one line end.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    held_cr: bool,
}

impl Stream {
    /// The next piece, clean. A CR at its end waits for what follows.
    pub(crate) fn piece<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if piece.is_empty() {
            return Cow::Borrowed("");
        }
        let (body, cr) = match piece.strip_suffix('\r') {
            Some(body) => (body, true),
            None => (piece, false),
        };
        let held = std::mem::replace(&mut self.held_cr, cr);
        if held && !body.starts_with('\n') {
            return Cow::Owned(format!("{}{}", picture('\r'), neutral(body)));
        }
        neutral(body)
    }
}

/// One line of at most `most` characters: runs of white space become a space, what is cut becomes an ellipsis.
pub(crate) fn line(text: &str, most: usize) -> String {
    if text.len() <= most && is_plain(text.as_bytes()) {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut length = 0;
    for (index, word) in text.split_whitespace().enumerate() {
        for c in (index > 0).then_some(' ').into_iter().chain(word.chars()) {
            if length == most {
                short.push('…');
                return short;
            }
            short.push(if harmful(c) { picture(c) } else { c });
            length += 1;
        }
    }
    short
}

/// Printable ASCII with single spaces between words: most names, ids and paths.
fn is_plain(text: &[u8]) -> bool {
    let is_word = |byte: u8| byte.is_ascii_graphic();
    let mut after_word = false;
    for &byte in text {
        match byte {
            byte if is_word(byte) => after_word = true,
            b' ' if after_word => after_word = false,
            _ => return false,
        }
    }
    after_word || text.is_empty()
}

/// One line of at most `most` characters with its indentation and spacing kept; tabs become spaces.
pub(crate) fn verbatim(text: &str, most: usize) -> String {
    let text = text.strip_suffix('\r').unwrap_or(text);
    let mut shown: String = text
        .chars()
        .take(most)
        .map(|c| if c == '\t' { ' ' } else { c })
        .map(|c| if harmful(c) || c == '\n' { picture(c) } else { c })
        .collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: the terminal view; a hostile agent cannot drive the terminal
    // quirk terminal-control
    #[test]
    fn no_control_character_survives() {
        let hostile: String = ('\0'..='\u{a0}').chain('\u{2000}'..='\u{2070}').collect();
        let survives = |c: char| (c.is_control() && c != '\n' && c != '\t') || reorders(c);
        assert!(!Stream::default().piece(&hostile).contains(survives));
        assert!(!line(&hostile, 1000).contains(|c| survives(c) || c == '\n'));
        assert!(!verbatim(&hostile, 1000).contains(|c| survives(c) || c == '\n' || c == '\t'));
        assert_eq!(Stream::default().piece("\u{1b}[31mred\u{7f}\u{9b}2J"), "␛[31mred␡\u{fffd}2J");
        assert_eq!(Stream::default().piece("a\tb\nc é 漢"), "a\tb\nc é 漢");
    }

    // contract 6: the terminal view; line ends come through, wherever a chunk was torn
    #[test]
    fn line_ends_survive_being_torn() {
        let mut stream = Stream::default();
        let pieces = ["a\r\nb\r", "\nc\r", "", "d\r", "\r", "\n"];
        let text: String = pieces.iter().map(|piece| stream.piece(piece).into_owned()).collect();
        assert_eq!(text, "a\nb\nc␍d␍\n");
    }

    // contract 6: the terminal view; a huge title costs one line
    #[test]
    fn lines_are_cut() {
        assert_eq!(line("  a \n\t b  ", 9), "a b");
        assert_eq!(line("abcdef", 6), "abcdef");
        assert_eq!(line("abcdefg", 6), "abcdef…");
        assert_eq!(line(&"漢".repeat(1_000_000), 3), "漢漢漢…");
        assert_eq!(verbatim("\t a  b\r", 9), "  a  b");
        assert_eq!(verbatim("abc", 2), "ab…");
    }
}
