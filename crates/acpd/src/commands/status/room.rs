//! What a state directory takes on its disk, and what is free there.

use serde::Serialize;
use std::path::Path;

/// Room for sessions.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Room {
    /// The state directory.
    pub(crate) path: String,
    /// Of its files.
    pub(crate) bytes: u64,
    /// On its disk, for this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) free_bytes: Option<u64>,
}

impl Room {
    /// Looks. What cannot be read counts as nothing.
    pub(crate) fn of(dir: &Path) -> Self {
        let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| file.metadata().ok()).filter(|found| found.is_file());
        let disk = rustix::fs::statvfs(dir).ok();
        Self {
            path: dir.display().to_string(),
            bytes: bytes.map(|found| found.len()).sum(),
            free_bytes: disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        }
    }
}
