//! Finding processes by what stands in their environment, as Linux shows it.
//!
//! Invariant: only reads. A process of another user and a zombie show no environment and are not found.

use std::collections::BTreeSet;
use std::{fs, io};

/// A process that carries a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// The name of its program, cut by the system to 15 bytes.
    pub name: String,
    /// What acpd marked it with (`ACPD_PROCESS=...`), if a supervised program is among its ancestors.
    pub acpd_mark: Option<String>,
}

/// All processes that have one of `marks` (`NAME=value`) in their environment.
pub(crate) fn carrying(marks: &BTreeSet<String>) -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let directory = entry?.path();
        let pid = directory.file_name().and_then(|name| name.to_str()?.parse().ok());
        // Gone meanwhile, or not ours to look at.
        let (Some(pid), Ok(environment)) = (pid, fs::read(directory.join("environ"))) else { continue };
        let environment = String::from_utf8_lossy(&environment);
        let mut variables = environment.split('\0');
        if variables.clone().any(|variable| marks.contains(variable)) {
            let name = fs::read_to_string(directory.join("comm")).unwrap_or_default().trim_end().to_owned();
            let acpd_mark =
                variables.find(|variable| variable.starts_with("ACPD_PROCESS=")).map(str::to_owned);
            found.push(Process { pid, name, acpd_mark });
        }
    }
    Ok(found)
}
