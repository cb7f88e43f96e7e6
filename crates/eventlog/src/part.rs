//! The parts of a log that can be damaged each without the others, and what a person is told of a damaged one.
//!
//! Every message of damage takes its words from here. Not here: how damage is found.

use std::fmt;
use std::path::Path;

use crate::notes::NOTES;
use crate::schema::INDEX;

/// A part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// Events: files of sessions, or the database of an earlier version.
    Sessions,
    /// The index of session files, which is made from them.
    Index,
    /// The events that hooks are still to be notified of.
    Hooks,
}

impl LogPart {
    /// Returns the part that a file of a state directory belongs to.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        match path.file_name() {
            Some(name) if name == INDEX.file => Self::Index,
            Some(name) if name == NOTES.file => Self::Hooks,
            _ => Self::Sessions,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sessions => "the event log",
            Self::Index => "the index of sessions",
            Self::Hooks => "the list of what hooks are still to be notified of",
        }
    }

    /// Returns what is not lost with a damaged file of it, as an addition to the message of its damage; nothing where all may be.
    #[must_use]
    pub fn extent_of_damage(self) -> String {
        match self {
            Self::Sessions => String::new(),
            part => format!("; it is only {}, and no session is in it", part.name()),
        }
    }

    /// Returns the remedy for a damaged file of it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Sessions => {
                "stop acpd, and restore it from a backup, or move it away to start with an empty log"
            }
            Self::Index => "stop acpd and remove it; the next start makes it again from the sessions",
            Self::Hooks => {
                "stop acpd, and restore it from a backup, or move it away; hooks are then not notified of what was in it"
            }
        }
    }
}

/// Its name, as a subject, with its file where it has one alone.
impl fmt::Display for LogPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        match self {
            Self::Sessions => f.write_str(name),
            Self::Index => write!(f, "{name} ({})", INDEX.file),
            Self::Hooks => write!(f, "{name} ({})", NOTES.file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueryError, WriteError};
    use rusqlite::{Error, ffi};

    // contract 7.1: a damaged database is told as what it is, by its own name, and only sessions are told as lost with the log
    #[test]
    fn a_damaged_file_is_told_as_what_it_is() {
        for (file, part, whole, remedy) in [
            (
                "hooks.db",
                LogPart::Hooks,
                "hooks are still to be notified of, and no session is in it",
                "move it away",
            ),
            ("index-1.db", LogPart::Index, "index of sessions, and no session is in it", "makes it again"),
            ("acpd.db", LogPart::Sessions, "", "empty log"),
        ] {
            assert_eq!(LogPart::of_file(&Path::new("/s").join(file)), part, "{file}");
            assert!(part.extent_of_damage().contains(whole) && part.remedy().contains(remedy), "{part:?}");
            assert!(part == LogPart::Sessions || !part.remedy().contains("empty log"), "{part:?}");
            assert!(part == LogPart::Sessions || part.to_string().contains(file), "{part:?}");
        }
    }

    // contract 7.1: so is one that is found damaged, or cannot be written, while it is open
    #[test]
    fn an_error_names_the_part_that_it_is_about() {
        let error = |code, file| {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            WriteError::from_sqlite(error, &Path::new("/s").join(file))
        };
        for (file, damaged, unwritten) in [
            (
                "hooks.db",
                "(hooks.db) is damaged, and sessions go on without it: stop acpd",
                "(hooks.db) could not be written",
            ),
            (
                "index-1.db",
                "(index-1.db) is damaged, and sessions go on without it: stop acpd",
                "(index-1.db) could not be written",
            ),
            (
                "acpd.db",
                "the event log is damaged, restore it from a backup",
                "the event log could not be written",
            ),
        ] {
            let damage = error(ffi::SQLITE_CORRUPT, file);
            assert!(damage.to_string().contains(damaged), "{damage}");
            assert!(QueryError::from(damage).to_string().contains(damaged), "{file}");
            let other = error(ffi::SQLITE_IOERR, file);
            assert!(other.to_string().contains(unwritten), "{other}");
        }
    }
}
