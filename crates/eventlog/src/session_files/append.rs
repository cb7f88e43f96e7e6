//! Appends to a segment: one write, and what it says is committed.
//!
//! Owned by the session's appender. Invariants: a batch counts as a whole or not at all, also one of several pieces; after a
//! write that failed the segment is as it was before. Only the owner of a segment has its writer (`claim.rs`).

use super::storage::{StoredFile, write_all};
use crate::batch::{Batch, IndexUpdate};
use crate::block::{Block, BlockBuilder};
use crate::pack::{self, Packed};
use crate::segment::{BatchFlags, BatchHead, Framed, HEADER_BYTES, NONCE_BYTES, Section, put_section};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};

/// A segment is not appended to beyond so many bytes: the next one is.
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// Records of so many bytes are packed: the writer waits for that, and smaller ones cost the disk less than it would.
const PACKED_FROM: usize = 16 * 1024;

/// Where a session stands, as its batches say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its last event.
    pub last_seq: u64,
    /// When it last changed, in milliseconds since 1970.
    pub at_ms: i64,
    /// The host's own word for what it is doing.
    pub state: u8,
    /// Bytes of its agent's output that it has handled.
    pub position: u64,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether no host has it.
    pub released: bool,
    /// The place of the last batch with a description.
    pub(super) info_at: u64,
    /// What it was given and has not begun with: numbers, and the places of their batches.
    pub(super) waiting: BTreeMap<u64, u64>,
}

impl Standing {
    /// Takes up what a batch at `offset` changes in the index.
    fn change(&mut self, index: &IndexUpdate, offset: u64) {
        self.at_ms = index.updated_ms;
        self.ended = index.ended.unwrap_or(self.ended);
        if let Some(owner) = &index.owner {
            // What one host says of a session is of no use to the next.
            self.released = owner.is_none();
            (self.state, self.position) = (0, 0);
            self.waiting.clear();
        }
        self.state = index.state.unwrap_or(self.state);
        self.position = index.position.unwrap_or(self.position);
        if index.info.is_some() {
            self.info_at = offset;
        }
        for (number, bytes) in &index.waiting {
            match bytes {
                Some(_) => self.waiting.insert(*number, offset),
                None => self.waiting.remove(number),
            };
        }
    }

    fn head(&self) -> BatchHead {
        let flag = |set: bool, flag: BatchFlags| if set { flag } else { BatchFlags::default() };
        BatchHead {
            flags: flag(self.ended, BatchFlags::ENDED),
            state: self.state,
            first_seq: self.last_seq + 1,
            at_ms: self.at_ms,
            position: self.position,
            info_at: self.info_at,
            waiting_at: self.waiting.values().min().copied().unwrap_or_default(),
            ..BatchHead::default()
        }
    }
}

/// A batch whose events have their numbers.
#[derive(Debug)]
pub(crate) struct NextBatch {
    blocks: Vec<Block>,
    index: Option<IndexUpdate>,
    kinds: u64,
    is_history: bool,
}

impl NextBatch {
    /// The batch behind event `after`.
    pub(crate) fn new(batch: Batch, after: u64) -> Self {
        let Batch { records, count, index, kinds, is_history, .. } = batch;
        Self { blocks: BlockBuilder::whole(after + 1, records, count), index, kinds, is_history }
    }

    /// The host's own description, if it says it anew.
    pub(crate) fn info(&self) -> Option<&Vec<u8>> {
        self.index.as_ref()?.info.as_ref()
    }

    /// Its events.
    pub(crate) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }
}

/// Appends to one segment.
#[derive(Debug)]
pub struct SegmentWriter<F> {
    file: F,
    nonce: [u8; NONCE_BYTES],
    /// The place behind the last batch that counts.
    end: u64,
    checksum: u32,
    standing: Standing,
}

impl<F: StoredFile> SegmentWriter<F> {
    /// Writes behind the header of a new segment, where a session stands so.
    pub fn begin(file: F, nonce: [u8; NONCE_BYTES], standing: Standing) -> Self {
        Self { file, nonce, end: HEADER_BYTES as u64, checksum: 0, standing }
    }

    /// Where the session stands.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The place behind the last batch, and its checksum.
    pub fn end(&self) -> (u64, u32) {
        (self.end, self.checksum)
    }

    /// The file that it writes.
    pub fn file(&self) -> &F {
        &self.file
    }

    /// Appends a batch; its events, which are committed when this returns. `facts` is for the first batch of a segment.
    ///
    /// # Errors
    /// When it could not be written: the segment is as it was.
    pub fn append(&mut self, batch: Batch, facts: Option<&[u8]>) -> io::Result<Vec<Block>> {
        let framed = self.frame(batch, facts)?;
        self.write(framed)
    }

    /// The same of a batch that is tried again elsewhere if it cannot be written here.
    pub(crate) fn append_next(&mut self, next: &NextBatch, facts: Option<&[u8]>) -> io::Result<()> {
        let framing = self.frame_next(next, facts)?;
        self.write_framing(framing, next)
    }

    /// Frames a batch as what comes next in the segment. Nothing is written.
    ///
    /// # Errors
    /// When it is longer than the format allows.
    pub fn frame(&self, batch: Batch, facts: Option<&[u8]>) -> io::Result<FramedAppend> {
        let next = NextBatch::new(batch, self.standing.last_seq);
        Ok(FramedAppend { framing: self.frame_next(&next, facts)?, next })
    }

    /// Writes what was framed here last; its events, which are committed when this returns.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn write(&mut self, framed: FramedAppend) -> io::Result<Vec<Block>> {
        let FramedAppend { framing, next } = framed;
        self.write_framing(framing, &next)?;
        Ok(next.blocks)
    }

    fn frame_next(&self, next: &NextBatch, facts: Option<&[u8]>) -> io::Result<Framing> {
        let NextBatch { blocks, index, kinds, is_history } = next;
        let mut standing = self.standing.clone();
        if let Some(index) = index {
            standing.change(index, self.end);
        }
        let mut sections = BatchHead::begin(0);
        if let Some(facts) = facts {
            put_section(&mut sections, Section::Facts(facts));
        }
        index.iter().for_each(|index| put_changes(&mut sections, index));
        let (mut pieces, mut end) = (Vec::with_capacity(blocks.len()), self.end);
        for at in 0..blocks.len().max(1) {
            let is_last = at + 1 >= blocks.len();
            let mut head = standing.head();
            head.kinds = *kinds;
            for (is_set, flag) in [
                (!is_last, BatchFlags::MORE_FOLLOWS),
                (is_last && standing.released, BatchFlags::RELEASED),
                (*is_history, BatchFlags::HISTORY),
            ] {
                if is_set {
                    head.flags = head.flags.with(flag);
                }
            }
            let front = std::mem::replace(&mut sections, BatchHead::begin(0));
            let block = blocks.get(at);
            if let Some(block) = block {
                head.events = u32::try_from(block.last() - block.first() + 1).map_err(too_long)?;
                standing.last_seq = block.last();
            }
            let records = block.map_or(&[][..], Block::records);
            let packed = match records.len() >= PACKED_FROM {
                true => pack::pack(records),
                false => Packed { unpacked: 0, bytes: records.into() },
            };
            if packed.unpacked > 0 {
                head.flags = head.flags.with(BatchFlags::PACKED);
                head.unpacked = u32::try_from(packed.unpacked).map_err(too_long)?;
            }
            let framed = head.frame(front, &packed.bytes, &self.nonce, end).ok_or_else(|| too_long(()))?;
            let packed = match packed.bytes {
                Cow::Owned(bytes) => Some(bytes),
                Cow::Borrowed(_) => None,
            };
            end += (framed.front().len() + packed.as_deref().unwrap_or(records).len() + framed.back().len())
                as u64;
            pieces.push((framed, packed));
        }
        Ok(Framing { at: self.end, end, pieces, standing })
    }

    fn write_framing(&mut self, framing: Framing, next: &NextBatch) -> io::Result<()> {
        if let Err(error) = self.write_pieces(&framing, &next.blocks) {
            // If that fails, too, the next batch is written over it: what is left of it does not pass for a batch.
            drop(self.file.truncate(self.end));
            return Err(error);
        }
        (self.end, self.checksum) = (framing.end, framing.checksum());
        self.standing = framing.standing;
        Ok(())
    }

    /// Writes the pieces of a chain, the last of which makes all of them count.
    fn write_pieces(&self, framing: &Framing, blocks: &[Block]) -> io::Result<()> {
        if framing.at != self.end {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it was framed for another place"));
        }
        let mut end = self.end;
        for pieces in framing.pieces(blocks) {
            write_all(&self.file, &mut pieces.map(IoSlice::new), end)?;
            end += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        }
        Ok(())
    }
}

/// A batch as it is to be written behind the others of a segment.
#[derive(Debug)]
pub struct FramedAppend {
    framing: Framing,
    next: NextBatch,
}

impl FramedAppend {
    /// Its place in the segment.
    pub fn offset(&self) -> u64 {
        self.framing.at
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity((self.framing.end - self.framing.at) as usize);
        self.framing.pieces(&self.next.blocks).flatten().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// The host's own description, if it says it anew.
    pub(crate) fn info(&self) -> Option<&Vec<u8>> {
        self.next.info()
    }
}

/// The pieces of a chain, without the records that are not packed.
#[derive(Debug)]
struct Framing {
    at: u64,
    end: u64,
    /// Of each piece what stands around its records, and these if they are packed.
    pieces: Vec<(Framed, Option<Vec<u8>>)>,
    /// Where the session stands behind it.
    standing: Standing,
}

impl Framing {
    /// The checksum of the batch that makes it count.
    fn checksum(&self) -> u32 {
        self.pieces.last().map_or(0, |(framed, _)| framed.checksum())
    }

    /// What is written at once.
    fn pieces<'a>(&'a self, blocks: &'a [Block]) -> impl Iterator<Item = [&'a [u8]; 3]> {
        self.pieces.iter().enumerate().map(|(at, (framed, packed))| {
            let plain = blocks.get(at).map_or(&[][..], Block::records);
            [framed.front(), packed.as_deref().unwrap_or(plain), framed.back()]
        })
    }
}

/// What a change of the index says that has no place in a batch's header.
fn put_changes(sections: &mut Vec<u8>, index: &IndexUpdate) {
    if let Some(info) = &index.info {
        put_section(sections, Section::Info(info));
    }
    for (number, bytes) in &index.waiting {
        let number = *number;
        put_section(
            sections,
            match bytes {
                Some(bytes) => Section::Waiting { number, bytes },
                None => Section::Begun { number },
            },
        );
    }
}

fn too_long<T>(_: T) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a batch is longer than the format of a segment allows")
}

#[cfg(test)]
mod tests;
