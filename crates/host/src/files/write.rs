//! Replacing a text file as a whole.
//!
//! The content goes to a temporary file in the same directory, which then takes the file's name. The temporary file has
//! no name until then, where the system can do that; elsewhere it is removed when anything fails. Directories are held
//! by handle from the first look to the rename, so nothing can be slipped in between.

use super::FileError;
use super::params::WriteRequest;
use super::roots::{ResolvedPath, Roots};
use cap_std::fs::{Dir, Metadata, MetadataExt, Permissions, PermissionsExt};
use cap_tempfile::TempFile;
use rustix::fs::{Access, AtFlags, Gid, Uid};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

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
    let ResolvedPath { root, below } = roots.resolve(path)?;
    let is_directory = below.as_os_str().as_encoded_bytes().ends_with(b"/");
    let Some(name) = below.file_name().filter(|_| !is_directory) else {
        return Err(FileError::Directory(path.clone()));
    };
    let directory = open_or_make(root, below.parent().unwrap_or(Path::new(""))).map_err(fail)?;
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
        may_write(&directory, name).map_err(fail)?;
    }
    replace(&directory, name, old.as_ref(), request.content.as_bytes(), stopped).map_err(fail)
}

/// The directory at `path`, made with its parents where it is missing.
fn open_or_make(root: &Dir, path: &Path) -> io::Result<Dir> {
    let mut directory = root.try_clone()?;
    for name in path {
        directory = match directory.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match directory.create_dir(name) {
                    // Another request made it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made?,
                }
                directory.open_dir(name)?
            }
            opened => opened?,
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
