//! Who has a session: how it begins, is taken up, written to behind its host, taken over, and removed.
//!
//! Each is a claim of the session's next segment, decided by what its last one says. Invariant: of two that change one session, in
//! whatever processes, one wins, and the other is told what it has found then. All of this blocks.

use super::live_segment::now;
use super::{Files, FilesHost, IndexRow, LiveSegment, NO_HOST, signed};
use crate::batch::{Batch, IndexUpdate};
use crate::block::Block;
use crate::failure::WriteError;
use crate::live::Live;
use crate::log::{NewSession, Shared};
use crate::metrics;
use crate::outbox::NamedNote;
use crate::renaming::Renamed;
use crate::segment::SegmentFlags;
use crate::session_files::{
    Beginning, Claim, Claimed, Facts, FoundSession, LastSegment, Renaming, SessionDir,
};
use crate::sizes::Unchanged;
use std::sync::Arc;

/// A session as its files say it.
pub(super) struct Found {
    directory: SessionDir,
    pub(super) last: LastSegment,
}

impl Found {
    /// The host that has it.
    pub(super) fn owner(&self) -> Option<&str> {
        self.last.owner()
    }

    pub(super) fn row(&self) -> IndexRow {
        FoundSession::of(&self.directory, self.last.clone()).into()
    }
}

/// What comes of a claim.
struct Won {
    claimed: Claimed,
    directory: SessionDir,
    facts: Facts,
    info: Vec<u8>,
    before: u64,
}

impl Won {
    fn into_segment(self) -> (LiveSegment, Vec<Block>) {
        let Self { mut claimed, directory, facts, info, before } = self;
        let blocks = std::mem::take(&mut claimed.blocks);
        (LiveSegment::new(directory, claimed, (facts, info), before), blocks)
    }
}

impl Files {
    /// The directory of a session, whatever is in it.
    pub(super) fn directory_of(&self, id: &str) -> Result<Option<SessionDir>, WriteError> {
        self.anybody.find(id).map_err(|error| self.failed(error))
    }

    /// A session, if there is one.
    pub(super) fn find(&self, id: &str) -> Result<Option<Found>, WriteError> {
        loop {
            let Some(directory) = self.directory_of(id)? else { return Ok(None) };
            let last = match directory.last() {
                Ok(last) => last,
                // It was taken away, or claimed anew, between two looks.
                Err(error) if error.is_gone() => {
                    if directory.is_empty().map_err(|error| self.failed(error))? {
                        return Ok(None);
                    }
                    continue;
                }
                Err(error) => return Err(self.unreadable(error)),
            };
            if last.is_moving() {
                // Whoever began that is dead, or is told that it was done.
                let finished = self.anybody.finish_renaming(&directory, &last);
                finished.map_err(|error| self.unreadable(error))?;
                continue;
            }
            if !last.header.flags.has(SegmentFlags::DELETED) {
                return Ok(Some(Found { directory, last }));
            }
            self.anybody.finish_removal(&directory, id).map_err(|error| self.failed(error))?;
            return Ok(None);
        }
    }

    fn found(&self, id: &str) -> Result<Found, WriteError> {
        self.find(id)?.ok_or_else(|| WriteError::Unknown { id: id.to_owned() })
    }

    /// Claims a session for a host. None: it stands otherwise by now.
    fn claim(
        &self,
        found: Found,
        host: &str,
        goes_on: bool,
        batch: Batch,
    ) -> Result<Option<Won>, WriteError> {
        let Found { directory, last } = found;
        let facts = Facts { host: host.to_owned(), ..last.facts.clone() };
        let info = batch.index.as_ref().and_then(|index| index.info.clone());
        let info = info.unwrap_or_else(|| last.info.clone());
        let before = directory.bytes().unwrap_or_default();
        let claim = Claim { flags: SegmentFlags::default(), facts: &facts, goes_on, batch };
        let claimed = directory.claim(&last, claim).map_err(|error| self.failed(error))?;
        Ok(claimed.map(|claimed| Won { claimed, directory, facts, info, before }))
    }

    /// Has a host say that it has a session before it does; what `claim` does then decides whether that stays.
    pub(super) fn claiming<T>(
        &self,
        host: &FilesHost,
        id: &str,
        claim: impl FnOnce() -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        self.name_while(host, id, claim, Result::is_ok)
    }

    /// Has a host say that it has a session while it changes one that nobody has: if it dies meanwhile, who comes next looks at that.
    /// Until the index says what has `changed`.
    fn changing<T>(
        &self,
        host: &str,
        id: &str,
        change: impl FnOnce() -> Result<T, WriteError>,
        changed: impl FnOnce(&T) -> bool,
    ) -> Result<T, WriteError> {
        let host = self.host(host).map_err(|error| self.failed(error))?;
        // One that fails may be half done.
        self.name_while(&host, id, change, |done| done.as_ref().map_or(true, changed))
    }

    /// Names a session in the claims of a host before something is done with it; whether that `stays` depends on what came of it.
    fn name_while<T>(
        &self,
        host: &FilesHost,
        id: &str,
        act: impl FnOnce() -> Result<T, WriteError>,
        stays: impl FnOnce(&Result<T, WriteError>) -> bool,
    ) -> Result<T, WriteError> {
        let was_there = host.claims.lock().has(id);
        host.claims.lock().add(id).map_err(|error| self.failed(error))?;
        let done = act();
        if !stays(&done) && !was_there {
            host.claims.lock().remove(id);
        }
        done
    }

    /// A session is no host's, is gone, or has another id, and the index says so. Not one that has changed since: that is forgotten
    /// once the index says what it is then.
    pub(crate) fn forget_change(&self, id: &str, is_live: impl Fn() -> bool) {
        let _owning = self.owning.lock();
        let hosts: Vec<Arc<FilesHost>> = self.hosts.lock().values().cloned().collect();
        if !is_live() && !self.rows.waits(id) {
            hosts.iter().for_each(|host| host.claims.lock().remove(id));
        }
    }
}

impl Shared {
    /// A live session of this process.
    fn go_live(
        &self,
        files: &Files,
        id: String,
        (segment, blocks): (LiveSegment, Vec<Block>),
        last_seq: u64,
    ) -> Arc<Live> {
        files.count(signed(segment.own_bytes()));
        let is_urgent = segment.follows_unsynced();
        let (key, owner) = (files.next_key(), Some(segment.host().to_owned()));
        let live = Arc::new(Live::of_files(id, key, owner, last_seq, segment));
        self.cache.put(key, blocks);
        self.live.insert(Arc::clone(&live));
        self.put_row(files, &live, (0, false));
        if files.redo.is_none() {
            files.unsynced.put_live(&live, is_urgent);
        }
        live
    }

    pub(crate) fn create_files(&self, files: &Files, mut new: NewSession) -> Result<Arc<Live>, WriteError> {
        let batch = std::mem::take(&mut new.events);
        let (count, bytes) = (batch.count, batch.cost());
        files.check_beginning()?;
        let host = files.host(&new.owner).map_err(|error| files.failed(error))?;
        let _owning = files.owning.lock();
        let (facts, info) = (facts_of(&new), new.info);
        let changed = batch.index.as_ref().and_then(|index| index.info.clone());
        let beginning = Beginning { facts: facts.clone(), info: info.clone(), batch };
        let claimed = files.claiming(&host, &new.id, || {
            let claimed = host.directory.create(beginning).map_err(|error| files.failed(error))?;
            claimed.ok_or_else(|| WriteError::Exists { id: new.id.clone() })
        })?;
        let directory = files.directory_of(&new.id)?;
        let directory = directory.ok_or_else(|| WriteError::Conflict { id: new.id.clone() })?;
        metrics::appended(count, bytes as u64);
        let info = changed.unwrap_or(info);
        let segment = Won { claimed, directory, facts, info, before: 0 }.into_segment();
        Ok(self.go_live(files, new.id, segment, count))
    }

    pub(crate) fn reopen_files(&self, files: &Files, id: &str, owner: &str) -> Result<Arc<Live>, WriteError> {
        files.check_beginning()?;
        let host = files.host(owner).map_err(|error| files.failed(error))?;
        let _owning = files.owning.lock();
        let live = |owner: &str| WriteError::Live { id: id.to_owned(), owner: owner.to_owned() };
        if let Some(here) = self.live.get(id) {
            return Err(live(here.owner().as_deref().unwrap_or(owner)));
        }
        let (segment, last_seq) = files.claiming(&host, id, || {
            loop {
                let found = files.found(id)?;
                match found.owner() {
                    Some(other) if other != owner => return Err(live(other)),
                    _ => {}
                }
                if let Some(won) = files.claim(found, owner, false, Batch::default())? {
                    let last_seq = won.claimed.header.first_seq - 1;
                    return Ok((won.into_segment(), last_seq));
                }
            }
        })?;
        Ok(self.go_live(files, id.to_owned(), segment, last_seq))
    }

    pub(crate) fn adopt_files(
        &self,
        files: &Files,
        id: &str,
        (from, owner): (&str, &str),
        (batch, left): (&Batch, Vec<NamedNote>),
    ) -> Result<Arc<Live>, WriteError> {
        files.check_limit(batch.cost())?;
        let host = files.host(owner).map_err(|error| files.failed(error))?;
        let _owning = files.owning.lock();
        self.refuse_live(id)?;
        let (segment, last_seq, host_before) = files.claiming(&host, id, || {
            loop {
                let found = files.found(id)?;
                let id = id.to_owned();
                match found.owner() {
                    _ if found.last.standing.ended => return Err(WriteError::Ended { id }),
                    Some(host) if host == from => {}
                    Some(other) => return Err(WriteError::TakenOver { id, owner: other.to_owned() }),
                    None => return Err(WriteError::Conflict { id }),
                }
                if let Some(won) = files.claim(found, owner, true, batch.clone())? {
                    let after = won.claimed.header.first_seq - 1;
                    return Ok((won.into_segment(), after + batch.count, from));
                }
            }
        })?;
        self.wrote(id, last_seq - batch.count, batch);
        let live = self.go_live(files, id.to_owned(), segment, last_seq);
        if let Some(host) = files.hosts.lock().get(host_before) {
            host.claims.lock().remove(id);
        }
        let mut notes = left;
        notes.extend(files.subscribers.read().named(last_seq - batch.count + 1, batch));
        let count = notes.len();
        live.note(notes);
        self.put_row(files, &live, (count, false));
        Ok(live)
    }

    /// Appends to a session that has no appender, if this host, or none, has it still; its last event.
    pub(crate) fn append_to_files(
        &self,
        files: &Files,
        id: &str,
        (owner, host): (Option<&str>, &str),
        (batch, mut notes): (&Batch, Vec<NamedNote>),
    ) -> Result<u64, WriteError> {
        let _owning = files.owning.lock();
        self.refuse_live(id)?;
        // The end of a session whose host could not record it is its last words.
        let is_end = batch.index.as_ref().is_some_and(|index| index.ended == Some(true));
        let claim = || {
            loop {
                let found = files.found(id)?;
                if found.owner() != owner {
                    return Err(WriteError::Conflict { id: id.to_owned() });
                }
                let (batch, host, goes_on) = claimed_with(batch.clone(), owner, found.last.standing.at_ms);
                if let Some(won) = files.claim(found, &host, goes_on, batch)? {
                    let after = won.claimed.header.first_seq - 1;
                    return Ok((won.into_segment().0, after));
                }
            }
        };
        let append = || match owner {
            // Its owner says that it has it.
            Some(_) => claim(),
            None => files.changing(host, id, claim, |_| true),
        };
        let (segment, last_seq) = match is_end {
            true => files.with_reserve(batch.cost(), append)?,
            false => files.check_limit(batch.cost()).and_then(|()| append())?,
        };
        self.wrote(id, last_seq, batch);
        files.count(signed(segment.own_bytes()));
        notes.extend(files.subscribers.read().named(last_seq + 1, batch));
        if files.rows.put(segment.row(), notes, now()) {
            self.wake_writer();
        }
        files.unsynced.put_directory(id, segment.into_directory());
        Ok(last_seq + batch.count)
    }

    /// Removes a session that no host has; `host` does.
    pub(crate) fn delete_files(&self, files: &Files, id: &str, host: &str) -> Result<(), WriteError> {
        self.delete_if(files, (id, host), |found| check_unowned(id, found)).map(drop)
    }

    /// Removes a session that has ended, if it is as it was seen.
    pub(crate) fn delete_ended_files(
        &self,
        files: &Files,
        (id, host): (&str, &str),
        seen: Unchanged,
    ) -> Result<bool, WriteError> {
        match self.delete_if(files, (id, host), |found| Ok(is_as_seen(found, seen))) {
            Err(WriteError::Live { .. }) => Ok(false),
            deleted => deleted,
        }
    }

    /// Removes a session that `may_go`; what that says if it may not.
    fn delete_if(
        &self,
        files: &Files,
        (id, host): (&str, &str),
        may_go: impl Fn(Option<&Found>) -> Result<bool, WriteError>,
    ) -> Result<bool, WriteError> {
        let _owning = files.owning.lock();
        self.refuse_live(id)?;
        loop {
            let found = files.find(id)?;
            let (true, Some(Found { directory, last })) = (may_go(found.as_ref())?, found) else {
                return Ok(false);
            };
            let bytes = directory.bytes().unwrap_or_default();
            let removed = files.with_reserve(0, || {
                let remove = || files.anybody.remove(&directory, &last).map_err(|error| files.failed(error));
                files.changing(host, id, remove, |removed| *removed)
            })?;
            if removed {
                files.count(-signed(bytes));
                if files.rows.remove(id, now()) {
                    self.wake_writer();
                }
                self.presences.end(id);
                return Ok(true);
            }
        }
    }

    /// Gives a session that has ended, and is as it was seen, another id and description.
    pub(crate) fn rename_files(
        &self,
        files: &Files,
        (id, host): (&str, &str),
        seen: Unchanged,
        renamed: Renamed,
    ) -> Result<bool, WriteError> {
        let _owning = files.owning.lock();
        if self.refuse_live(id).is_err() {
            return Ok(false);
        }
        loop {
            let found = files.find(id)?;
            let (true, Some(Found { directory, last })) = (is_as_seen(found.as_ref(), seen), found) else {
                return Ok(false);
            };
            let renaming = files.with_reserve(renamed.info.len(), || {
                let rename = || {
                    let renaming = files.anybody.rename(&directory, &last, renamed.clone());
                    renaming.map_err(|error| files.failed(error))
                };
                files.changing(host, id, rename, |renaming| matches!(renaming, Renaming::Done))
            })?;
            match renaming {
                Renaming::Done => {}
                Renaming::Exists => return Err(WriteError::Exists { id: renamed.id }),
                Renaming::Changed => continue,
            }
            let tell = || {
                self.checkpoints.rename(id, &renamed.id);
                self.pieces.rename(id, &renamed.id);
            };
            if let Some(found) = files.find(&renamed.id)?
                && files.rows.rename(id, found.row(), now(), tell)
            {
                self.wake_writer();
            }
            files.unsynced.put_directory(&renamed.id, directory);
            self.presences.end(id);
            return Ok(true);
        }
    }

    pub(crate) fn refuse_live(&self, id: &str) -> Result<(), WriteError> {
        match self.live.get(id) {
            Some(_) => Err(WriteError::Live { id: id.to_owned(), owner: "this process".to_owned() }),
            None => Ok(()),
        }
    }

    fn wrote(&self, id: &str, after: u64, batch: &Batch) {
        tracing::trace!(session = id, after, events = batch.count, "written behind its host");
        metrics::appended(batch.count, batch.cost() as u64);
    }
}

/// Whether a session that was found may be removed whatever it is, if nobody has it.
fn check_unowned(id: &str, found: Option<&Found>) -> Result<bool, WriteError> {
    let id = id.to_owned();
    match found {
        None => Err(WriteError::Unknown { id }),
        Some(found) => match found.owner() {
            Some(owner) => Err(WriteError::Live { id, owner: owner.to_owned() }),
            None => Ok(true),
        },
    }
}

/// Whether a session that was found has ended, and is as it was seen.
fn is_as_seen(found: Option<&Found>, seen: Unchanged) -> bool {
    found.is_some_and(|found| {
        let standing = &found.last.standing;
        standing.ended
            && standing.released
            && (standing.last_seq, standing.at_ms) == (seen.last_seq, seen.updated_ms)
    })
}

/// What is claimed with a batch for a session that `owner` has: the batch, the host that the segment is of, and whether it goes on
/// where that one was.
fn claimed_with(mut batch: Batch, owner: Option<&str>, at_ms: i64) -> (Batch, String, bool) {
    let host = owner.unwrap_or(NO_HOST).to_owned();
    match (batch.index.as_ref().and_then(|index| index.owner.clone()), owner) {
        (Some(next), _) => (batch, next.unwrap_or(host), false),
        (None, Some(_)) => (batch, host, true),
        (None, None) => {
            // A segment is somebody's unless it says otherwise.
            let updated_ms = batch.index.as_ref().map_or(at_ms, |index| index.updated_ms);
            batch.update_index(IndexUpdate { updated_ms, owner: Some(None), ..IndexUpdate::default() });
            (batch, host, false)
        }
    }
}

pub(super) fn facts_of(new: &NewSession) -> Facts {
    let NewSession { id, agent, cwd, owner, created_by, created_ms, .. } = new;
    Facts {
        id: id.clone(),
        agent: agent.clone(),
        cwd: cwd.clone(),
        host: owner.clone(),
        created_by: created_by.clone(),
        created_ms: *created_ms,
    }
}

#[cfg(test)]
mod tests;
