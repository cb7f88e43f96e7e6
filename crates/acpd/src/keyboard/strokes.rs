//! From the bytes that a terminal sends to the strokes of a person: text, keys that move and change it, and what was pasted.
//!
//! Pure; owned by the keyboard, which says when a lone escape has waited long enough for the rest of a sequence.
//! Invariants: bytes may be torn anywhere; no part of an unknown sequence is taken for text; what is kept of a paste is
//! bounded.

/// The most of a paste that is taken, in bytes.
const PASTED: usize = 1 << 20;
/// The end of a paste in brackets.
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The longest sequence whose parameters mean something here.
const PARAMETERS: usize = 8;

/// What a person did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// Characters that came together, without controls.
    Text(String),
    /// What was pasted, where the terminal says so; line ends are `\n`.
    Paste(String),
    Enter,
    /// Enter with Alt: a new line in the text.
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    WordLeft,
    WordRight,
    /// Ctrl-W, Alt-Backspace.
    DeleteWordLeft,
    /// Alt-D.
    DeleteWordRight,
    /// Ctrl-U.
    DeleteToStart,
    /// Ctrl-K.
    DeleteToEnd,
    /// Ctrl-Y: puts back what was deleted.
    PutBack,
    Tab,
    BackTab,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Ctrl-L.
    Redraw,
    /// Ctrl-R.
    Search,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-\
    Quit,
}

/// How far a sequence has come.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC [, with its parameters so far.
    Sequence(Vec<u8>),
    /// One more byte belongs to the sequence and decides: ESC O, or ESC [ [ of the Linux console.
    One { arrows: bool },
    /// In a paste, with what may be its end.
    Paste(Vec<u8>),
}

/// Makes strokes of bytes, however they are torn.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    state: State,
    /// Bytes of text that are not yet a stroke; a torn character is at its end.
    text: Vec<u8>,
}

impl Decoder {
    /// The strokes in what came at once.
    pub(super) fn strokes(&mut self, bytes: &[u8]) -> Vec<Stroke> {
        let mut strokes = Vec::new();
        for byte in bytes {
            self.byte(*byte, &mut strokes);
        }
        self.end_text(true, &mut strokes);
        strokes
    }

    /// Whether a sequence is not complete. A paste is, however long it takes.
    pub(super) fn is_waiting(&self) -> bool {
        !matches!(self.state, State::Ground | State::Paste(_))
    }

    /// Nothing more came: an escape was the key, and a torn sequence is none.
    pub(super) fn settle(&mut self) -> Option<Stroke> {
        (std::mem::take(&mut self.state) == State::Escape).then_some(Stroke::Escape)
    }

    fn byte(&mut self, byte: u8, strokes: &mut Vec<Stroke>) {
        let state = match std::mem::take(&mut self.state) {
            State::Paste(pasted) => return self.pasted(pasted, byte, strokes),
            state => state,
        };
        if state == State::Ground && byte >= 0x20 && byte != 0x7f {
            return self.text.push(byte);
        }
        self.end_text(false, strokes);
        let stroke = match (state, byte) {
            (State::Escape, 0x1b) => {
                self.state = State::Escape;
                Some(Stroke::Escape)
            }
            (_, 0x1b) => {
                self.state = State::Escape;
                None
            }
            (State::Escape, b'\r' | b'\n') => Some(Stroke::NewLine),
            (State::Escape, 0x7f | 0x08) => Some(Stroke::DeleteWordLeft),
            // Controls work in the middle of a sequence too.
            (_, 0..0x20) | (State::Ground, _) => control(byte),
            (State::Escape, b'[') => {
                self.state = State::Sequence(Vec::new());
                None
            }
            (State::Escape, b'O') => {
                self.state = State::One { arrows: true };
                None
            }
            (State::Escape, byte) => with_alt(byte),
            (State::Sequence(parameters), b'[') if parameters.is_empty() => {
                self.state = State::One { arrows: false };
                None
            }
            (State::Sequence(parameters), b'~') if parameters == b"200" => {
                self.state = State::Paste(Vec::new());
                None
            }
            (State::Sequence(parameters), 0x40..=0x7e) => of_sequence(&parameters, byte),
            (State::Sequence(mut parameters), byte) => {
                if parameters.len() < PARAMETERS {
                    parameters.push(byte);
                }
                self.state = State::Sequence(parameters);
                None
            }
            (State::One { arrows: true }, byte) => of_sequence(b"", byte),
            (State::One { arrows: false } | State::Paste(_), _) => None,
        };
        strokes.extend(stroke);
    }

    /// What is beyond the bound is dropped, but for what may be the end.
    fn pasted(&mut self, mut pasted: Vec<u8>, byte: u8, strokes: &mut Vec<Stroke>) {
        if pasted.len() >= PASTED {
            pasted.remove(PASTED - PASTE_ENDS.len());
        }
        pasted.push(byte);
        match pasted.strip_suffix(PASTE_ENDS) {
            Some(text) => {
                let text = String::from_utf8_lossy(text).replace("\r\n", "\n").replace('\r', "\n");
                strokes.push(Stroke::Paste(text));
            }
            None => self.state = State::Paste(pasted),
        }
    }

    /// Gives the text so far; a torn character `waits` for its rest.
    fn end_text(&mut self, waits: bool, strokes: &mut Vec<Stroke>) {
        let bytes = std::mem::take(&mut self.text);
        let whole = match std::str::from_utf8(&bytes) {
            Err(error) if waits && error.error_len().is_none() => error.valid_up_to(),
            _ => bytes.len(),
        };
        self.text.extend(&bytes[whole..]);
        let text = String::from_utf8_lossy(&bytes[..whole]);
        if !text.is_empty() {
            strokes.push(Stroke::Text(text.into_owned()));
        }
    }
}

fn control(byte: u8) -> Option<Stroke> {
    Some(match byte {
        0x01 => Stroke::Home,
        0x02 => Stroke::Left,
        0x03 => Stroke::Interrupt,
        0x04 => Stroke::EndOfInput,
        0x05 => Stroke::End,
        0x06 => Stroke::Right,
        0x08 | 0x7f => Stroke::Backspace,
        b'\t' => Stroke::Tab,
        b'\r' | b'\n' => Stroke::Enter,
        0x0b => Stroke::DeleteToEnd,
        0x0c => Stroke::Redraw,
        0x12 => Stroke::Search,
        0x0e => Stroke::Down,
        0x10 => Stroke::Up,
        0x15 => Stroke::DeleteToStart,
        0x17 => Stroke::DeleteWordLeft,
        0x19 => Stroke::PutBack,
        0x1a => Stroke::Suspend,
        0x1c => Stroke::Quit,
        _ => return None,
    })
}

fn with_alt(byte: u8) -> Option<Stroke> {
    match byte {
        b'b' => Some(Stroke::WordLeft),
        b'f' => Some(Stroke::WordRight),
        b'd' => Some(Stroke::DeleteWordRight),
        _ => None,
    }
}

/// The key of a sequence, by its parameters and the byte that ends it.
fn of_sequence(parameters: &[u8], last: u8) -> Option<Stroke> {
    // A modifier makes an arrow one over words.
    let by_words = parameters.starts_with(b"1;");
    Some(match last {
        b'A' => Stroke::Up,
        b'B' => Stroke::Down,
        b'C' if by_words => Stroke::WordRight,
        b'D' if by_words => Stroke::WordLeft,
        b'C' => Stroke::Right,
        b'D' => Stroke::Left,
        b'F' => Stroke::End,
        b'H' => Stroke::Home,
        b'Z' => Stroke::BackTab,
        b'~' => match parameters {
            b"1" | b"7" => Stroke::Home,
            b"4" | b"8" => Stroke::End,
            b"3" => Stroke::Delete,
            _ => return None,
        },
        // Enter with Alt or Shift, from terminals that tell them apart.
        b'u' if parameters.starts_with(b"13;") => Stroke::NewLine,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Stroke {
        Stroke::Text(text.to_owned())
    }

    // contract 7.1: what terminals send is what the person meant, and an unknown sequence is nothing
    #[test]
    fn bytes_become_strokes() {
        use Stroke::{
            BackTab, Backspace, Delete, DeleteWordLeft, End, Enter, Home, Left, NewLine, Right, Tab,
            WordLeft, WordRight,
        };
        let cases: Vec<(&[u8], Vec<Stroke>)> = vec![
            ("hé 漢!".as_bytes(), vec![text("hé 漢!")]),
            (b"a\x7fb\n", vec![text("a"), Backspace, text("b"), Enter]),
            (b"\x1b[D\x1b[C\x1bOD", vec![Left, Right, Left]),
            (b"\x1b[1;5D\x1b[1;3C\x1bb\x1bf", vec![WordLeft, WordRight, WordLeft, WordRight]),
            (b"\x1b[H\x1b[F\x1b[1~\x1b[4~\x1b[3~", vec![Home, End, Home, End, Delete]),
            (b"\x1b\r\x1b\n\x1b[13;2u", vec![NewLine, NewLine, NewLine]),
            (b"\x17\x1b\x7f", vec![DeleteWordLeft, DeleteWordLeft]),
            (b"\t\x1b[Z", vec![Tab, BackTab]),
            (
                b"\x1b[200~a\r\nb\rc\x1b[31m\x03\x1b[201~d",
                vec![Stroke::Paste("a\nb\nc\u{1b}[31m\u{3}".to_owned()), text("d")],
            ),
            // F1 in three dialects, F5, a mouse, a long sequence, bytes that are no text.
            (b"\x1bOP\x1b[[A\x1b[11~\x1b[15~\x1b[<0;1;1M\x1b[1;2;3;4;5;6;7;8;9~", vec![]),
            (b"\xffx", vec![text("\u{fffd}x")]),
        ];
        for (bytes, strokes) in cases {
            assert_eq!(Decoder::default().strokes(bytes), strokes, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    // contract 7.1: bytes may be torn anywhere
    #[test]
    fn torn_bytes_are_whole() {
        let bytes = "é漢\u{1b}[1;5D\u{1b}[200~x\ny\u{1b}[201~".as_bytes();
        let mut decoder = Decoder::default();
        let strokes: Vec<Stroke> = bytes.iter().flat_map(|byte| decoder.strokes(&[*byte])).collect();
        assert_eq!(strokes, [text("é"), text("漢"), Stroke::WordLeft, Stroke::Paste("x\ny".to_owned())]);
        assert!(!decoder.is_waiting());
    }

    // contract 7.1: an endless paste is bounded, and its end is still seen
    #[test]
    fn an_endless_paste_is_bounded() {
        let mut decoder = Decoder::default();
        decoder.strokes(b"\x1b[200~");
        for _ in 0..(PASTED >> 16) {
            assert_eq!(decoder.strokes(&vec![b'x'; 1 << 16]), []);
        }
        assert_eq!(decoder.strokes(b"more"), []);
        let strokes = decoder.strokes(b"\x1b[201~y");
        let [Stroke::Paste(pasted), rest] = &strokes[..] else { panic!("{} strokes", strokes.len()) };
        assert!(pasted.len() <= PASTED && *rest == text("y"));
    }
}
