//! A gate in a script: a program that comes to it waits there until the test opens it.

use crate::until;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use std::path::PathBuf;

/// A pipe with a name, which is read on one side and opened on the other.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
}

/// A program that waits at a gate.
#[derive(Debug)]
pub struct Arrival {
    gate: OwnedFd,
}

impl Gate {
    /// A gate at `path`, where nothing may be yet.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new(path: PathBuf) -> Self {
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe with a name");
        Self { path }
    }

    /// The line of shell that waits at it.
    pub fn line(&self) -> String {
        format!("read -r go <'{}'", self.path.display())
    }

    /// Waits until a program has come to it.
    ///
    /// # Panics
    /// When none comes.
    pub fn arrival(&self) -> Arrival {
        // It opens when there is a reader.
        let open =
            || open(&self.path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok();
        Arrival { gate: until("a program comes to the gate", open) }
    }

    /// Lets one through, once it has come.
    ///
    /// # Panics
    /// When none comes.
    pub fn let_one_through(&self) {
        self.arrival().go();
    }
}

impl Arrival {
    /// Lets it through.
    ///
    /// # Panics
    /// When it is gone.
    pub fn go(self) {
        rustix::io::write(&self.gate, b"go\n").expect("a line fits into a pipe");
    }
}
