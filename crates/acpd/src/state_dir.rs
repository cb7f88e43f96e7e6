//! The state directory is its user's alone, or it is not used.
//!
//! Others who could write in it could put a socket of their own in the place of the daemon's, and others who could read
//! in it could read what was said. Not here: the socket itself, and the processes at its ends.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a state directory is not used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateDirError {
    #[error("cannot use the state directory {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("others could write in the state directory, and the owner of {} cannot be read", path.display())]
    UnknownOwner {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the state directory {} belongs to another user (uid {owner}, acpd runs as {user}): give it to this one with \
         `chown -R {user}`, or choose another with --state-dir", path.display()
    )]
    Foreign { path: PathBuf, owner: u32, user: u32 },
    #[error(
        "others could write in the state directory, and {} belongs to another user (uid {owner}): remove what is not \
         yours, or choose another directory with --state-dir", path.display()
    )]
    Planted { path: PathBuf, owner: u32 },
    #[error(
        "others can write in the state directory {} (mode {mode:04o}), and its mode cannot be changed here: choose \
         another with --state-dir", path.display()
    )]
    Open { path: PathBuf, mode: u32 },
}

/// What is to be done about a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Private,
    /// It is ours, and its mode is to be this one.
    Tighten(u32),
    Foreign,
}

/// The bits of group and others.
pub(crate) const NOT_OWNERS: u32 = 0o077;
/// Those of them that let write.
const WRITABLE: u32 = 0o022;

fn judge(owner: u32, mode: u32, user: u32) -> Verdict {
    match mode & NOT_OWNERS {
        _ if owner != user => Verdict::Foreign,
        0 => Verdict::Private,
        _ => Verdict::Tighten(mode & !NOT_OWNERS),
    }
}

/// Makes the directory if it is not there, and sees to it that only this user can use it.
pub(crate) fn claim(dir: &Path) -> Result<(), StateDirError> {
    let failed = |source| StateDirError::Io { path: dir.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    // By one handle, so that what was looked at is what is changed.
    let handle = File::open(dir).map_err(failed)?;
    let look = || -> Result<(u32, u32), StateDirError> {
        let found = handle.metadata().map_err(failed)?;
        Ok((found.uid(), found.mode() & 0o7777))
    };
    let user = rustix::process::geteuid().as_raw();
    let (owner, before) = look()?;
    match judge(owner, before, user) {
        Verdict::Private => return Ok(()),
        Verdict::Foreign => return Err(StateDirError::Foreign { path: dir.to_owned(), owner, user }),
        Verdict::Tighten(mode) => {
            // A file system without modes says no, or nothing.
            let _refused = handle.set_permissions(Permissions::from_mode(mode));
        }
    }
    let (_, mode) = look()?;
    if mode & WRITABLE != 0 {
        return Err(StateDirError::Open { path: dir.to_owned(), mode });
    }
    if before & WRITABLE != 0 {
        nothing_is_planted(dir, user)?;
    }
    tracing::warn!(
        "the state directory {} was open to other users (mode {before:04o}); its mode is {mode:04o} now",
        dir.display()
    );
    Ok(())
}

/// What others put there while they could is not used.
fn nothing_is_planted(dir: &Path, user: u32) -> Result<(), StateDirError> {
    let failed = |source| StateDirError::Io { path: dir.to_owned(), source };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let unknown = |source| StateDirError::UnknownOwner { path: entry.path(), source };
        let owner = entry.metadata().map_err(unknown)?.uid();
        if owner != user {
            return Err(StateDirError::Planted { path: entry.path(), owner });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: the state directory is for its owner only
    #[test]
    fn only_what_is_ours_is_tightened() {
        for (owner, mode, user, verdict) in [
            (7, 0o700, 7, Verdict::Private),
            (7, 0o500, 7, Verdict::Private),
            (7, 0o755, 7, Verdict::Tighten(0o700)),
            (7, 0o770, 7, Verdict::Tighten(0o700)),
            (7, 0o1777, 7, Verdict::Tighten(0o1700)),
            (7, 0o701, 7, Verdict::Tighten(0o700)),
            (8, 0o700, 7, Verdict::Foreign),
            (8, 0o777, 7, Verdict::Foreign),
            (0, 0o700, 7, Verdict::Foreign),
            (7, 0o700, 0, Verdict::Foreign),
        ] {
            assert_eq!(judge(owner, mode, user), verdict, "{owner} {mode:o} {user}");
        }
    }
}
