//! Claims: the next segment of a session belongs to who links it first.
//!
//! Every change of a session's owner is a claim: its beginning, a resume, an adoption, last words for a host that died, its
//! removal and its renaming. A claim writes its segment whole under a name of its own, then links it to the next number, which
//! exactly one process can do. Invariants: a segment is there with its first batch or not at all; what it says of the one before (how
//! much of it counts) is what its writer had read; an owner that lives after all publishes nothing that does not count
//! ([`SessionDir::counts`]). Whether a host is dead is not decided here.

use super::append::{SegmentWriter, Standing};
use super::fail_point::{FailPoint, has_died, reach};
use super::last_segment::LastSegment;
use super::session_dir::{SessionDir, SessionFileError};
use super::storage::write_all;
use super::{Facts, layout::Part};
use crate::batch::{Batch, IndexUpdate};
use crate::block::Block;
use crate::segment::{NONCE_BYTES, SegmentFlags, SegmentHeader};
use std::fs::File;
use std::io::{self, IoSlice};
use std::time::Duration;

/// How long an owner waits for a claim that was announced: a hundred times what one takes.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(1);

/// What is claimed: who has the session from now on, and what is said with that.
#[derive(Debug)]
pub struct Claim<'a> {
    /// What the segment is beside a part of the log.
    pub flags: SegmentFlags,
    /// What the session is from now on.
    pub facts: &'a Facts,
    /// State, position and what waits stay as they are: the new host goes on in the other's place.
    pub goes_on: bool,
    /// The first events, and what changes with them.
    pub batch: Batch,
}

/// A claim that was won.
#[derive(Debug)]
pub struct Claimed {
    /// Appends to the new segment.
    pub writer: SegmentWriter<File>,
    /// The events of the claim.
    pub blocks: Vec<Block>,
    /// The segment.
    pub header: SegmentHeader,
}

impl SessionDir {
    /// Claims the segment behind `last`, and what its owner has written since that was read. None: another was first, the session
    /// stands otherwise by now, or it is gone.
    ///
    /// # Errors
    /// When it could not be written: nothing has changed then. Or the disk has not confirmed it, where that is [wanted](Self::syncing):
    /// then it may have been claimed.
    pub fn claim(&self, last: &LastSegment, claim: Claim<'_>) -> io::Result<Option<Claimed>> {
        let number = last.header.number.checked_add(1).ok_or(io::ErrorKind::StorageFull)?;
        let (nonce, aside) = self.make_aside(number)?;
        let claimed = self.make(&claim_name(number)).and_then(|_| {
            reach(FailPoint::Announced)?;
            // What its owner writes from here on waits for this claim.
            let Some(last) = self.read_again(last)? else { return Ok(None) };
            // Behind a part that the disk has lost, nothing would count.
            self.confirm_log(last.header.number)?;
            let header = SegmentHeader {
                flags: claim.flags,
                number,
                first_seq: last.standing.last_seq + 1,
                cut: last.end.0,
                before: last.end.1,
                nonce,
            };
            let mut batch = claim.batch;
            batch.update_index(carried_over(&last, claim.goes_on, batch.index.as_ref()));
            let mut standing = Standing {
                last_seq: last.standing.last_seq,
                ended: last.standing.ended,
                ..Standing::default()
            };
            if claim.goes_on {
                (standing.state, standing.position) = (last.standing.state, last.standing.position);
            }
            self.link_segment(&aside, (header, standing), claim.facts, batch)
        });
        self.give_up(&aside, claimed)
    }

    /// Makes the first segment of a session, in a directory that no other process knows yet.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn begin(&self, facts: &Facts, info: Vec<u8>, mut batch: Batch) -> io::Result<Option<Claimed>> {
        let (nonce, aside) = self.make_aside(1)?;
        describe(&mut batch, facts, info);
        let first = (SegmentHeader::first(nonce), Standing::default());
        let claimed = self.link_segment(&aside, first, facts, batch);
        self.give_up(&aside, claimed)
    }

    /// A file for a segment that is to be linked, under a name that no other claim has.
    fn make_aside(&self, number: u32) -> io::Result<([u8; NONCE_BYTES], Aside)> {
        let nonce = new_nonce()?;
        let name = format!("{}.{:032x}", claim_name(number), u128::from_le_bytes(nonce));
        Ok((nonce, Aside { file: self.make(&name)?, name }))
    }

    /// Takes the aside of a claim away that was not won.
    fn give_up(&self, aside: &Aside, claimed: io::Result<Option<Claimed>>) -> io::Result<Option<Claimed>> {
        let is_left = match &claimed {
            Ok(claimed) => claimed.is_some(),
            Err(error) => has_died(error),
        };
        if !is_left {
            // What stays for want of that does not count.
            drop(self.unlink(&aside.name));
        }
        claimed
    }

    /// Where the session stands now. None: not where `last` says, but for what its owner has written behind that.
    fn read_again(&self, last: &LastSegment) -> io::Result<Option<LastSegment>> {
        match self.last() {
            Ok(now) => Ok(Some(now).filter(|now| last.leads_to(now))),
            Err(error) if error.is_gone() => Ok(None),
            Err(SessionFileError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn link_segment(
        &self,
        aside: &Aside,
        (header, standing): (SegmentHeader, Standing),
        facts: &Facts,
        batch: Batch,
    ) -> io::Result<Option<Claimed>> {
        let name = Part::Log(header.number).name();
        let claimed = write_aside(&aside.file, (header, standing), facts, batch)?;
        self.confirm(&aside.file)?;
        reach(FailPoint::Written)?;
        match self.link(&aside.name, &name) {
            Ok(()) => {}
            // Another has it, or has cleared away what stood aside, which who wins does.
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        reach(FailPoint::Linked)?;
        // Where a removal has been, the next number is free again, and the one before is not there.
        if header.number > 1 && !self.has(header.number - 1)? {
            drop(self.unlink(&name));
            return Ok(None);
        }
        // What others have left, or are still writing: they lose.
        self.clear_asides(header.number);
        self.confirm_names()?;
        Ok(Some(claimed))
    }

    /// Whether what the owner of a segment has just written there, up to `end`, counts. It is asked after each write: a claim of the
    /// next segment announces itself before it reads how far this one goes, so that either it has read what was written, or
    /// this finds it. Then it is waited for, no longer than 100 ms.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn counts(&self, number: u32, file: &File, end: u64) -> Result<bool, SessionFileError> {
        let (next, mut waited) = (number.saturating_add(1), Duration::ZERO);
        while self.has_name(&claim_name(next))? {
            if self.has_log(next)? {
                break;
            }
            if waited >= PATIENCE {
                // Who has announced it is dead, or loses now.
                self.clear_asides(next);
                break;
            }
            wait_a_moment();
            waited += LOOK;
        }
        if !self.is_over(number, file)? {
            return Ok(true);
        }
        // None: it is sealed or removed already, long after the claim.
        Ok(self.find_log(next)?.is_some_and(|(_, header)| header.cut >= end))
    }
}

/// The name of a file that is there while somebody claims the segment with this number, and may stay behind. That segment's own
/// names aside begin with it.
pub(super) fn claim_name(number: u32) -> String {
    format!(".{number}")
}

/// The segment that a name aside is for: one of a claim, or of what is claimed.
pub(super) fn claimed_number(name: &str) -> Option<u32> {
    let name = name.strip_prefix('.')?;
    name.split_once('.').map_or(name, |(number, _)| number).parse().ok()
}

/// A segment that has no number yet.
struct Aside {
    name: String,
    file: File,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a claim of a session that is written at the same moment, no longer than PATIENCE"
)]
fn wait_a_moment() {
    // tidy: allow sleep, nothing tells of a file that another process makes
    std::thread::sleep(LOOK);
}

fn write_aside(
    file: &File,
    (header, standing): (SegmentHeader, Standing),
    facts: &Facts,
    batch: Batch,
) -> io::Result<Claimed> {
    let file = file.try_clone()?;
    write_all(&file, &mut [IoSlice::new(&header.encode())], 0)?;
    reach(FailPoint::HalfWritten)?;
    let mut writer = SegmentWriter::begin(file, header.nonce, standing);
    let blocks = writer.append(batch, Some(&facts.encode()))?;
    Ok(Claimed { writer, blocks, header })
}

/// Has a batch say what a session is that begins with it, but for what it says of that itself.
pub(super) fn describe(batch: &mut Batch, facts: &Facts, info: Vec<u8>) {
    let begun = IndexUpdate { updated_ms: facts.created_ms, info: Some(info), ..IndexUpdate::default() };
    if let Some(changed) = batch.index.replace(begun) {
        batch.update_index(changed);
    }
}

/// What a segment's first batch repeats of the one before, but for what `changed` says anew.
fn carried_over(last: &LastSegment, goes_on: bool, changed: Option<&IndexUpdate>) -> IndexUpdate {
    let mut carried = IndexUpdate {
        updated_ms: changed.map_or(last.standing.at_ms, |index| index.updated_ms),
        info: changed.and_then(|index| index.info.clone()).or_else(|| Some(last.info.clone())),
        ..IndexUpdate::default()
    };
    if goes_on {
        let is_named = |number: u64| {
            changed.is_some_and(|index| index.waiting.iter().any(|(named, _)| *named == number))
        };
        let kept = last.waiting.iter().filter(|(number, _)| !is_named(*number));
        carried.waiting = kept.map(|(number, bytes)| (*number, Some(bytes.clone()))).collect();
    }
    carried
}

pub(crate) fn new_nonce() -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    Ok(nonce)
}

impl Claimed {
    /// Gives the session back, with last events: nothing follows in this segment.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn release(mut self, mut batch: Batch, at_ms: i64) -> io::Result<Vec<Block>> {
        batch.update_index(IndexUpdate { updated_ms: at_ms, owner: Some(None), ..IndexUpdate::default() });
        self.writer.append(batch, None)
    }
}

#[cfg(test)]
mod tests;
