//! The ids of events: a stream's tag and the event's number in it. Opaque to clients.

use bytes::{BufMut, BytesMut};

/// The most digits of a number.
const DIGITS: usize = 20;
/// Bytes of an id at most.
pub(super) const LONGEST: usize = 8 + 1 + DIGITS;

/// Names one event of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    /// The stream's own; another stream has another one.
    pub(crate) tag: u32,
    /// From 1 up.
    pub(crate) number: u64,
}

impl EventId {
    /// Reads what a client says it has seen last.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (tag, number) = text.split_once('-')?;
        let is_ours = tag.len() == 8 && tag.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let is_number = number.len() <= DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
        if !is_ours || !is_number {
            return None;
        }
        Some(Self { tag: u32::from_str_radix(tag, 16).ok()?, number: number.parse().ok()? })
    }

    pub(super) fn put(self, out: &mut BytesMut) {
        for place in (0..8).rev() {
            out.put_u8(b"0123456789abcdef"[(self.tag >> (4 * place)) as usize & 15]);
        }
        out.put_u8(b'-');
        let (mut digits, mut at, mut rest) = ([0; DIGITS], DIGITS, self.number);
        loop {
            at -= 1;
            digits[at] = b"0123456789"[(rest % 10) as usize];
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        out.put_slice(&digits[at..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HT-6: an id comes back as it went, and nothing else is one
    #[test]
    fn ids_are_read_as_they_are_written() {
        for (tag, number) in [(0, 0), (0x0123_abcd, 7), (u32::MAX, 1_000_000), (1, u64::MAX)] {
            let (id, mut out) = (EventId { tag, number }, BytesMut::new());
            id.put(&mut out);
            assert!(out.len() <= LONGEST);
            assert_eq!(EventId::read(std::str::from_utf8(&out).expect("text")), Some(id));
        }
        for other in [
            "",
            "7",
            "-",
            "-7",
            "0123abcd-",
            "0123ABCD-7",
            "0123abcd-+7",
            "0123abcd-7x",
            "123abcd-7",
            "0123abcd-18446744073709551616",
            "0123abcd-é",
        ] {
            assert_eq!(EventId::read(other), None, "{other}");
        }
    }
}
