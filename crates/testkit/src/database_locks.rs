//! The POSIX locks that a process has on a database for as long as it has it open.
//!
//! By what the system tells of a descriptor: the list of all locks, `/proc/locks`, comes in pieces, and misses some when
//! other processes take and release theirs meanwhile. Of the standard library alone, since tests of several crates
//! include it. Linux only, like the tests that need it.

#![allow(
    unreachable_pub,
    reason = "it is public in the crate that it belongs to, and not where it is included"
)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bytes that a user of a database, and of the memory that its users share, has locked for as long as it has it open
/// (SQLite, "Database File Format", 1.2 and "WAL-mode File Format", 2.3). The locks of transactions come and go.
const LASTING: [[&str; 2]; 2] = [["1073741826", "1073742335"], ["128", "128"]];

/// Counts the locks that a process has on a database, or on the memory beside it, for as long as it has it open.
///
/// # Panics
/// When the file, or the process, is not there.
pub fn lasting_locks(pid: u32, path: &Path) -> usize {
    let file = fs::metadata(path).expect("the file is there");
    let of_process = format!("/proc/{pid}");
    let descriptors = fs::read_dir(format!("{of_process}/fd")).expect("the process is there");
    let lasts = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        line.starts_with("lock:") && words.contains(&"POSIX") && LASTING.iter().any(|it| words.ends_with(it))
    };
    let locks = descriptors.flatten().map(|descriptor| {
        let is_it = fs::metadata(descriptor.path())
            .is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()));
        let told = format!("{of_process}/fdinfo/{}", descriptor.file_name().display());
        let told = is_it.then(|| fs::read_to_string(told).ok()).flatten().unwrap_or_default();
        told.lines().filter(|line| lasts(line)).count()
    });
    locks.sum()
}
