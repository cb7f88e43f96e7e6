//! A session that is copied from elsewhere: its events sealed, and behind them the segment of the host that has it, if one has.
//!
//! Owned by who copies, in a directory that nobody reads yet. Nothing is synced: who copies many has all of them on the disk at once.

use super::claim::{Claim, new_nonce};
use super::directory::make_directory;
use super::layout::Part;
use super::session_dir::{SessionDir, SessionFileError};
use super::{Facts, NO_HOST};
use crate::batch::{Batch, IndexUpdate};
use crate::block::Block;
use crate::query::SessionRow;
use crate::segment::{
    BatchFlags, BatchHead, NONCE_BYTES, SealError, SealWriter, SegmentFlags, SegmentHeader,
};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

/// The part that has all events.
const SEAL: Part = Part::Seal(1, 1);

/// A session that is being copied.
#[derive(Debug)]
pub(crate) struct SealedCopy {
    directory: SessionDir,
    out: BufWriter<File>,
    writer: SealWriter,
}

impl SealedCopy {
    /// Begins in a directory of its own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn begin(path: &Path) -> Result<Self, SessionFileError> {
        make_directory(path)?;
        let directory = SessionDir::open(path)?.ok_or(SessionFileError::Empty)?;
        let mut out = BufWriter::new(directory.make(&SEAL.name())?);
        // Of a segment that never was: the seal has a nonce of its own.
        let first = SegmentHeader::first([0; NONCE_BYTES]);
        let writer = SealWriter::begin(&first, new_nonce()?, &mut out).map_err(unsealable)?;
        Ok(Self { directory, out, writer })
    }

    /// Adds the next events.
    ///
    /// # Errors
    /// When they are not the next ones, or cannot be written.
    pub(crate) fn add(&mut self, block: &Block) -> Result<(), SessionFileError> {
        self.writer.add_frame(block, &mut self.out).map_err(unsealable)
    }

    /// Adds so many events that cannot be read.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn add_lost(&mut self, events: u64) -> Result<(), SessionFileError> {
        self.writer.add_lost(events, &mut self.out).map_err(unsealable)
    }

    /// Has it be the session of this row, and returns its last segment and the bytes of its files. `waiting` is what it was given and
    /// has not begun with.
    ///
    /// # Errors
    /// When it has not as many events as the row says, or cannot be written.
    pub(crate) fn finish(
        self,
        row: &SessionRow,
        waiting: Vec<(u64, Vec<u8>)>,
    ) -> Result<(u32, u64), SessionFileError> {
        let Self { directory, mut out, mut writer } = self;
        if writer.reach().last_seq != row.last_seq {
            return Err(unsealable(SealError::OutOfOrder));
        }
        let facts = facts_of(row);
        writer.describe(head_of(row), facts.encode(), row.info.clone());
        writer.finish(&mut out).map_err(unsealable)?;
        out.flush()?;
        drop(out);
        let number = match row.owner {
            Some(_) => claim_for_owner(&directory, row, &facts, waiting)?,
            None => SEAL.range().1,
        };
        Ok((number, directory.bytes()?))
    }
}

/// Has the host of a session own a segment behind the seal, where it stands as it did.
fn claim_for_owner(
    directory: &SessionDir,
    row: &SessionRow,
    facts: &Facts,
    waiting: Vec<(u64, Vec<u8>)>,
) -> Result<u32, SessionFileError> {
    let waiting = waiting.into_iter().map(|(number, bytes)| (number, Some(bytes))).collect();
    let batch =
        Batch::index_only(IndexUpdate { updated_ms: row.updated_ms, waiting, ..IndexUpdate::default() });
    // State and position are in the seal.
    let claim = Claim { flags: SegmentFlags::default(), facts, goes_on: true, batch };
    let claimed = directory.claim(&directory.last()?, claim)?.ok_or(SessionFileError::Empty)?;
    Ok(claimed.header.number)
}

fn facts_of(row: &SessionRow) -> Facts {
    Facts {
        id: row.id.clone(),
        agent: row.agent.clone(),
        cwd: row.cwd.clone(),
        host: row.owner.clone().unwrap_or_else(|| NO_HOST.to_owned()),
        created_by: row.created_by.clone(),
        created_ms: row.created_ms,
    }
}

fn head_of(row: &SessionRow) -> BatchHead {
    let mut flags = BatchFlags::default();
    for (is_set, flag) in [(row.ended, BatchFlags::ENDED), (row.owner.is_none(), BatchFlags::RELEASED)] {
        if is_set {
            flags = flags.with(flag);
        }
    }
    BatchHead {
        flags,
        state: row.state,
        at_ms: row.updated_ms,
        position: row.position,
        ..BatchHead::default()
    }
}

fn unsealable(source: SealError) -> SessionFileError {
    match source {
        SealError::Write(error) => SessionFileError::Io(error),
        source => SessionFileError::Unsealable { number: SEAL.range().0, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_files::{Read, SessionReader};

    fn row(owner: Option<&str>, last_seq: u64) -> SessionRow {
        SessionRow {
            id: "a".into(),
            agent: "agent".into(),
            cwd: "/work".into(),
            owner: owner.map(str::to_owned),
            created_by: Some("ci".into()),
            created_ms: 3,
            updated_ms: 9,
            ended: owner.is_none(),
            last_seq,
            state: 7,
            position: 4711,
            info: b"{}".to_vec(),
        }
    }

    fn blocks(sizes: &[usize]) -> Vec<Block> {
        let mut batch = Batch::new();
        sizes.iter().for_each(|size| batch.push(1, 2, &vec![b'x'; *size]));
        crate::block::BlockBuilder::whole(1, batch.records, batch.count)
    }

    // issue 29: a session that is copied stands as it did, whoever has it
    #[test]
    fn a_copy_stands_as_its_row_says() {
        let waiting = vec![(1, b"a prompt".to_vec()), (5, b"another".to_vec())];
        for (owner, sizes, waiting, segment) in [
            (None, &[1, 300_000, 2_000_000, 0][..], Vec::new(), 1),
            (None, &[], Vec::new(), 1),
            (Some("one"), &[1, 2], waiting, 2),
            (Some("one"), &[], Vec::new(), 2),
        ] {
            let state = tempfile::tempdir().expect("a directory");
            let path = state.path().join("copy");
            let mut copy = SealedCopy::begin(&path).expect("it begins");
            blocks(sizes).iter().for_each(|block| copy.add(block).expect("it is written"));
            let row = row(owner, sizes.len() as u64);
            let (number, bytes) = copy.finish(&row, waiting.clone()).expect("it is written");
            let directory = SessionDir::open(&path).expect("it opens").expect("it is there");
            assert_eq!((number, bytes), (segment, directory.bytes().expect("it is read")));
            let last = directory.last().expect("it is read");
            assert_eq!((last.header.number, &last.waiting), (segment, &waiting));
            assert_eq!(SessionRow::from(last), row);
        }
    }

    // issue 29: events that cannot be read are missing alone: those before them and behind them keep their numbers
    #[test]
    fn lost_events_are_damage_and_no_others() {
        let state = tempfile::tempdir().expect("a directory");
        let path = state.path().join("copy");
        let mut copy = SealedCopy::begin(&path).expect("it begins");
        copy.add(&blocks(&[1, 2])[0]).expect("it is written");
        copy.add_lost(3).expect("it is written");
        let behind = Block::checked(6, 7, blocks(&[5, 6])[0].records().to_vec().into()).expect("a block");
        copy.add(&behind).expect("it is written");
        copy.finish(&row(None, 7), Vec::new()).expect("it is written");
        let read = |after| {
            let directory = SessionDir::open(&path).expect("it opens").expect("it is there");
            SessionReader::new(directory, after).read(7).map(|read| match read {
                Read::Blocks(blocks) => blocks.iter().map(Block::range).collect::<Vec<_>>(),
                Read::End => Vec::new(),
            })
        };
        assert_eq!(read(0).expect("it is read"), [1..=2]);
        for lost in 2..5 {
            let damage = read(lost).expect_err("it is lost");
            assert!(matches!(damage, SessionFileError::Damaged { .. }), "{lost}: {damage}");
        }
        assert_eq!(read(5).expect("it is read"), [6..=7]);
        assert_eq!(read(6).expect("it is read"), [7..=7]);
    }

    // issue 29: a copy that has not all events is none
    #[test]
    fn a_copy_has_all_events() {
        let state = tempfile::tempdir().expect("a directory");
        let mut copy = SealedCopy::begin(&state.path().join("copy")).expect("it begins");
        copy.add(&blocks(&[1, 2])[0]).expect("it is written");
        assert!(copy.add(&blocks(&[1, 2])[0]).is_err(), "they are not the next ones");
        assert!(copy.finish(&row(None, 3), Vec::new()).is_err());
    }
}
