//! From the strokes of a person to the keys that answer a question.
//!
//! Pure. Invariant: what is no key of ours gives none: a function key, or a paste, must not allow anything.

use super::strokes::Stroke;

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

/// The keys in what came at once. Several letters at once were pasted, not pressed: they answer nothing.
pub(super) fn keys(strokes: &[Stroke]) -> Vec<Key> {
    let letters = |stroke: &Stroke| match stroke {
        Stroke::Text(text) | Stroke::Paste(text) => text.chars().filter(char::is_ascii_alphanumeric).count(),
        _ => 0,
    };
    let mut keys: Vec<Key> = strokes.iter().filter_map(Key::of).collect();
    if strokes.iter().map(letters).sum::<usize>() > 1 {
        keys.retain(|key| matches!(key, Key::Interrupt | Key::Suspend | Key::Quit));
    }
    keys
}

impl Key {
    /// What a stroke means at a question.
    pub(crate) fn of(stroke: &Stroke) -> Option<Self> {
        Some(match stroke {
            Stroke::Text(text) => {
                let mut letters = text.chars().filter(char::is_ascii_alphanumeric);
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => Self::Letter(letter.to_ascii_lowercase()),
                    _ => return None,
                }
            }
            Stroke::Enter => Self::Enter,
            Stroke::Up | Stroke::BackTab => Self::Up,
            Stroke::Down | Stroke::Tab => Self::Down,
            Stroke::Escape => Self::Escape,
            Stroke::Interrupt | Stroke::EndOfInput => Self::Interrupt,
            Stroke::Suspend => Self::Suspend,
            Stroke::Quit => Self::Quit,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::strokes::Decoder;
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        let mut pressed = keys(&decoder.strokes(bytes));
        pressed.extend(decoder.settle().as_ref().and_then(Key::of));
        pressed
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
            assert_eq!(super::keys(&decoder.strokes(byte)), keys);
            assert_eq!(decoder.is_waiting(), !matches!(byte, b"A" | b"n"));
        }
        assert_eq!(decoder.settle(), None);
    }
}
