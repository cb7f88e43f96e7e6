//! The keyboard while a question is asked or a line is edited: keys one by one, without echo.
//!
//! Owned by an open question, or by a chat. Invariants: the terminal's mode is changed only while a keyboard is
//! open and is put back when it is dropped, on every way out; what was typed before a question answers nothing; no
//! thread waits for input. Not here: what a key means.

mod keys;
mod strokes;

pub(crate) use keys::Key;
pub(crate) use strokes::Stroke;

use crate::runtime::if_any;
use keys::keys;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetwinsize,
    tcsetattr,
};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use strokes::Decoder;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How long an escape waits for the rest of a sequence: longer than a terminal or a slow line tears one, shorter than
/// a person notices.
const TORN: Duration = Duration::from_millis(60);
/// Columns and rows of a terminal that does not tell its size.
const SIZE: (u16, u16) = (80, 24);

/// What came from the person.
#[derive(Debug)]
pub(crate) enum Typed<K = Key> {
    Key(K),
    /// The process was stopped and goes on; meanwhile another program had the terminal and its screen.
    Continued,
    /// The terminal is gone.
    Gone,
}

/// The terminal on stdin, in a mode in which every key comes at once.
pub(crate) struct Keyboard {
    terminal: AsyncFd<OwnedFd>,
    /// The mode to go back to.
    before: Termios,
    decoder: Decoder,
    keys: VecDeque<Key>,
    strokes: VecDeque<Stroke>,
    /// When what the decoder waits for will not come any more.
    settles: Option<Instant>,
    continued: tokio::signal::unix::Signal,
    /// The mode stays as it is.
    cooked: bool,
}

impl Keyboard {
    /// Opens the terminal on stdin, and forgets what was typed before. Fails when stdin is none, or is not ours to use.
    pub(crate) fn open() -> io::Result<Self> {
        let mut keyboard = Self::with(false)?;
        keyboard.forget()?;
        Ok(keyboard)
    }

    /// Opens it for an editor: what was typed before goes into its line.
    pub(crate) fn of_editor() -> io::Result<Self> {
        Self::with(false)
    }

    fn with(cooked: bool) -> io::Result<Self> {
        let owned = rustix::stdio::stdin().try_clone_to_owned()?;
        let before = tcgetattr(&owned)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for descriptors that are not owned; this one is"
        )]
        let terminal = AsyncFd::new(owned)?;
        let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let decoder = Decoder::default();
        let (keys, strokes) = (VecDeque::new(), VecDeque::new());
        let keyboard = Self { terminal, before, decoder, keys, strokes, settles: None, continued, cooked };
        keyboard.enter()?;
        Ok(keyboard)
    }

    /// Whether something was typed that was not read yet.
    pub(crate) fn was_typed(&self) -> bool {
        let mut ready = [PollFd::new(self.terminal.get_ref(), PollFlags::IN)];
        let polled = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        polled.is_ok() && ready[0].revents().contains(PollFlags::IN)
    }

    /// Opens it for lines that the terminal itself edits and shows; its mode stays as it is.
    pub(crate) fn of_lines() -> io::Result<Self> {
        Self::with(true)
    }

    /// Rows of the screen.
    pub(crate) fn rows(&self) -> usize {
        self.size().1
    }

    /// Columns and rows of the screen.
    pub(crate) fn size(&self) -> (usize, usize) {
        let told = tcgetwinsize(self.terminal.get_ref()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let or = |told: u16, default: u16| usize::from(if told == 0 { default } else { told });
        (or(told.0, SIZE.0), or(told.1, SIZE.1))
    }

    /// Forgets what was typed so far.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        (self.decoder, self.settles) = (Decoder::default(), None);
        self.keys.clear();
        self.strokes.clear();
        Ok(tcflush(self.terminal.get_ref(), QueueSelector::IFlush)?)
    }

    /// Does what Ctrl-Z and Ctrl-\ do outside of a question: sends `signal` to the processes of the terminal's
    /// foreground, this one too, with the terminal as it was. Comes back when the process is continued.
    pub(crate) fn stop(&mut self, signal: Signal) -> io::Result<()> {
        self.leave()?;
        kill_current_process_group(signal)?;
        self.enter_again()
    }

    /// Sets the mode again, which a shell may have changed meanwhile.
    pub(crate) fn enter_again(&mut self) -> io::Result<()> {
        self.enter()?;
        self.forget()
    }

    /// The next thing that the person does at a question.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Typed {
        loop {
            if let Some(key) = self.keys.pop_front() {
                return Typed::Key(key);
            }
            match self.more().await {
                Typed::Key(strokes) => self.keys.extend(keys(&strokes)),
                Typed::Continued => return Typed::Continued,
                Typed::Gone => return Typed::Gone,
            }
        }
    }

    /// The next thing that the person does at a line.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next_stroke(&mut self) -> Typed<Stroke> {
        loop {
            if let Some(stroke) = self.strokes.pop_front() {
                return Typed::Key(stroke);
            }
            match self.more().await {
                Typed::Key(strokes) => self.strokes.extend(strokes),
                Typed::Continued => return Typed::Continued,
                Typed::Gone => return Typed::Gone,
            }
        }
    }

    /// What came at once.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    async fn more(&mut self) -> Typed<Vec<Stroke>> {
        loop {
            tokio::select! {
                ready = self.terminal.readable() => {
                    let Ok(mut ready) = ready else { return Typed::Gone };
                    match read_now(self.terminal.get_ref(), self.cooked) {
                        Ok(None) => ready.clear_ready(),
                        Ok(Some(bytes)) => {
                            let strokes = self.decoder.strokes(&bytes);
                            self.settles = self.decoder.is_waiting().then(|| Instant::now() + TORN);
                            return Typed::Key(strokes);
                        }
                        Err(_) => return Typed::Gone,
                    }
                }
                () = if_any(self.settles.map(tokio::time::sleep_until)) => {
                    self.settles = None;
                    return Typed::Key(self.decoder.settle().into_iter().collect());
                }
                // After a stop of our own the mode is set again already, and the screen is ours.
                _ = self.continued.recv() => if !self.is_entered() {
                    return Typed::Continued;
                },
            }
        }
    }

    /// Keys at once and without echo, and no signals of the terminal's: they would leave it in this mode. Output is
    /// processed as before.
    fn enter(&self) -> io::Result<()> {
        if self.cooked {
            return Ok(());
        }
        let mut mode = self.before.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        // A read of nothing returns at once.
        mode.special_codes[SpecialCodeIndex::VMIN] = 0;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(self.terminal.get_ref(), OptionalActions::Now, &mode)?)
    }

    /// Whether the mode is still the one of [`enter`](Self::enter).
    fn is_entered(&self) -> bool {
        let ours = |mode: Termios| !mode.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO);
        self.cooked || tcgetattr(self.terminal.get_ref()).is_ok_and(ours)
    }

    fn leave(&self) -> io::Result<()> {
        if self.cooked {
            return Ok(());
        }
        // Not after the output has drained: it may have been stopped by Ctrl-S.
        Ok(tcsetattr(self.terminal.get_ref(), OptionalActions::Now, &self.before)?)
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _gone = self.leave();
    }
}

/// What there is to read, without waiting in any mode of the terminal: None for now, or nothing when there may be more. An error when there will never be anything.
fn read_now(terminal: &OwnedFd, cooked: bool) -> io::Result<Option<Vec<u8>>> {
    let mut ready = [PollFd::new(terminal, PollFlags::IN)];
    match poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Some(Vec::new())),
        Err(error) => return Err(error.into()),
    }
    let ready = ready[0].revents();
    if ready.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if !ready.contains(PollFlags::IN) {
        return Ok(None);
    }
    let mut bytes = [0; 256];
    match rustix::io::read(terminal.as_fd(), &mut bytes) {
        // Ctrl-D, where the terminal edits the line.
        Ok(0) if cooked => Ok(Some(vec![0x04])),
        Ok(0) | Err(Errno::AGAIN) => Ok(None),
        Err(Errno::INTR) => Ok(Some(Vec::new())),
        Ok(count) => Ok(Some(bytes[..count].to_vec())),
        Err(error) => Err(error.into()),
    }
}
