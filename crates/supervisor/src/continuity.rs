//! What this platform lets a daemon do for the programs of one that is gone.

#[cfg(target_os = "linux")]
use rustix::event::epoll;
#[cfg(target_os = "linux")]
use rustix::pipe::{PipeFlags, SpliceFlags};
use std::sync::OnceLock;

/// How far the output of a program can be carried from one owner to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It is read without being taken out of its pipe, so nothing is lost whatever kills the reader.
    Exact,
    /// Not without delays: a reader that takes nothing out does not learn of more while something is queued (Linux before
    /// 5.14).
    Graceful,
    /// Not at all.
    None,
}

impl Continuity {
    /// What can be done here: tried once, with a pipe, so no version is asked for.
    pub fn here() -> Self {
        static HERE: OnceLock<Continuity> = OnceLock::new();
        *HERE.get_or_init(probe)
    }
}

#[cfg(target_os = "linux")]
fn probe() -> Continuity {
    match learns_of_each_write() {
        Ok(true) => Continuity::Exact,
        Ok(false) | Err(_) => Continuity::Graceful,
    }
}

#[cfg(not(target_os = "linux"))]
fn probe() -> Continuity {
    Continuity::None
}

/// Whether a reader that takes nothing out is woken by a write while something is queued.
#[cfg(target_os = "linux")]
fn learns_of_each_write() -> rustix::io::Result<bool> {
    let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
    let (output, program) = rustix::pipe::pipe_with(flags)?;
    let (_copies, copy) = rustix::pipe::pipe_with(flags)?;
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&queue, &output, epoll::EventData::new_u64(0), edges)?;
    let is_woken = || {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        epoll::wait(&queue, &mut events, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))
            .map(|woken| woken > 0)
    };
    rustix::io::write(&program, b"1")?;
    let first = is_woken()?;
    rustix::pipe::tee(&output, &copy, 1, SpliceFlags::NONBLOCK)?;
    rustix::io::write(&program, b"2")?;
    Ok(first && is_woken()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: `exact` on kernels from 5.14 on, which wake a reader for each write
    #[test]
    #[cfg(target_os = "linux")]
    fn the_probe_says_what_the_kernel_is_known_to_do() {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("proc is mounted");
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
        let mut number = || numbers.next().and_then(Result::ok).expect("a release has two numbers");
        let version = (number(), number());
        let expected = if version >= (5, 14) { Continuity::Exact } else { Continuity::Graceful };
        assert_eq!((probe(), Continuity::here()), (expected, expected), "{release}");
    }
}
