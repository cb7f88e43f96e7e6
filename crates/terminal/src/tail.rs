//! The output that a terminal keeps: its last bytes, and how much there was in all.
//!
//! Invariant: memory is bounded by what is kept, whatever is written.

use crate::report::TerminalOutput;
use crate::text_queue::TextQueue;

/// The end of a text.
#[derive(Debug)]
pub(crate) struct Tail {
    kept: TextQueue,
    /// Bytes that are kept at most.
    keep: usize,
    /// Bytes of text there were in all.
    written: u64,
}

impl Tail {
    pub(crate) fn new(keep: usize) -> Self {
        Self::after(0, keep)
    }

    /// Behind `written` bytes of text that are not known.
    pub(crate) fn after(written: u64, keep: usize) -> Self {
        Self { kept: TextQueue::default(), keep, written }
    }

    /// Bytes of text there were in all.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.written += text.len() as u64;
        let from = text.ceil_char_boundary(text.len().saturating_sub(self.keep));
        let text = &text[from..];
        // First, so that the memory does not grow beyond what is kept. Nothing stays before a cut.
        self.kept.shorten_to(if from > 0 { 0 } else { self.keep - text.len() });
        self.kept.push(text);
    }

    /// At most `limit` bytes from the end; says so when that is not all there ever was.
    pub(crate) fn last(&self, limit: usize) -> TerminalOutput {
        let text = self.kept.last(limit);
        let truncated = (text.len() as u64) < self.written;
        TerminalOutput { text, truncated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tail(keep: usize, pieces: &[&str]) -> Tail {
        let mut tail = Tail::new(keep);
        for piece in pieces {
            tail.push(piece);
        }
        tail
    }

    fn output(text: &str, truncated: bool) -> TerminalOutput {
        TerminalOutput { text: text.into(), truncated }
    }

    // contract 2.3, TE-3: at most the limit, from the tail; exactly the limit is not truncated
    #[test]
    fn the_limit_is_exact() {
        let tail = tail(8, &["abc", "def"]);
        assert_eq!(tail.last(6), output("abcdef", false));
        assert_eq!(tail.last(7), output("abcdef", false));
        assert_eq!(tail.last(5), output("bcdef", true));
        assert_eq!(tail.last(0), output("", true));
        assert_eq!(Tail::new(8).last(0), output("", false));
    }

    // contract 2.3: truncated from then on
    #[test]
    fn what_was_dropped_stays_missing() {
        let mut tail = tail(4, &["abcd"]);
        assert_eq!(tail.last(9), output("abcd", false));
        tail.push("e");
        assert_eq!(tail.last(9), output("bcde", true));
        tail.push("");
        assert_eq!(tail.last(9), output("bcde", true));
    }

    // TE-3: a character of four bytes across the limit is left out whole
    #[test]
    fn characters_stay_whole() {
        for limit in 1..4 {
            assert_eq!(tail(8, &["x\u{1F980}"]).last(limit), output("", true));
            assert_eq!(tail(limit, &["x\u{1F980}"]).last(8), output("", true));
        }
        assert_eq!(tail(4, &["x\u{1F980}"]).last(4), output("\u{1F980}", true));
        assert_eq!(tail(4, &["\u{1F980}"]).last(4), output("\u{1F980}", false));
    }

    proptest! {
        // TE-3, TE-4
        #[test]
        fn it_is_the_end_of_everything(
            pieces in proptest::collection::vec("\\PC{0,9}", 0..12), keep in 0usize..40, limit in 0usize..40,
        ) {
            let mut tail = Tail::new(keep);
            for piece in &pieces {
                tail.push(piece);
                prop_assert!(tail.kept.len() <= keep);
            }
            let all = pieces.concat();
            let got = tail.last(limit);
            prop_assert!(all.ends_with(&got.text));
            prop_assert!(got.text.len() <= limit.min(keep));
            prop_assert!(got.text.len() + 4 > limit.min(keep).min(all.len()));
            prop_assert_eq!(got.truncated, got.text != all);
        }
    }
}
