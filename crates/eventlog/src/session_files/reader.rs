//! Reads a session's events from its files, from any sequence number on.
//!
//! Owned by its reader; blocks while it reads. It needs no lock and writes nothing: a part is never changed but at its end, where a
//! batch counts once it is whole, and a seal that replaces parts has the same events. What stands behind the cut of a segment is never given. Bounded: one piece at a time.

use super::from_end::FromEnd;
use super::layout::Part;
use super::sealed_file::SealedFile;
use super::session_dir::{SessionDir, SessionFileError};
use crate::block::Block;
use crate::segment::{BatchError, BatchFlags, HEADER_BYTES, SegmentHeader, StoredBatch};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are read at once, unless a batch is longer.
const PIECE: u64 = 1024 * 1024;
/// A way back from the end costs a quarter of one from the front, which checks what it passes: so what is in this share of a segment is
/// reached from its front.
const FRONT_SHARE: u64 = 4;

/// A place among a session's events.
#[derive(Debug)]
pub struct SessionReader {
    directory: SessionDir,
    /// The part that is read, once one was looked for.
    part: Option<OpenPart>,
    /// The next event to give.
    next: u64,
}

/// A part that is being read.
#[derive(Debug)]
enum OpenPart {
    Log(OpenLog),
    Seal(SealedFile),
}

/// A segment that is being read.
#[derive(Debug)]
struct OpenLog {
    file: File,
    header: SegmentHeader,
    /// Where the segment behind it says that it ends.
    cut: Option<u64>,
    /// The place of a batch, and its first event.
    at: u64,
    seq: u64,
}

/// What comes next.
#[derive(Debug)]
pub enum Read {
    /// Events.
    Blocks(Vec<Block>),
    /// Nothing behind these for now.
    End,
}

/// What looking once came to.
enum Turn {
    Blocks(Vec<Block>),
    /// More is known of the part than before.
    Again,
    /// It goes on in another part.
    Elsewhere(OpenPart),
    End,
}

impl SessionReader {
    /// Begins behind event `after`.
    pub fn new(directory: SessionDir, after: u64) -> Self {
        Self { directory, part: None, next: after + 1 }
    }

    /// Whether its session is where it was: not removed, and under the same id.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.directory.is_at(path)
    }

    /// The next event to give.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// The next events, up to event `upto` and the end of its append, or of its frame in a seal, all of which was committed before.
    ///
    /// # Errors
    /// When a file cannot be read, or is damaged. The reader stays where it is.
    pub fn read(&mut self, upto: u64) -> Result<Read, SessionFileError> {
        while self.next <= upto {
            let mut part = match self.part.take() {
                Some(part) => part,
                None => match self.find_part()? {
                    Some(part) => part,
                    None => return Ok(Read::End),
                },
            };
            let turn = match &mut part {
                OpenPart::Log(log) => self.read_log(log, upto),
                OpenPart::Seal(seal) => self.read_seal(seal),
            };
            self.part = Some(part);
            match turn? {
                Turn::Blocks(blocks) => {
                    self.next = blocks.last().map_or(self.next, |last| last.last() + 1);
                    return Ok(Read::Blocks(blocks));
                }
                Turn::Again => {}
                Turn::Elsewhere(part) => self.part = Some(part),
                Turn::End => return Ok(Read::End),
            }
        }
        Ok(Read::End)
    }

    fn read_log(&self, log: &mut OpenLog, upto: u64) -> Result<Turn, SessionFileError> {
        let (place, number) = ((log.at, log.seq), log.header.number);
        let blocks = log.read(self.next, upto);
        let has_any = blocks.as_ref().is_ok_and(|blocks| !blocks.is_empty());
        if log.cut.is_some() {
            return match has_any {
                true => blocks.map(Turn::Blocks),
                // All that counts of it was given.
                false => blocks.and_then(|_| self.go_behind(number, |next| next.first_seq <= self.next)),
            };
        }
        // Looked for behind the read: its former owner may have written on where another claimed the next one meanwhile.
        match self.directory.find_log(number_behind(number)?) {
            Ok(Some((_, next))) => {
                (log.at, log.seq, log.cut) = (place.0, place.1, Some(next.cut));
                return Ok(Turn::Again);
            }
            Ok(None) if self.directory.has_log(number)? => {}
            // Both were sealed, the names of the first ones first.
            Ok(None) => {
                if let Some(part) = self.find_part()? {
                    return Ok(Turn::Elsewhere(part));
                }
            }
            // What stands before the damage is given first.
            Err(_) if has_any => {}
            Err(error) => return Err(error),
        }
        blocks.map(|blocks| if has_any { Turn::Blocks(blocks) } else { Turn::End })
    }

    fn read_seal(&self, seal: &SealedFile) -> Result<Turn, SessionFileError> {
        match seal.read(self.next)? {
            Some(block) => Ok(Turn::Blocks(vec![block])),
            None => self.go_behind(seal.last_number(), |next| seal.reach().is_continued_by(next)),
        }
    }

    /// Goes on behind a segment of which all that counts was given, if the next one `continues` it.
    fn go_behind(
        &self,
        number: u32,
        continues: impl Fn(&SegmentHeader) -> bool,
    ) -> Result<Turn, SessionFileError> {
        match self.directory.find_log(number_behind(number)?)? {
            Some((file, header)) if continues(&header) => {
                Ok(Turn::Elsewhere(OpenPart::Log(OpenLog::new(file, header, None))))
            }
            // The end of the one before was lost.
            Some(_) => Err(SessionFileError::Damaged { number, last_seq: self.next - 1 }),
            // It may have been sealed.
            None => Ok(match self.find_part()? {
                Some(part) if part.last_number() > number => Turn::Elsewhere(part),
                _ => Turn::End,
            }),
        }
    }

    /// The part that has the next event, or would have it.
    fn find_part(&self) -> Result<Option<OpenPart>, SessionFileError> {
        loop {
            match self.find_in(self.directory.parts()?) {
                // It was sealed meanwhile.
                Err(error) if error.is_missing() => {}
                found => return found,
            }
        }
    }

    fn find_in(&self, parts: Vec<Part>) -> Result<Option<OpenPart>, SessionFileError> {
        let (mut cut, mut damage) = (None, None);
        for part in parts.into_iter().rev() {
            match self.directory.open_segment(part) {
                Ok((file, header)) if header.first_seq <= self.next => {
                    let mut part = OpenPart::new(part, file, header, cut)?;
                    if let OpenPart::Log(log) = &mut part {
                        log.go_near(self.next)?;
                    }
                    return Ok(Some(part));
                }
                Ok((_, header)) => cut = Some(header.cut),
                Err(error) if error.is_missing() => return Err(error),
                // What stands before the damage is given first.
                Err(error) => (cut, damage) = (None, Some(error)),
            }
        }
        damage.map_or(Ok(None), Err)
    }
}

fn number_behind(number: u32) -> io::Result<u32> {
    number.checked_add(1).ok_or_else(|| io::ErrorKind::StorageFull.into())
}

impl OpenPart {
    fn new(
        part: Part,
        file: File,
        header: SegmentHeader,
        cut: Option<u64>,
    ) -> Result<Self, SessionFileError> {
        Ok(match part {
            Part::Log(_) => Self::Log(OpenLog::new(file, header, cut)),
            Part::Seal(..) => Self::Seal(SealedFile::open(part, file, header, |_, _| ())?.0),
        })
    }

    fn last_number(&self) -> u32 {
        match self {
            Self::Log(log) => log.header.number,
            Self::Seal(seal) => seal.last_number(),
        }
    }
}

impl OpenLog {
    fn new(file: File, header: SegmentHeader, cut: Option<u64>) -> Self {
        Self { file, header, cut, at: HEADER_BYTES as u64, seq: header.first_seq }
    }

    /// Goes near event `next` from the end of a long segment, if it is nearer to that than to the front. Where the way back is not whole,
    /// this stays at the front: a reader from there finds out what is damaged.
    fn go_near(&mut self, next: u64) -> io::Result<()> {
        let end = match self.cut {
            Some(cut) => cut,
            None => self.file.metadata()?.len(),
        };
        if end <= self.at.saturating_add(PIECE) {
            return Ok(());
        }
        let mut from_end = FromEnd::new(&self.file, &self.header);
        let place = from_end.last(end).and_then(|last| {
            let last = last.filter(|last| {
                let all = last.head.last_seq().saturating_sub(self.seq);
                (self.cut.is_none() || last.end.0 == end) && next - self.seq >= all / FRONT_SHARE
            });
            last.map_or(Ok(None), |last| from_end.place_of(next, &last))
        });
        match place {
            Ok(place) => (self.at, self.seq) = place.unwrap_or((self.at, self.seq)),
            // Its writer has cut off meanwhile what it could not write whole.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Events from `next` to the append with `upto` at most; none if no more of them count. Goes on to where they are.
    fn read(&mut self, next: u64, upto: u64) -> Result<Vec<Block>, SessionFileError> {
        let mut blocks = Vec::new();
        let mut wanted = PIECE;
        loop {
            let end = self.cut.map_or(u64::MAX, |cut| cut.max(self.at)).min(self.at.saturating_add(wanted));
            let bytes = self.bytes_up_to(end)?;
            let is_all = (bytes.len() as u64) < wanted;
            let passed = self.take(&bytes, (next, upto), &mut blocks)?;
            match passed {
                // One batch, or one chain, is longer than what was read.
                0 if !is_all => wanted = wanted.saturating_mul(2),
                0 => return Ok(blocks),
                _ if blocks.is_empty() => wanted = PIECE,
                _ => return Ok(blocks),
            }
        }
    }

    /// Takes the whole batches in `bytes`, which stand where this is, and goes behind them; how many bytes these were.
    fn take(
        &mut self,
        bytes: &[u8],
        (next, upto): (u64, u64),
        blocks: &mut Vec<Block>,
    ) -> Result<u64, SessionFileError> {
        let (begin, mut chain, mut unpacked) = (self.at, Vec::new(), 0);
        let (mut at, mut seq) = (self.at, self.seq);
        loop {
            let rest = usize::try_from(at - begin).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let batch = match StoredBatch::decode(rest, &self.header.nonce, at) {
                Ok(batch) if batch.head.first_seq == seq => batch,
                Err(BatchError::Cut) => break,
                // Behind what counts stand zeros, or what a writer that died left. Where a segment goes on it is damage.
                // What stands before it is given first.
                _ if self.cut.is_none() || self.at > begin => break,
                _ => return Err(self.damaged(seq)),
            };
            let last = batch.head.last_seq();
            if batch.head.events > 0 && last >= next {
                let records = batch.unpacked_records().ok();
                let block = records.and_then(|it| Block::checked(seq, last, it.into_owned().into()));
                let block = block.ok_or_else(|| self.damaged(seq))?;
                chain.extend(block.starting_at(next.max(seq)));
            }
            seq += u64::from(batch.head.events);
            at += u64::from(batch.length);
            if !batch.head.flags.has(BatchFlags::MORE_FOLLOWS) {
                (self.at, self.seq) = (at, seq);
                unpacked += chain.iter().map(Block::bytes).sum::<usize>() as u64;
                blocks.append(&mut chain);
                // What is packed may be many times as long.
                if seq > upto || unpacked >= PIECE {
                    break;
                }
            }
        }
        Ok(self.at - begin)
    }

    fn bytes_up_to(&self, end: u64) -> io::Result<Vec<u8>> {
        let length = self.file.metadata()?.len().min(end).saturating_sub(self.at);
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData)?];
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], self.at + read as u64) {
                // Its writer has cut off meanwhile what it could not write whole.
                Ok(0) => bytes.truncate(read),
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    fn damaged(&self, seq: u64) -> SessionFileError {
        SessionFileError::Damaged { number: self.header.number, last_seq: seq - 1 }
    }
}

#[cfg(test)]
mod tests;
