//! Processes as `/proc` shows them to a test.

use std::fs;

/// Ids of living processes that have a variable in their environment that begins like this.
pub(crate) fn processes_with(mark: &[u8]) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("/proc is there").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark =
        |pid: &u32| environment(*pid).split(|byte| *byte == 0).any(|variable| variable.starts_with(mark));
    pids.filter(has_mark).collect()
}

/// The environment of a process; empty when there is none to be read. A process that is just being replaced by another
/// program has none for a moment, and is looked at again.
fn environment(pid: u32) -> Vec<u8> {
    let mut was_settled = false;
    // Some seconds.
    for _ in 0..100_000 {
        // Gone meanwhile, or not ours to look at.
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return Vec::new() };
        if !environment.is_empty() {
            return environment;
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name before it may hold anything, parentheses too.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        // The size of its memory, and where in it the environment ends.
        let is_settled = match (fields.get(20), fields.get(48)) {
            // It has ended, or is a thread of the kernel.
            (None | Some(&"0"), _) => return environment,
            (_, Some(&"0")) => false,
            _ => true,
        };
        // What has settled since the look at it is looked at once more.
        if is_settled && was_settled {
            return environment;
        }
        was_settled = is_settled;
        std::thread::yield_now();
    }
    Vec::new()
}
