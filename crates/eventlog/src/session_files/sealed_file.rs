//! A seal that is being read: its index is in memory, and a frame is read at a time.

use super::layout::Part;
use super::session_dir::SessionFileError;
use super::storage::read_at;
use crate::block::Block;
use crate::segment::{
    HeaderError, Reach, SealDamage, SealIndex, SealTail, SegmentHeader, StoredBatch, TAIL_BYTES,
};
use std::fs::File;

/// A seal that is being read.
#[derive(Debug)]
pub(super) struct SealedFile {
    file: File,
    header: SegmentHeader,
    index: SealIndex,
}

impl SealedFile {
    /// Reads the index of a part that was opened, and hands it and the footer to `look`.
    pub(super) fn open<T>(
        part: Part,
        file: File,
        header: SegmentHeader,
        look: impl FnOnce(&SealIndex, &StoredBatch<'_>) -> T,
    ) -> Result<(Self, T), SessionFileError> {
        let number = header.number;
        let damaged = |damage: SealDamage| damaged(number, damage.seq);
        let length = file.metadata()?.len();
        let tail_length = length.min(TAIL_BYTES as u64);
        let tail = read_at(&file, length - tail_length, tail_length)?;
        let tail = SealTail::decode(&tail, length, &header).map_err(damaged)?;
        let footer = read_at(&file, tail.footer_at, tail.footer_length)?;
        let footer = tail.decode_footer(&footer, &header).map_err(damaged)?;
        let index = SealIndex::decode(&header, &tail, &footer).map_err(damaged)?;
        if index.last_number != part.range().1 {
            return Err(SessionFileError::Header { number, source: HeaderError::Damaged });
        }
        let seen = look(&index, &footer);
        Ok((Self { file, header, index }, seen))
    }

    /// The number of the last segment in it.
    pub(super) fn last_number(&self) -> u32 {
        self.index.last_number
    }

    /// How far that segment goes.
    pub(super) fn reach(&self) -> Reach {
        self.index.reach
    }

    /// The events of a frame, from `seq` on; none if there is no frame with it.
    pub(super) fn read(&self, seq: u64) -> Result<Option<Block>, SessionFileError> {
        let Some(place) = self.index.find(seq) else { return Ok(None) };
        let bytes = read_at(&self.file, place.place, place.length)?;
        let block = place.decode(&bytes, &self.header.nonce);
        Ok(block.map_err(|damage| damaged(self.header.number, damage.seq))?.starting_at(seq))
    }
}

fn damaged(number: u32, seq: u64) -> SessionFileError {
    SessionFileError::Damaged { number, last_seq: seq.saturating_sub(1) }
}
