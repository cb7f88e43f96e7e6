//! The output of a pseudo-terminal, moved into a pipe: what is in a pipe can be looked at without taking it out.

use crate::streams::WindowSize;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Bytes taken out of the terminal in one go.
const READ: usize = 4096;

/// A pseudo-terminal and the pipe that it fills.
pub(super) struct Pty {
    /// None: no program has the terminal any more, and all is in the pipe.
    ends: Option<Ends>,
    /// Taken out of the terminal, and not in the pipe: it is full.
    waiting: Vec<u8>,
}

struct Ends {
    master: OwnedFd,
    pipe: OwnedFd,
}

impl Pty {
    /// Neither end blocks.
    pub(super) fn new(master: OwnedFd, pipe: OwnedFd) -> Self {
        Self { ends: Some(Ends { master, pipe }), waiting: Vec::new() }
    }

    /// What is to be waited for.
    pub(super) fn poll(&self) -> Option<PollFd<'_>> {
        let Ends { master, pipe } = self.ends.as_ref()?;
        Some(if self.waiting.is_empty() {
            PollFd::new(master, PollFlags::IN)
        } else {
            PollFd::new(pipe, PollFlags::OUT)
        })
    }

    /// Moves what the pipe takes; whether anything was moved. A pipe that nothing takes from ends it before long.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> bool {
        let mut moved = false;
        while let Some(Ends { master, pipe }) = &self.ends {
            if self.waiting.is_empty() {
                match rustix::io::read(master, &mut buffer[..READ]) {
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    // An error is what a terminal says that no program has any more.
                    Ok(0) | Err(_) => {
                        self.ends = None;
                        return true;
                    }
                    Ok(read) => self.waiting.extend_from_slice(&buffer[..read]),
                }
            }
            match rustix::io::write(pipe, &self.waiting) {
                Ok(written) => {
                    self.waiting.drain(..written);
                    moved = true;
                }
                Err(Errno::INTR) => {}
                // Full; we have its other end, so nothing else can be wrong.
                Err(_) => break,
            }
        }
        moved
    }

    /// Changes the size of the window; the program is told by SIGWINCH.
    pub(super) fn resize(&self, size: WindowSize) {
        if let Some(ends) = &self.ends {
            // One that is gone has no window.
            let _gone = size.set_on(&ends.master);
        }
    }
}
