//! What the kernel says of this process: memory and open files, under the names that all exporters use.

use metrics::{Unit, describe_gauge, gauge};
use std::fs;

const START: &str = "process_start_time_seconds";
pub(super) const RESIDENT: &str = "process_resident_memory_bytes";
pub(super) const OPEN: &str = "process_open_fds";
const MOST: &str = "process_max_fds";

/// Says what each is, and when the process began.
pub(super) fn describe() {
    describe_gauge!(START, Unit::Seconds, "When the process began, in seconds since 1970");
    describe_gauge!(RESIDENT, Unit::Bytes, "Memory of the process that is resident");
    describe_gauge!(OPEN, Unit::Count, "Files and sockets that the process has open");
    describe_gauge!(MOST, Unit::Count, "Files and sockets that it may have open");
    #[expect(clippy::disallowed_methods, reason = "this is a shell: it only shows when the process began")]
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    gauge!(START).set(since.as_secs_f64());
}

/// Looks again. What cannot be read keeps its value.
pub(super) fn look() {
    if let Ok(status) = fs::read_to_string("/proc/self/status")
        && let Some(bytes) = resident(&status)
    {
        gauge!(RESIDENT).set(bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory itself.
        gauge!(OPEN).set(open.count().saturating_sub(1) as f64);
    }
    if let Some(most) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current {
        gauge!(MOST).set(most as f64);
    }
}

/// `VmRSS` of a status file, which is in KiB.
fn resident(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        assert_eq!(resident("Name:\tacpd\nVmRSS:\t   19456 kB\nThreads:\t4\n"), Some(19_922_944.0));
        assert_eq!(resident("Name:\tkthread\n"), None);
    }
}
