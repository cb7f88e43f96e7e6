//! The form in which a session's events lie in files: segments of batches.
//!
//! A segment is a [`SegmentHeader`] and batches behind it; a batch is what was appended at once. All numbers are little endian,
//! reserved bytes are 0. Pure: bytes in, bytes out. Invariant: neither what a failed longer write left behind nor bytes that an
//! agent chose pass for a batch, because each checksum covers the segment's nonce and the batch's place.

mod batch;
mod header;
mod scan;
mod seal;
mod section;
mod unpack;

pub use batch::{BatchError, BatchFlags, BatchHead, Framed, HEAD_BYTES, StoredBatch, TRAILER_BYTES};
pub(crate) use header::MAGIC;
pub use header::{HEADER_BYTES, HeaderError, SegmentFlags, SegmentHeader};
pub use scan::{Reach, begin_of, find_last, scan};
pub use seal::{FramePlace, SealDamage, SealError, SealIndex, SealTail, SealWriter, TAIL_BYTES};
pub use section::{Section, Sections, put_section};
pub use unpack::FRAME_BYTES;

/// The format that is written, and the only one that is read.
pub const FORMAT: u16 = 1;

/// Bytes of a segment's nonce.
pub const NONCE_BYTES: usize = 16;

/// Everything in a segment begins at a multiple of this.
pub const ALIGNMENT: usize = 8;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Bytes that are missing to a multiple of [`ALIGNMENT`].
fn padding(length: usize) -> usize {
    length.wrapping_neg() % ALIGNMENT
}
