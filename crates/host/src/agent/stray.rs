//! A message among stray bytes: libraries in an agent write to its stdout what a terminal would take for colours, titles
//! or a prompt, without a line end.
//!
//! Pure. Invariant: what is cut off is at most [`FRONT`] bytes on a side, says nothing to a reader of the protocol, and is
//! cut only from a whole message. Other text in front stays noise: a log line may quote a message, of either side.

use acpd_wire::{Member, scan};
use std::ops::Range;

/// As much may stand before a message, or behind it, in bytes.
const FRONT: usize = 256;
/// As long may the words of a prompt be, in bytes.
const PROMPT: usize = 64;
/// What a prompt ends with.
const SIGNS: [char; 8] = ['>', '$', '%', '#', '❯', '›', '»', '➜'];

/// Where the message stands in a line that is none as a whole.
pub(super) fn message_in(line: &[u8]) -> Option<Range<usize>> {
    let front = &line[..line.len().min(FRONT + 1)];
    let (mut at, mut words) = (0, Vec::new());
    loop {
        match front.get(at)? {
            b'{' => break,
            _ => match control(&line[at..]) {
                0 => {
                    words.push(line[at]);
                    at += 1;
                }
                length => {
                    // Words that a control sequence parts are still two.
                    words.extend(line[at..at + length].iter().filter(|byte| **byte == b' '));
                    at += length;
                }
            },
        }
    }
    let end = line.len() - line.iter().rev().take(FRONT + 1).position(|byte| *byte == b'}')?;
    let is_prompted = !words.trim_ascii().is_empty();
    if at >= end || !is_control(&line[end..]) || is_prompted && !is_prompt(&words) {
        return None;
    }
    let scanned = scan(&line[at..end]).ok()?;
    let is_named = !is_prompted || scanned.span(Member::JsonRpc).is_some();
    (is_named && scanned.message().is_ok()).then_some(at..end)
}

/// Whether words are what somebody is asked to type behind; an arrow is what a log puts before a message that it quotes.
fn is_prompt(words: &[u8]) -> bool {
    let words = words.trim_ascii();
    let Ok(text) = std::str::from_utf8(words) else { return false };
    let is_arrow = ["->", "=>", "~>", "<>"].iter().any(|arrow| text.ends_with(arrow));
    text.len() <= PROMPT && text.ends_with(SIGNS) && !is_arrow
}

/// Whether nothing but control characters, control sequences and white space is there.
fn is_control(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match control(bytes) {
            0 => return false,
            length => bytes = &bytes[length..],
        }
    }
    true
}

/// The length of what the bytes begin with, if that is white space, a control character, a control sequence (ECMA-48) or
/// the mark of UTF-8; else 0.
fn control(bytes: &[u8]) -> usize {
    match bytes {
        [0x1b, b'[', rest @ ..] => sequence(rest).map_or(0, |length| 2 + length),
        [0xc2, 0x9b, rest @ ..] => sequence(rest).map_or(0, |length| 2 + length),
        [0x1b, b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => string(rest).map_or(0, |length| 2 + length),
        [0x1b, rest @ ..] => {
            let between = rest.iter().take_while(|byte| (0x20..0x30).contains(*byte)).count();
            match rest.get(between) {
                // A message is no end of a sequence.
                Some(last @ 0x30..0x7f) if *last != b'{' => between + 2,
                _ => 1,
            }
        }
        [0xef, 0xbb, 0xbf, ..] => 3,
        [0xc2, 0x80..0xa0, ..] => 2,
        [0..=0x20 | 0x7f, ..] => 1,
        _ => 0,
    }
}

/// The length of a control sequence behind its beginning: parameters, then its last byte.
fn sequence(bytes: &[u8]) -> Option<usize> {
    let inside = bytes.iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
    bytes.get(inside).is_some_and(|last| (0x40..0x7f).contains(last)).then_some(inside + 1)
}

/// The length of a control string behind its beginning, with the BEL or ST at its end.
fn string(bytes: &[u8]) -> Option<usize> {
    let bytes = &bytes[..bytes.len().min(FRONT)];
    let end = bytes.iter().position(|byte| matches!(byte, 0x07 | 0x1b | 0x9c))?;
    match bytes[end..] {
        [0x1b, b'\\', ..] => Some(end + 2),
        [0x1b, ..] => None,
        _ => Some(end + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"a":"}"}}"#;

    // quirk bytes-before-frame (agents whose libraries write to a terminal): control sequences, a byte order mark or a prompt around
    // a message are cut off, and the message is understood
    #[test]
    fn a_message_is_found_among_stray_bytes() {
        for front in [
            "\u{1b}]0;my agent\u{7}",
            "\u{1b}]8;;http://x\u{1b}\\",
            "\u{1b}[0m",
            "\u{1b}[?25h",
            "\u{1b}[2K\r",
            "\u{1b}[38;5;12m \u{1b}(B\u{1b}=",
            "\u{1b}P1$r0m\u{1b}\\",
            "\u{9b}0m\u{85}",
            "\u{1b}",
            "\u{0}",
            "\u{8}\u{7}\u{7f}",
            "\u{feff}",
            "\u{feff}\u{0}\u{1b}[m  \t",
            "> ",
            ">>> ",
            "$ ",
            "my agent> ",
            "\u{1b}[32magent\u{1b}[0m ❯ ",
            "",
        ] {
            for behind in ["", "\u{1b}[0m", " \u{0}\u{1b}[?25l"] {
                let line = format!("{front}{FRAME}{behind}");
                let found = message_in(line.as_bytes()).map(|span| &line[span]);
                assert_eq!(found, Some(FRAME), "{line:?}");
            }
        }
    }

    // FR-7: a line that quotes a message is no message, nor is what is cut or too far behind
    #[test]
    fn other_lines_stay_noise() {
        for line in [
            format!("[debug] sent {FRAME}"),
            format!("recv: {FRAME}"),
            format!("-> {FRAME}"),
            format!("<- {FRAME}"),
            format!("=> {FRAME}"),
            format!("> {}", &FRAME[..20]),
            format!("> {FRAME} x"),
            format!("\u{1b}[0m{FRAME}{FRAME}"),
            format!("> {}", r#"{"id":1,"result":{}}"#),
            "> {\"a\":1}".to_owned(),
            "\u{1b}[32m✔\u{1b}[0m ready".to_owned(),
            format!("{}{FRAME}", "\u{0}".repeat(FRONT + 1)),
            format!("{}> {FRAME}", "x".repeat(PROMPT)),
            "\u{1b}]0;".to_owned(),
            "}".to_owned(),
            String::new(),
        ] {
            assert_eq!(message_in(line.as_bytes()), None, "{line:?}");
        }
        assert!(message_in(format!("{}{FRAME}", "\u{0}".repeat(FRONT)).as_bytes()).is_some());
    }
}
