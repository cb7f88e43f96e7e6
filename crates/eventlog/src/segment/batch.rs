//! A batch as it lies in a segment: what was appended at once, and counts as a whole or not at all.
//!
//! Header, sections, records, padding, trailer. The trailer repeats length and checksum, so that the last batch of a segment is
//! found from its end.

use super::section::Sections;
use super::unpack::unpack_records;
use super::{ALIGNMENT, NONCE_BYTES, padding, u16_at, u32_at, u64_at};
use crc32fast::Hasher;
use std::borrow::Cow;

/// Bytes of a batch's header.
pub const HEAD_BYTES: usize = 80;
/// Bytes of the length and the checksum, in front and at the end.
pub const TRAILER_BYTES: usize = 8;

/// What a batch is beside its events, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchFlags(pub u16);

impl BatchFlags {
    /// The session has ended.
    pub const ENDED: Self = Self(1);
    /// No host has the session any more: nothing follows in this segment.
    pub const RELEASED: Self = Self(2);
    /// It counts only together with the batch behind it.
    pub const MORE_FOLLOWS: Self = Self(4);
    /// Its records are packed.
    pub const PACKED: Self = Self(8);
    /// Its events happened elsewhere: no hook is told of them.
    pub const HISTORY: Self = Self(16);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The fixed part of a batch: where its session stands behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchHead {
    /// What it is beside its events.
    pub flags: BatchFlags,
    /// The host's own word for what the session is doing.
    pub state: u8,
    /// How many events are in it.
    pub events: u32,
    /// The sequence number of its first event, or of the next one if it has none.
    pub first_seq: u64,
    /// When the session changed by it, in milliseconds since 1970.
    pub at_ms: i64,
    /// Bytes of its agent's output that the session has handled.
    pub position: u64,
    /// The kinds of its events, a bit each.
    pub kinds: u64,
    /// The place of the last batch with an [`Info`](super::Section::Info), which may be this one.
    pub info_at: u64,
    /// The place of the oldest batch with something that still waits; 0: nothing waits.
    pub waiting_at: u64,
    /// Bytes of its records unpacked, if they are packed; else 0.
    pub unpacked: u32,
}

/// The bytes of a batch around its records, which are not copied.
#[derive(Debug)]
pub struct Framed {
    front: Vec<u8>,
    back: ([u8; TRAILER_BYTES + ALIGNMENT], usize),
}

impl Framed {
    /// What stands in front of the records.
    pub fn front(&self) -> &[u8] {
        &self.front
    }

    /// What stands behind them.
    pub fn back(&self) -> &[u8] {
        &self.back.0[..self.back.1]
    }

    /// The checksum, by which a segment behind this one names it.
    pub fn checksum(&self) -> u32 {
        u32_at(&self.front, 4)
    }
}

impl BatchHead {
    /// The last event of the session behind it.
    pub fn last_seq(&self) -> u64 {
        self.first_seq.saturating_add(u64::from(self.events)).saturating_sub(1)
    }

    /// The fixed part in the front of a batch, of which nothing is checked.
    pub fn peek(front: &[u8; HEAD_BYTES]) -> Self {
        Self::of(front)
    }

    /// `front` has at least the fixed part.
    fn of(front: &[u8]) -> Self {
        Self {
            flags: BatchFlags(u16_at(front, 8)),
            state: front[10],
            events: u32_at(front, 12),
            first_seq: u64_at(front, 16),
            at_ms: u64_at(front, 24).cast_signed(),
            position: u64_at(front, 32),
            kinds: u64_at(front, 40),
            info_at: u64_at(front, 48),
            waiting_at: u64_at(front, 56),
            unpacked: u32_at(front, 68),
        }
    }

    /// Begins a batch: room for its header, behind which its sections are put.
    pub fn begin(room: usize) -> Vec<u8> {
        let mut front = Vec::with_capacity(HEAD_BYTES + room);
        front.resize(HEAD_BYTES, 0);
        front
    }

    /// Frames records as the batch at `offset` of the segment with `nonce`. `front` is from [`begin`](Self::begin), with the sections
    /// behind it. None: it would be too long for the format.
    pub fn frame(
        &self,
        mut front: Vec<u8>,
        records: &[u8],
        nonce: &[u8; NONCE_BYTES],
        offset: u64,
    ) -> Option<Framed> {
        let inner = front.len() + records.len();
        let gap = padding(inner);
        let length = u32::try_from(inner + gap + TRAILER_BYTES).ok()?;
        let sections = u32::try_from(front.len() - HEAD_BYTES).ok()?;
        front[0..4].copy_from_slice(&length.to_le_bytes());
        front[8..10].copy_from_slice(&self.flags.0.to_le_bytes());
        front[10] = self.state;
        front[12..16].copy_from_slice(&self.events.to_le_bytes());
        let words = [
            (16, self.first_seq),
            (24, self.at_ms.cast_unsigned()),
            (32, self.position),
            (40, self.kinds),
            (48, self.info_at),
            (56, self.waiting_at),
        ];
        for (at, word) in words {
            front[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        front[64..68].copy_from_slice(&sections.to_le_bytes());
        front[68..72].copy_from_slice(&self.unpacked.to_le_bytes());
        // Fits, as it is less than the length.
        front[72..76].copy_from_slice(&(records.len() as u32).to_le_bytes());
        let mut back = [0; TRAILER_BYTES + ALIGNMENT];
        let mut hasher = checksum_of(nonce, offset, length);
        hasher.update(&front[8..]);
        hasher.update(records);
        hasher.update(&back[..gap]);
        let checksum = hasher.finalize().to_le_bytes();
        front[4..8].copy_from_slice(&checksum);
        back[gap..gap + 4].copy_from_slice(&length.to_le_bytes());
        back[gap + 4..gap + 8].copy_from_slice(&checksum);
        Some(Framed { front, back: (back, gap + TRAILER_BYTES) })
    }
}

fn checksum_of(nonce: &[u8; NONCE_BYTES], offset: u64, length: u32) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(nonce);
    hasher.update(&offset.to_le_bytes());
    hasher.update(&length.to_le_bytes());
    hasher
}

/// A batch that was read, borrowed from the bytes of its segment.
#[derive(Clone, Copy, Debug)]
pub struct StoredBatch<'a> {
    /// Its fixed part.
    pub head: BatchHead,
    /// Its checksum.
    pub checksum: u32,
    /// Bytes of the whole batch.
    pub length: u32,
    sections: &'a [u8],
    /// Its records as they are stored.
    pub records: &'a [u8],
}

/// Why bytes are no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// They end before the batch does. It may still be being written.
    #[error("the batch is cut off")]
    Cut,
    /// They are not what was written there.
    #[error("the batch is damaged")]
    Damaged,
}

impl<'a> StoredBatch<'a> {
    /// The batch at the front of `bytes`, which stand at `offset` of the segment with `nonce`.
    ///
    /// # Errors
    /// When there is no whole batch.
    pub fn decode(bytes: &'a [u8], nonce: &[u8; NONCE_BYTES], offset: u64) -> Result<Self, BatchError> {
        let length = bytes.get(..4).map(|bytes| u32_at(bytes, 0)).ok_or(BatchError::Cut)?;
        let size = length as usize;
        if size < HEAD_BYTES + TRAILER_BYTES || !size.is_multiple_of(ALIGNMENT) {
            return Err(BatchError::Damaged);
        }
        let bytes = bytes.get(..size).ok_or(BatchError::Cut)?;
        let (inner, trailer) = bytes.split_at(size - TRAILER_BYTES);
        let checksum = u32_at(inner, 4);
        let mut hasher = checksum_of(nonce, offset, length);
        hasher.update(&inner[8..]);
        if hasher.finalize() != checksum || u32_at(trailer, 0) != length || u32_at(trailer, 4) != checksum {
            return Err(BatchError::Damaged);
        }
        let head = BatchHead::of(inner);
        let (sections, rest) =
            inner[HEAD_BYTES..].split_at_checked(u32_at(inner, 64) as usize).ok_or(BatchError::Damaged)?;
        let records = rest.get(..u32_at(inner, 72) as usize).ok_or(BatchError::Damaged)?;
        Ok(Self { head, checksum, length, sections, records })
    }

    /// What it says of its session.
    pub fn sections(&self) -> Sections<'a> {
        Sections::new(self.sections)
    }
    /// Its records, unpacked if they are packed. What they need of memory is a frame, or twice what is stored, or what they really
    /// are, whatever the batch says.
    ///
    /// # Errors
    /// When they are not what the batch says.
    pub fn unpacked_records(&self) -> Result<Cow<'a, [u8]>, BatchError> {
        if self.head.flags.has(BatchFlags::PACKED) != (self.head.unpacked != 0) {
            return Err(BatchError::Damaged);
        }
        unpack_records(self.head.unpacked, self.records).ok_or(BatchError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack;

    const NONCE: [u8; NONCE_BYTES] = *b"nonce of a test.";

    /// The records of a batch with this head and what is stored of them, read back.
    fn read_back(flags: BatchFlags, unpacked: u32, stored: &[u8]) -> Result<Vec<u8>, BatchError> {
        let head = BatchHead { flags, unpacked, ..BatchHead::default() };
        let framed = head.frame(BatchHead::begin(0), stored, &NONCE, 64).expect("it is short");
        let bytes = [framed.front(), stored, framed.back()].concat();
        let records = StoredBatch::decode(&bytes, &NONCE, 64)?.unpacked_records()?;
        Ok(records.into_owned())
    }

    // design session-files 3: records come back as they were, packed or not, and a head that is not theirs is damage
    #[test]
    fn packed_records_come_back() {
        let (plain, packed_flag) = (BatchFlags::default(), BatchFlags::PACKED);
        let records = b"{\"sessionUpdate\":\"agent_message_chunk\"}".repeat(20_000);
        let packed = pack::pack(&records);
        let size = u32::try_from(packed.unpacked).expect("it is short");
        assert!(packed.bytes.len() * 2 < records.len());
        assert_eq!(read_back(plain, 0, &records), Ok(records.clone()));
        assert_eq!(read_back(packed_flag, size, &packed.bytes), Ok(records.clone()));
        for (flags, unpacked) in [
            (plain, size),
            (packed_flag, 0),
            (packed_flag, size - 1),
            (packed_flag, size + 1),
            (packed_flag, u32::MAX),
        ] {
            let refused = read_back(flags, unpacked, &packed.bytes);
            assert_eq!(refused, Err(BatchError::Damaged), "{flags:?} {unpacked}");
        }
    }
}
