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

/// The end of the sequence that begins `text`, if it sets colours and the like (SGR): ESC, `[`, numbers, `m`.
fn style_at(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("\u{1b}[")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';' || c == ':'))?;
    rest[end..].starts_with('m').then_some(2 + end + 1)
}

/// `text` with no control character but line ends, tabs and, where there is `colour`, styles.
pub(crate) fn styled(text: &str, colour: bool) -> Cow<'_, str> {
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(harmful) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(end) = style_at(rest) {
            clean.push_str(if colour { &rest[..end] } else { "" });
            rest = &rest[end..];
        } else if let Some(c) = rest.chars().next() {
            if !rest.starts_with("\r\n") {
                clean.push(picture(c));
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// A text without its colours and the like, and otherwise as it is.
pub(crate) fn without_styles(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\u{1b}') {
        let end = style_at(&rest[at..]);
        plain.push_str(&rest[..at + usize::from(end.is_none())]);
        rest = &rest[at + end.unwrap_or(1)..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// The first `most` characters of a line, not counting styles, and an ellipsis for the others.
pub(crate) fn cut(line: &str, most: usize) -> Cow<'_, str> {
    let (mut at, mut seen) = (0, 0);
    while at < line.len() {
        if let Some(style) = style_at(&line[at..]) {
            at += style;
            continue;
        }
        if seen == most {
            return Cow::Owned(format!("{}…", &line[..at]));
        }
        seen += 1;
        at += line[at..].chars().next().map_or(1, char::len_utf8);
    }
    Cow::Borrowed(line)
}

/// JSON with the control characters that may stand in its strings as escapes: the same values in other words.
pub(crate) fn json_escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(harmful) {
        return Cow::Borrowed(json);
    }
    let escape = |c: char| if harmful(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    Cow::Owned(json.chars().map(escape).collect())
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

    // contract 6: nothing of an agent reaches a terminal unfiltered: what a command prints has no control characters but
    // its own styles
    #[test]
    fn styles_alone_pass_to_a_terminal() {
        let text = "\u{1b}[1;31mred\u{1b}[m\u{1b}[2J\u{1b}]52;c;x\u{7}\u{9b}2J\r\n\ta\rb\u{202e}\u{1b}";
        let rest = "␛[2J␛]52;c;x␇\u{fffd}2J\n\ta␍b\u{fffd}␛";
        assert_eq!(styled(text, true), format!("\u{1b}[1;31mred\u{1b}[m{rest}"));
        assert_eq!(styled(text, false), format!("red{rest}"));
        for not in ["\u{1b}[?25h", "\u{1b}[1", "\u{1b}[1;31", "\u{1b}(m", "\u{1b}[ m"] {
            assert!(!styled(not, true).contains('\u{1b}'), "{not:?}");
        }
    }

    // issue 28, C4: colours go where there are none, and count nothing where there are
    #[test]
    fn styles_are_left_out_or_not_counted() {
        assert_eq!(without_styles("\u{1b}[1ma\u{1b}[0m\u{1b}[2Kb\u{1b}"), "a\u{1b}[2Kb\u{1b}");
        assert_eq!(cut("\u{1b}[1mab\u{1b}[0mc", 2), "\u{1b}[1mab\u{1b}[0m…");
        assert_eq!(cut("\u{1b}[1mab\u{1b}[0m", 2), "\u{1b}[1mab\u{1b}[0m");
        assert_eq!(cut("漢字", 1), "漢…");
    }

    // contract 6: JSON on a terminal has no control character either, and is the same JSON
    #[test]
    fn json_is_escaped_for_a_terminal() {
        let json = "{\"a\":\"\u{9b}2J\u{202e}\u{7f}é\"}";
        assert_eq!(json_escaped(json), "{\"a\":\"\\u009b2J\\u202e\\u007fé\"}");
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(parse(&json_escaped(json)), parse(json));
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
