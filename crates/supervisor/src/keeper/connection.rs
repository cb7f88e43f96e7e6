//! A connection of a keeper: frames in, frames out, never waiting.
//!
//! What is not taken by the other side waits here, up to a bound; one that lets more than that wait is lost, as is one that
//! closes it. Losing a connection is a fact to act on, not an error. Invariant: what the other side said before it closed is
//! read first, also when that it closed was seen by a write. Not here: what the frames mean.

use super::frames::Frame;
use super::output::Output;
use super::protocol::{Attached, FromKeeper, Refused, Why, put_stderr};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use tokio_util::bytes::{Buf, BytesMut};

/// Bytes taken in a read after one that brought less.
const QUIET: usize = 4 * 1024;
/// Bytes taken in one read, at most.
const FLOOD: usize = 256 * 1024;
/// What may wait: answers to a daemon that asks and does not listen.
const MOST_WAITING: usize = 4 << 20;
/// So much waits for a daemon that is slow; then what can be left out is.
const SLOW: usize = 1 << 20;

pub(super) struct Connection {
    socket: UnixStream,
    read: BytesMut,
    offered: usize,
    /// What is sent before what is retained, then how much of that is sent, then everything else.
    first: BytesMut,
    retained: Option<usize>,
    waiting: BytesMut,
    /// The other side takes nothing any more; what it said before can still be read.
    is_closing: bool,
    is_lost: bool,
}

impl Connection {
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (read, first, waiting) = Default::default();
        let (is_closing, is_lost) = (false, false);
        Ok(Self { socket, read, offered: QUIET, first, retained: None, waiting, is_closing, is_lost })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// What is to be waited for; None when it is lost.
    pub(super) fn poll(&self) -> Option<PollFd<'_>> {
        let wanted = match (self.is_attaching(), self.waiting.is_empty()) {
            // What it asks for may be the end of what it is being sent.
            (true, _) => PollFlags::OUT,
            (false, false) => PollFlags::IN | PollFlags::OUT,
            (false, true) => PollFlags::IN,
        };
        (!self.is_lost).then(|| PollFd::new(&self.socket, wanted))
    }

    /// Reads what has come, at most one piece of it; whether there may be more. What came before the end can still be taken.
    pub(super) fn fill(&mut self) -> bool {
        if self.is_lost || self.is_attaching() {
            return false;
        }
        let before = self.read.len();
        self.read.resize(before + self.offered, 0);
        let read = rustix::io::read(&self.socket, &mut self.read[before..]);
        self.read.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.is_lost = true,
            Ok(all) if all == self.offered => {
                self.offered = FLOOD;
                return true;
            }
            Ok(_) => self.offered = QUIET,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => self.is_lost = self.is_closing,
            Err(_) => self.is_lost = true,
        }
        false
    }

    /// The next frame that has come whole.
    pub(super) fn next(&mut self, longest: usize) -> io::Result<Option<Frame>> {
        let frame = Frame::take(&mut self.read, longest);
        if self.read.is_empty() && self.read.capacity() > QUIET {
            // One that says little keeps little room for what it said.
            self.read = BytesMut::new();
        }
        frame
    }

    pub(super) fn send(&mut self, message: &FromKeeper) {
        if self.is_lost || self.is_closing {
            return;
        }
        message.put_to(&mut self.waiting);
        self.flush(None);
    }

    /// Whether so much waits that what can be left out is.
    pub(super) fn is_slow(&self) -> bool {
        self.is_lost || self.is_closing || self.waiting.len() > SLOW
    }

    /// Passes on what came on stderr; false when the daemon is too slow for that.
    pub(super) fn send_stderr(&mut self, bytes: &[u8]) -> bool {
        if self.is_slow() {
            return false;
        }
        put_stderr(&mut self.waiting, bytes);
        self.flush(None);
        true
    }

    /// The last word: nothing more is said or heard. It is not waited for that it arrives.
    pub(super) fn refuse(&mut self, why: Why) {
        if !self.is_lost && !self.is_attaching() {
            self.send(&FromKeeper::Refused(Refused { why }));
        }
        self.is_lost = true;
    }

    /// Makes it the connection of a controller: sends `head`, with stdout, then all that is retained. Until that is sent, it
    /// is not read.
    pub(super) fn attach(&mut self, head: &Attached, stdout: BorrowedFd<'_>, output: &Output) {
        let mut frame = BytesMut::new();
        head.put_to(&mut frame, output.retained());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let stdout = [stdout];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&stdout)), "the space was made for one");
        match sendmsg(&self.socket, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::empty()) {
            Ok(sent) => {
                frame.advance(sent);
                (self.first, self.retained) = (frame, Some(0));
                self.flush(Some(output));
            }
            // Nothing was sent to it before.
            Err(_) => self.is_lost = true,
        }
    }

    fn is_attaching(&self) -> bool {
        self.retained.is_some()
    }

    /// Sends what the other side takes. What is retained is sent only when it is given.
    pub(super) fn flush(&mut self, output: Option<&Output>) {
        while self.put(|connection| &mut connection.first) {}
        if self.first.is_empty()
            && let (Some(mut sent), Some(output)) = (self.retained, output)
        {
            while !self.is_lost && sent < output.retained() {
                match rustix::io::write(&self.socket, output.retained_from(sent)) {
                    Ok(more) => sent += more,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => self.is_lost = true,
                }
            }
            self.retained = (sent < output.retained()).then_some(sent);
        }
        if !self.is_attaching() {
            while self.put(|connection| &mut connection.waiting) {}
        }
        self.is_lost |= self.waiting.len() > MOST_WAITING;
    }

    /// Whether more may be put.
    fn put(&mut self, which: impl Fn(&mut Self) -> &mut BytesMut) -> bool {
        let mut bytes = std::mem::take(which(self));
        if bytes.is_empty() || self.is_lost {
            return false;
        }
        let written = rustix::io::write(&self.socket, &bytes);
        match written {
            Ok(written) => bytes.advance(written),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => {
                bytes.clear();
                self.is_closing = true;
                // Nothing that it says then would be read.
                self.is_lost |= self.is_attaching();
            }
        }
        if !bytes.is_empty() {
            *which(self) = bytes;
        }
        matches!(written, Ok(_) | Err(Errno::INTR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::protocol::{Command, Progress};

    // KEEP: what a daemon asked for before it died is done, also when its death was seen by a write
    #[test]
    fn what_was_said_before_the_end_is_read() {
        let (ours, daemon) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours).unwrap();
        connection.send(&FromKeeper::StdinClosed);
        let said = Command::Progress(Progress { read: 1, committed: 1 });
        // More than is taken in one read, and less than the system holds for one that does not read.
        let times = QUIET / 4;
        io::Write::write_all(&mut &daemon, &said.to_bytes().repeat(times)).unwrap();
        // With something that it has not read.
        drop(daemon);
        connection.send(&FromKeeper::StdinClosed);
        assert!(!connection.is_lost(), "it has not been heard yet");
        let mut heard = 0;
        while !connection.is_lost() {
            connection.fill();
            while let Some(frame) = connection.next(1 << 10).unwrap() {
                assert_eq!(Command::read(frame).unwrap(), Some(said.clone()));
                heard += 1;
                connection.send(&FromKeeper::StdinClosed);
            }
        }
        assert_eq!(heard, times);
    }

    // KEEP: a daemon that listens no more and stays is one that is gone, once what it said is read
    #[test]
    fn one_that_listens_no_more_is_lost() {
        let (ours, daemon) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(ours).unwrap();
        daemon.shutdown(std::net::Shutdown::Read).unwrap();
        connection.send(&FromKeeper::StdinClosed);
        assert!(!connection.fill() && connection.is_lost());
    }
}
