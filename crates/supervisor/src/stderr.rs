//! Head and tail of a program's stderr, in bounded memory (contract 1.2).
//!
//! Sans-IO: bytes come in as they were read, an excerpt goes out at any time. At most 100 lines of at most
//! 4 KiB are held, whatever the program writes. Not a log: lines in the middle are only counted.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Lines kept at each end.
const LINES: usize = 50;
const LINE_BYTES: usize = StderrExcerpt::LINE_BYTES;

/// What is known of a program's stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StderrExcerpt {
    /// Everything, when not truncated; else the first 50 lines. Lines are joined with `\n`.
    pub head: String,
    /// The last 50 lines; only when truncated.
    pub tail: Option<String>,
    /// More than 100 lines were written.
    pub truncated: bool,
    /// Lines written in all; an unfinished last line counts.
    pub total_lines: u64,
}

impl StderrExcerpt {
    /// Bytes kept of one line; the rest of it is dropped. A line that was cut may have up to three fewer.
    pub const LINE_BYTES: usize = 4096;

    /// Nothing was written.
    pub fn is_empty(&self) -> bool {
        self.total_lines == 0
    }
}

/// Collects a [`StderrExcerpt`].
#[derive(Debug, Default)]
pub struct StderrRecorder {
    head: Vec<String>,
    tail: VecDeque<String>,
    total: u64,
    line: Vec<u8>,
    /// Something of the current line was seen, even if all of it was dropped.
    open: bool,
}

impl StderrRecorder {
    /// Takes bytes as they were read, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_to(bytes, |_| {});
    }

    /// The same; each line goes to `on_line` as it is complete.
    pub fn push_to(&mut self, mut bytes: &[u8], mut on_line: impl FnMut(&str)) {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            // Three bytes more than kept, so that the cut can tell a whole character from a torn one.
            let room = (LINE_BYTES + 3).saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            self.open = true;
            match end {
                Some(end) => {
                    let line = excerpt_line(&self.line);
                    on_line(&line);
                    self.finish_line(line);
                    bytes = &bytes[end + 1..];
                }
                None => break,
            }
        }
    }

    /// What has been seen of a line that is not complete; None when the last one is.
    pub fn open_line(&self) -> Option<String> {
        self.open.then(|| excerpt_line(&self.line))
    }

    fn finish_line(&mut self, line: String) {
        self.line.clear();
        self.open = false;
        self.total += 1;
        if self.head.len() < LINES {
            self.head.push(line);
            return;
        }
        if self.tail.len() == LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }

    /// What has been seen so far.
    pub fn excerpt(&self) -> StderrExcerpt {
        let last = self.open_line();
        let total = self.total + u64::from(self.open);
        let truncated = total > 2 * LINES as u64;
        let mut head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let mut tail: Vec<&str> = self.tail.iter().map(String::as_str).chain(last.as_deref()).collect();
        if truncated {
            let surplus = tail.len().saturating_sub(LINES);
            StderrExcerpt {
                head: head.join("\n"),
                tail: Some(tail[surplus..].join("\n")),
                truncated,
                total_lines: total,
            }
        } else {
            head.append(&mut tail);
            StderrExcerpt { head: head.join("\n"), tail: None, truncated, total_lines: total }
        }
    }
}

/// One line as text: at most [`LINE_BYTES`] of it, cut at a character boundary, invalid bytes as U+FFFD.
fn excerpt_line(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let mut kept = bytes;
    if bytes.len() > LINE_BYTES {
        let mut cut = LINE_BYTES;
        // A continuation byte after the cut means the cut is inside a character (which has at most 3 of them).
        while cut > LINE_BYTES - 3 && bytes[cut] & 0xC0 == 0x80 {
            cut -= 1;
        }
        kept = &bytes[..cut];
    }
    let mut text = String::from_utf8_lossy(kept).into_owned();
    // Replacement characters are longer than the bytes they stand for.
    if text.len() > LINE_BYTES {
        text.truncate(text.floor_char_boundary(LINE_BYTES));
    }
    text
}

#[cfg(test)]
mod tests;
