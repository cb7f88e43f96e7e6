//! The first bytes of a segment: which part of which chain it is, and how much of the segment before it counts.
//!
//! Written once, with the segment's first batch, and never changed.

use super::{FORMAT, NONCE_BYTES, u16_at, u32_at, u64_at};

/// Bytes of a segment's header.
pub const HEADER_BYTES: usize = 64;

pub(crate) const MAGIC: &[u8; 8] = b"acpdseg\n";

/// What a segment is beside a part of the log, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentFlags(pub u16);

impl SegmentFlags {
    /// Closed and compressed: its content is frames.
    pub const SEALED: Self = Self(1);
    /// The session was deleted by the claim of this segment.
    pub const DELETED: Self = Self(2);
    /// The session has another id from this segment on.
    pub const MOVED: Self = Self(4);

    const KNOWN: u16 = 1 | 2 | 4;

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Which part of the log a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// What it is beside that.
    pub flags: SegmentFlags,
    /// Its number, from 1.
    pub number: u32,
    /// The sequence number of its first event.
    pub first_seq: u64,
    /// How many bytes of the segment before it count; 0 of the first segment.
    pub cut: u64,
    /// The checksum of the last batch before the cut; 0 of the first segment.
    pub before: u32,
    /// Random bytes that its checksums cover, so that no bytes from elsewhere pass for a batch of it.
    pub nonce: [u8; NONCE_BYTES],
}

/// Why bytes are no segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// There are fewer than [`HEADER_BYTES`].
    #[error("the file is shorter than a segment's header")]
    Short,
    /// It does not begin as a segment does.
    #[error("the file is no segment of an event log")]
    Foreign,
    /// A newer acpd wrote it.
    #[error("the segment has format {found}, and this acpd knows format {FORMAT}")]
    Newer {
        /// Its format.
        found: u16,
    },
    /// Its checksum does not match.
    #[error("the segment's header is damaged")]
    Damaged,
}

impl SegmentHeader {
    /// The header of a session's first segment.
    pub fn first(nonce: [u8; NONCE_BYTES]) -> Self {
        Self { flags: SegmentFlags::default(), number: 1, first_seq: 1, cut: 0, before: 0, nonce }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(MAGIC);
        out[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        out[10..12].copy_from_slice(&self.flags.0.to_le_bytes());
        out[12..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.first_seq.to_le_bytes());
        out[24..32].copy_from_slice(&self.cut.to_le_bytes());
        out[32..36].copy_from_slice(&self.before.to_le_bytes());
        out[40..56].copy_from_slice(&self.nonce);
        let checksum = crc32fast::hash(&out[..60]);
        out[60..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header at the front of `bytes`.
    ///
    /// # Errors
    /// When there is none that this acpd can read.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes = bytes.first_chunk::<HEADER_BYTES>().ok_or(HeaderError::Short)?;
        if &bytes[..8] != MAGIC {
            return Err(HeaderError::Foreign);
        }
        if crc32fast::hash(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(HeaderError::Damaged);
        }
        let (found, flags) = (u16_at(bytes, 8), u16_at(bytes, 10));
        // A flag that is not known here changes what the segment means.
        if found != FORMAT || flags & !SegmentFlags::KNOWN != 0 {
            return Err(HeaderError::Newer { found });
        }
        let number = u32_at(bytes, 12);
        let first_seq = u64_at(bytes, 16);
        if number == 0 || first_seq == 0 {
            return Err(HeaderError::Damaged);
        }
        Ok(Self {
            flags: SegmentFlags(flags),
            number,
            first_seq,
            cut: u64_at(bytes, 24),
            before: u32_at(bytes, 32),
            nonce: bytes[40..56].try_into().map_err(|_| HeaderError::Short)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            flags: SegmentFlags::MOVED,
            number: 7,
            first_seq: 1 << 40,
            cut: 4096,
            before: 0xdead_beef,
            nonce: *b"sixteen bytes...",
        }
    }

    // design session-files 3: a header is what was written, or an error, whatever byte was changed
    #[test]
    fn a_header_comes_back_or_is_refused() {
        let bytes = header().encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header()));
        for at in 0..HEADER_BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 1;
            let refused = SegmentHeader::decode(&damaged).expect_err("a byte is another");
            assert_eq!(refused == HeaderError::Foreign, at < 8, "{at}: {refused}");
        }
        assert_eq!(SegmentHeader::decode(&bytes[..HEADER_BYTES - 1]), Err(HeaderError::Short));
    }

    // design session-files 3: what a later acpd writes is not taken for something else
    #[test]
    fn another_format_and_unknown_flags_are_told() {
        for (at, value) in [(8, 2_u16), (10, 8)] {
            let mut bytes = header().encode();
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
            let checksum = crc32fast::hash(&bytes[..60]);
            bytes[60..].copy_from_slice(&checksum.to_le_bytes());
            assert!(matches!(SegmentHeader::decode(&bytes), Err(HeaderError::Newer { .. })), "{at}");
        }
    }
}
