//! What a state directory takes on its disk, and what is free there.

use serde::Serialize;
use std::path::Path;

/// Directories between that of all sessions and the files of one.
const SESSION_LEVELS: usize = 2;

/// Room for sessions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Room {
    /// The state directory.
    pub(crate) path: String,
    /// Of its files, and of those of all sessions.
    pub(crate) bytes: u64,
    /// On its disk, for this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) free_bytes: Option<u64>,
}

impl Room {
    /// Looks. What cannot be read counts as nothing.
    pub(crate) fn of(dir: &Path) -> Self {
        Self {
            path: dir.display().to_string(),
            bytes: bytes_in(dir, 0) + bytes_in(&dir.join("sessions"), SESSION_LEVELS),
            free_bytes: acpd_eventlog::free_bytes(dir),
        }
    }
}

/// Bytes of the files in a directory, and of those so many levels below.
fn bytes_in(dir: &Path, levels: usize) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let bytes = entries.filter_map(|entry| {
        let found = entry.metadata().ok()?;
        let is_below = found.is_dir() && levels > 0;
        Some(if is_below {
            bytes_in(&entry.path(), levels - 1)
        } else {
            u64::from(found.is_file()) * found.len()
        })
    });
    bytes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::facts;

    // contract 7.1: what sessions take counts, in whatever files they are, and what else lies below does not
    #[test]
    fn sessions_in_files_count() {
        let dir = tempfile::tempdir().expect("a directory");
        for (file, bytes) in [("acpd.db", 3), ("sessions/ab/one/1.log", 40), ("agents/one", 500)] {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
            std::fs::write(path, vec![1; bytes]).expect("it is written");
        }
        assert_eq!(Room::of(dir.path()).bytes, 43);
    }

    // contract 7.1: what is free is the same number for every command
    #[test]
    fn what_is_free_is_what_doctor_says() {
        let dir = tempfile::tempdir().expect("a directory");
        // Others write to the disk between two looks, but not between all.
        let is_same = |_| Room::of(dir.path()).free_bytes == facts::state(dir.path()).free_bytes;
        assert!((0..1000).any(is_same));
    }
}
