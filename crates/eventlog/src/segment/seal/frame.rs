//! A frame: events that are packed together.
//!
//! u64 first sequence number, u32 number of events, u32 bytes stored, u32 bytes unpacked (0: they are not packed), u32 checksum, the
//! bytes, padding. It is [`FRAME_BYTES`] unpacked at most, or one event.

use super::super::unpack::{FRAME_BYTES, unpack_records};
use super::super::{NONCE_BYTES, padding, u32_at, u64_at};
use super::MAX_RECORD_BYTES;
use crate::block::Block;
use crate::pack;
use bytes::Bytes;
use crc32fast::Hasher;
use std::io::{self, Write};

/// Bytes of a frame's header.
pub(super) const HEAD_BYTES: usize = 24;
const CHECKSUM_AT: usize = 20;

/// Writes records as the frame at `place`, and returns its length.
pub(super) fn write_frame(
    first_seq: u64,
    events: u32,
    records: &[u8],
    nonce: &[u8; NONCE_BYTES],
    place: u64,
    out: &mut impl Write,
) -> io::Result<u64> {
    let packed = pack::pack(records);
    // They fit, as a record is not longer than the largest event.
    let (stored, unpacked) = (packed.bytes.len() as u32, packed.unpacked as u32);
    let mut head = [0; HEAD_BYTES];
    head[0..8].copy_from_slice(&first_seq.to_le_bytes());
    head[8..12].copy_from_slice(&events.to_le_bytes());
    head[12..16].copy_from_slice(&stored.to_le_bytes());
    head[16..20].copy_from_slice(&unpacked.to_le_bytes());
    let gap = &[0; 8][..padding(HEAD_BYTES + packed.bytes.len())];
    let checksum = checksum_of(nonce, place, &head, &[&packed.bytes, gap]);
    head[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    for part in [&head[..], &packed.bytes, gap] {
        out.write_all(part)?;
    }
    Ok((HEAD_BYTES + packed.bytes.len() + gap.len()) as u64)
}

fn checksum_of(nonce: &[u8; NONCE_BYTES], place: u64, head: &[u8; HEAD_BYTES], rest: &[&[u8]]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(nonce);
    hasher.update(&place.to_le_bytes());
    hasher.update(&head[..CHECKSUM_AT]);
    rest.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// The events of the frame at `place`, which is exactly `bytes`, has `events` events and begins with `first_seq`. None: it is
/// something else.
pub(super) fn decode_frame(
    bytes: &[u8],
    nonce: &[u8; NONCE_BYTES],
    place: u64,
    first_seq: u64,
    events: u32,
) -> Option<Block> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
    let (stored, gap) = rest.split_at_checked(u32_at(head, 12) as usize)?;
    let is_right = u64_at(head, 0) == first_seq
        && u32_at(head, 8) == events
        && gap.len() == padding(HEAD_BYTES + stored.len())
        && checksum_of(nonce, place, head, &[rest]) == u32_at(head, CHECKSUM_AT);
    if !is_right {
        return None;
    }
    let unpacked = u32_at(head, 16);
    let size = if unpacked == 0 { stored.len() } else { unpacked as usize };
    if size > if events == 1 { MAX_RECORD_BYTES } else { FRAME_BYTES } {
        return None;
    }
    let records = unpack_records(unpacked, stored)?;
    let last = first_seq.checked_add(u64::from(events.checked_sub(1)?))?;
    Block::checked(first_seq, last, Bytes::from(records.into_owned()))
}
