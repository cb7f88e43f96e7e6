//! The directory of one session: which parts are in it.
//!
//! All is done through the directory's handle: what another process puts under its name meanwhile is another directory.

use super::claim::{claim_name, claimed_number};
use super::fail_point::{FailPoint, reach};
use super::layout::{self, Part};
use crate::disk_sync::{sync_file, sync_names};
use crate::flock::Flock;
use crate::segment::{HEADER_BYTES, HeaderError, SealError, SegmentFlags, SegmentHeader};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What the names of seals begin with that are being written.
const HALF_SEALED: &str = ".seal.";

/// How often a directory is listed at most, until the parts in it have no gap.
const LISTINGS: usize = 4;

/// Why a session's files do not say where it stands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionFileError {
    /// A file cannot be read.
    #[error("a file of the session could not be read")]
    Io(#[from] io::Error),
    /// A file is no segment that this acpd reads.
    #[error("segment {number} of the session: {source}")]
    Header {
        /// The segment.
        number: u32,
        /// What is wrong with it.
        #[source]
        source: HeaderError,
    },
    /// A segment does not say what each must.
    #[error("segment {number} of the session is damaged behind event {last_seq}")]
    Damaged {
        /// The segment.
        number: u32,
        /// The last event that can be read.
        last_seq: u64,
    },
    /// There is no segment.
    #[error("the session has no events")]
    Empty,
    /// Its segments cannot be sealed.
    #[error("segment {number} of the session cannot be sealed: {source}")]
    Unsealable {
        /// The segment.
        number: u32,
        /// What is wrong with it.
        #[source]
        source: SealError,
    },
}

impl SessionFileError {
    /// Whether the file was not there: what was listed may have been sealed meanwhile.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether what was looked for was taken away meanwhile, with its session or as a part of it.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Empty) || self.is_missing()
    }
}

/// The directory of a session.
#[derive(Debug)]
pub struct SessionDir {
    handle: OwnedFd,
    /// The disk confirms what is claimed here before it counts.
    syncs: bool,
}

impl SessionDir {
    /// Opens a directory; None if there is none.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Self { handle, syncs: false })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Has the disk confirm what is claimed here from now on, before it counts.
    #[must_use]
    pub fn syncing(self, syncs: bool) -> Self {
        Self { syncs, ..self }
    }

    /// Has the disk confirm what a file has, if that is wanted here.
    pub(super) fn confirm(&self, file: &File) -> io::Result<()> {
        if self.syncs { sync_file(file) } else { Ok(()) }
    }

    /// The same of a segment; of one that is sealed it has.
    pub(super) fn confirm_log(&self, number: u32) -> io::Result<()> {
        if !self.syncs {
            return Ok(());
        }
        match self.file(&Part::Log(number).name(), false) {
            Ok(file) => sync_file(&file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The same of the names of its files.
    pub(super) fn confirm_names(&self) -> io::Result<()> {
        if self.syncs { sync_names(&self.handle) } else { Ok(()) }
    }

    /// Its parts in order; of those that are in another one too, the larger.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn parts(&self) -> io::Result<Vec<Part>> {
        let mut parts = Vec::new();
        for _ in 0..LISTINGS {
            parts = in_order(self.names()?.iter().filter_map(|name| Part::of(name)).collect());
            // A long directory is not listed at one moment: a seal may get its name where the listing has been, and what it
            // replaces be gone where the listing comes later.
            if has_no_gap(&parts) {
                break;
            }
        }
        Ok(parts)
    }

    /// Opens one of its files to read it, or to write it as well.
    pub(crate) fn file(&self, name: &str, writes: bool) -> io::Result<File> {
        let access = if writes { OFlags::RDWR } else { OFlags::RDONLY };
        // What is no regular file is found out by its header, and a pipe keeps nobody waiting.
        let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Opens a part to read it, with its header, which names the part's first segment.
    pub(crate) fn open_segment(&self, part: Part) -> Result<(File, SegmentHeader), SessionFileError> {
        let number = part.range().0;
        let file = self.file(&part.name(), false)?;
        let mut bytes = [0; HEADER_BYTES];
        let header = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => SegmentHeader::decode(&bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(HeaderError::Short),
            Err(error) => return Err(error.into()),
        };
        let is_seal = matches!(part, Part::Seal(..));
        match header {
            Ok(header) if header.number == number && header.flags.has(SegmentFlags::SEALED) == is_seal => {
                Ok((file, header))
            }
            Ok(_) => Err(SessionFileError::Header { number, source: HeaderError::Damaged }),
            Err(source) => Err(SessionFileError::Header { number, source }),
        }
    }

    /// Opens a segment that is not sealed; None if there is none of this number.
    pub(super) fn find_log(&self, number: u32) -> Result<Option<(File, SegmentHeader)>, SessionFileError> {
        match self.open_segment(Part::Log(number)) {
            Err(error) if error.is_missing() => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Opens a segment that is not sealed, to sync it; None if there is none of this number.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn log(&self, number: u32) -> io::Result<Option<File>> {
        match self.file(&Part::Log(number).name(), false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Makes a file of its own, or empties one that the same host left behind.
    pub(super) fn make(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Gives a file another name besides, which must be free.
    pub(super) fn link(&self, name: &str, new: &str) -> io::Result<()> {
        Ok(rustix::fs::linkat(&self.handle, name, &self.handle, new, AtFlags::empty())?)
    }

    /// Takes away what stands aside for segments up to this one: the files that announce its claims first, since who announces one
    /// behind this has its segment aside before, which goes now.
    pub(super) fn clear_asides(&self, number: u32) {
        // What stays for want of that does not count.
        drop(self.unlink(&claim_name(number)));
        for name in self.names().unwrap_or_default() {
            if claimed_number(&name).is_some_and(|claimed| claimed <= number) {
                drop(self.unlink(&name));
            }
        }
    }

    /// The name aside of a seal that a host writes.
    pub(super) fn half_sealed(host: &str) -> String {
        format!("{HALF_SEALED}{}", layout::name_of(host))
    }

    /// Takes away what those have left who died while they sealed: names aside, and parts that are in a seal already. Returns the
    /// bytes of these. Only for who has the directory [alone](Self::lock).
    pub(super) fn clear_half_sealed(&self) -> io::Result<u64> {
        let names = self.names()?;
        let mut replaced: Vec<_> = names.iter().filter_map(|name| Part::of(name)).collect();
        let kept = in_order(replaced.clone());
        replaced.retain(|part| !kept.contains(part));
        // The first ones first: see `is_over`.
        replaced.sort_by_key(|part| part.range().0);
        let asides = names.into_iter().filter(|name| name.starts_with(HALF_SEALED));
        let mut bytes = 0;
        for name in asides.chain(replaced.into_iter().map(Part::name)) {
            bytes += self.size_of(&name)?;
            self.unlink(&name)?;
        }
        Ok(bytes)
    }

    /// Keeps others from sealing its parts and from taking them away, until the lock is dropped. None: another does so.
    pub(super) fn lock(&self, how: FlockOperation) -> io::Result<Option<Flock>> {
        // A handle of its own, as a lock is one handle's.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, ".", flags, Mode::empty())?;
        Flock::take(handle, how)
    }

    /// Whether it is the directory at this path now.
    pub(super) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = rustix::fs::fstat(&self.handle)?;
        match rustix::fs::lstat(path) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a file another name in place of its own.
    pub(super) fn rename(&self, name: &str, new: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, name, &self.handle, new)?)
    }

    /// Takes all files away, the last segment last: until then it says that the session is removed.
    pub(super) fn clear(&self) -> io::Result<()> {
        // A seal that came behind the listing would bring the session back.
        let _alone = self.lock(FlockOperation::LockExclusive)?;
        let marker = self.parts()?.pop().map(Part::name);
        let names = self.names()?;
        let (marker, others): (Vec<_>, Vec<_>) =
            names.iter().partition(|name| Some(*name) == marker.as_ref());
        for name in others {
            self.clear_one(name)?;
        }
        // The disk must not lose the word of the removal first.
        self.confirm_names()?;
        marker.into_iter().try_for_each(|name| self.clear_one(name))
    }

    fn clear_one(&self, name: &str) -> io::Result<()> {
        match self.unlink(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // Another is at it, too.
            _ => {}
        }
        reach(FailPoint::Unlinked)
    }

    /// Whether a segment is there.
    pub(super) fn has(&self, number: u32) -> io::Result<bool> {
        if self.has_log(number)? {
            return Ok(true);
        }
        let parts = self.parts()?;
        Ok(parts.iter().any(|part| (part.range().0..=part.range().1).contains(&number)))
    }

    /// Bytes of a part.
    pub(super) fn size(&self, part: Part) -> io::Result<u64> {
        self.size_of(&part.name())
    }

    fn size_of(&self, name: &str) -> io::Result<u64> {
        Ok(rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?.st_size.unsigned_abs())
    }

    /// Bytes of the parts that are not behind the segment with this number, nor that segment.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes_before(&self, number: u32) -> io::Result<u64> {
        let parts = self.parts()?.into_iter().filter(|part| part.range().1 < number);
        parts.map(|part| self.size(part)).sum()
    }

    /// Whether a segment is there and not sealed.
    pub(super) fn has_log(&self, number: u32) -> io::Result<bool> {
        self.has_name(&Part::Log(number).name())
    }

    /// Whether a file of this name is there.
    pub(super) fn has_name(&self, name: &str) -> io::Result<bool> {
        match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the segment with this number, of which `file` is open, is its owner's no longer: the next one was claimed, or
    /// the session is gone.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn is_over(&self, number: u32, file: &File) -> io::Result<bool> {
        // A part that was sealed, or removed, has no name.
        Ok(self.has_log(number.saturating_add(1))? || rustix::fs::fstat(file)?.st_nlink == 0)
    }

    /// Whether no part is left.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.parts()?.is_empty())
    }

    /// Bytes of all its files.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for name in self.names()? {
            match rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => bytes += u64::try_from(found.st_size).unwrap_or_default(),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes)
    }

    /// The names of its files, but for those that no program of ours gives.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let name = entry?.file_name().to_str().map(str::to_owned);
            names.extend(name.ok().filter(|name| name != "." && name != ".."));
        }
        Ok(names)
    }

    /// Takes a name away.
    pub(super) fn unlink(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }
}

/// Of parts that are in another one too, the larger.
fn in_order(mut parts: Vec<Part>) -> Vec<Part> {
    // The longest of those that begin alike comes first.
    parts.sort_by_key(|part| (part.range().0, std::cmp::Reverse(part.range().1)));
    let mut reached = 0;
    parts.retain(|part| {
        let last = part.range().1;
        let is_new = last > reached;
        reached = reached.max(last);
        is_new
    });
    parts
}

/// Whether the parts, in order, are those of a session that has lost none.
fn has_no_gap(parts: &[Part]) -> bool {
    let mut behind = 1;
    !parts.is_empty()
        && parts.iter().all(|part| {
            let (first, last) = part.range();
            std::mem::replace(&mut behind, last.saturating_add(1)) == first
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    // design session-files 2: a sealed part stands for its segments, whatever of them is left
    #[test]
    fn a_seal_stands_for_its_segments() {
        let parts =
            [Part::Log(3), Part::Log(1), Part::Seal(1, 2), Part::Log(2), Part::Seal(1, 1), Part::Log(4)];
        assert_eq!(in_order(parts.into()), [Part::Seal(1, 2), Part::Log(3), Part::Log(4)]);
        assert_eq!(in_order(Vec::new()), []);
    }

    // design session-files 6: what a listing has missed is seen
    #[test]
    fn a_gap_is_seen() {
        let (first, seal) = (Part::Log(1), Part::Seal(1, 3));
        for whole in [&[first][..], &[first, Part::Log(2)], &[seal, Part::Log(4)], &[seal, Part::Seal(4, 5)]]
        {
            assert!(has_no_gap(whole), "{whole:?}");
        }
        for torn in [&[][..], &[Part::Log(2)], &[first, Part::Log(3)], &[seal, Part::Log(5)]] {
            assert!(!has_no_gap(torn), "{torn:?}");
        }
    }
}
