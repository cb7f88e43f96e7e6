//! Where a session stands, as its last segment says, open or sealed.
//!
//! Of an open segment the last batch is read and what that names; of a seal the footer.

use super::append::Standing;
use super::facts::Facts;
use super::from_end::{FromEnd, LastBatch};
use super::layout::Part;
use super::sealed_file::SealedFile;
use super::session_dir::{SessionDir, SessionFileError};
use super::storage::read_at;
use crate::segment::{
    BatchError, BatchFlags, BatchHead, HEADER_BYTES, NONCE_BYTES, SealIndex, Section, SegmentFlags,
    SegmentHeader, StoredBatch, scan,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Where a session stands, as its last segment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSegment {
    /// Its header. Of a seal, the header of the sealed file with the number of the last segment in it.
    pub header: SegmentHeader,
    /// What the session is.
    pub facts: Facts,
    /// Where it stands.
    pub standing: Standing,
    /// The host's own description.
    pub info: Vec<u8>,
    /// What it was given and has not begun with, by number.
    pub waiting: Vec<(u64, Vec<u8>)>,
    /// The place behind the last batch, and its checksum.
    pub end: (u64, u32),
}

impl LastSegment {
    /// Whether the session stands here at `now` still, or where the owner of this segment can have brought it since.
    pub(super) fn leads_to(&self, now: &Self) -> bool {
        let place = |last: &Self| (last.header.number, last.end);
        let is_owned = |last: &Self| !last.standing.released;
        // In a seal it stands where it stood.
        place(self) == place(now)
            || (self.header == now.header
                && is_owned(self)
                && is_owned(now)
                && self.standing.ended == now.standing.ended)
    }
}

impl SessionDir {
    /// Where the session stands. Reads the end of its last segment, and all of it only if much of that is torn.
    ///
    /// # Errors
    /// When it cannot be read, or does not say so.
    pub fn last(&self) -> Result<LastSegment, SessionFileError> {
        self.last_that(true, |_| true)
    }

    /// The same without what waits, which may be much to read: enough for its row.
    ///
    /// # Errors
    /// As those of [`last`](Self::last).
    pub(super) fn head(&self) -> Result<LastSegment, SessionFileError> {
        self.last_that(false, |_| true)
    }

    /// Where the session stood when it had another id than this, which its last segments have. Only while it is moving: until then no
    /// segment with that id is sealed.
    pub(super) fn last_before(&self, id: &str) -> Result<LastSegment, SessionFileError> {
        self.last_that(true, |last| last.facts.id != id)
    }

    fn last_that(
        &self,
        has_waiting: bool,
        is_wanted: impl Fn(&LastSegment) -> bool,
    ) -> Result<LastSegment, SessionFileError> {
        loop {
            match self.last_in(self.parts()?, has_waiting, &is_wanted) {
                // It was sealed meanwhile.
                Err(error) if error.is_missing() => {}
                found => return found?.ok_or(SessionFileError::Empty),
            }
        }
    }

    /// Where the session stood at the end of the last of these parts that is wanted.
    fn last_in(
        &self,
        parts: Vec<Part>,
        has_waiting: bool,
        is_wanted: impl Fn(&LastSegment) -> bool,
    ) -> Result<Option<LastSegment>, SessionFileError> {
        for part in parts.into_iter().rev() {
            let (file, header) = self.open_segment(part)?;
            let last = last_of(part, file, header, has_waiting)?;
            if is_wanted(&last) {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }
}

impl LastSegment {
    /// The host that has the session.
    pub(crate) fn owner(&self) -> Option<&str> {
        (!self.standing.released).then_some(&*self.facts.host)
    }

    /// Whether a host gives the session another id, which its facts have already, and is not done with that: until then it is the
    /// host's.
    pub fn is_moving(&self) -> bool {
        self.header.flags.has(SegmentFlags::MOVED) && !self.standing.released
    }
}

fn last_of(
    part: Part,
    file: File,
    header: SegmentHeader,
    has_waiting: bool,
) -> Result<LastSegment, SessionFileError> {
    match part {
        Part::Log(_) => {
            let length = file.metadata()?.len();
            Reading { file: &file, length, header }.last(has_waiting)
        }
        Part::Seal(..) => {
            let said =
                |_: &SealIndex, footer: &StoredBatch<'_>| (footer.head, facts_in(footer), info_in(footer));
            let (seal, (head, facts, info)) = SealedFile::open(part, file, header, said)?;
            let reach = seal.reach();
            let damaged =
                || SessionFileError::Damaged { number: header.number, last_seq: header.first_seq - 1 };
            Ok(LastSegment {
                header: SegmentHeader { number: seal.last_number(), ..header },
                facts: facts.ok_or_else(damaged)?,
                standing: standing(&head, BTreeMap::new()),
                info: info.ok_or_else(damaged)?,
                waiting: Vec::new(),
                end: (reach.end, reach.checksum),
            })
        }
    }
}

/// Where the session stands behind the batch with this head, with the places of what waits.
fn standing(head: &BatchHead, waiting: BTreeMap<u64, u64>) -> Standing {
    Standing {
        last_seq: head.last_seq(),
        at_ms: head.at_ms,
        state: head.state,
        position: head.position,
        ended: head.flags.has(BatchFlags::ENDED),
        released: head.flags.has(BatchFlags::RELEASED),
        info_at: head.info_at,
        waiting,
    }
}

/// A segment that is being read.
struct Reading<'a> {
    file: &'a File,
    length: u64,
    header: SegmentHeader,
}

impl Reading<'_> {
    fn last(&self, has_waiting: bool) -> Result<LastSegment, SessionFileError> {
        let LastBatch { head, at, end } = match FromEnd::new(self.file, &self.header).last(self.length)? {
            Some(found) => found,
            None => self.read_whole()?,
        };
        let damaged = || self.damaged(head.last_seq());
        let begin = HEADER_BYTES as u64;
        let first = self.bytes(begin, at)?;
        let (facts, mut info) =
            self.with_batch(&first, begin, |batch| (facts_in(&batch), info_in(&batch)))?;
        let facts = facts.ok_or_else(damaged)?;
        if head.info_at > begin {
            let bytes = self.bytes(head.info_at, at)?;
            info = self.with_batch(&bytes, head.info_at, |batch| info_in(&batch))?;
        }
        let waiting_at = if has_waiting { head.waiting_at } else { 0 };
        let waiting = self.waiting(waiting_at, end.0, head.last_seq())?;
        let places = waiting.iter().map(|(number, (at, _))| (*number, *at)).collect();
        let waiting = waiting.into_iter().map(|(number, (_, bytes))| (number, bytes)).collect();
        Ok(LastSegment {
            header: self.header,
            facts,
            standing: standing(&head, places),
            info: info.ok_or_else(damaged)?,
            waiting,
            end,
        })
    }

    /// The last batch, from the front, batch by batch.
    fn read_whole(&self) -> Result<LastBatch, SessionFileError> {
        let bytes = self.read(0, self.length)?;
        let mut last = None;
        let reach = scan(&bytes, &self.header.nonce, self.header.first_seq, |at, batch| {
            last = Some((batch.head, at))
        });
        // Without a batch it is no segment: it appears with its first.
        let (head, at) = last.ok_or_else(|| self.damaged(reach.last_seq))?;
        Ok(LastBatch { head, at, end: (reach.end, reach.checksum) })
    }

    /// What waits, with the places of its batches.
    fn waiting(
        &self,
        from: u64,
        end: u64,
        last_seq: u64,
    ) -> Result<BTreeMap<u64, (u64, Vec<u8>)>, SessionFileError> {
        let mut waiting = BTreeMap::new();
        if from == 0 {
            return Ok(waiting);
        }
        let bytes = self.read(from, end)?;
        let mut at = from;
        while at < end {
            let rest = usize::try_from(at - from).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
            let batch =
                StoredBatch::decode(rest, &self.header.nonce, at).map_err(|_| self.damaged(last_seq))?;
            for section in batch.sections() {
                match section {
                    Section::Waiting { number, bytes } => drop(waiting.insert(number, (at, bytes.to_vec()))),
                    Section::Begun { number } => drop(waiting.remove(&number)),
                    _ => {}
                }
            }
            at += u64::from(batch.length);
        }
        Ok(waiting)
    }

    /// The bytes of the batch at a place; `last` is that of the last one.
    fn bytes(&self, at: u64, last: u64) -> Result<Vec<u8>, SessionFileError> {
        let mut length = [0; 4];
        if at > last {
            return Err(self.damaged(self.header.first_seq - 1));
        }
        self.file.read_exact_at(&mut length, at)?;
        let end = at.saturating_add(u32::from_le_bytes(length).into()).min(self.length);
        Ok(self.read(at, end)?)
    }

    fn with_batch<T>(
        &self,
        bytes: &[u8],
        at: u64,
        look: impl FnOnce(StoredBatch<'_>) -> T,
    ) -> Result<T, SessionFileError> {
        let batch: Result<_, BatchError> = StoredBatch::decode(bytes, self.nonce(), at);
        batch.map(look).map_err(|_| self.damaged(self.header.first_seq - 1))
    }

    fn nonce(&self) -> &[u8; NONCE_BYTES] {
        &self.header.nonce
    }

    fn read(&self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        // It only grows, so what it had is there.
        read_at(self.file, from, to.saturating_sub(from))
    }

    fn damaged(&self, last_seq: u64) -> SessionFileError {
        SessionFileError::Damaged { number: self.header.number, last_seq }
    }
}

/// What the first batch of a segment says of its session.
pub(super) fn facts_in(batch: &StoredBatch<'_>) -> Option<Facts> {
    batch.sections().find_map(|section| match section {
        Section::Facts(bytes) => Facts::decode(bytes),
        _ => None,
    })
}

fn info_in(batch: &StoredBatch<'_>) -> Option<Vec<u8>> {
    let infos = batch.sections().filter_map(|section| match section {
        Section::Info(bytes) => Some(bytes.to_vec()),
        _ => None,
    });
    infos.last()
}
