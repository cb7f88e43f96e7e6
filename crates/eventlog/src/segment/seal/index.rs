//! Where the frames of a sealed file are: its tail, and the index in its footer.
//!
//! The tail: u64 place of the footer, u64 its length, u32 reserved, u32 checksum, magic. The index, in place of the footer's
//! records: u32 number of the last segment that the file replaces, u32 checksum of that segment's last batch, u64 where it ended,
//! and for each frame u64 first sequence number and u64 place.

use super::super::batch::StoredBatch;
use super::super::header::{HEADER_BYTES, SegmentFlags, SegmentHeader};
use super::super::{ALIGNMENT, NONCE_BYTES, Reach, u32_at, u64_at};
use super::SealDamage;
use super::frame::{HEAD_BYTES, decode_frame};
use crate::block::Block;
use crc32fast::Hasher;

/// Bytes of a sealed file's tail.
pub const TAIL_BYTES: usize = 32;

const MAGIC: &[u8; 8] = b"acpdend\n";
const CHECKSUM_AT: usize = 20;
const REPLACED_BYTES: usize = 16;
const PAIR_BYTES: usize = 16;

/// The last bytes of a sealed file, from which the others are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealTail {
    /// The place of the footer.
    pub footer_at: u64,
    /// Its length.
    pub footer_length: u64,
}

impl SealTail {
    /// Its bytes.
    pub(super) fn encode(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; TAIL_BYTES] {
        let mut out = [0; TAIL_BYTES];
        out[0..8].copy_from_slice(&self.footer_at.to_le_bytes());
        out[8..16].copy_from_slice(&self.footer_length.to_le_bytes());
        out[24..].copy_from_slice(MAGIC);
        let checksum = self.checksum_of(nonce, &out);
        out[CHECKSUM_AT..24].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    fn checksum_of(&self, nonce: &[u8; NONCE_BYTES], tail: &[u8; TAIL_BYTES]) -> u32 {
        let mut hasher = Hasher::new();
        hasher.update(nonce);
        hasher.update(&self.footer_at.wrapping_add(self.footer_length).to_le_bytes());
        hasher.update(&tail[..CHECKSUM_AT]);
        hasher.finalize()
    }

    pub(super) fn file_length(&self) -> u64 {
        self.footer_at.saturating_add(self.footer_length).saturating_add(TAIL_BYTES as u64)
    }

    /// The tail of the file with this header, which is `length` long and ends with `bytes`.
    ///
    /// # Errors
    /// When there is none.
    pub fn decode(bytes: &[u8], length: u64, header: &SegmentHeader) -> Result<Self, SealDamage> {
        let damage = SealDamage { seq: header.first_seq };
        let bytes = bytes.last_chunk::<TAIL_BYTES>().ok_or(damage)?;
        let tail = Self { footer_at: u64_at(bytes, 0), footer_length: u64_at(bytes, 8) };
        let is_right = header.flags.has(SegmentFlags::SEALED)
            && &bytes[24..] == MAGIC
            && tail.footer_at >= HEADER_BYTES as u64
            && tail.file_length() == length
            && tail.checksum_of(&header.nonce, bytes) == u32_at(bytes, CHECKSUM_AT);
        is_right.then_some(tail).ok_or(damage)
    }

    /// The footer in `bytes`, which stand at its place: where the session stands behind the sealed events, its facts and its info.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn decode_footer<'a>(
        &self,
        bytes: &'a [u8],
        header: &SegmentHeader,
    ) -> Result<StoredBatch<'a>, SealDamage> {
        let footer = StoredBatch::decode(bytes, &header.nonce, self.footer_at).ok();
        let footer = footer.filter(|footer| u64::from(footer.length) == self.footer_length);
        footer.ok_or(SealDamage { seq: header.first_seq })
    }
}

/// Puts what a footer has in place of records.
pub(super) fn put_replaced(out: &mut Vec<u8>, number: u32, reach: &Reach, frames: &[(u64, u64)]) {
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&reach.checksum.to_le_bytes());
    out.extend_from_slice(&reach.end.to_le_bytes());
    for (first_seq, place) in frames {
        out.extend_from_slice(&first_seq.to_le_bytes());
        out.extend_from_slice(&place.to_le_bytes());
    }
}

/// Where a frame is, and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// The place of its first byte.
    pub place: u64,
    /// Its bytes.
    pub length: u64,
    /// Its first event.
    pub first_seq: u64,
    /// How many events are in it, at least one.
    pub events: u32,
}

impl FramePlace {
    /// Its last event.
    pub fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.events).saturating_sub(1)
    }

    /// Its events, from the `bytes` that stand at its place.
    ///
    /// # Errors
    /// When they are not what was written there.
    pub fn decode(&self, bytes: &[u8], nonce: &[u8; NONCE_BYTES]) -> Result<Block, SealDamage> {
        let damage = SealDamage { seq: self.first_seq };
        let is_whole = bytes.len() as u64 == self.length;
        let frame = is_whole.then(|| decode_frame(bytes, nonce, self.place, self.first_seq, self.events));
        frame.flatten().ok_or(damage)
    }
}

/// The frames of a sealed file, and which segments it replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealIndex {
    /// The number of the last segment that it replaces.
    pub last_number: u32,
    /// How far that segment went, by which the one behind it continues.
    pub reach: Reach,
    /// The first event and the place of each frame, in order.
    frames: Vec<(u64, u64)>,
    footer_at: u64,
}

impl SealIndex {
    /// The index in the footer of the file with this header and tail.
    ///
    /// # Errors
    /// When it cannot be one.
    pub fn decode(
        header: &SegmentHeader,
        tail: &SealTail,
        footer: &StoredBatch<'_>,
    ) -> Result<Self, SealDamage> {
        Self::decode_checked(header, tail, footer).ok_or(SealDamage { seq: header.first_seq })
    }

    fn decode_checked(header: &SegmentHeader, tail: &SealTail, footer: &StoredBatch<'_>) -> Option<Self> {
        let (replaced, pairs) = footer.records.split_first_chunk::<REPLACED_BYTES>()?;
        let (pairs, rest) = pairs.as_chunks::<PAIR_BYTES>();
        let frames: Vec<_> = pairs.iter().map(|pair| (u64_at(pair, 0), u64_at(pair, 8))).collect();
        let last_seq = footer.head.last_seq();
        let reach =
            Reach { end: u64_at(replaced, 8), checksum: u32_at(replaced, 4), last_seq, is_damaged: false };
        let index = Self { last_number: u32_at(replaced, 0), reach, frames, footer_at: tail.footer_at };
        // Without frames, the footer stands where the first would.
        let begin = (header.first_seq, HEADER_BYTES as u64);
        let is_right = rest.is_empty()
            && footer.head.events == 0
            && index.last_number >= header.number
            && index.bounds(0) == begin
            && (0..index.frames.len()).all(|at| is_frame(index.bounds(at), index.bounds(at + 1)));
        is_right.then_some(index)
    }

    /// Where the frame with this number begins, or what is behind the last one.
    fn bounds(&self, at: usize) -> (u64, u64) {
        let behind = (self.reach.last_seq.saturating_add(1), self.footer_at);
        self.frames.get(at).copied().unwrap_or(behind)
    }

    /// The frame with this event.
    pub fn find(&self, seq: u64) -> Option<FramePlace> {
        let at = self.frames.partition_point(|(first_seq, _)| *first_seq <= seq).checked_sub(1)?;
        let ((first_seq, place), (next_seq, next_place)) = (self.bounds(at), self.bounds(at + 1));
        let events = u32::try_from(next_seq - first_seq).ok().filter(|_| seq < next_seq)?;
        Some(FramePlace { place, length: next_place - place, first_seq, events })
    }
}

/// Whether there can be a frame between these numbers and places.
fn is_frame((first_seq, place): (u64, u64), (next_seq, next_place): (u64, u64)) -> bool {
    let events = next_seq.checked_sub(first_seq).filter(|events| *events <= u64::from(u32::MAX));
    let length = next_place.checked_sub(place).filter(|length| *length >= HEAD_BYTES as u64);
    events.is_some_and(|events| events > 0) && length.is_some() && place.is_multiple_of(ALIGNMENT as u64)
}
