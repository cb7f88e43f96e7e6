//! All sessions of a state directory, as directories: how one comes and goes.
//!
//! Invariants: a session is under its name whole or not at all; what a process that died leaves half done is finished, or
//! removed, by whoever finds it; of two that change one session, one wins.

use super::claim::{Claim, Claimed};
use super::fail_point::{FailPoint, has_died, reach};
use super::last_segment::LastSegment;
use super::session_dir::SessionDir;
use super::{Facts, layout};
use crate::batch::Batch;
use crate::disk_sync::{open_directory, sync_names};
use crate::named::Named;
use crate::segment::SegmentFlags;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sessions that are being made. Names that begin with a dot are no session's.
pub(super) const NEW: &str = ".new";

/// The sessions of a state directory, for one host.
#[derive(Debug)]
pub struct SessionDirectory {
    pub(super) sessions: PathBuf,
    /// Device and inode of that.
    id: (u64, u64),
    host: String,
    aside: AtomicU64,
    /// The disk confirms what is done here before it counts.
    syncs: bool,
}

/// A session that begins.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// What it is.
    pub facts: Facts,
    /// The host's own description.
    pub info: Vec<u8>,
    /// Its first events.
    pub batch: Batch,
}

impl SessionDirectory {
    /// Those of a state directory, which is made if needed, for the host of a name.
    ///
    /// # Errors
    /// When a directory cannot be made.
    pub fn open(state: &Path, host: &str) -> io::Result<Self> {
        let sessions = layout::sessions(state);
        for path in [sessions.clone(), sessions.join(NEW)] {
            make_directory(&path).named(&path)?;
        }
        let id = directory_id(&sessions).named(&sessions)?;
        Ok(Self { sessions, id, host: host.to_owned(), aside: AtomicU64::new(0), syncs: false })
    }

    /// Fails if the directory is not where it was: a session that begins would be found where those before it are not.
    ///
    /// # Errors
    /// When there is none, or another.
    pub fn check_place(&self) -> io::Result<()> {
        match directory_id(&self.sessions)? == self.id {
            true => Ok(()),
            false => Err(io::Error::other("another directory is in the place of that of sessions")),
        }
    }

    /// The same, where the disk confirms what is done from now on before it counts, if `syncs`.
    ///
    /// # Errors
    /// When it does not confirm that the directory of all sessions is there.
    pub fn syncing(self, syncs: bool) -> io::Result<Self> {
        let directory = Self { syncs, ..self };
        if let Some(state) = directory.sessions.parent() {
            directory.confirm_names(state).named(state)?;
        }
        Ok(directory)
    }

    /// Has the disk confirm the names in a directory, if that is wanted here.
    fn confirm_names(&self, path: &Path) -> io::Result<()> {
        if self.syncs { sync_names(open_directory(path)?) } else { Ok(()) }
    }

    /// The same of the name of a session, at its path, or of that it has none there any more.
    pub(super) fn confirm_place(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |spread| self.confirm_names(spread))?;
        self.confirm_names(&self.sessions)
    }

    /// Opens a directory of a session; None if there is none.
    pub(super) fn open_session(&self, path: &Path) -> io::Result<Option<SessionDir>> {
        Ok(SessionDir::open(path)?.map(|directory| directory.syncing(self.syncs)))
    }

    /// Where a session is, or would be.
    pub fn path(&self, id: &str) -> PathBuf {
        layout::session(&self.sessions, id)
    }

    /// The host that changes them.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The directory of a session; None if there is no such session.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn find(&self, id: &str) -> io::Result<Option<SessionDir>> {
        self.open_session(&self.path(id))
    }

    /// Makes a session. None: there is one of that id.
    ///
    /// # Errors
    /// When it cannot be written. There is none then.
    pub fn create(&self, new: Beginning) -> io::Result<Option<Claimed>> {
        let path = self.path(&new.facts.id);
        let aside = self.aside();
        make_directory(&aside)?;
        let made = self.fill(&aside, new).and_then(|claimed| match claimed {
            Some(claimed) => self.place(&aside, &path).map(|is_free| is_free.then_some(claimed)),
            // Nobody else knows that name.
            None => Err(io::ErrorKind::NotFound.into()),
        });
        let died = made.as_ref().is_err_and(has_died);
        if !matches!(made, Ok(Some(_))) && !died {
            // What stays for want of that is removed at the next start.
            drop(fs::remove_dir_all(&aside));
        }
        made
    }

    /// Gives a session that is whole aside its place; whether that was free.
    pub(super) fn place(&self, aside: &Path, path: &Path) -> io::Result<bool> {
        if !move_directory(aside, path)? {
            return Ok(false);
        }
        self.confirm_place(path).inspect_err(|_| {
            // Its host lives, so nobody else has touched it.
            drop(fs::rename(path, aside));
        })?;
        Ok(true)
    }

    fn fill(&self, aside: &Path, new: Beginning) -> io::Result<Option<Claimed>> {
        let directory = self.open_session(aside)?.ok_or(io::ErrorKind::NotFound)?;
        directory.begin(&new.facts, new.info, new.batch)
    }

    /// Removes a session that stands as `last` says. False: it does not stand so any more, or is
    /// [moving](LastSegment::is_moving).
    ///
    /// # Errors
    /// When it could not be written. Once its removal is, whoever comes finishes it.
    pub fn remove(&self, directory: &SessionDir, last: &LastSegment) -> io::Result<bool> {
        if last.is_moving() {
            return Ok(false);
        }
        let facts = Facts { host: self.host.clone(), ..last.facts.clone() };
        let claim =
            Claim { flags: SegmentFlags::DELETED, facts: &facts, goes_on: false, batch: Batch::of_history() };
        if directory.claim(last, claim)?.is_none() {
            return Ok(false);
        }
        reach(FailPoint::Doomed)?;
        self.finish_removal(directory, &facts.id)?;
        Ok(true)
    }

    /// Goes on with a removal that has begun: the last segment says so. Others may do the same.
    ///
    /// # Errors
    /// When a file cannot be taken away.
    pub fn finish_removal(&self, directory: &SessionDir, id: &str) -> io::Result<()> {
        directory.clear()?;
        // One that is not empty is another session already.
        drop(fs::remove_dir(self.path(id)));
        Ok(())
    }

    /// Removes what hosts have left half made, but for those that are `alive`, which is asked with a host's [name](layout::name_of).
    ///
    /// # Errors
    /// When the directories cannot be read.
    pub fn clear(&self, alive: impl Fn(&str) -> bool) -> io::Result<()> {
        let new = self.sessions.join(NEW);
        for entry in fs::read_dir(&new).named(&new)? {
            let entry = entry.named(&new)?;
            let name = entry.file_name();
            let host = name.to_str().and_then(|name| name.rsplit_once('-')).map(|(host, _)| host);
            if host.is_none_or(|host| !alive(host)) {
                fs::remove_dir_all(entry.path()).named(&entry.path())?;
            }
        }
        Ok(())
    }

    pub(super) fn aside(&self) -> PathBuf {
        let number = self.aside.fetch_add(1, Ordering::Relaxed);
        self.sessions.join(NEW).join(format!("{}-{number}", layout::name_of(&self.host)))
    }
}

/// Moves a directory to a name that must be free; whether it was.
pub(super) fn move_directory(from: &Path, to: &Path) -> io::Result<bool> {
    if let Some(parent) = to.parent() {
        make_directory(parent)?;
    }
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Device and inode.
fn directory_id(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests;
