//! Another id for a session that nobody has: a claim with the new id, then its directory has the new name.
//!
//! Invariants: the session is whole under the one id or the other. From the claim until it is released it is the host's that renames
//! it, and nobody else's; if that has died, whoever finds it claims it in turn and finishes it, so that at no time two give the
//! directory a name. Not here: which hosts are dead.

use super::Facts;
use super::claim::{Claim, Claimed};
use super::directory::{SessionDirectory, move_directory};
use super::fail_point::{FailPoint, reach};
use super::last_segment::LastSegment;
use super::session_dir::{SessionDir, SessionFileError};
use crate::batch::{Batch, IndexUpdate};
use crate::renaming::Renamed;
use crate::segment::SegmentFlags;
use std::io;

/// What a renaming came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// The session has the new id.
    Done,
    /// There is a session of the new id: this one has the id and the description that it had.
    Exists,
    /// The session does not stand as it was seen, or somebody has it.
    Changed,
}

impl SessionDirectory {
    /// Gives a session that stands as `last` says, and that nobody has, another id and description. Both ids must be in the host's
    /// [claims](super::ClaimsFile) until this returns.
    ///
    /// # Errors
    /// When it could not be written. Then it is as it was, or [moving](LastSegment::is_moving), under the one id or the other.
    pub fn rename(
        &self,
        directory: &SessionDir,
        last: &LastSegment,
        renamed: Renamed,
    ) -> io::Result<Renaming> {
        let Renamed { id, info, at_ms } = renamed;
        if !last.standing.released || last.header.flags.has(SegmentFlags::DELETED) {
            return Ok(Renaming::Changed);
        }
        if self.find(&id)?.is_some() {
            return Ok(Renaming::Exists);
        }
        let facts = Facts { id, host: self.host().to_owned(), ..last.facts.clone() };
        let index = IndexUpdate { updated_ms: at_ms, info: Some(info), ..IndexUpdate::default() };
        match self.claim_to_move(directory, last, &facts, index)? {
            Some(claimed) => self.move_claimed(directory, claimed, facts, last),
            None => Ok(Renaming::Changed),
        }
    }

    /// Goes on with a renaming that a host has not finished that is dead, or that failed here: the session is
    /// [moving](LastSegment::is_moving). `last` is where it stands, under whichever id it was found.
    ///
    /// # Errors
    /// When it cannot be read or written. It is moving still then.
    pub fn finish_renaming(
        &self,
        directory: &SessionDir,
        last: &LastSegment,
    ) -> Result<Renaming, SessionFileError> {
        if !last.is_moving() {
            return Ok(Renaming::Changed);
        }
        let before = directory.last_before(&last.facts.id)?;
        let facts = Facts { host: self.host().to_owned(), ..last.facts.clone() };
        let index = IndexUpdate { updated_ms: last.standing.at_ms, ..IndexUpdate::default() };
        match self.claim_to_move(directory, last, &facts, index)? {
            Some(claimed) => Ok(self.move_claimed(directory, claimed, facts, &before)?),
            None => Ok(Renaming::Changed),
        }
    }

    fn claim_to_move(
        &self,
        directory: &SessionDir,
        last: &LastSegment,
        facts: &Facts,
        index: IndexUpdate,
    ) -> io::Result<Option<Claimed>> {
        let batch = Batch::index_only(index);
        let claimed =
            directory.claim(last, Claim { flags: SegmentFlags::MOVED, facts, goes_on: false, batch })?;
        reach(FailPoint::Moving)?;
        Ok(claimed)
    }

    /// Gives the directory of a session that this host has its new name and releases it; or puts it back to where it stood `before`.
    fn move_claimed(
        &self,
        directory: &SessionDir,
        claimed: Claimed,
        facts: Facts,
        before: &LastSegment,
    ) -> io::Result<Renaming> {
        let (from, to) = (self.path(&before.facts.id), self.path(&facts.id));
        // Who began may have come so far, and who finds it in the midst of this moves it as well.
        let moved = if directory.is_at(&to)? { Ok(true) } else { move_directory(&from, &to) };
        if matches!(moved, Ok(true)) || directory.is_at(&to)? {
            reach(FailPoint::Moved)?;
            self.confirm_place(&from)?;
            self.confirm_place(&to)?;
            let at_ms = claimed.writer.standing().at_ms;
            // If the disk loses that, whoever finds the session moving finishes it.
            claimed.release(Batch::new(), at_ms)?;
            return Ok(Renaming::Done);
        }
        reach(FailPoint::Refused)?;
        self.put_back(directory, &claimed, facts, before)?;
        moved.map(|_| Renaming::Exists)
    }

    /// Claims the session once more, with the id and the description that it had, and releases it with that.
    fn put_back(
        &self,
        directory: &SessionDir,
        claimed: &Claimed,
        facts: Facts,
        before: &LastSegment,
    ) -> io::Result<()> {
        let last = LastSegment {
            header: claimed.header,
            facts,
            standing: claimed.writer.standing().clone(),
            info: before.info.clone(),
            waiting: Vec::new(),
            end: claimed.writer.end(),
        };
        let facts = Facts { host: self.host().to_owned(), ..before.facts.clone() };
        let updated_ms = before.standing.at_ms;
        let info = Some(before.info.clone());
        let index = IndexUpdate { updated_ms, info, owner: Some(None), ..IndexUpdate::default() };
        let (flags, batch) = (SegmentFlags::default(), Batch::index_only(index));
        // It is this host's, so nobody else claims it.
        directory.claim(&last, Claim { flags, facts: &facts, goes_on: false, batch }).map(drop)
    }
}

#[cfg(test)]
mod tests;
