//! The grammar of JSON (RFC 8259), passed over without building anything.
//!
//! Strings are looked at in blocks, since they are most of what agents write. Not here: which members count.

/// Bytes of a block in a long string: as many as the vectors of common processors take in two steps.
const BLOCK: usize = 32;
/// Room for the longest name that is compared.
const NAME: usize = 32;
/// Levels that one word of the stack has.
const LEVELS: usize = 128;

/// The text breaks the grammar.
#[derive(Debug, Clone, Copy)]
pub(super) struct Invalid;

/// A string, without its quotes. Its places are as those of a scan, which fit into registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    start: u32,
    end: u32,
    has_escapes: bool,
}

/// A place in a text, and what was seen before it.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    has_halves: bool,
}

impl<'a> Reader<'a> {
    /// At the beginning of text that is valid UTF-8.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, has_halves: false }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Whether half of a surrogate pair was seen.
    pub(super) fn has_halves(&self) -> bool {
        self.has_halves
    }

    /// The next byte; 0 at the end, which begins nothing either.
    #[inline]
    pub(super) fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Passes over the next byte.
    pub(super) fn step(&mut self) {
        self.at += 1;
    }

    /// Passes over white space; gives the byte behind it.
    #[inline]
    pub(super) fn skip_space(&mut self) -> u8 {
        loop {
            match self.peek() {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// Nothing but white space follows.
    pub(super) fn end(&mut self) -> Result<(), Invalid> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(Invalid) }
    }

    /// Enters the object that begins here; whether it has members.
    pub(super) fn open_object(&mut self) -> Result<bool, Invalid> {
        self.at += 1;
        let is_empty = self.skip_space() == b'}';
        self.at += usize::from(is_empty);
        Ok(!is_empty)
    }

    /// Passes over a name and its colon, to the value.
    #[inline]
    pub(super) fn name(&mut self) -> Result<Text, Invalid> {
        if self.skip_space() != b'"' {
            return Err(Invalid);
        }
        let name = self.string()?;
        if self.skip_space() != b':' {
            return Err(Invalid);
        }
        self.at += 1;
        self.skip_space();
        Ok(name)
    }

    /// Goes on behind a member's value; whether another member follows.
    #[inline]
    pub(super) fn next_member(&mut self) -> Result<bool, Invalid> {
        let byte = self.skip_space();
        self.at += 1;
        match byte {
            b',' => Ok(true),
            b'}' => Ok(false),
            _ => Err(Invalid),
        }
    }

    /// What `of` makes of a string's text; `None` for a text that is longer than any counted one, or not ASCII.
    #[inline]
    pub(super) fn decode<T>(&self, text: Text, of: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let raw = &self.bytes[text.start as usize..text.end as usize];
        if !text.has_escapes {
            return of(raw);
        }
        let (mut decoded, mut length, mut rest) = ([0; NAME], 0, raw);
        while let [first, behind @ ..] = rest {
            let (byte, behind) = if *first == b'\\' { unescape(behind)? } else { (*first, behind) };
            *decoded.get_mut(length)? = byte;
            (length, rest) = (length + 1, behind);
        }
        of(&decoded[..length])
    }

    /// Passes over a string, whose quote is next.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Text, Invalid> {
        self.at += 1;
        let start = self.at as u32;
        let mut has_escapes = false;
        loop {
            self.skip_plain();
            match self.peek() {
                b'"' => {
                    let end = self.at as u32;
                    self.at += 1;
                    return Ok(Text { start, end, has_escapes });
                }
                b'\\' => {
                    has_escapes = true;
                    self.escape()?;
                }
                _ => return Err(Invalid),
            }
        }
    }

    /// Goes to the next quote, backslash or control character, or to the end.
    #[inline]
    fn skip_plain(&mut self) {
        let mut words = 0;
        while let Some((word, later)) = self.bytes[self.at..].split_first_chunk::<8>() {
            let special = special_in(u64::from_le_bytes(*word));
            if special != 0 {
                self.at += special.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
            words += 1;
            if words == BLOCK / 8 {
                self.at += plain_blocks(later);
            }
        }
        while self.bytes.get(self.at).is_some_and(|byte| !is_special(*byte)) {
            self.at += 1;
        }
    }

    /// Passes over an escape, whose backslash is next.
    fn escape(&mut self) -> Result<(), Invalid> {
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let unit = unit_at(self.bytes, self.at).ok_or(Invalid)?;
                self.at += 6;
                match unit {
                    0xD800..0xDC00 if is_low(unit_at(self.bytes, self.at)) => self.at += 6,
                    0xD800..0xE000 => self.has_halves = true,
                    _ => {}
                }
            }
            _ => return Err(Invalid),
        }
        Ok(())
    }

    /// Passes over a number, which begins here.
    pub(super) fn number(&mut self) -> Result<(), Invalid> {
        self.at += usize::from(self.peek() == b'-');
        match self.peek() {
            // A digit behind it is found by whoever looks for a comma there.
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Invalid> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Invalid) }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Invalid> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(Invalid);
        }
        self.at += word.len();
        Ok(())
    }

    /// Passes over a value, which begins here.
    #[inline]
    pub(super) fn value(&mut self) -> Result<(), Invalid> {
        match self.peek() {
            b'{' | b'[' => self.nested(),
            _ => self.scalar(),
        }
    }

    #[inline]
    fn scalar(&mut self) -> Result<(), Invalid> {
        match self.peek() {
            b'"' => self.string().map(|_| ()),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    /// Passes over an object or an array, which begins here.
    fn nested(&mut self) -> Result<(), Invalid> {
        let mut levels = Levels::default();
        loop {
            match self.peek() {
                b'{' => {
                    if self.open_object()? {
                        levels.push(true);
                        self.name()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.skip_space() != b']' {
                        levels.push(false);
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.scalar()?,
            }
            // A value has ended, and with it perhaps some around it.
            loop {
                let Some(is_object) = levels.last() else { return Ok(()) };
                let byte = self.skip_space();
                self.at += 1;
                match byte {
                    b',' if is_object => {
                        self.name()?;
                        break;
                    }
                    b',' => {
                        self.skip_space();
                        break;
                    }
                    b'}' if is_object => levels.pop(),
                    b']' if !is_object => levels.pop(),
                    _ => return Err(Invalid),
                }
            }
        }
    }
}

/// Objects and arrays that are open, a bit each.
#[derive(Default)]
struct Levels {
    /// The innermost ones.
    bits: u128,
    depth: usize,
    /// Those around them, full words.
    outer: Vec<u128>,
}

impl Levels {
    /// Whether the innermost one is an object; `None` when none is open.
    #[inline]
    fn last(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    #[inline]
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(LEVELS) {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u128::from(is_object);
        self.depth += 1;
    }

    #[inline]
    fn pop(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth > 0 && self.depth.is_multiple_of(LEVELS) {
            self.bits = self.outer.pop().unwrap_or_default();
        }
    }
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// The highest bit of each special byte of a word, at least of the lowest one.
#[inline]
fn special_in(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let equal = |byte: u8| {
        let other = word ^ (ONES * u64::from(byte));
        other.wrapping_sub(ONES) & !other
    };
    let control = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
    (control | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

/// How many bytes at the beginning are whole blocks without a special byte.
fn plain_blocks(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let is_plain = |block: &&[u8; BLOCK]| !block.iter().fold(false, |any, byte| any | is_special(*byte));
    blocks.iter().take_while(is_plain).count() * BLOCK
}

/// The number in the escape `\uXXXX` that begins at `at`.
pub(crate) fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = bytes.get(at..at + 6)? else { return None };
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | digit as u16)
    })
}

/// Whether a unit is the second half of a surrogate pair.
pub(crate) fn is_low(unit: Option<u16>) -> bool {
    unit.is_some_and(|unit| (0xDC00..0xE000).contains(&unit))
}

/// The ASCII byte that an escape stands for, without its backslash, and what follows.
fn unescape(escape: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, rest) = escape.split_first()?;
    Some(match kind {
        b'u' => {
            let (digits, rest) = rest.split_first_chunk::<4>()?;
            let digits = std::str::from_utf8(digits).ok()?;
            let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
            (byte, rest)
        }
        b'b' => (8, rest),
        b'f' => (12, rest),
        b'n' => (b'\n', rest),
        b'r' => (b'\r', rest),
        b't' => (b'\t', rest),
        other => (*other, rest),
    })
}
