//! Seals segments: takes their batches in order and gives the sealed bytes piece by piece.
//!
//! Owns the frame that is being filled, and in memory has not much more than it.

use super::super::batch::{BatchFlags, BatchHead, StoredBatch};
use super::super::header::{HEADER_BYTES, SegmentFlags, SegmentHeader};
use super::super::section::{Section, put_section};
use super::super::unpack::FRAME_BYTES;
use super::super::{NONCE_BYTES, Reach};
use super::frame::write_frame;
use super::index::{SealIndex, SealTail, put_replaced};
use super::{MAX_RECORD_BYTES, RECORD_HEAD_BYTES, SealDamage};
use crate::block::{Block, Event, Events};
use std::io::{self, Write};

/// Why segments were not sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// A batch does not hold the events that it says.
    #[error(transparent)]
    Damaged(#[from] SealDamage),
    /// A batch or a segment is not the one behind those before it, or it is of a kind that is not sealed.
    #[error("what is to be sealed does not follow what was sealed before it")]
    OutOfOrder,
    /// The footer would be too long for the format.
    #[error("the session's description is too long to be sealed")]
    TooLong,
    /// The sealed bytes could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Segments that are being sealed.
#[derive(Debug)]
pub struct SealWriter {
    header: SegmentHeader,
    /// The number of the last segment, and how far it goes.
    number: u32,
    reach: Reach,
    /// Where the session stands behind the last batch.
    head: BatchHead,
    facts: Option<Vec<u8>>,
    info: Option<Vec<u8>>,
    /// The frame that is being filled, and the number of its first event.
    open: Vec<u8>,
    open_first: u64,
    /// Where the next frame begins.
    place: u64,
    frames: Vec<(u64, u64)>,
    /// The size at which frames are cut.
    pub(super) frame_bytes: usize,
}

impl SealWriter {
    /// Begins to seal the segment with this header. `nonce` is that of the sealed file.
    ///
    /// # Errors
    /// When it is of a kind that is not sealed, or `out` fails.
    pub fn begin(
        first: &SegmentHeader,
        nonce: [u8; NONCE_BYTES],
        out: &mut impl Write,
    ) -> Result<Self, SealError> {
        check_kind(first)?;
        let flags = SegmentFlags(first.flags.0 | SegmentFlags::SEALED.0);
        let header = SegmentHeader { flags, nonce, ..*first };
        out.write_all(&header.encode())?;
        Ok(Self {
            header,
            number: first.number,
            reach: Reach::of_none(first.first_seq),
            head: BatchHead::default(),
            facts: None,
            info: None,
            open: Vec::new(),
            open_first: first.first_seq,
            place: HEADER_BYTES as u64,
            frames: Vec::new(),
            frame_bytes: FRAME_BYTES,
        })
    }

    /// Begins with what is sealed already, in the file with this header, index and footer, whose frames are added next. It can be
    /// gone on behind it once all of them were.
    ///
    /// # Errors
    /// When it is of a kind that is not sealed, or `out` fails.
    pub fn begin_with_seal(
        seal: &SegmentHeader,
        index: &SealIndex,
        footer: &StoredBatch<'_>,
        nonce: [u8; NONCE_BYTES],
        out: &mut impl Write,
    ) -> Result<Self, SealError> {
        let flags = SegmentFlags(seal.flags.0 & !SegmentFlags::SEALED.0);
        let mut writer = Self::begin(&SegmentHeader { flags, ..*seal }, nonce, out)?;
        writer.number = index.last_number;
        writer.reach = Reach { last_seq: writer.reach.last_seq, ..index.reach };
        writer.head = footer.head;
        writer.take_sections(footer);
        Ok(writer)
    }

    /// Adds the events of a frame that is sealed already.
    ///
    /// # Errors
    /// When they are not the next ones, or `out` fails.
    pub fn add_frame(&mut self, frame: &Block, out: &mut impl Write) -> Result<(), SealError> {
        if frame.first() != self.next_seq() {
            return Err(SealError::OutOfOrder);
        }
        self.put_all(frame.events(), frame.records(), out)?;
        Ok(())
    }

    /// Adds so many events that are lost, as a frame without them: who reads them finds damage, and those behind keep their numbers.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn add_lost(&mut self, events: u64, out: &mut impl Write) -> Result<(), SealError> {
        self.cut(out)?;
        let mut left = events;
        while left > 0 {
            let lost = u32::try_from(left).unwrap_or(u32::MAX);
            self.write(self.next_seq(), lost, &[], out)?;
            self.reach.last_seq = self.reach.last_seq.saturating_add(lost.into());
            left -= u64::from(lost);
        }
        Ok(())
    }

    /// Says where the session stands behind what was added, and what it is, where no batch does.
    pub fn describe(&mut self, head: BatchHead, facts: Vec<u8>, info: Vec<u8>) {
        (self.head, self.facts, self.info) = (head, Some(facts), Some(info));
    }

    /// How far what was added goes.
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Goes on with the segment that has this header.
    ///
    /// # Errors
    /// When it does not say that it comes next, or is of a kind that is not sealed.
    pub fn continue_with(&mut self, next: &SegmentHeader) -> Result<(), SealError> {
        check_kind(next)?;
        let is_next = Some(next.number) == self.number.checked_add(1) && self.reach.is_continued_by(next);
        if !is_next {
            return Err(SealError::OutOfOrder);
        }
        self.number = next.number;
        self.reach = Reach::of_none(next.first_seq);
        Ok(())
    }

    /// Adds the batch at `place` of the segment, and writes the frames that are full.
    ///
    /// # Errors
    /// When it is not the next one or damaged, or `out` fails. Nothing of it is to be kept then.
    pub fn add(
        &mut self,
        place: u64,
        batch: &StoredBatch<'_>,
        out: &mut impl Write,
    ) -> Result<(), SealError> {
        let head = batch.head;
        if place != self.reach.end || head.first_seq != self.next_seq() {
            return Err(SealError::OutOfOrder);
        }
        let damage = SealDamage { seq: head.first_seq };
        head.first_seq.checked_add(u64::from(head.events)).ok_or(damage)?;
        let records = batch.unpacked_records().map_err(|_| damage)?;
        let events = Events::new(head.first_seq, &records).take(head.events as usize);
        let rest = self.put_all(events, &records, out)?;
        if !rest.is_empty() || self.reach.last_seq != head.last_seq() {
            return Err(damage.into());
        }
        self.take_sections(batch);
        self.head = head;
        self.reach.end += u64::from(batch.length);
        self.reach.checksum = batch.checksum;
        Ok(())
    }

    /// Writes what is left, the footer and the tail, and returns the length of the file.
    ///
    /// # Errors
    /// When the footer is too long, or `out` fails.
    pub fn finish(mut self, out: &mut impl Write) -> Result<u64, SealError> {
        self.cut(out)?;
        let ended = if self.head.flags.has(BatchFlags::ENDED) { BatchFlags::ENDED.0 } else { 0 };
        let released = if self.head.flags.has(BatchFlags::RELEASED) { BatchFlags::RELEASED.0 } else { 0 };
        let head = BatchHead {
            flags: BatchFlags(ended | released),
            state: self.head.state,
            first_seq: self.next_seq(),
            at_ms: self.head.at_ms,
            position: self.head.position,
            info_at: self.info.as_ref().map_or(0, |_| self.place),
            ..BatchHead::default()
        };
        let mut front = BatchHead::begin(0);
        self.facts.iter().for_each(|facts| put_section(&mut front, Section::Facts(facts)));
        self.info.iter().for_each(|info| put_section(&mut front, Section::Info(info)));
        let mut replaced = Vec::new();
        put_replaced(&mut replaced, self.number, &self.reach, &self.frames);
        let nonce = &self.header.nonce;
        let footer = head.frame(front, &replaced, nonce, self.place).ok_or(SealError::TooLong)?;
        let length = (footer.front().len() + replaced.len() + footer.back().len()) as u64;
        let tail = SealTail { footer_at: self.place, footer_length: length };
        for part in [footer.front(), &replaced, footer.back(), &tail.encode(nonce)] {
            out.write_all(part)?;
        }
        Ok(tail.file_length())
    }

    fn take_sections(&mut self, batch: &StoredBatch<'_>) {
        for section in batch.sections() {
            match section {
                Section::Facts(bytes) => self.facts = Some(bytes.to_vec()),
                Section::Info(bytes) => self.info = Some(bytes.to_vec()),
                _ => {}
            }
        }
    }

    fn next_seq(&self) -> u64 {
        self.reach.last_seq.saturating_add(1)
    }

    /// Puts the records of these events, and returns what stands behind them.
    fn put_all<'a, 'b>(
        &mut self,
        events: impl Iterator<Item = Event<'b>>,
        mut records: &'a [u8],
        out: &mut impl Write,
    ) -> Result<&'a [u8], SealError> {
        for event in events {
            let (record, behind) = records.split_at(RECORD_HEAD_BYTES + event.payload.len());
            self.put(event.seq, record, out)?;
            self.reach.last_seq = event.seq;
            records = behind;
        }
        Ok(records)
    }

    fn put(&mut self, seq: u64, record: &[u8], out: &mut impl Write) -> Result<(), SealError> {
        if record.len() > MAX_RECORD_BYTES {
            return Err(SealDamage { seq }.into());
        }
        if !self.open.is_empty() && self.open.len() + record.len() > self.frame_bytes {
            self.cut(out)?;
        }
        if self.open.is_empty() {
            self.open_first = seq;
        }
        if record.len() > self.frame_bytes {
            return Ok(self.write(seq, 1, record, out)?);
        }
        self.open.extend_from_slice(record);
        Ok(())
    }

    /// Writes the frame that is being filled, if there is anything in it.
    fn cut(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.open);
        // Fits, as it is less than the bytes.
        let events = (self.next_seq() - self.open_first) as u32;
        self.write(self.open_first, events, &records, out)?;
        self.open = records;
        self.open.clear();
        Ok(())
    }

    fn write(&mut self, first_seq: u64, events: u32, records: &[u8], out: &mut impl Write) -> io::Result<()> {
        let length = write_frame(first_seq, events, records, &self.header.nonce, self.place, out)?;
        self.frames.push((first_seq, self.place));
        self.place += length;
        Ok(())
    }
}

/// A deleted session would be back with its flag gone; what is sealed has no batches.
fn check_kind(header: &SegmentHeader) -> Result<(), SealError> {
    let is_refused = header.flags.has(SegmentFlags::DELETED) || header.flags.has(SegmentFlags::SEALED);
    if is_refused { Err(SealError::OutOfOrder) } else { Ok(()) }
}
