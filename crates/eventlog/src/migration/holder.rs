//! Who uses a database, by the system's list of locks: opening the file here would drop SQLite's own locks on it.

use crate::log_files::beside;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A process that has a database open, where the operating system tells.
pub(super) fn holder(database: &Path) -> Option<u32> {
    let files = [database.to_owned(), beside(database, "-shm")];
    let inodes: Vec<u64> =
        files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|found| found.ino()).collect();
    let own = std::process::id();
    // The list comes in pieces, and misses some when other processes take and release theirs meanwhile.
    let read = || holders(&std::fs::read_to_string("/proc/locks").ok()?, &inodes).find(|pid| *pid != own);
    (0..3).find_map(|_| read())
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
}
