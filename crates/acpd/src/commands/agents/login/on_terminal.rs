//! A program on this terminal, as if a shell had started it, though its keeper has: it gets a pseudo-terminal, and every byte goes
//! to and fro.
//!
//! Invariants: keys reach the program as bytes, Ctrl-C among them, which its own terminal turns into signals; the mode of this
//! terminal is put back on every way out; nothing that the program starts outlives it. What it shows is not filtered: it is a
//! program that its user wants to run here.

use crate::exit::Failure;
use crate::signals::StopSignals;
use acpd_supervisor::{ExitReport, Process, ProgramSpec, Stdout, Streams, Supervisor, WindowSize};
use bytes::BytesMut;
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};

/// Bytes of the keyboard taken in one read.
const TYPED: usize = 1024;
/// Bytes of the program's output taken in one read.
const SHOWN: usize = 16 * 1024;
/// When it is tried again to type what the program had no room for.
const AGAIN: Duration = Duration::from_millis(20);

/// Whether a program can be shown here.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs it to its end. A signal to acpd stops it by its ladder.
pub(super) async fn run(
    supervisor: &Supervisor,
    spec: ProgramSpec,
    stops: &mut StopSignals,
) -> Result<Arc<ExitReport>, Failure> {
    let terminal = RawTerminal::open()?;
    let mut resized = signal(SignalKind::window_change())?;
    let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    let spec = ProgramSpec { streams: Streams::Pty(terminal.size()), ..spec };
    // It has no pipe to read: what is typed goes in where its output comes out.
    let Process { stdin: _, mut stdout, handle } = supervisor.start(spec).await?;
    let mut shown = BytesMut::with_capacity(SHOWN);
    let (mut typed, mut types, mut reads) = (Vec::new(), true, true);
    loop {
        tokio::select! {
            read = stdout.read_buf(&mut shown), if reads => match read {
                Ok(read) if read > 0 => {
                    show(&shown);
                    shown.clear();
                }
                // It has left the terminal, and goes on or not.
                _ => reads = false,
            },
            bytes = terminal.read(), if types && typed.is_empty() => match bytes {
                Some(bytes) => {
                    typed = bytes;
                    pass_on(&stdout, &mut typed);
                }
                None => types = false,
            },
            () = tokio::time::sleep(AGAIN), if !typed.is_empty() => pass_on(&stdout, &mut typed),
            _ = resized.recv() => {
                // One that is not told has the old size.
                let _old = stdout.resize(terminal.size());
            }
            _ = continued.recv() => terminal.enter()?,
            () = stops.next() => handle.stop(),
            ended = handle.exited(), if !reads => return Ok(ended),
        }
    }
}

/// Types what fits; the rest waits.
fn pass_on(stdout: &Stdout, typed: &mut Vec<u8>) {
    while !typed.is_empty() {
        match stdout.try_type(typed) {
            Ok(count) => drop(typed.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // Without a reader only the end of the program is of interest.
            Err(_) => typed.clear(),
        }
    }
}

fn show(bytes: &[u8]) {
    let mut out = io::stdout();
    // A terminal that is gone shows nothing.
    let _gone = out.write_all(bytes).and_then(|()| out.flush());
}

/// This terminal, on which every key is a byte.
struct RawTerminal {
    terminal: AsyncFd<OwnedFd>,
    before: Termios,
}

impl RawTerminal {
    fn open() -> io::Result<Self> {
        let owned = rustix::stdio::stdin().try_clone_to_owned()?;
        let before = tcgetattr(&owned)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for descriptors that are not owned; this one is"
        )]
        let terminal = AsyncFd::new(owned)?;
        let terminal = Self { terminal, before };
        terminal.enter()?;
        Ok(terminal)
    }

    fn enter(&self) -> io::Result<()> {
        let mut mode = self.before.clone();
        mode.make_raw();
        Ok(tcsetattr(self.terminal.get_ref(), OptionalActions::Now, &mode)?)
    }

    fn size(&self) -> WindowSize {
        let told = tcgetwinsize(self.terminal.get_ref()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let or = |told: u16, default: u16| if told == 0 { default } else { told };
        WindowSize { cols: or(told.0, 80), rows: or(told.1, 24) }
    }

    /// What was typed; None when nothing will be any more.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    async fn read(&self) -> Option<Vec<u8>> {
        loop {
            let mut ready = self.terminal.readable().await.ok()?;
            match read_now(self.terminal.get_ref()) {
                Ok(None) => ready.clear_ready(),
                Ok(Some(bytes)) if bytes.is_empty() => return None,
                Ok(Some(bytes)) => return Some(bytes),
                Err(_) => return None,
            }
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _gone = tcsetattr(self.terminal.get_ref(), OptionalActions::Now, &self.before);
    }
}

/// What there is to read; None for now. Others may read the same terminal, so readiness alone would not keep a read from waiting.
fn read_now(terminal: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut ready = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) if ready[0].revents().contains(PollFlags::IN) => {}
        Ok(_) if ready[0].revents().is_empty() => return Ok(None),
        Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Err(Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut bytes = [0; TYPED];
    match rustix::io::read(terminal.as_fd(), &mut bytes) {
        Ok(count) => Ok(Some(bytes[..count].to_vec())),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
