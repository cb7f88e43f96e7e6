//! The batches of a segment from its end on: each one's trailer leads to its front, where the one before it ends.
//!
//! So neither the last batch nor a place near the end needs a segment to be read from its front. Reads only. Passed over is what a
//! writer that died, or is writing now, has behind the last batch that counts: it has not the checksum of a whole append.

use super::storage::read_at;
use crate::segment::{
    ALIGNMENT, BatchFlags, BatchHead, HEADER_BYTES, SegmentHeader, TRAILER_BYTES, begin_of, find_last,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are read at once, at first: enough for the last batches, unless these are long.
const SMALL: u64 = 8 * 1024;
/// The same when it goes on.
const LARGE: u64 = 256 * 1024;
/// Bytes behind the last batch that are looked through for it: more than the longest append that is not a history's.
const LOOKED_THROUGH: u64 = 4 * 1024 * 1024;

/// A batch that counts, without what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastBatch {
    pub(super) head: BatchHead,
    /// Its place.
    pub(super) at: u64,
    /// The place behind it, and its checksum.
    pub(super) end: (u64, u32),
}

/// A segment that is read from its end.
#[derive(Debug)]
pub(super) struct FromEnd<'a> {
    file: &'a File,
    header: &'a SegmentHeader,
    /// What was read last, and its place.
    window: (u64, Vec<u8>),
    /// Bytes that are read next.
    piece: u64,
}

impl<'a> FromEnd<'a> {
    pub(super) fn new(file: &'a File, header: &'a SegmentHeader) -> Self {
        Self { file, header, window: (0, Vec::new()), piece: SMALL }
    }

    /// The last append that is whole within the first `length` bytes, by its last batch. None: there is none near their end.
    pub(super) fn last(&mut self, length: u64) -> io::Result<Option<LastBatch>> {
        let step = ALIGNMENT as u64;
        let mut end = length - length % step;
        while end > HEADER_BYTES as u64 && length - end <= LOOKED_THROUGH {
            if let Some(at) = self.begin_of_batch(end)? {
                let bytes = self.copy(at, end)?;
                if let Some((at, batch)) = find_last(&bytes, end, &self.header.nonce) {
                    return Ok(Some(LastBatch { head: batch.head, at, end: (end, batch.checksum) }));
                }
            }
            end -= step;
        }
        Ok(None)
    }

    /// The place of the last append that begins with event `next` or before, and its first event. `last` is an append that counts; what is
    /// before it is not checked. None: the way back is not whole.
    pub(super) fn place_of(&mut self, next: u64, last: &LastBatch) -> io::Result<Option<(u64, u64)>> {
        let (mut at, mut first_seq) = (last.at, last.head.first_seq);
        while at > HEADER_BYTES as u64 {
            let Some(before) = self.begin_of_batch(at)? else { return Ok(None) };
            let head = BatchHead::peek(&self.front(before)?);
            if head.first_seq.checked_add(head.events.into()) != Some(first_seq) {
                return Ok(None);
            }
            // Behind a piece of a chain stands the rest of it.
            if first_seq <= next && !head.flags.has(BatchFlags::MORE_FOLLOWS) {
                return Ok(Some((at, first_seq)));
            }
            (at, first_seq) = (before, head.first_seq);
        }
        Ok((first_seq == self.header.first_seq).then_some((at, first_seq)))
    }

    /// Where a batch begins that ends at a place, if its length and its checksum stand at both ends.
    fn begin_of_batch(&mut self, end: u64) -> io::Result<Option<u64>> {
        let trailer = self.trailer(end)?;
        let Some(at) = begin_of(&trailer, end) else { return Ok(None) };
        Ok((self.front::<TRAILER_BYTES>(at)? == trailer).then_some(at))
    }

    /// The last bytes before a place.
    fn trailer(&mut self, end: u64) -> io::Result<[u8; TRAILER_BYTES]> {
        let at = end.saturating_sub(TRAILER_BYTES as u64);
        if self.within(at, end).is_none() {
            let from = end.saturating_sub(self.piece);
            self.window = (from, read_at(self.file, from, end - from)?);
            self.piece = LARGE;
        }
        self.front(at)
    }

    /// The first bytes from a place on.
    fn front<const LENGTH: usize>(&self, at: u64) -> io::Result<[u8; LENGTH]> {
        let mut front = [0; LENGTH];
        match self.within(at, at + LENGTH as u64) {
            Some(bytes) => front.copy_from_slice(bytes),
            None => self.file.read_exact_at(&mut front, at)?,
        }
        Ok(front)
    }

    fn copy(&self, at: u64, end: u64) -> io::Result<Vec<u8>> {
        match self.within(at, end) {
            Some(bytes) => Ok(bytes.to_vec()),
            None => read_at(self.file, at, end - at),
        }
    }

    /// Bytes of what was read last.
    fn within(&self, at: u64, end: u64) -> Option<&[u8]> {
        let (from, bytes) = &self.window;
        let [at, end] =
            [at, end].map(|place| place.checked_sub(*from).and_then(|at| usize::try_from(at).ok()));
        bytes.get(at?..end?)
    }
}

#[cfg(test)]
mod tests;
