//! What SQLite said, once: its own errors name themselves again as their source.

use std::fmt;

use rusqlite::ErrorCode;

/// An error of SQLite, without a source of its own: a chain of causes says each once.
pub struct SqliteFault(rusqlite::Error);

impl SqliteFault {
    /// What kind it is, as far as SQLite reports it.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.0.sqlite_error_code()
    }

    /// The file is not what it was: no later read or write will find it whole.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
    }

    /// What it means for a reader.
    pub(crate) fn of_reading(&self) -> &'static str {
        match self.is_damage() {
            true => "the event log is damaged, restore it from a backup",
            false => "the event log could not be read",
        }
    }
}

impl From<rusqlite::Error> for SqliteFault {
    fn from(error: rusqlite::Error) -> Self {
        Self(error)
    }
}

impl fmt::Display for SqliteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SqliteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SqliteFault {}
