//! The caller's ends of a program's stdin and stdout.
//!
//! Plain bytes, no framing; those of a kept program go through its keeper, or past it (`link.rs`, `teed.rs`). Both ends obey the process task: it can close stdin at any time (the first rung of
//! the ladder), and it cuts stdout off when the program is dead and something that escaped holds the pipe.

use crate::framing::Framing;
use crate::link::Link;
use crate::streams::{Output, WindowSize};
use crate::teed::Teed;
use parking_lot::Mutex;
use rustix::io::Errno;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio_util::bytes::BytesMut;
use tokio_util::sync::{CancellationToken, DropGuard};

/// After the cut-off, at most this much is still taken from a pipe that never runs dry: more than any pipe
/// holds, so that nothing the program itself wrote is lost.
const AFTER_CUT: usize = 1024 * 1024;

/// The program's stdin. Dropping it closes the pipe; that of a kept program is closed by its keeper, when it is stopped.
#[derive(Debug)]
pub struct Stdin {
    shared: Arc<StdinShared>,
    /// To the keeper of a kept program, which alone writes to it.
    link: Option<Arc<Link>>,
}

/// What [`Stdin`] and the process task share: either may close the pipe, both see it closed at once.
#[derive(Debug)]
pub(crate) struct StdinShared {
    // Held only to take or clone the Arc, never while writing or waiting.
    pipe: Mutex<Option<Arc<pipe::Sender>>>,
    closed: CancellationToken,
}

impl StdinShared {
    pub(crate) fn close(&self) {
        self.closed.cancel();
        let _pipe = self.pipe.lock().take();
    }

    fn pipe(&self) -> io::Result<Arc<pipe::Sender>> {
        let pipe = self.pipe.lock().clone();
        pipe.ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl Stdin {
    /// Without an end it is closed from the beginning.
    pub(crate) fn new(end: Option<OwnedFd>) -> io::Result<(Self, Arc<StdinShared>)> {
        let pipe = end.map(pipe::Sender::from_owned_fd).transpose()?.map(Arc::new);
        let closed = CancellationToken::new();
        if pipe.is_none() {
            closed.cancel();
        }
        let shared = Arc::new(StdinShared { pipe: Mutex::new(pipe), closed });
        Ok((Self { shared: Arc::clone(&shared), link: None }, shared))
    }

    /// That of a kept program.
    pub(crate) fn kept(link: Arc<Link>) -> (Self, Arc<StdinShared>) {
        let shared = Arc::new(StdinShared { pipe: Mutex::default(), closed: CancellationToken::new() });
        (Self { shared: Arc::clone(&shared), link: Some(link) }, shared)
    }

    /// How messages are written into a buffer that [`try_write`](Self::try_write) takes.
    pub fn framing(&self) -> Framing {
        if self.link.is_some() { Framing::Kept } else { Framing::Plain }
    }

    /// Writes what fits now. Of a kept program, `bytes` are whole frames, and all of them are taken or none; they go out in
    /// one order with everything else that its keeper is told.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room, `BrokenPipe` when the program or the ladder has closed it.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.link {
            None => self.shared.pipe()?.try_write(bytes),
            Some(_) if self.is_closed() => Err(io::ErrorKind::BrokenPipe.into()),
            Some(link) => link.offer(bytes),
        }
    }

    /// Bytes that were taken and that the program has not read, as far as its keeper has told; always 0 when it has none.
    pub fn undrained(&self) -> usize {
        self.link.as_ref().map_or(0, |link| link.undrained())
    }

    /// Waits until [`try_write`](Self::try_write) may succeed, or the pipe is closed.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn writable(&self) -> io::Result<()> {
        if let Some(link) = &self.link {
            return tokio::select! {
                () = link.room() => Ok(()),
                () = self.shared.closed.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            };
        }
        let pipe = self.shared.pipe()?;
        tokio::select! {
            ready = pipe.writable() => ready,
            () = self.shared.closed.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Whether this end is closed: the ladder has begun, or the program is gone.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.is_cancelled()
    }

    /// Waits until what is written cannot be read any more: the program closed its stdin or has ended.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn reader_gone(&self) {
        if let Some(link) = &self.link {
            return tokio::select! {
                () = link.reader_gone.cancelled() => {}
                () = self.shared.closed.cancelled() => {}
            };
        }
        let Ok(pipe) = self.shared.pipe() else { return };
        let gone = async {
            // Error readiness of a pipe's writing end means that no reading end is left.
            while pipe.ready(Interest::ERROR).await.is_ok_and(|ready| !ready.is_error()) {}
        };
        tokio::select! {
            () = gone => {}
            () = self.shared.closed.cancelled() => {}
        }
    }

    /// Writes all of `bytes`, in a frame where it takes one.
    ///
    /// # Errors
    /// `BrokenPipe` when the program or the ladder has closed the pipe; part may have been written.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        let mut frame = BytesMut::new();
        let mut bytes = match self.framing() {
            Framing::Plain => bytes,
            Framing::Kept => {
                Framing::Kept.message(&mut frame, bytes, None);
                &frame[..]
            }
        };
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Stdin {
    fn drop(&mut self) {
        // What is kept outlives this process, also one that ends by dropping everything.
        if self.link.is_none() {
            self.shared.close();
        }
    }
}

/// The program's stdout.
#[derive(Debug)]
pub struct Stdout {
    source: Source,
    cut: CancellationToken,
    after_cut: usize,
    /// Tells the process task that reading is over.
    _done: DropGuard,
}

/// Where it is read.
#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Pty(pipe::Receiver),
    /// Of a kept program.
    Teed {
        teed: Box<Teed>,
        is_pty: bool,
    },
}

impl Stdout {
    pub(crate) fn new(end: Output, cut: CancellationToken, done: DropGuard) -> io::Result<Self> {
        let source = match end {
            Output::Pipe(end) => Source::Pipe(pipe::Receiver::from_owned_fd(end)?),
            // Unchecked since it is no pipe; non-blocking and readable like one, which is all that counts.
            Output::Pty(master) => Source::Pty(pipe::Receiver::from_owned_fd_unchecked(master)?),
        };
        Ok(Self { source, cut, after_cut: 0, _done: done })
    }

    /// That of a kept program.
    pub(crate) fn kept(teed: Teed, is_pty: bool, cut: CancellationToken, done: DropGuard) -> Self {
        Self { source: Source::Teed { teed: Box::new(teed), is_pty }, cut, after_cut: 0, _done: done }
    }

    /// Of a kept program: bytes that were given so far, since its start. Else 0.
    pub fn position(&self) -> u64 {
        if let Source::Teed { teed, .. } = &self.source { teed.position() } else { 0 }
    }

    /// Of a kept program: nothing below `position` is needed by a later host. Its keeper is told before long; it is
    /// never taken back.
    pub fn committed(&self, position: u64) {
        if let Source::Teed { teed, .. } = &self.source {
            teed.committed(position);
        }
    }

    /// Changes the size of the window; the program is told by SIGWINCH.
    ///
    /// # Errors
    /// `Unsupported` when the program writes to a pipe; what the operating system says else.
    pub fn resize(&self, size: WindowSize) -> io::Result<()> {
        match &self.source {
            Source::Pty(master) => size.set_on(master),
            Source::Teed { teed, is_pty: true } => {
                teed.resize(size);
                Ok(())
            }
            Source::Pipe(_) | Source::Teed { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Types on the pseudo-terminal of the program: what fits now. Its line discipline makes signals of what stands for some.
    ///
    /// # Errors
    /// `Unsupported` when the program has none, or is kept; `WouldBlock` when there is no room, which is not told of later; what
    /// the operating system says else.
    pub fn try_type(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.source {
            Source::Pty(master) => Ok(rustix::io::write(master, bytes)?),
            Source::Pipe(_) | Source::Teed { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Reads what is there into the free capacity of `buffer`, waiting for at least one byte. 0 means the end:
    /// every writer has closed the pipe, or the program is dead and the drain bound has passed.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn read_buf(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        // A program that floods always has something to read, and its reader must not keep the others waiting.
        tokio::task::coop::consume_budget().await;
        loop {
            match self.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable().await?,
                read => return read,
            }
        }
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there.
    pub fn try_read_buf(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::Pipe(source) | Source::Pty(source) => source.try_read_buf(buffer),
            Source::Teed { teed, .. } => teed.try_read(buffer),
        };
        match read {
            Ok(read) => {
                self.after_cut += if self.cut.is_cancelled() { read } else { 0 };
                Ok(if self.after_cut > AFTER_CUT { 0 } else { read })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.cut.is_cancelled() => {
                match &self.source {
                    // The keeper is about to answer, and there may be more behind it.
                    Source::Teed { teed, .. } if !teed.is_dry() => Err(error),
                    _ => Ok(0),
                }
            }
            // What a pseudo-terminal says when its other end is closed.
            Err(error)
                if matches!(self.source, Source::Pty(_))
                    && error.raw_os_error() == Some(Errno::IO.raw_os_error()) =>
            {
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until [`try_read_buf`](Self::try_read_buf) may find something.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub async fn readable(&mut self) -> io::Result<()> {
        // By its poll function: the future of `readable` is a list entry of its own, for many that wait.
        let source = match &mut self.source {
            Source::Pipe(source) | Source::Pty(source) => source,
            Source::Teed { teed, .. } => return teed.readable(&self.cut).await,
        };
        tokio::select! {
            ready = poll_fn(|cx| source.poll_read_ready(cx)) => ready,
            () = self.cut.cancelled() => Ok(()),
        }
    }
}
