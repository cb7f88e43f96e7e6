//! Who uses a database, by the system's list of locks: opening the file here would drop SQLite's own locks on it.

use crate::log_files::beside;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that has a database open, where the operating system tells.
pub(super) fn holder(database: &Path) -> Option<u32> {
    let files = [database.to_owned(), beside(database, "-shm")];
    let files: Vec<Metadata> = files.iter().filter_map(|file| fs::metadata(file).ok()).collect();
    let inodes: Vec<u64> = files.iter().map(MetadataExt::ino).collect();
    let own = std::process::id();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    // The list comes in pieces, and misses some when other processes take and release theirs meanwhile. It tells of other users, too.
    holders(&locks, &inodes).find(|pid| *pid != own).or_else(|| openers(&files).find(|pid| *pid != own))
}

/// The processes that have one of these files open, by proc_pid_fd(5). Nothing is told of other users' processes.
fn openers(files: &[Metadata]) -> impl Iterator<Item = u32> {
    let is_one =
        |found: &Metadata| files.iter().any(|file| (file.dev(), file.ino()) == (found.dev(), found.ino()));
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter(move |pid: &u32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|descriptor| fs::metadata(descriptor.path()).ok()).any(|found| is_one(&found))
    })
}

/// The processes that have locks on files, by proc_locks(5).
fn holders(locks: &str, inodes: &[u64]) -> impl Iterator<Item = u32> {
    locks.lines().filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, _, pid, file, _, _] = words[..] else { return None };
        let inode = file.rsplit(':').next()?.parse().ok()?;
        inodes.contains(&inode).then(|| pid.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: who uses the database is read from the system's list
    #[test]
    fn the_holders_of_locks_are_found() {
        let locks = "1: POSIX  ADVISORY  READ 41 fe:00:7 123 123\n2: POSIX  ADVISORY  WRITE 42 fe:00:7 120 120\n\
                     3: POSIX  ADVISORY  WRITE 43 fe:00:8 120 120\n4: FLOCK  ADVISORY  WRITE 44 fe:00:7 0 EOF\n\
                     5: POSIX  ADVISORY  READ 45 fe:00:9 123 123\n6: POSIX  ADVISORY  WRITE 46 fe:00:7 0 EOF\n\
                     6: -> POSIX  ADVISORY  WRITE 47 fe:00:7 120 120\n";
        assert_eq!(holders(locks, &[7, 9]).collect::<Vec<_>>(), [41, 42, 45, 46]);
    }

    // contract 6: also where the list of locks misses one, which it does while others take and release theirs
    #[test]
    fn who_has_a_file_open_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let files = [file.as_file().metadata().unwrap()];
        let own = std::process::id();
        assert!(openers(&files).any(|pid| pid == own));
        let path = file.into_temp_path();
        assert!(!openers(&files).any(|pid| pid == own));
        drop(path);
    }
}
