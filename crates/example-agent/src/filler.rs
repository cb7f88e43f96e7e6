//! Numbered filler chunks, the load source of the benchmark; owned by the turn or the replay that sends them.
//!
//! Invariants: text and line of chunk `n` depend only on the session, the message, `n` and the size, so that a
//! replay repeats them byte for byte from three numbers; lines are written in large whole batches.
//! Not a general chunk writer: everything else goes through a JSON value.

use serde_json::{Value, json};

use crate::output::Output;

/// Digits of the number that a chunk's text begins with; shorter texts keep the last ones.
const NUMBER_WIDTH: usize = 8;

/// Bytes per write. Larger than a pipe, so that a reader always finds more; small enough to notice a cancel.
const BATCH_BYTES: usize = 256 * 1024;

/// `count` chunks whose texts have `text_bytes` bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filler {
    pub(crate) count: u64,
    pub(crate) text_bytes: usize,
}

impl Filler {
    /// One chunk whose line has `line_bytes` bytes without the newline; never less than its envelope.
    pub(crate) fn one_line_of(line_bytes: usize, session: &str, message: &str) -> Self {
        let envelope = line(session, message, "").len() - 1;
        Self { count: 1, text_bytes: line_bytes.saturating_sub(envelope) }
    }

    /// Writes the chunks until `stop` says so, and returns how many were written.
    pub(crate) fn write(self, output: &Output, session: &str, message: &str, stop: impl Fn() -> bool) -> u64 {
        let text = text(self.text_bytes);
        let template = line(session, message, &text);
        let number_at = template.len() - tail_length(&text);
        let lines =
            (BATCH_BYTES / template.len()).max(1).min(usize::try_from(self.count).unwrap_or(usize::MAX));
        let mut batch = template.as_bytes().repeat(lines);
        let width = NUMBER_WIDTH.min(self.text_bytes);

        let mut written = 0;
        while written < self.count && !stop() {
            let lines = usize::try_from(self.count - written).map_or(lines, |left| left.min(lines));
            let batch = &mut batch[..lines * template.len()];
            for line in batch.chunks_exact_mut(template.len()) {
                put_number(&mut line[number_at..number_at + width], written);
                written += 1;
            }
            output.raw(batch);
        }
        written
    }

    pub(crate) fn to_json(self, message: &str) -> Value {
        json!({"count": self.count, "textBytes": self.text_bytes, "messageId": message})
    }

    pub(crate) fn from_json(value: &Value) -> Option<(Self, String)> {
        let text_bytes = usize::try_from(value["textBytes"].as_u64()?).ok()?;
        Some((Self { count: value["count"].as_u64()?, text_bytes }, value["messageId"].as_str()?.to_owned()))
    }
}

fn line(session: &str, message: &str, text: &str) -> String {
    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
        "content": {"type": "text", "text": text}});
    let params = json!({"sessionId": session, "update": update});
    format!("{}\n", json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

/// From the first byte of the text to the end of the line.
fn tail_length(text: &str) -> usize {
    text.len() + "\"}}}}\n".len()
}

fn text(bytes: usize) -> String {
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
    let mut text = "0".repeat(NUMBER_WIDTH) + " ";
    text.push_str(&LETTERS.repeat(bytes / LETTERS.len() + 1));
    text.truncate(bytes);
    text
}

fn put_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).expect("below ten");
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 4
    #[test]
    fn the_number_is_patched_into_the_text() {
        for bytes in [0, 1, 7, 8, 9, 64, 200] {
            let text = text(bytes);
            assert_eq!(text.len(), bytes);
            let line = line("s", "m", &text);
            assert!(line[line.len() - tail_length(&text)..].starts_with(&text), "{line}");
        }
        let mut digits = *b"00000000";
        put_number(&mut digits, 1_234);
        assert_eq!(&digits, b"00001234");
    }

    // contract 4
    #[test]
    fn one_line_has_the_size_that_was_asked_for() {
        let filler = Filler::one_line_of(1_000, "session", "message");
        let line = line("session", "message", &text(filler.text_bytes));
        assert_eq!(line.trim_end().len(), 1_000);
    }
}
