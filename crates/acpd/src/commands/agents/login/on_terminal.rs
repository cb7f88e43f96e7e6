//! A program on this terminal, as if a shell had started it, though its keeper has: it gets a pseudo-terminal, and every byte goes
//! to and fro.
//!
//! Invariants: keys reach the program as bytes, Ctrl-C among them, which its own terminal turns into signals; the mode of this
//! terminal is put back on every way out; nothing that the program starts outlives it. What it shows is not filtered: it is a
//! program that its user wants to run here.

use crate::exit::Failure;
use crate::own_terminal::OwnTerminal;
use crate::signals::StopSignals;
use crate::streams::stdout;
use acpd_supervisor::{ExitReport, Process, ProgramSpec, Stdout, Streams, Supervisor, WindowSize};
use bytes::BytesMut;
use rustix::process::Signal;
use rustix::termios::Termios;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

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
    let mut terminal = OwnTerminal::open()?;
    // Every key is a byte.
    terminal.enter(Termios::make_raw)?;
    let mut resized = signal(SignalKind::window_change())?;
    let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    let spec = ProgramSpec { streams: Streams::Pty(window(&terminal)), ..spec };
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
                Some(bytes) if !bytes.is_empty() => {
                    typed = bytes;
                    pass_on(&stdout, &mut typed);
                }
                _ => types = false,
            },
            () = tokio::time::sleep(AGAIN), if !typed.is_empty() => pass_on(&stdout, &mut typed),
            _ = resized.recv() => {
                // One that is not told has the old size.
                let _old = stdout.resize(window(&terminal));
            }
            _ = continued.recv() => terminal.enter(Termios::make_raw)?,
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
    let mut out = stdout();
    // A terminal that is gone shows nothing.
    let _gone = out.write_all(bytes).and_then(|()| out.flush());
}

fn window(terminal: &OwnTerminal) -> WindowSize {
    let (cols, rows) = terminal.size();
    WindowSize { cols, rows }
}
