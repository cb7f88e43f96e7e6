//! What SQLite said, once: its own errors name themselves again as their source.

use std::fmt;

use rusqlite::ErrorCode;

use crate::part::LogPart;

/// An error of SQLite, without a source of its own: a chain of causes says each once.
pub struct SqliteFault {
    error: rusqlite::Error,
    part: LogPart,
}

impl SqliteFault {
    pub(crate) fn new(error: rusqlite::Error, part: LogPart) -> Self {
        Self { error, part }
    }

    /// The part of the log that it is about.
    pub(crate) fn part(&self) -> LogPart {
        self.part
    }

    /// What kind it is, as far as SQLite reports it.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.error.sqlite_error_code()
    }

    /// The file is not what it was: no later read or write will find it whole.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }

    /// What it means for a reader.
    pub(crate) fn of_reading(&self) -> String {
        match self.is_damage() {
            true => self.of_damage(),
            false => format!("{} could not be read", self.part),
        }
    }

    /// Returns the message of damage, with the remedy.
    pub(crate) fn of_damage(&self) -> String {
        match self.part {
            // One of many files may be damaged, so nothing is said of moving it away.
            LogPart::Sessions => "the event log is damaged, restore it from a backup".to_owned(),
            part => format!("{part} is damaged, and sessions go on without it: {}", part.remedy()),
        }
    }
}

/// Of the sessions.
impl From<rusqlite::Error> for SqliteFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(error, LogPart::Sessions)
    }
}

impl fmt::Display for SqliteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl fmt::Debug for SqliteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for SqliteFault {}
