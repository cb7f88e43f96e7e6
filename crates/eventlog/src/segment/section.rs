//! What a batch says of its session beside its events.

use super::{padding, u16_at, u32_at, u64_at};

/// Bytes in front of a section's own.
const HEAD: usize = 8;
const FACTS: u16 = 1;
const INFO: u16 = 2;
const WAITING: u16 = 3;
const BEGUN: u16 = 4;

/// Something that a batch says of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section<'a> {
    /// What never changes in a session but by a claim, as JSON.
    Facts(&'a [u8]),
    /// The host's own description.
    Info(&'a [u8]),
    /// What the session was given under a number and has not begun with.
    Waiting {
        /// Its number.
        number: u64,
        /// What it is.
        bytes: &'a [u8],
    },
    /// What has this number waits no longer.
    Begun {
        /// Its number.
        number: u64,
    },
    /// Of a kind that a later acpd may write.
    Unknown {
        /// Its kind.
        kind: u16,
        /// Its bytes.
        bytes: &'a [u8],
    },
}

/// Adds a section, padded, to the bytes of a batch.
pub fn put_section(out: &mut Vec<u8>, section: Section<'_>) {
    let (kind, number, bytes) = match section {
        Section::Facts(bytes) => (FACTS, None, bytes),
        Section::Info(bytes) => (INFO, None, bytes),
        Section::Waiting { number, bytes } => (WAITING, Some(number), bytes),
        Section::Begun { number } => (BEGUN, Some(number), &[][..]),
        Section::Unknown { kind, bytes } => (kind, None, bytes),
    };
    let length = bytes.len() + number.map_or(0, |_| size_of::<u64>());
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(number.iter().flat_map(|number| number.to_le_bytes()));
    out.extend_from_slice(bytes);
    out.resize(out.len() + padding(length), 0);
}

/// The sections of a batch in order. One that is cut off ends them: the batch's checksum has told before.
#[derive(Clone, Debug)]
pub struct Sections<'a>(&'a [u8]);

impl<'a> Sections<'a> {
    /// Those in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Section<'a>;

    fn next(&mut self) -> Option<Section<'a>> {
        let (head, rest) = self.0.split_first_chunk::<HEAD>()?;
        let (kind, length) = (u16_at(head, 0), u32_at(head, 4) as usize);
        let (bytes, rest) = rest.split_at_checked(length)?;
        self.0 = rest.get(padding(length)..).unwrap_or_default();
        let numbered = bytes.split_at_checked(size_of::<u64>());
        Some(match (kind, numbered) {
            (FACTS, _) => Section::Facts(bytes),
            (INFO, _) => Section::Info(bytes),
            (WAITING, Some((number, bytes))) => Section::Waiting { number: u64_at(number, 0), bytes },
            (BEGUN, Some((number, _))) => Section::Begun { number: u64_at(number, 0) },
            _ => Section::Unknown { kind, bytes },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // design session-files 3: sections of any length come back, and an unknown kind is skipped
    #[test]
    fn sections_come_back_in_their_order() {
        let all = [
            Section::Facts(br#"{"id":"s"}"#),
            Section::Unknown { kind: 99, bytes: b"later" },
            Section::Info(b""),
            Section::Waiting { number: u64::MAX, bytes: b"a prompt that waits" },
            Section::Begun { number: 3 },
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|section| put_section(&mut bytes, *section));
        assert!(bytes.len().is_multiple_of(8));
        assert_eq!(Sections::new(&bytes).collect::<Vec<_>>(), all);
        for end in 0..bytes.len() {
            assert!(Sections::new(&bytes[..end]).count() <= all.len(), "no panic at {end}");
        }
    }
}
