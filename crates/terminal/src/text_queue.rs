//! Text that comes in at the back and is taken or dropped at the front, always between characters.
//!
//! Invariant: what it holds is whole characters. Not here: how much is to be held.

use std::collections::VecDeque;

/// A queue of characters, measured in bytes.
#[derive(Debug, Default)]
pub(crate) struct TextQueue {
    bytes: VecDeque<u8>,
}

impl TextQueue {
    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
    }

    /// Drops from the front until at most `len` bytes are left; says how many were dropped.
    pub(crate) fn shorten_to(&mut self, len: usize) -> usize {
        let from = self.boundary_from(self.len().saturating_sub(len));
        self.bytes.drain(..from);
        from
    }

    /// Takes at most `max` bytes from the front, but at least one character if there is one.
    pub(crate) fn take(&mut self, max: usize) -> String {
        let mut to = max.min(self.len());
        while to > 0 && self.is_inside(to) {
            to -= 1;
        }
        if to == 0 && !self.is_empty() {
            to = self.boundary_from(1);
        }
        text(self.bytes.drain(..to).collect())
    }

    /// A copy of the last `max` bytes at most.
    pub(crate) fn last(&self, max: usize) -> String {
        let from = self.boundary_from(self.len().saturating_sub(max));
        let mut bytes = Vec::with_capacity(self.len() - from);
        let (front, back) = self.bytes.as_slices();
        bytes.extend_from_slice(&front[from.min(front.len())..]);
        bytes.extend_from_slice(&back[from.saturating_sub(front.len())..]);
        text(bytes)
    }

    /// The first boundary between characters at or after `at`.
    fn boundary_from(&self, mut at: usize) -> usize {
        while self.is_inside(at) {
            at += 1;
        }
        at
    }

    fn is_inside(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80)
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text comes in whole and is cut between characters only")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn queue(text: &str) -> TextQueue {
        let mut queue = TextQueue::default();
        queue.push(text);
        queue
    }

    // TE-3: the tail, cut at a character of four bytes
    #[test]
    fn cuts_are_between_characters() {
        let text = "a\u{1F980}bc";
        for (max, last) in [(0, ""), (1, "c"), (2, "bc"), (3, "bc"), (5, "bc"), (6, &text[1..]), (7, text)] {
            assert_eq!(queue(text).last(max), last, "{max}");
            let mut shortened = queue(text);
            assert_eq!(
                (shortened.shorten_to(max), shortened.last(9)),
                (text.len() - last.len(), last.into())
            );
        }
    }

    #[test]
    fn taking_makes_headway() {
        let mut queue = queue("a\u{1F980}\u{1F980}b");
        let taken: Vec<String> = [3, 1, 5].map(|max| queue.take(max)).into();
        assert_eq!(taken, ["a", "\u{1F980}", "\u{1F980}b"]);
        assert_eq!((queue.take(5), queue.is_empty()), (String::new(), true));
    }

    proptest! {
        // Any order of pushing, taking and dropping, next to a plain string.
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec((0u8..4, "\\PC{0,6}", 0usize..12), 0..40)) {
            let (mut queue, mut model) = (TextQueue::default(), String::new());
            for (what, text, size) in steps {
                match what {
                    0 | 1 => {
                        queue.push(&text);
                        model.push_str(&text);
                    }
                    2 => {
                        let taken = queue.take(size);
                        prop_assert!(taken.len() <= size || taken.chars().count() == 1);
                        prop_assert!(!taken.is_empty() || model.is_empty());
                        prop_assert_eq!(Some(taken.as_str()), model.get(..taken.len()));
                        model.drain(..taken.len());
                    }
                    _ => {
                        let dropped = queue.shorten_to(size);
                        prop_assert!(model.len() - dropped <= size);
                        prop_assert!(dropped < model.len().saturating_sub(size) + 4);
                        model.drain(..dropped);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                let last = queue.last(size);
                prop_assert!(model.ends_with(&last) && last.len() + 4 > size.min(model.len()));
            }
        }
    }
}
