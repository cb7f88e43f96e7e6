//! What `/proc` tells of a process. Elsewhere it tells nothing.

use rustix::process::Pid;

/// State letter and parent of a process; 0 is a parent that cannot be seen from here.
pub(crate) fn stat(pid: Pid) -> Option<(u8, u32)> {
    let line = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The second field is the program's name in parentheses and may contain anything.
    let after = line.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(line.get(after + 1..)?).ok()?.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// A zombie has ended by itself; it only waits to be reaped.
pub(crate) fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, b'Z' | b'X'))
}

/// The environment that a process was started with. None: it may not be read, or there is no such process. A zombie
/// has none left, and one that is just being replaced by another program has none yet.
pub(crate) fn environment(pid: Pid) -> Option<Vec<u8>> {
    std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()
}

/// The value of a variable in an environment.
pub(crate) fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a str> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()
    })
}
