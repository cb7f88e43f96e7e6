//! How far the reach of a keeper goes on this platform.

use serde::{Deserialize, Serialize};

/// The means by which descendants of a program are found and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// The keeper is a child subreaper: whatever loses its parent becomes its child, so nothing escapes, not
    /// even `setsid` and double-forked descendants.
    Subreaper,
    /// Only the program's process group is ended; a descendant that left the group survives.
    ProcessGroup,
}

impl Containment {
    /// How far the reach of a keeper would go here.
    pub fn here() -> Self {
        // Adopted children are found in /proc.
        #[cfg(target_os = "linux")]
        if rustix::process::child_subreaper().is_ok() && std::path::Path::new("/proc/self/stat").exists() {
            return Self::Subreaper;
        }
        Self::ProcessGroup
    }
}
