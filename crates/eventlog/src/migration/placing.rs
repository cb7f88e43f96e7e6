//! How the copy of a database takes its place.
//!
//! Names alone say how far it came. The copy is made in `migrating/`; once it is whole, that is `migrated/`, and the marker in it
//! takes the name of the database, in one step: before that the database is the log, behind it the files are. Then the parts of
//! the copy move to their places. All of it under the lock of who opens the log.

use super::copying::{is_occupied, remove_directory};
use crate::log_files::beside;
use crate::named::Named;
use crate::old_tables::DATABASE;
use crate::schema::OpenError;
use crate::session_files::fail_point::{FailPoint, reach};
use crate::{format_marker, schema};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names under which the database stays: of one that was read as a whole, and of one that was not.
pub const OLD_DATABASES: [&str; 2] = ["acpd.db.migrated", "acpd.db.damaged"];

/// Directories of a state directory: where the copy is made, and where it is once it is whole.
pub const DIRECTORIES: [&str; 2] = [COPY, WHOLE];
const COPY: &str = "migrating";
const WHOLE: &str = "migrated";

/// The databases of the copy.
pub(super) const COPIES: [&str; 2] = ["index-1.db", "hooks.db"];
/// Its directories.
const PARTS: [&str; 2] = [SESSIONS, "claims"];
const SESSIONS: &str = "sessions";

/// Where the copy of a database is made.
pub(super) fn copy_in(dir: &Path) -> PathBuf {
    dir.join(COPY)
}

/// Whether something is left to be placed.
pub(super) fn is_left(dir: &Path) -> bool {
    dir.join(WHOLE).exists()
}

/// A copy that was whole when its process died is to be looked at again: the database is the log still.
pub(super) fn take_back(dir: &Path) -> io::Result<()> {
    let whole = dir.join(WHOLE);
    if !whole.join(DATABASE.file).exists() {
        return Ok(());
    }
    // Without its marker it would count. One of the two is there.
    fs::rename(&whole, copy_in(dir)).named(&whole)?;
    let marker = copy_in(dir).join(DATABASE.file);
    fs::remove_file(&marker).named(&marker)
}

/// From here on the files are the log. The database stays under another name, which says whether it `is_whole`.
pub(super) fn commit(dir: &Path, is_whole: bool) -> io::Result<()> {
    let (copy, whole, database) = (copy_in(dir), dir.join(WHOLE), dir.join(DATABASE.file));
    let marker = copy.join(DATABASE.file);
    format_marker::write(&marker).named(&marker)?;
    fs::rename(&copy, &whole).named(&copy)?;
    reach(FailPoint::Settled)?;
    keep(&database, &dir.join(OLD_DATABASES[usize::from(!is_whole)]))?;
    sync(dir)?;
    reach(FailPoint::Kept)?;
    fs::rename(whole.join(DATABASE.file), &database).named(&database)?;
    sync(dir)?;
    reach(FailPoint::Marked)
}

/// Gives the database another name besides, in place of one that has it.
fn keep(database: &Path, kept: &Path) -> io::Result<()> {
    let same =
        |one: &fs::Metadata, other: &fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
    match fs::symlink_metadata(kept) {
        // Of one who died here.
        Ok(found) if same(&found, &fs::symlink_metadata(database)?) => return Ok(()),
        Ok(_) => fs::remove_file(kept).named(kept)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.named(kept)),
    }
    fs::hard_link(database, kept).named(kept)
}

/// Has what was copied in its place, if a process has died behind the moment from which on it is the log. Before that is opened.
///
/// # Errors
/// When that cannot be done. Whoever opens the log next goes on with it.
pub(crate) fn finish(dir: &Path) -> Result<(), OpenError> {
    if !is_left(dir) {
        return Ok(());
    }
    let finish = || {
        let lock = beside(&dir.join(DATABASE.file), "-open");
        let _held = schema::hold_open_lock(&lock).named(&lock)?;
        finish_held(dir)
    };
    finish().map_err(|source| OpenError::Directory { path: dir.join(WHOLE), source })
}

/// The same under the lock of who opens the log.
pub(super) fn finish_held(dir: &Path) -> io::Result<()> {
    let whole = dir.join(WHOLE);
    if !whole.exists() || whole.join(DATABASE.file).exists() {
        return Ok(());
    }
    for name in COPIES {
        if whole.join(name).exists() {
            // Of no database that is there, but from before.
            ["-wal", "-shm"].iter().try_for_each(|ending| remove(&beside(&dir.join(name), ending)))?;
            place(&whole, dir, name)?;
        }
    }
    for name in PARTS {
        if whole.join(name).exists() {
            // The log was not opened since there were none.
            if is_occupied(dir)? && name == SESSIONS {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are session files already"));
            }
            remove_directory(&dir.join(name))?;
            place(&whole, dir, name)?;
        }
    }
    for ending in ["-wal", "-shm", "-journal"] {
        remove(&beside(&dir.join(DATABASE.file), ending))?;
    }
    sync(dir)?;
    fs::remove_dir_all(&whole).named(&whole)
}

fn place(whole: &Path, dir: &Path, name: &str) -> io::Result<()> {
    let place = dir.join(name);
    fs::rename(whole.join(name), &place).named(&place)?;
    reach(FailPoint::Placed)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.named(path)),
        _ => Ok(()),
    }
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir).and_then(|dir| dir.sync_all()).named(dir)
}
