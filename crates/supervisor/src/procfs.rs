//! The facts about a process in `/proc`. On other systems there are none.

use rustix::process::Pid;
use std::fs::File;
use std::io;

/// What is told of a process behind its name: fields, beginning with its state.
fn behind_the_name(pid: Pid) -> Option<String> {
    let line = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name is in parentheses and may contain anything.
    let after = line.iter().rposition(|byte| *byte == b')')?;
    String::from_utf8(line.get(after + 1..)?.to_vec()).ok()
}

/// State letter and parent of a process; 0 is a parent that cannot be seen from here.
pub(crate) fn stat(pid: Pid) -> Option<(u8, u32)> {
    let told = behind_the_name(pid)?;
    let mut fields = told.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// A zombie has ended by itself; it only waits to be reaped.
pub(crate) fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|(state, _)| !matches!(state, b'Z' | b'X'))
}

/// True of a process that has ended, whether it was reaped or not. False where that is not told.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let is_told = || stat(rustix::process::getpid()).is_some();
    !is_alive(pid) && is_told()
}

/// The environment that a process was started with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Environment {
    /// It may not be read, or there is no such process.
    Hidden,
    /// It is just being replaced by that of another program.
    Unsettled,
    /// This; a zombie has none left.
    Is(Vec<u8>),
}

impl Environment {
    /// What is known of it, maybe nothing.
    pub(crate) fn known(self) -> Vec<u8> {
        match self {
            Self::Is(environment) => environment,
            Self::Hidden | Self::Unsettled => Vec::new(),
        }
    }
}

/// The environment of a process.
pub(crate) fn environment(pid: Pid) -> Environment {
    /// One that is replaced as often as that while it is looked at is looked at again later.
    const TRIES: usize = 8;
    let mut was_without = false;
    for _ in 0..TRIES {
        match read_at_once(&format!("/proc/{}/environ", pid.as_raw_nonzero())) {
            Err(_) => return Environment::Hidden,
            Ok(environment) if !environment.is_empty() => return Environment::Is(environment),
            Ok(nothing) => match memory(pid) {
                Memory::None => return Environment::Is(nothing),
                // While a program is started its environment is empty for a moment.
                Memory::WithoutEnvironment if was_without => return Environment::Is(nothing),
                Memory::WithoutEnvironment => was_without = true,
                Memory::Unsettled => return Environment::Unsettled,
                // It has come by its environment since the look at it.
                Memory::WithEnvironment => {}
            },
        }
    }
    Environment::Unsettled
}

/// Reads a file in one call: of an environment that is replaced between two calls only the first part would come.
fn read_at_once(path: &str) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut room = 16 * 1024;
    loop {
        let mut bytes = Vec::with_capacity(room);
        room = bytes.capacity();
        if rustix::io::pread(&file, rustix::buffer::spare_capacity(&mut bytes), 0)? < room {
            return Ok(bytes);
        }
        room *= 8;
    }
}

/// What a process has as memory.
enum Memory {
    /// None: it is a zombie, or a thread of the kernel.
    None,
    /// That of a new program, which does not know yet where its environment ends.
    Unsettled,
    WithEnvironment,
    WithoutEnvironment,
}

fn memory(pid: Pid) -> Memory {
    /// The fields for the size of the memory, and for the start and the end of the environment, counted from the state on.
    const SIZE: usize = 20;
    const ENVIRONMENT_START: usize = 47;
    const ENVIRONMENT_END: usize = 48;
    let told = behind_the_name(pid).unwrap_or_default();
    let field = |number| told.split_ascii_whitespace().nth(number);
    match (field(SIZE), field(ENVIRONMENT_START), field(ENVIRONMENT_END)) {
        (None | Some("0"), _, _) => Memory::None,
        (_, _, Some("0")) => Memory::Unsettled,
        (_, start, end) if start == end => Memory::WithoutEnvironment,
        _ => Memory::WithEnvironment,
    }
}

/// The value of a variable in an environment.
pub(crate) fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a str> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()
    })
}
