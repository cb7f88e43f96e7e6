//! Finding processes by what stands in their environment, as Linux shows it.
//!
//! Invariant: only reads. A process of another user and a zombie show no environment and are not found.

use std::collections::BTreeSet;
use std::path::Path;
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
        let (Some(pid), Ok(environment)) = (pid, environment(&directory)) else { continue };
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

/// The environment of a process. One that is just being replaced by another program has none for a moment, and is looked
/// at again.
fn environment(process: &Path) -> io::Result<Vec<u8>> {
    let mut was_settled = false;
    loop {
        let environment = fs::read(process.join("environ"))?;
        if !environment.is_empty() {
            return Ok(environment);
        }
        let stat = fs::read_to_string(process.join("stat"))?;
        // The name before it may hold anything, parentheses too.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        // The size of its memory, and where in it the environment ends.
        let is_settled = match (fields.get(20), fields.get(48)) {
            // It has ended, or is a thread of the kernel.
            (None | Some(&"0"), _) => return Ok(environment),
            (_, Some(&"0")) => false,
            _ => true,
        };
        // What has settled since the look at it is looked at once more, and one without an environment not for ever.
        if is_settled && was_settled {
            return Ok(environment);
        }
        was_settled = is_settled;
        std::thread::yield_now();
    }
}
