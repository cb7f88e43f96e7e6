//! What a state directory has of a log, and how it becomes one of session files.
//!
//! What is in the directory decides. Invariants: of several that begin a directory at the same moment, one decides, and the others go on
//! with what they find; a directory that has session files stays one of session files; a database of an earlier version is not
//! touched. Not here: how that is migrated (`migration.rs`).

use crate::format_marker::{self, DatabaseFile, FILES_FORMAT, is_missing};
use crate::log_files::beside;
use crate::old_tables::DATABASE;
use crate::schema::OpenError;
use crate::session_files::layout;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How often a directory is looked at that others are beginning, too.
const LOOKS: usize = 8;

/// A form of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogForm {
    /// Files of each session.
    Files,
    /// The database of an earlier version.
    Database,
}

/// What a directory has of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    has_sessions: bool,
    database: DatabaseFile,
}

impl Contents {
    /// Looks at a directory, which need not be there.
    ///
    /// # Errors
    /// When it cannot be looked at, when a newer acpd has made it, and when a part of a database is there without it.
    pub(crate) fn find(dir: &Path) -> Result<Self, OpenError> {
        let has_sessions = match fs::metadata(layout::sessions(dir)) {
            Err(error) if is_missing(&error) => false,
            found => found.map_err(at(&layout::sessions(dir)))?.is_dir(),
        };
        let database = match DatabaseFile::find(dir).map_err(at(dir))? {
            DatabaseFile::Missing if !has_sessions => find_missing(dir)?,
            found => found,
        };
        match database {
            DatabaseFile::Marker { format: found } if found > FILES_FORMAT => {
                Err(OpenError::Newer { path: dir.join(DATABASE.file), found, supported: FILES_FORMAT })
            }
            _ => Ok(Self { has_sessions, database }),
        }
    }

    /// The form of the log that is there. None: there is no log.
    pub(crate) fn form(self) -> Option<LogForm> {
        match (self.has_sessions, self.database) {
            (true, _) | (_, DatabaseFile::Marker { .. }) => Some(LogForm::Files),
            (false, DatabaseFile::Database) => Some(LogForm::Database),
            // What has died at its first start has left nothing in an empty one.
            (false, DatabaseFile::Missing | DatabaseFile::Empty) => None,
        }
    }
}

/// Looks once more for a database that was missing, and fails if a part of it is there. A write-ahead file, or a journal, is of one that
/// was moved away or not copied along: whoever began another log would have SQLite remove it, with all that was written last.
fn find_missing(dir: &Path) -> Result<DatabaseFile, OpenError> {
    let path = dir.join(DATABASE.file);
    let parts = ["-wal", "-journal"].map(|ending| beside(&path, ending));
    let has_bytes = |part: &PathBuf| fs::symlink_metadata(part).is_ok_and(|found| found.len() > 0);
    let part = parts.into_iter().find(has_bytes);
    // Behind the look at its parts: an older acpd may have made it meanwhile, and them with it.
    match (part, DatabaseFile::find(dir).map_err(at(dir))?) {
        (Some(part), DatabaseFile::Missing) => Err(OpenError::Orphaned { path: part, database: path }),
        (_, database) => Ok(database),
    }
}

/// Makes a directory one of session files, which has its marker then.
///
/// # Errors
/// When the directory cannot be used, when a newer acpd has made it, and when it is to be migrated.
pub(crate) fn settle(dir: &Path) -> Result<(), OpenError> {
    for _ in 0..LOOKS {
        let contents = Contents::find(dir)?;
        let has_sessions = contents.has_sessions;
        match contents.database {
            DatabaseFile::Marker { .. } => format_marker::clear_aside(dir),
            DatabaseFile::Missing | DatabaseFile::Empty => {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
                match made.and_then(|()| format_marker::put(dir)) {
                    Ok(true) => {}
                    // Another was first.
                    Ok(false) => continue,
                    Err(error) if has_sessions => {
                        tracing::warn!(%error, "an older acpd would not see the sessions of this state directory");
                    }
                    Err(error) => return Err(at(dir)(error)),
                }
            }
            DatabaseFile::Database if has_sessions => {
                let path = dir.join(DATABASE.file);
                tracing::warn!(
                    ?path,
                    "the sessions in a database of an older acpd are not seen beside session files"
                );
            }
            DatabaseFile::Database => return Err(OpenError::Unmigrated { path: dir.join(DATABASE.file) }),
        }
        return Ok(());
    }
    Err(at(dir)(io::ErrorKind::AlreadyExists.into()))
}

fn at(dir: &Path) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::Directory { path: dir.to_owned(), source }
}

#[cfg(test)]
mod tests;
