//! What a program gets as stdin, stdout and stderr, and our ends of it.
//!
//! Opened before the keeper is started and handed over with the start frame. Not here: reading and writing them.

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The streams of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Three pipes. stderr is drained into the exit report.
    #[default]
    Separate,
    /// An empty stdin, and one pipe as both stdout and stderr: what is written to either comes in its order.
    Merged,
    /// A pseudo-terminal as all three. The program leads a session of its own, which it controls.
    Pty(WindowSize),
}

/// The size of a terminal window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSize {
    /// Characters in a line.
    pub cols: u16,
    /// Lines.
    pub rows: u16,
}

impl WindowSize {
    pub(crate) fn set_on(self, terminal: impl AsFd) -> io::Result<()> {
        let size = Winsize { ws_row: self.rows, ws_col: self.cols, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(terminal, size)?)
    }
}

/// Our ends of a program's streams.
#[derive(Debug)]
pub(crate) struct Ours {
    /// None: there is nothing to write to.
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Output,
    /// None: it is the same as stdout.
    pub(crate) stderr: Option<OwnedFd>,
}

/// Where a program's output is read.
#[derive(Debug)]
pub(crate) enum Output {
    Pipe(OwnedFd),
    /// The master of a pseudo-terminal.
    Pty(OwnedFd),
}

/// stdin, stdout and stderr as the program gets them.
pub(crate) type Theirs = [OwnedFd; 3];

impl Ours {
    /// Those of a kept program: what its keeper gets, and the reading end of the pipe that its output comes through, which both
    /// have. The keeper of a pseudo-terminal gets its master and that pipe, and writes to the pipe what comes from the master.
    pub(crate) fn shared_with_keeper(self) -> io::Result<(Theirs, OwnedFd)> {
        let Self { stdin, stdout, stderr } = self;
        match stdout {
            Output::Pipe(stdout) => {
                let stdin = stdin.map_or_else(|| null(OFlags::WRONLY), Ok)?;
                let stderr = stderr.map_or_else(|| null(OFlags::RDONLY), Ok)?;
                Ok(([stdin, stdout.try_clone()?, stderr], stdout))
            }
            Output::Pty(master) => {
                let (reading, writing) = pipe()?;
                nonblocking(&reading)?;
                nonblocking(&writing)?;
                Ok(([master, reading.try_clone()?, writing], reading))
            }
        }
    }
}

fn null(access: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", access | OFlags::CLOEXEC, Mode::empty())?)
}

impl Streams {
    /// Whether closing stdin says anything to the program.
    pub(crate) fn has_stdin(self) -> bool {
        self == Self::Separate
    }

    /// Whether the program leads a session with a terminal.
    pub(crate) fn controls_terminal(self) -> bool {
        matches!(self, Self::Pty(_))
    }

    /// Opens both ends; all of them are closed on exec.
    pub(crate) fn open(self) -> io::Result<(Ours, Theirs)> {
        match self {
            Self::Separate => {
                let (stdin, ours_in) = pipe()?;
                let (ours_out, stdout) = pipe()?;
                let (ours_err, stderr) = pipe()?;
                for ours in [&ours_in, &ours_out, &ours_err] {
                    nonblocking(ours)?;
                }
                let ours =
                    Ours { stdin: Some(ours_in), stdout: Output::Pipe(ours_out), stderr: Some(ours_err) };
                Ok((ours, [stdin, stdout, stderr]))
            }
            Self::Merged => {
                let stdin = null(OFlags::RDONLY)?;
                let (ours_out, stdout) = pipe()?;
                nonblocking(&ours_out)?;
                let stderr = stdout.try_clone()?;
                let ours = Ours { stdin: None, stdout: Output::Pipe(ours_out), stderr: None };
                Ok((ours, [stdin, stdout, stderr]))
            }
            Self::Pty(size) => {
                let (master, slave) = open_pty()?;
                size.set_on(&master)?;
                nonblocking(&master)?;
                let theirs = [slave.try_clone()?, slave.try_clone()?, slave];
                Ok((Ours { stdin: None, stdout: Output::Pty(master), stderr: None }, theirs))
            }
        }
    }
}

/// A pipe as (reading end, writing end).
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

/// Only for our ends: the flag belongs to one end of a pipe, and programs expect theirs to block.
fn nonblocking(ours: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(ours)?;
    Ok(rustix::fs::fcntl_setfl(ours, flags | OFlags::NONBLOCK)?)
}

/// A pseudo-terminal as (master, slave). NOCTTY: it is meant for the program, and must not become ours.
fn open_pty() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((master, slave))
}
