//! The sealed form of segments that are closed: their events in packed frames, with an index of the frames.
//!
//! The header of the first of them with [`SegmentFlags::SEALED`](super::SegmentFlags::SEALED), frames, a footer, a tail of
//! [`TAIL_BYTES`]. The footer is a batch without events, so that the head of a session is read the same way in both forms: where the
//! session stands, facts and info in sections, and in place of the records which segments the file replaces and where each frame
//! begins. What batches beyond that say matters only while a host has the session, or was done before it was sealed: the kinds
//! of their events, prompts that wait, positions in between.
//! Invariant: a checksum covers each byte, together with nonce and place; what is read is what was sealed, or damage.

mod frame;
mod index;
mod writer;

#[cfg(test)]
mod tests;

pub use index::{FramePlace, SealIndex, SealTail, TAIL_BYTES};
pub use writer::{SealError, SealWriter};

use crate::batch::{HEADER_BYTES as RECORD_HEAD_BYTES, MAX_PAYLOAD_BYTES};

/// The bytes of the largest event, which fills a frame by itself.
const MAX_RECORD_BYTES: usize = RECORD_HEAD_BYTES + MAX_PAYLOAD_BYTES;

/// Sealed bytes are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sealed segment is damaged at event {seq}")]
pub struct SealDamage {
    /// The first event that cannot be read; those before it can, and those of other frames.
    pub seq: u64,
}
