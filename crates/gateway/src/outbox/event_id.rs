//! The ids of events: a stream's tag and the event's number in it. Opaque to clients.

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
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}-{}", self.tag, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HT-6: an id comes back as it went, and nothing else is one
    #[test]
    fn ids_are_read_as_they_are_written() {
        for (tag, number) in [(0, 0), (0x0123_abcd, 7), (u32::MAX, 1_000_000), (1, u64::MAX)] {
            let id = EventId { tag, number };
            let text = id.to_string();
            assert!(text.len() <= LONGEST);
            assert_eq!(EventId::read(&text), Some(id));
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
