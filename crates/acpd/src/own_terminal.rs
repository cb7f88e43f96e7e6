//! The terminal on stdin, in a mode of acpd's own: for [`keyboard`](crate::keyboard), and for a program that is shown here.
//!
//! Invariants: the mode is put back when it is dropped, on every way out; no thread waits for input; a read never waits, in
//! whatever mode the terminal is and whatever else reads it. Not here: what the bytes mean.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Columns and rows of a terminal that does not tell its size.
const SIZE: (u16, u16) = (80, 24);
/// Bytes taken in one read.
const TYPED: usize = 1024;

/// The terminal on stdin.
pub(crate) struct OwnTerminal {
    terminal: AsyncFd<OwnedFd>,
    before: Termios,
    is_changed: bool,
}

impl OwnTerminal {
    /// Opens it; its mode stays for now. Fails when stdin is no terminal.
    pub(crate) fn open() -> io::Result<Self> {
        let owned = rustix::stdio::stdin().try_clone_to_owned()?;
        let before = tcgetattr(&owned)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for descriptors that are not owned; this one is"
        )]
        let terminal = AsyncFd::new(owned)?;
        Ok(Self { terminal, before, is_changed: false })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.terminal.get_ref().as_fd()
    }

    /// Changes the mode that it had when it was opened.
    pub(crate) fn enter(&mut self, change: impl FnOnce(&mut Termios)) -> io::Result<()> {
        let mut mode = self.before.clone();
        change(&mut mode);
        self.is_changed = true;
        self.set(&mode)
    }

    /// Puts the mode back.
    pub(crate) fn leave(&self) -> io::Result<()> {
        if self.is_changed { self.set(&self.before) } else { Ok(()) }
    }

    fn set(&self, mode: &Termios) -> io::Result<()> {
        // Not after the output has drained: it may have been stopped by Ctrl-S.
        Ok(tcsetattr(self.fd(), OptionalActions::Now, mode)?)
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        let told = tcgetwinsize(self.fd()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let or = |told: u16, default: u16| if told == 0 { default } else { told };
        (or(told.0, SIZE.0), or(told.1, SIZE.1))
    }

    /// Whether something was typed that was not read yet.
    pub(crate) fn was_typed(&self) -> bool {
        self.ready().is_ok_and(|ready| ready.contains(PollFlags::IN))
    }

    /// What was typed; None when nothing will be any more. Without bytes: Ctrl-D where the terminal edits the line, or the end.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn read(&self) -> Option<Vec<u8>> {
        loop {
            let mut ready = self.terminal.readable().await.ok()?;
            match self.read_now() {
                Ok(None) => ready.clear_ready(),
                Ok(Some(bytes)) => return Some(bytes),
                Err(_) => return None,
            }
        }
    }

    fn ready(&self) -> Result<PollFlags, Errno> {
        let mut ready = [PollFd::new(&self.terminal, PollFlags::IN)];
        loop {
            match poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Err(Errno::INTR) => {}
                polled => return polled.map(|_| ready[0].revents()),
            }
        }
    }

    /// What there is to read; None for now. Others may read the same terminal, so readiness alone would not keep a read
    /// from waiting. An error when there will never be anything.
    fn read_now(&self) -> io::Result<Option<Vec<u8>>> {
        let ready = self.ready()?;
        if ready.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !ready.contains(PollFlags::IN) {
            return Ok(None);
        }
        let mut bytes = [0; TYPED];
        loop {
            match rustix::io::read(self.fd(), &mut bytes) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                read => return Ok(Some(bytes[..read?].to_vec())),
            }
        }
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _gone = self.leave();
    }
}
