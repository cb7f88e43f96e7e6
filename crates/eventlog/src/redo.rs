//! The form of a redo file: batches that were appended, each with its place in the segment of a session.
//!
//! A log that survives the loss of power writes what it appends here first and syncs this one file for all sessions; the segments are
//! synced later. A file is a [`RedoHeader`] and [`RedoEntry`]s behind it, all numbers little endian, reserved bytes 0. Pure: bytes
//! in, bytes out. Invariant: an entry of an earlier generation of the file, or one that was torn, is never read as one of this
//! generation, because each checksum covers the generation's nonce and the entry's place.

mod boot;
mod directory;
mod replay;
mod writer;

pub use boot::boot_id;
pub use directory::RedoDirectory;
pub use replay::replay_all;
pub use writer::{RedoError, RedoWriter};

use crate::segment::NONCE_BYTES;
use crc32fast::Hasher;

/// Bytes of a redo file's header.
pub const REDO_HEADER_BYTES: usize = 64;

/// Bytes of the id of a boot.
pub const BOOT_BYTES: usize = 16;

/// What a redo file begins with.
pub(crate) const REDO_MAGIC: &[u8; 8] = b"acpdredo";
const FORMAT: u16 = 1;
/// Bytes of an entry in front of the session's id.
const ENTRY_BYTES: usize = 32;
/// Entries begin at a multiple of this.
const ALIGNMENT: usize = 8;

/// Which generation of a redo file its entries are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoHeader {
    /// Counts the generations of one log, from 1.
    pub generation: u64,
    /// The boot of the machine in which it was written; 0: unknown, or to be replayed in any case.
    pub boot: [u8; BOOT_BYTES],
    /// Random bytes that the checksums of its entries cover.
    pub nonce: [u8; NONCE_BYTES],
}

/// Why bytes are no redo file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedoHeaderError {
    /// There is no header, or it was being written: all segments are synced then.
    #[error("the redo file has no header")]
    Missing,
    /// A newer acpd wrote it.
    #[error("the redo file has format {found}, and this acpd knows format {FORMAT}; use the newer acpd")]
    Newer {
        /// Its format.
        found: u16,
    },
}

impl RedoHeader {
    /// Its bytes.
    pub fn encode(&self) -> [u8; REDO_HEADER_BYTES] {
        let mut out = [0; REDO_HEADER_BYTES];
        out[..8].copy_from_slice(REDO_MAGIC);
        out[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        out[16..24].copy_from_slice(&self.generation.to_le_bytes());
        out[24..40].copy_from_slice(&self.boot);
        out[40..56].copy_from_slice(&self.nonce);
        let checksum = crc32fast::hash(&out[..60]);
        out[60..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header at the front of `bytes`.
    ///
    /// # Errors
    /// When there is none that this acpd can read.
    pub fn decode(bytes: &[u8]) -> Result<Self, RedoHeaderError> {
        let bytes = bytes.first_chunk::<REDO_HEADER_BYTES>().ok_or(RedoHeaderError::Missing)?;
        if &bytes[..8] != REDO_MAGIC || crc32fast::hash(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(RedoHeaderError::Missing);
        }
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        if found != FORMAT {
            return Err(RedoHeaderError::Newer { found });
        }
        let array = |at: usize| bytes[at..at + 16].try_into().map_err(|_| RedoHeaderError::Missing);
        Ok(Self { generation: u64_at(bytes, 16), boot: array(24)?, nonce: array(40)? })
    }
}

/// One append: batches that follow each other in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoEntry<'a> {
    /// The session.
    pub session: &'a str,
    /// The number of its segment.
    pub segment: u32,
    /// The place of the first batch in the segment.
    pub offset: u64,
    /// The batches as they lie in the segment.
    pub batches: &'a [u8],
}

impl RedoEntry<'_> {
    /// The place in the segment behind it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.batches.len() as u64)
    }

    /// Puts the entry behind `out`, whose first byte is at `begin` of the file with this nonce. False: it is too long for the format;
    /// nothing was put.
    #[must_use]
    pub fn put(&self, out: &mut Vec<u8>, begin: u64, nonce: &[u8; NONCE_BYTES]) -> bool {
        let inner = ENTRY_BYTES + self.session.len() + self.batches.len();
        let size = inner.next_multiple_of(ALIGNMENT);
        let (Ok(length), Ok(id)) = (u32::try_from(size), u16::try_from(self.session.len())) else {
            return false;
        };
        let (at, place) = (out.len(), begin + out.len() as u64);
        out.reserve(size);
        out.extend(length.to_le_bytes());
        out.extend([0; 4]);
        out.extend(self.offset.to_le_bytes());
        out.extend(self.segment.to_le_bytes());
        // Less than the length.
        out.extend((self.batches.len() as u32).to_le_bytes());
        out.extend(id.to_le_bytes());
        out.resize(at + ENTRY_BYTES, 0);
        out.extend(self.session.as_bytes());
        out.extend(self.batches);
        out.resize(at + size, 0);
        let checksum = checksum_of(nonce, place, &out[at..]);
        out[at + 4..at + 8].copy_from_slice(&checksum.to_le_bytes());
        true
    }
}

/// The entries of a generation, in order, up to the first that is torn or of another.
#[derive(Clone, Debug)]
pub struct RedoEntries<'a> {
    bytes: &'a [u8],
    at: usize,
    nonce: [u8; NONCE_BYTES],
}

impl<'a> RedoEntries<'a> {
    /// Those in `bytes`, the whole file with this header.
    pub fn new(bytes: &'a [u8], header: &RedoHeader) -> Self {
        Self { bytes, at: REDO_HEADER_BYTES, nonce: header.nonce }
    }
}

impl<'a> Iterator for RedoEntries<'a> {
    type Item = RedoEntry<'a>;

    fn next(&mut self) -> Option<RedoEntry<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let size = rest.get(..4).map(|bytes| u32_at(bytes, 0) as usize)?;
        if size < ENTRY_BYTES || !size.is_multiple_of(ALIGNMENT) {
            return None;
        }
        let entry = rest.get(..size)?;
        if checksum_of(&self.nonce, self.at as u64, entry) != u32_at(entry, 4) {
            return None;
        }
        let (length, id) =
            (u32_at(entry, 20) as usize, usize::from(u16::from_le_bytes([entry[24], entry[25]])));
        let (session, rest) = entry[ENTRY_BYTES..].split_at_checked(id)?;
        let batches = rest.get(..length)?;
        let session = std::str::from_utf8(session).ok()?;
        self.at += size;
        Some(RedoEntry { session, segment: u32_at(entry, 16), offset: u64_at(entry, 8), batches })
    }
}

/// The checksum of an entry's bytes, but for the place where it stands itself.
fn checksum_of(nonce: &[u8; NONCE_BYTES], place: u64, entry: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(nonce);
    hasher.update(&place.to_le_bytes());
    hasher.update(&entry[..4]);
    hasher.update(&entry[8..]);
    hasher.finalize()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: RedoHeader = RedoHeader { generation: 7, boot: [1; 16], nonce: *b"nonce of a test." };

    /// A session, a segment, a place there, and batches.
    type Written = (String, u32, u64, Vec<u8>);

    fn any_entry() -> impl Strategy<Value = Written> {
        ("\\PC{0,9}", any::<u32>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..200))
    }

    fn entry((session, segment, offset, batches): &Written) -> RedoEntry<'_> {
        RedoEntry { session, segment: *segment, offset: *offset, batches }
    }

    /// A file, and the place behind each entry.
    fn file(header: &RedoHeader, all: &[Written]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header.encode().to_vec();
        let ends = all.iter().map(|one| {
            assert!(entry(one).put(&mut bytes, 0, &header.nonce));
            bytes.len()
        });
        let ends = ends.collect();
        (bytes, ends)
    }

    proptest! {
        // design session-files 5: entries come back as they were written; of a torn tail, at each length, the whole ones do
        #[test]
        fn entries_come_back(all in prop::collection::vec(any_entry(), 0..8), cut in any::<prop::sample::Index>()) {
            let (bytes, ends) = file(&HEADER, &all);
            prop_assert_eq!(RedoHeader::decode(&bytes), Ok(HEADER));
            let length = REDO_HEADER_BYTES + cut.index(bytes.len() - REDO_HEADER_BYTES + 1);
            let whole = ends.iter().filter(|end| **end <= length).count();
            let found: Vec<_> = RedoEntries::new(&bytes[..length], &HEADER).collect();
            prop_assert_eq!(found, all[..whole].iter().map(entry).collect::<Vec<_>>());
            // What was never written is zeros.
            let padded = [&bytes[..length], &[0; 99]].concat();
            prop_assert!(RedoEntries::new(&padded, &HEADER).count() >= whole);
        }

        // design session-files 5: what an earlier generation left behind a shorter one is not read, and no changed byte passes
        #[test]
        fn what_is_not_of_the_generation_is_not_read(
            old in prop::collection::vec(any_entry(), 0..8),
            new in prop::collection::vec(any_entry(), 0..4),
            (at, bit) in (any::<prop::sample::Index>(), 0_u8..8),
        ) {
            let (mut bytes, _) = file(&HEADER, &old);
            let later = RedoHeader { generation: 9, nonce: *b"another nonce...", ..HEADER };
            let (newer, ends) = file(&later, &new);
            let kept = bytes.len().max(newer.len());
            bytes.resize(kept, 0);
            bytes[..newer.len()].copy_from_slice(&newer);
            let found: Vec<_> = RedoEntries::new(&bytes, &later).collect();
            prop_assert_eq!(found, new.iter().map(entry).collect::<Vec<_>>());
            let changed_at = at.index(newer.len());
            bytes[changed_at] ^= 1 << bit;
            if changed_at < REDO_HEADER_BYTES {
                prop_assert!(RedoHeader::decode(&bytes).is_err());
            } else {
                let whole = ends.iter().filter(|end| **end <= changed_at).count();
                prop_assert_eq!(RedoEntries::new(&bytes, &later).count(), whole);
            }
        }

        // design session-files 12: any bytes are read without a panic
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(RedoHeader::decode(&bytes).is_err());
            prop_assert_eq!(RedoEntries::new(&bytes, &HEADER).count(), 0);
        }
    }

    // design session-files 5: what a later acpd wrote is not taken for nothing
    #[test]
    fn another_format_is_told() {
        let mut bytes = HEADER.encode();
        bytes[8] = 2;
        let checksum = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(RedoHeader::decode(&bytes), Err(RedoHeaderError::Newer { found: 2 }));
    }
}
