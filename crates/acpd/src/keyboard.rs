//! The keyboard while a question is asked or a line is edited: keys one by one, without echo.
//!
//! Owned by an open question, or by a chat. Invariants: the terminal's mode is changed only while a keyboard is
//! open and is put back when it is dropped, on every way out; what was typed before a question answers nothing; no
//! thread waits for input. Not here: what a key means.

mod keys;
mod strokes;

pub(crate) use keys::Key;
pub(crate) use strokes::Stroke;

use crate::own_terminal::OwnTerminal;
use crate::runtime::if_any;
use keys::keys;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{LocalModes, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use strokes::Decoder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// How long an escape waits for the rest of a sequence: longer than a terminal or a slow line tears one, shorter than
/// a person notices.
const TORN: Duration = Duration::from_millis(60);
/// What ends the input, where the terminal edits the line.
const CTRL_D: u8 = 0x04;

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
    terminal: OwnTerminal,
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
        let terminal = OwnTerminal::open()?;
        let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let decoder = Decoder::default();
        let (keys, strokes) = (VecDeque::new(), VecDeque::new());
        let mut keyboard = Self { terminal, decoder, keys, strokes, settles: None, continued, cooked };
        keyboard.enter()?;
        Ok(keyboard)
    }

    /// Whether something was typed that was not read yet.
    pub(crate) fn was_typed(&self) -> bool {
        self.terminal.was_typed()
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
        let (columns, rows) = self.terminal.size();
        (columns.into(), rows.into())
    }

    /// Forgets what was typed so far.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        (self.decoder, self.settles) = (Decoder::default(), None);
        self.keys.clear();
        self.strokes.clear();
        Ok(tcflush(self.terminal.fd(), QueueSelector::IFlush)?)
    }

    /// Does what Ctrl-Z and Ctrl-\ do outside of a question: sends `signal` to the processes of the terminal's
    /// foreground, this one too, with the terminal as it was. Comes back when the process is continued.
    pub(crate) fn stop(&mut self, signal: Signal) -> io::Result<()> {
        self.terminal.leave()?;
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
                read = self.terminal.read() => {
                    let Some(mut bytes) = read else { return Typed::Gone };
                    if bytes.is_empty() && self.cooked {
                        bytes.push(CTRL_D);
                    }
                    let strokes = self.decoder.strokes(&bytes);
                    self.settles = self.decoder.is_waiting().then(|| Instant::now() + TORN);
                    return Typed::Key(strokes);
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
    fn enter(&mut self) -> io::Result<()> {
        if self.cooked {
            return Ok(());
        }
        self.terminal.enter(|mode| {
            mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
            // A read of nothing returns at once.
            mode.special_codes[SpecialCodeIndex::VMIN] = 0;
            mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        })
    }

    /// Whether the mode is still the one of [`enter`](Self::enter).
    fn is_entered(&self) -> bool {
        let ours = |mode: Termios| !mode.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO);
        self.cooked || tcgetattr(self.terminal.fd()).is_ok_and(ours)
    }
}
