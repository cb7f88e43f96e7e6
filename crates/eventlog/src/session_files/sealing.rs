//! Seals the segments of a session that are closed: their events in one compressed file, in place of theirs.
//!
//! Owned by the caller, who has the directory alone as far as sealing and removal go; claims and readers go on meanwhile.
//! Invariants: at each moment each event is in a file with a name; a source goes only once the seal is on the disk, and the
//! first one first. What a process that died leaves half done is finished, or removed, by the next one. Which sessions are
//! sealed, and when, is decided elsewhere (`files/seal_schedule.rs`).

mod synced_output;

use super::claim::new_nonce;
use super::fail_point::{FailPoint, has_died, reach};
use super::last_segment::LastSegment;
use super::layout::Part;
use super::sealed_file::SealedFile;
use super::session_dir::{SessionDir, SessionFileError};
use super::storage::read_at;
use crate::segment::{
    BatchError, HEADER_BYTES, SealDamage, SealError, SealWriter, SegmentFlags, SegmentHeader, StoredBatch,
};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use synced_output::SyncedOutput;

/// Bytes of a segment that is not sealed by itself: it would not become much smaller.
pub const SMALL_SEGMENT: u64 = 16 * 1024;
/// Bytes of a seal that is sealed once more together with the segments behind it, so that a session that is resumed often has few
/// files. A larger one is left, as all of it would be written each time.
const SMALL_SEAL: u64 = 256 * 1024;
/// Bytes of the segments that are sealed at once, unless one is longer: what is stopped before its end is begun again.
const MOST: u64 = 256 * 1024 * 1024;
/// Bytes that are read at once, unless a batch is longer.
const PIECE: u64 = 1024 * 1024;

/// The outcome of an attempt to seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealing {
    /// Segments are in a seal now.
    Sealed {
        /// The seal.
        part: Part,
        /// Bytes of the files that it replaces.
        before: u64,
        /// Bytes of the seal.
        after: u64,
    },
    /// Nothing is closed that is worth it, or the session is being removed.
    Nothing,
    /// Another process seals the session, or removes it.
    Busy,
    /// The caller's [`SealControl`] did not allow it, or stopped it. The session is as it was.
    Stopped,
}

/// The caller's say in an attempt to seal.
pub trait SealControl {
    /// Whether the events up to `upto` of a session may be sealed. `last` is where the session stands.
    fn allows(&self, last: &LastSegment, upto: u64) -> bool {
        let _unused = (last, upto);
        true
    }

    /// Whether the attempt is to stop. Asked after each piece of 1 MiB.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Allows everything.
impl SealControl for () {}

/// A part that is open, with its header.
type Opened = (File, SegmentHeader);

/// The parts that become one seal.
#[derive(Debug)]
struct Sources {
    /// In order.
    parts: Vec<Part>,
    bytes: u64,
    /// The header of the segment behind them. None: there is none, and the session is released.
    next: Option<SegmentHeader>,
}

impl Sources {
    /// The last event in them, in a session that stands as `last` says.
    fn last_seq(&self, last: &LastSegment) -> u64 {
        self.next.map_or(last.standing.last_seq, |next| next.first_seq - 1)
    }
}

/// Why a seal was not written to its end.
enum Abandoned {
    /// The session is being removed.
    Removed,
    Stopped,
    Failed(SessionFileError),
}

impl From<SessionFileError> for Abandoned {
    fn from(error: SessionFileError) -> Self {
        Self::Failed(error)
    }
}

impl From<io::Error> for Abandoned {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl SessionDir {
    /// Seals segments that are closed: all of them once the session is released, all but the last before, 256 MiB at once.
    /// `host` is who does it.
    ///
    /// # Errors
    /// When a file cannot be read or written, or is damaged. Nothing has changed then but that files may be left that the seal
    /// replaces.
    pub fn seal(&self, host: &str, control: &impl SealControl) -> Result<Sealing, SessionFileError> {
        let Some(alone) = self.lock(FlockOperation::NonBlockingLockExclusive)? else {
            return Ok(Sealing::Busy);
        };
        let leftovers = self.clear_half_sealed()?;
        let last = match self.last() {
            Err(SessionFileError::Empty) => return Ok(Sealing::Nothing),
            last => last?,
        };
        let Some(sources) = self.sources(&last)? else { return Ok(Sealing::Nothing) };
        if !control.allows(&last, sources.last_seq(&last)) {
            return Ok(Sealing::Stopped);
        }
        let aside = Self::half_sealed(host);
        let placed = self.place_seal(&aside, &sources, &last, control);
        let part = match placed {
            Ok(part) => part,
            Err(Abandoned::Failed(SessionFileError::Io(error))) if has_died(&error) => {
                return Err(error.into());
            }
            Err(abandoned) => {
                // What stays for want of that is removed by who seals next.
                drop(self.unlink(&aside));
                return match abandoned {
                    Abandoned::Removed => Ok(Sealing::Nothing),
                    Abandoned::Stopped => Ok(Sealing::Stopped),
                    Abandoned::Failed(error) => Err(error),
                };
            }
        };
        rustix::fs::fsync(&alone).map_err(io::Error::from)?;
        reach(FailPoint::Renamed)?;
        for part in &sources.parts {
            self.unlink(&part.name())?;
            reach(FailPoint::Unlinked)?;
        }
        Ok(Sealing::Sealed { part, before: sources.bytes + leftovers, after: self.size(part)? })
    }

    /// Whether [`seal`](Self::seal) would find something to do in a session that stands as `last` says.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn has_unsealed(&self, last: &LastSegment) -> Result<bool, SessionFileError> {
        Ok(self.sources(last)?.is_some())
    }

    /// The parts that are to be sealed next, if any are worth it.
    fn sources(&self, last: &LastSegment) -> Result<Option<Sources>, SessionFileError> {
        // Who finishes a renaming looks for the id that it had before.
        if last.header.flags.has(SegmentFlags::DELETED) || last.is_moving() {
            return Ok(None);
        }
        let closed = if last.standing.released { last.header.number } else { last.header.number - 1 };
        // Another may have claimed the next one meanwhile.
        let parts = self.parts()?.into_iter().filter(|part| part.range().1 <= closed);
        let sizes = parts.map(|part| Ok((part, self.size(part)?))).collect::<io::Result<Vec<_>>>()?;
        let Some(range) = parts_to_seal(&sizes) else { return Ok(None) };
        let next = match sizes.get(range.end) {
            Some((behind, _)) => Some(self.open_segment(*behind)?.1),
            None if last.standing.released => None,
            None => Some(last.header),
        };
        let sources = &sizes[range];
        let parts = sources.iter().map(|(part, _)| *part).collect();
        Ok(Some(Sources { parts, bytes: sources.iter().map(|(_, bytes)| bytes).sum(), next }))
    }

    /// Writes a seal and gives it its name.
    fn place_seal(
        &self,
        aside: &str,
        sources: &Sources,
        last: &LastSegment,
        control: &impl SealControl,
    ) -> Result<Part, Abandoned> {
        self.write_seal(aside, sources, last, control)?;
        reach(FailPoint::Sealed)?;
        let range = |part: Option<&Part>| part.map_or((0, 0), |part| part.range());
        let seal = Part::Seal(range(sources.parts.first()).0, range(sources.parts.last()).1);
        self.rename(aside, &seal.name())?;
        Ok(seal)
    }

    /// Writes a seal aside.
    fn write_seal(
        &self,
        aside: &str,
        sources: &Sources,
        last: &LastSegment,
        control: &impl SealControl,
    ) -> Result<(), Abandoned> {
        let go_on = || match (control.is_stopped(), self.is_removed(last)?) {
            (_, true) => Err(Abandoned::Removed),
            (true, _) => Err(Abandoned::Stopped),
            (false, false) => Ok(()),
        };
        let mut out = SyncedOutput::new(self.make(aside)?);
        let Some(first) = sources.parts.first() else { return Err(Abandoned::Removed) };
        let number = first.range().0;
        // Two at a time are open: a session that is resumed often has more segments than a process may have files.
        let mut opened = self.open_segment(*first)?;
        let mut writer = begin_seal(*first, &opened, &mut out)?;
        for (at, part) in sources.parts.iter().enumerate() {
            let next = sources.parts.get(at + 1).map(|next| self.open_segment(*next)).transpose()?;
            if let Part::Log(_) = part {
                let behind = next.as_ref().map(|(_, header)| *header).or(sources.next);
                let end = behind.map_or(last.end.0, |behind| behind.cut);
                add_batches(&mut writer, &opened, end, &mut out, go_on)?;
            }
            reach(FailPoint::HalfSealed)?;
            go_on()?;
            if let Some(next) = next {
                let header = &next.1;
                writer.continue_with(header).map_err(|source| unsealable(header.number, source))?;
                opened = next;
            }
        }
        let end = writer.reach();
        let is_right = match &sources.next {
            None => (end.end, end.checksum) == last.end,
            Some(next) => end.is_continued_by(next),
        };
        if !is_right {
            return Err(unsealable(last.header.number, SealError::OutOfOrder).into());
        }
        writer.finish(&mut out).map_err(|source| unsealable(number, source))?;
        out.finish()?;
        go_on()
    }

    /// Whether the session is being removed: who does that waits for this.
    fn is_removed(&self, last: &LastSegment) -> Result<bool, SessionFileError> {
        let Some(next) = last.header.number.checked_add(1) else { return Ok(false) };
        Ok(self.find_log(next)?.is_some_and(|(_, header)| header.flags.has(SegmentFlags::DELETED)))
    }
}

/// Begins a seal; with the events of the first source, if that is a seal.
fn begin_seal(
    part: Part,
    (file, header): &Opened,
    out: &mut impl Write,
) -> Result<SealWriter, SessionFileError> {
    let nonce = new_nonce()?;
    let failed = |source| unsealable(header.number, source);
    if let Part::Log(_) = part {
        return SealWriter::begin(header, nonce, out).map_err(failed);
    }
    let (seal, begun) = SealedFile::open(part, file.try_clone()?, *header, |index, footer| {
        SealWriter::begin_with_seal(header, index, footer, nonce, out)
    })?;
    let mut writer = begun.map_err(failed)?;
    while let Some(frame) = seal.read(writer.reach().last_seq + 1)? {
        writer.add_frame(&frame, out).map_err(failed)?;
    }
    Ok(writer)
}

/// Adds the batches of a segment that ends at `end`, piece by piece. After each, `go_on` says whether to.
fn add_batches(
    writer: &mut SealWriter,
    (file, header): &Opened,
    end: u64,
    out: &mut impl Write,
    go_on: impl Fn() -> Result<(), Abandoned>,
) -> Result<(), Abandoned> {
    let (mut at, mut wanted) = (HEADER_BYTES as u64, PIECE);
    while at < end {
        let upto = end.min(at.saturating_add(wanted));
        let bytes = read_at(file, at, upto - at)?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match StoredBatch::decode(rest, &header.nonce, at) {
                Ok(batch) => {
                    writer.add(at, &batch, out).map_err(|source| unsealable(header.number, source))?;
                    rest = rest.get(batch.length as usize..).unwrap_or_default();
                    at += u64::from(batch.length);
                }
                Err(BatchError::Cut) if upto < end => break,
                Err(_) => {
                    let damage = SealDamage { seq: writer.reach().last_seq + 1 };
                    return Err(unsealable(header.number, damage.into()).into());
                }
            }
        }
        go_on()?;
        // One batch may be longer than what was read.
        wanted = if rest.len() == bytes.len() { wanted.saturating_mul(2) } else { PIECE };
    }
    Ok(())
}

fn unsealable(number: u32, source: SealError) -> SessionFileError {
    match source {
        SealError::Damaged(damage) => {
            SessionFileError::Damaged { number, last_seq: damage.seq.saturating_sub(1) }
        }
        SealError::Write(error) => SessionFileError::Io(error),
        source => SessionFileError::Unsealable { number, source },
    }
}

/// Which of the closed parts, given with their bytes, are to be sealed together next; None: it is not worth it.
fn parts_to_seal(closed: &[(Part, u64)]) -> Option<Range<usize>> {
    let is_seal = |(part, _): &(Part, u64)| matches!(part, Part::Seal(..));
    let behind = closed.iter().rposition(is_seal).map_or(0, |at| at + 1);
    let (_, bytes) = closed.get(behind)?;
    let is_behind_small = behind > 0 && closed[behind - 1].1 <= SMALL_SEAL;
    let is_worth = is_behind_small || closed.len() - behind > 1 || *bytes > SMALL_SEGMENT;
    let first = if is_behind_small { behind - 1 } else { behind };
    let mut end = behind + 1;
    let mut bytes: u64 = closed[first..end].iter().map(|(_, bytes)| bytes).sum();
    while let Some((_, more)) = closed.get(end).filter(|(_, more)| bytes + more <= MOST) {
        (bytes, end) = (bytes + more, end + 1);
    }
    is_worth.then_some(first..end)
}

#[cfg(test)]
mod tests;
