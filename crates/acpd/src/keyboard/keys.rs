//! From the bytes that a terminal sends to the keys that answer a question.
//!
//! Pure; owned by the keyboard, which says when a lone escape has waited long enough for the rest of a sequence.
//! Invariant: what is no key of ours gives none, and no part of an unknown sequence is taken for a letter: a function
//! key must not allow anything.

/// What a person can press at a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    Enter,
    Escape,
    /// An ASCII letter, in lower case, or a digit.
    Letter(char),
    /// Ctrl-C, and Ctrl-D, which is the end of input.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-\
    Quit,
}

/// How far a sequence has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC [, before the byte that ends it.
    Sequence { first: bool },
    /// One more byte belongs to the sequence and decides: ESC O, or ESC [ [ of the Linux console.
    One { arrows: bool },
}

/// Makes keys of bytes, however they are torn.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    state: State,
}

impl Decoder {
    /// The keys in what came at once. Several letters at once were pasted, not pressed: they answer nothing.
    pub(crate) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys: Vec<Key> = bytes.iter().filter_map(|byte| self.key(*byte)).collect();
        if keys.iter().filter(|key| matches!(key, Key::Letter(_))).count() > 1 {
            keys.retain(|key| matches!(key, Key::Interrupt | Key::Suspend | Key::Quit));
        }
        keys
    }

    /// Whether a sequence is not complete.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state != State::Ground
    }

    /// Nothing more came: an escape was the key, and a torn sequence is none.
    pub(crate) fn settle(&mut self) -> Option<Key> {
        (std::mem::take(&mut self.state) == State::Escape).then_some(Key::Escape)
    }

    fn key(&mut self, byte: u8) -> Option<Key> {
        let state = std::mem::take(&mut self.state);
        match (state, byte) {
            (State::Escape, 0x1b) => {
                self.state = State::Escape;
                Some(Key::Escape)
            }
            (_, 0x1b) => {
                self.state = State::Escape;
                None
            }
            // Controls work in the middle of a sequence too.
            (_, 0..0x20) | (State::Ground, _) => control_or_letter(byte),
            (State::Escape, b'[') => {
                self.state = State::Sequence { first: true };
                None
            }
            (State::Escape, b'O') => {
                self.state = State::One { arrows: true };
                None
            }
            // Alt and a key.
            (State::Escape, _) => None,
            (State::Sequence { first: true }, b'[') => {
                self.state = State::One { arrows: false };
                None
            }
            (State::Sequence { .. }, 0x40..=0x7e) | (State::One { arrows: true }, _) => arrow(byte),
            (State::Sequence { .. }, _) => {
                self.state = State::Sequence { first: false };
                None
            }
            (State::One { arrows: false }, _) => None,
        }
    }
}

fn control_or_letter(byte: u8) -> Option<Key> {
    Some(match byte {
        0x03 | 0x04 => Key::Interrupt,
        0x1a => Key::Suspend,
        0x1c => Key::Quit,
        b'\r' | b'\n' => Key::Enter,
        // Ctrl-P; Ctrl-N and tab.
        0x10 => Key::Up,
        0x0e | b'\t' => Key::Down,
        letter if letter.is_ascii_alphanumeric() => Key::Letter(char::from(letter.to_ascii_lowercase())),
        _ => return None,
    })
}

/// The byte that ends the sequence of an arrow; Z is shift and tab.
fn arrow(byte: u8) -> Option<Key> {
    match byte {
        b'A' | b'Z' => Some(Key::Up),
        b'B' => Some(Key::Down),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut keys = decoder.keys(bytes);
        keys.extend(decoder.settle());
        keys
    }

    // contract 6: permission questions on the terminal; keys, as terminals send them
    #[test]
    fn bytes_become_keys() {
        use Key::{Down, Enter, Escape, Interrupt, Letter, Quit, Suspend, Up};
        for (bytes, keys) in [
            (&b"\x1b[A"[..], vec![Up]),
            (b"\x1b[B\x1b[B", vec![Down, Down]),
            (b"\x1bOA\x1bOB", vec![Up, Down]),
            (b"\x1b[1;5A\x1b[Z", vec![Up, Up]),
            (b"\x10\x0e\t", vec![Up, Down, Down]),
            (b"\r", vec![Enter]),
            (b"\x1b[B\n", vec![Down, Enter]),
            (b"Y", vec![Letter('y')]),
            (b"7", vec![Letter('7')]),
            (b"\x1b", vec![Escape]),
            (b"\x1b\x1b", vec![Escape, Escape]),
            (b"\x03\x04\x1a\x1c", vec![Interrupt, Interrupt, Suspend, Quit]),
            (b"\x1b[\x03", vec![Interrupt]),
            // Nothing of ours: F1 in three dialects, F5, delete, Alt-Y, a mouse, a letter that is not ASCII.
            (b"\x1bOP\x1b[[A\x1b[11~", vec![]),
            (b"\x1b[15~\x1b[3~\x1by\x1b[<0;1;1M", vec![]),
            ("ÿ\u{301}漢 !".as_bytes(), vec![]),
            (b"\x1b[1;", vec![]),
            (b"\xff\x80\xc3", vec![]),
        ] {
            assert_eq!(decoded(bytes), keys, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    // contract 6: what is pasted answers nothing
    #[test]
    fn a_paste_is_no_answer() {
        assert_eq!(decoded(b"yes\r"), []);
        assert_eq!(decoded(b"y\ny\n\x03"), [Key::Interrupt]);
        assert_eq!(decoded(b"y\r"), [Key::Letter('y'), Key::Enter]);
    }

    // contract 6: a sequence may be torn anywhere
    #[test]
    fn torn_sequences_are_whole() {
        let mut decoder = Decoder::default();
        for (byte, keys) in [
            (b"\x1b", vec![]),
            (b"[", vec![]),
            (b"1", vec![]),
            (b"A", vec![Key::Up]),
            (b"n", vec![Key::Letter('n')]),
        ] {
            assert_eq!(decoder.keys(byte), keys);
            assert_eq!(decoder.is_waiting(), !matches!(byte, b"A" | b"n"));
        }
        assert_eq!(decoder.settle(), None);
    }
}
