//! The stdout of a kept program: read without taking anything out of the pipe, which is the keeper's to do.
//!
//! What was read stays in the pipe until the keeper was told and has consumed it, so that no byte is lost with this process.
//! The keeper is told after a threshold, or after a moment of silence; until it has answered, it is not known where the pipe
//! begins, and nothing is read. Edges do not tell of every write (docs/adr/0021): while something that was read is still
//! queued, the pipe is looked at again and again. A keeper that is gone leaves the pipe to us.

use crate::keeper::protocol::{Command, Progress};
use crate::link::{Link, Standing};
use crate::scope::Alarm;
use crate::scratch::{self, Peeked};
use crate::streams::WindowSize;
use rustix::io::Errno;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::time::Instant;
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::sync::CancellationToken;

/// The keeper is told after so many bytes, at most half of what the pipe holds.
const TELL_AFTER: u64 = 16 * 1024;
/// What a pipe holds while a program fills it faster than it is read, where that is allowed: enough that neither side waits
/// while the keeper consumes.
const WIDE: usize = 256 * 1024;
/// What it held before, for all that is known.
const NORMAL: usize = 64 * 1024;
/// And after so much silence.
const SILENCE: Duration = Duration::from_millis(100);
/// How often the pipe is looked at while something that was read is still in it.
const LOOK: Duration = Duration::from_millis(10);
/// A write of up to so many bytes comes at once, and an edge tells of it (`PIPE_BUF`).
const ATOMIC: usize = 4096;
/// Bytes taken in one read without a keeper, at most.
const ALONE: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Teed {
    pipe: pipe::Receiver,
    link: Arc<Link>,
    /// What a keeper had retained, or what was read ahead, as far as it was not given.
    retained: Bytes,
    /// Up to here it was read, by us or by those before us.
    read: u64,
    /// The pipe begins here.
    consumed: u64,
    told: Progress,
    /// Answers that were awaited so far.
    asked: u64,
    is_asking: bool,
    committed: AtomicU64,
    /// What the pipe holds, in bytes, now and when little is said.
    size: usize,
    normal: usize,
    may_widen: bool,
    read_at: Instant,
    asked_at: Instant,
    looked_at: Instant,
    /// For what is to be done if nothing comes.
    alarm: Alarm,
    last_look: LastLook,
    /// The pipe has told of something since it was looked at.
    has_told: bool,
    /// No writer is left, and all is read.
    is_over: bool,
}

/// What the last look into the pipe has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastLook {
    /// Another one may find something.
    Done,
    /// All that there was: another one right behind it would find nothing.
    All,
    /// It was left out for that.
    LeftOut,
}

impl Teed {
    /// The `pipe` begins at `consumed`; what is `retained` comes before that.
    pub(crate) fn new(pipe: OwnedFd, link: Arc<Link>, retained: Bytes, consumed: u64) -> io::Result<Self> {
        let size = scratch::size_of(&pipe);
        let committed = consumed - retained.len() as u64;
        let now = Instant::now();
        Ok(Self {
            pipe: pipe::Receiver::from_owned_fd(pipe)?,
            link,
            retained,
            read: consumed,
            consumed,
            told: Progress { read: consumed, committed },
            asked: 0,
            is_asking: false,
            committed: AtomicU64::new(committed),
            size,
            // A host before may have left it wide.
            normal: if size == WIDE { NORMAL } else { size },
            may_widen: true,
            read_at: now,
            asked_at: now,
            looked_at: now,
            alarm: Alarm::default(),
            last_look: LastLook::Done,
            has_told: false,
            is_over: false,
        })
    }

    pub(crate) fn position(&self) -> u64 {
        self.read - self.retained.len() as u64
    }

    pub(crate) fn committed(&self, position: u64) {
        let position = position.min(self.position());
        let before = self.committed.fetch_max(position, Ordering::Relaxed);
        if self.is_over && before < position {
            // Nothing is read any more, and so nothing told.
            self.link.send(&Command::Progress(Progress { read: self.read, committed: position }));
        }
    }

    /// The keeper has the window, if there is one.
    pub(crate) fn resize(&self, size: WindowSize) {
        self.link.send(&Command::Resize(size));
    }

    /// Reads into the free capacity of `buffer`.
    pub(crate) fn try_read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let answer = self.link.answer();
        if answer.standing == Standing::LetGo {
            return Ok(0);
        }
        let room = buffer.capacity() - buffer.len();
        if !self.retained.is_empty() && room > 0 {
            let part = self.retained.split_to(room.min(self.retained.len()));
            buffer.extend_from_slice(&part);
            return Ok(part.len());
        }
        if self.is_asking && answer.count >= self.asked {
            self.is_asking = false;
            self.consumed = answer.position.max(self.consumed);
            self.narrow();
        }
        if answer.standing == Standing::Gone {
            return self.read_alone(buffer);
        }
        if self.is_asking {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.last_look == LastLook::All {
            self.last_look = LastLook::LeftOut;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let known = usize::try_from(self.read - self.consumed).expect("a pipe holds less");
        let read = self.look(known, buffer);
        self.looked_at = Instant::now();
        match read {
            Ok(Peeked { new: 0, .. }) => self.is_over = true,
            Ok(Peeked { new, is_all }) => {
                self.read += new as u64;
                self.read_at = self.looked_at;
                // Of a larger write more may come meanwhile, and no edge tells of that.
                self.last_look = if is_all && new <= ATOMIC { LastLook::All } else { LastLook::Done };
                self.make_room();
            }
            Err(Errno::AGAIN) if scratch::is_final(&self.pipe, known) => {
                self.is_over = true;
                return Ok(0);
            }
            Err(Errno::AGAIN) if self.ask_due().is_some_and(|due| due <= self.looked_at) => self.ask(),
            // No edge may tell of what comes behind as much as that.
            Err(Errno::AGAIN) if self.unconsumed() >= self.tell_after() => self.ask(),
            Err(Errno::NOBUFS) => {
                self.ask();
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(_) => {}
        }
        Ok(read?.new)
    }

    /// Looks behind the first `known` bytes. Where nothing has told of more than these, they are counted first, which is cheaper.
    fn look(&mut self, known: usize, buffer: &mut BytesMut) -> Result<Peeked, Errno> {
        self.last_look = LastLook::Done;
        let (size, counts) = (self.size, !std::mem::take(&mut self.has_told) && known > 0);
        let look = |pipe: &pipe::Receiver| match counts && scratch::queued(pipe)? <= known as u64 {
            true => Err(Errno::AGAIN),
            false => scratch::peek(pipe, size, known, buffer),
        };
        self.in_its_turn(look, |peeked| peeked.is_all)
    }

    /// Whether all that was there, when it was looked at last, is read.
    pub(crate) fn is_dry(&self) -> bool {
        self.retained.is_empty() && !self.is_asking && self.last_look != LastLook::LeftOut
    }

    /// Does `read` also when no edge has told of anything; when that finds nothing, or `is_all`, the next edge is waited for.
    fn in_its_turn<T>(
        &self,
        mut read: impl FnMut(&pipe::Receiver) -> Result<T, Errno>,
        is_all: impl Fn(&T) -> bool,
    ) -> Result<T, Errno> {
        let mut outcome = None;
        let _ready = self.pipe.try_io(|| {
            let read = outcome.insert(read(&self.pipe));
            let is_dry = read.as_ref().map_or_else(|error| *error == Errno::AGAIN, &is_all);
            if is_dry { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        outcome.unwrap_or_else(|| read(&self.pipe))
    }

    /// The keeper is gone: what is known is skipped, and the rest taken out. What it was told of last and did not
    /// answer may be consumed or not; then rather nothing comes twice.
    fn read_alone(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        while self.consumed < self.read {
            let known = usize::try_from(self.read - self.consumed).expect("a pipe holds less");
            match self.in_its_turn(|pipe| scratch::discard(pipe, known), |_| false)? {
                0 => return Ok(0),
                skipped => self.consumed += skipped as u64,
            }
        }
        let begin = buffer.len();
        buffer.resize(buffer.capacity().min(begin + ALONE), 0);
        let read = self.in_its_turn(|pipe| rustix::io::read(pipe, &mut buffer[begin..]), |_| false);
        buffer.truncate(begin + *read.as_ref().unwrap_or(&0));
        let read = read?;
        self.read += read as u64;
        self.consumed = self.read;
        Ok(read)
    }

    /// When the keeper is to be told, if nothing comes.
    fn ask_due(&self) -> Option<Instant> {
        let is_news =
            self.read > self.consumed || self.committed.load(Ordering::Relaxed) > self.told.committed;
        is_news.then(|| self.read_at.max(self.asked_at) + SILENCE)
    }

    /// When something is to be done, if nothing comes.
    fn due(&self) -> Option<Instant> {
        let look = (self.read > self.consumed).then(|| self.looked_at + LOOK);
        self.ask_due().into_iter().chain(look).min()
    }

    /// What was read and is still in the pipe.
    fn unconsumed(&self) -> u64 {
        self.read - self.consumed
    }

    fn tell_after(&self) -> u64 {
        TELL_AFTER.min(self.size as u64 / 2).max(1)
    }

    /// Something was read: has the keeper consume when that is enough. A program that fills the pipe gets a wide one.
    fn make_room(&mut self) {
        let unconsumed = self.unconsumed();
        if self.size > self.normal {
            if unconsumed >= self.size as u64 / 2 {
                self.look_ahead();
                self.ask();
            }
            return;
        }
        if unconsumed >= self.tell_after() {
            self.ask();
        }
        if unconsumed >= self.size as u64 / 4 * 3 && std::mem::take(&mut self.may_widen) {
            self.size = scratch::resize(&self.pipe, WIDE);
        }
    }

    /// Reads what will be wanted while the keeper has not answered.
    fn look_ahead(&mut self) {
        let mut ahead = BytesMut::with_capacity(self.size / 2);
        let known = usize::try_from(self.unconsumed()).expect("a pipe holds less");
        // What cannot be read now is read later.
        if let Ok(Peeked { new, .. }) = self.look(known, &mut ahead) {
            self.read += new as u64;
            self.retained = ahead.freeze();
        }
    }

    /// After a while of silence the pipe is as it was, for there may be many.
    fn narrow(&mut self) {
        if self.size > self.normal && self.asked_at >= self.read_at + SILENCE {
            self.size = scratch::resize(&self.pipe, self.normal);
            self.may_widen = true;
        }
    }

    fn ask(&mut self) {
        self.told = Progress { read: self.read, committed: self.committed.load(Ordering::Relaxed) };
        self.link.send(&Command::Progress(self.told));
        self.asked += 1;
        self.is_asking = true;
        self.asked_at = Instant::now();
        // More may come while nobody looks, and no edge tells of it.
        self.last_look = LastLook::Done;
    }

    /// Waits until [`try_read`](Self::try_read) may find something, or has something to do.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn readable(&mut self, cut: &CancellationToken) -> io::Result<()> {
        if !self.retained.is_empty() {
            return Ok(());
        }
        let due = self.due();
        let waits = !self.is_asking || self.link.answer().standing != Standing::Open;
        let Self { pipe, link, alarm, has_told, .. } = self;
        tokio::select! {
            // By its poll function: the future of `readable` is a list entry of its own, for many that wait.
            ready = poll_fn(|cx| pipe.poll_read_ready(cx)), if waits => {
                *has_told = true;
                ready?;
            }
            () = link.consuming() => {}
            () = alarm.wait(due), if waits => {}
            () = cut.cancelled(), if waits => {}
        }
        Ok(())
    }
}
