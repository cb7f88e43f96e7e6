//! Replacing a text file as a whole, or writing it in place where that cannot be.
//!
//! The content goes to a temporary file in the same directory, which then takes the file's name. The temporary file has
//! no name until then, where the system can do that; elsewhere it is removed when anything fails. A file whose name
//! another cannot take, such as a mount point or one in a directory of somebody else, is written itself if the user may.
//! Directories are held by handle from the first look to the end, so nothing can be slipped in between.

use super::FileError;
use super::guard::{self, HeldFile};
use super::params::WriteRequest;
use super::roots::{ResolvedPath, Roots};
use cap_std::fs::{Dir, Metadata, MetadataExt, Permissions, PermissionsExt};
use cap_tempfile::TempFile;
use rustix::fs::{Access, AtFlags, FallocateFlags, Gid, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The bits of a mode that a replaced file keeps. Not the set-user-id bits: the kernel takes them away too when
/// a file is written, and what is written here is an agent's.
const KEPT_MODE: u32 = 0o1777;

/// Gives the file this content and no other. `stopped` says that it is not waited for any more.
pub(super) fn write(
    roots: &Roots,
    request: &WriteRequest,
    max_bytes: u64,
    stopped: &dyn Fn() -> bool,
) -> Result<(), FileError> {
    let path = &request.path;
    let fail = |error| FileError::of_io(path, error);
    if request.content.len() as u64 > max_bytes {
        let instead = "write less, or change it in another way";
        return Err(FileError::TooLarge { path: path.clone(), limit: max_bytes, instead });
    }
    let resolved = roots.resolve(path)?;
    let below = &resolved.below;
    let is_directory = below.as_os_str().as_encoded_bytes().ends_with(b"/");
    let Some(name) = below.file_name().filter(|_| !is_directory) else {
        return Err(FileError::Directory(path.clone()));
    };
    let directory = open_or_make(path, &resolved, below.parent().unwrap_or(Path::new("")))?;
    guard::check_name(path, &resolved, &directory, name)?;
    let old = match directory.symlink_metadata(name) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fail(error)),
    };
    if let Some(old) = &old {
        if old.is_dir() {
            return Err(FileError::Directory(path.clone()));
        }
        // A link can only be here if it was made a moment ago; it was resolved.
        if !old.is_file() {
            return Err(FileError::Special(path.clone()));
        }
        match old.nlink() {
            1 => guard::check_identity(path, old)?,
            _ => guard::check_file(
                path,
                &resolved,
                &HeldFile::hold(&directory, Path::new(name), NO_LINK).map_err(fail)?,
            )?,
        }
        may_write(&directory, name).map_err(fail)?;
    }
    let content = request.content.as_bytes();
    match replace(&directory, name, old.as_ref(), content, stopped) {
        Err(refused) if old.is_some() && keeps_its_name(&refused) => {
            let file = HeldFile::hold(&directory, Path::new(name), NO_LINK).map_err(fail)?;
            guard::check_file(path, &resolved, &file)?;
            if !file.metadata().map_err(fail)?.is_file() {
                return Err(FileError::Special(path.clone()));
            }
            // One that may only grow, say, is refused as it would be by its name.
            let open = file.open(OpenOptions::new().write(true)).map_err(|_| fail(refused))?;
            overwrite(&open, content, stopped).map_err(fail)
        }
        replaced => replaced.map_err(fail),
    }
}

/// The directory at `below`, made with its parents where it is missing.
fn open_or_make(path: &str, resolved: &ResolvedPath<'_>, below: &Path) -> Result<Dir, FileError> {
    let fail = |error| FileError::of_io(path, error);
    let mut directory = resolved.root.try_clone().map_err(fail)?;
    for name in below {
        directory = match directory.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                guard::check_name(path, resolved, &directory, name)?;
                match directory.create_dir(name) {
                    // Another request made it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made.map_err(fail)?,
                }
                directory.open_dir(name).map_err(fail)?
            }
            opened => opened.map_err(fail)?,
        };
    }
    Ok(directory)
}

/// Replacing takes no permission on the file itself, but what the user may not write an agent shall not replace.
fn may_write(directory: &Dir, name: &OsStr) -> io::Result<()> {
    Ok(rustix::fs::accessat(directory, name, Access::WRITE_OK, AtFlags::EACCESS)?)
}

fn replace(
    directory: &Dir,
    name: &OsStr,
    old: Option<&Metadata>,
    content: &[u8],
    stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut new = TempFile::new(directory)?;
    if let Some(old) = old {
        keep_owner(&new, old)?;
        // Before the content: it may be for its owner only.
        let mode = Permissions::from_mode(old.mode() & KEPT_MODE);
        new.as_file().set_permissions(mode)?;
    }
    new.write_all(content)?;
    // Else a loss of power could leave the name with nothing behind it.
    new.as_file().sync_data()?;
    if stopped() {
        // All that was slow is behind it; a session that has ended changes nothing any more.
        return Err(io::ErrorKind::Interrupted.into());
    }
    new.replace(name)
}

/// No other file can take the name: none can be made beside it, or the system holds the name.
fn keeps_its_name(refused: &io::Error) -> bool {
    let errno = Errno::from_io_error(refused);
    errno.is_some_and(|errno| {
        [Errno::BUSY, Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::XDEV].contains(&errno)
    })
}

/// Writes into the file itself. What can be known to fail does so before anything is changed.
fn overwrite(file: &File, content: &[u8], stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let length = content.len() as u64;
    if length > file.metadata()?.len() {
        // Not every file system can; then the writing itself shows it.
        let room = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, length);
        if let Err(full @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = room {
            return Err(full.into());
        }
    }
    if stopped() {
        return Err(io::ErrorKind::Interrupted.into());
    }
    file.write_all_at(content, 0)?;
    file.set_len(length)?;
    file.sync_data()
}

/// Another user's file keeps its owner, if the system allows it; else it becomes ours, as with any editor.
fn keep_owner(new: &TempFile<'_>, old: &Metadata) -> io::Result<()> {
    let ours = new.as_file().metadata()?;
    let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    if ours.uid() != old.uid() && rustix::fs::fchown(new.as_file(), Some(uid), Some(gid)).is_ok() {
        return Ok(());
    }
    if ours.gid() != old.gid() {
        let _not_allowed = rustix::fs::fchown(new.as_file(), None, Some(gid));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 2.2: a session that has ended changes no file any more
    #[test]
    fn what_nobody_waits_for_does_not_take_the_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "old").expect("a file");
        let roots = Roots::open(&[directory.path().to_owned()]);
        let request = WriteRequest { path: path.display().to_string(), content: "new".to_owned() };
        assert!(write(&roots, &request, 10, &|| true).is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "old");
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
        write(&roots, &request, 10, &|| false).expect("it is written");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "new");
    }
}
