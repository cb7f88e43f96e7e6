//! Reading a pipe without taking anything out of it, and taking out of it what is known.
//!
//! `tee` copies references to what is queued into a scratch pipe, of which each thread has one. Invariant: between two
//! looks that pipe is empty. Only Linux has this; elsewhere no program is kept.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice, tee};
use std::cell::{OnceCell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use tokio_util::bytes::BytesMut;

/// As many bytes as are looked at in one go.
const LOOK: usize = 128 * 1024;
/// What a scratch pipe holds, where that is allowed: what is known of a wide pipe goes through it as well.
const ROOM: usize = 256 * 1024;

struct Scratch {
    out: OwnedFd,
    into: OwnedFd,
    /// What it holds, in bytes.
    size: usize,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peeked {
    /// So many bytes are new. 0: nothing is queued at all, and no writer is left.
    pub(crate) new: usize,
    /// Nothing was queued behind them.
    pub(crate) is_all: bool,
}

thread_local! {
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
    static NOWHERE: OnceCell<OwnedFd> = const { OnceCell::new() };
}

/// Throws away what is next in a pipe, at most `bytes`. 0: no writer is left.
pub(crate) fn discard(pipe: impl AsFd, bytes: usize) -> Result<usize, Errno> {
    NOWHERE.with(|nowhere| {
        let nowhere = match nowhere.get() {
            Some(nowhere) => nowhere,
            None => {
                use rustix::fs::{Mode, OFlags};
                let opened = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
                nowhere.get_or_init(|| opened)
            }
        };
        splice(pipe, None, nowhere, None, bytes, SpliceFlags::NONBLOCK)
    })
}

/// How many bytes are queued in a pipe.
pub(crate) fn queued(pipe: impl AsFd) -> Result<u64, Errno> {
    rustix::io::ioctl_fionread(pipe)
}

/// Whether nothing can come behind the first `known` bytes of a pipe, of which there are some.
pub(crate) fn is_final(pipe: impl AsFd, known: usize) -> bool {
    let is_hung_up = || {
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|_| fds[0].revents().contains(PollFlags::HUP))
    };
    // In this order: the last writer may just have written.
    known > 0 && is_hung_up() && queued(&pipe).is_ok_and(|queued| queued <= known as u64)
}

/// What a pipe holds, in bytes.
pub(crate) fn size_of(pipe: impl AsFd) -> usize {
    rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(0)
}

/// Has a pipe hold so much, if it is allowed and what is queued fits. Gives what it holds.
pub(crate) fn resize(pipe: impl AsFd, size: usize) -> usize {
    rustix::pipe::fcntl_setpipe_size(&pipe, size).unwrap_or_else(|_| size_of(pipe))
}

/// Copies what is queued behind the first `known` bytes of a pipe that holds `size` into the free capacity of `buffer`. `AGAIN`:
/// nothing is. `NOBUFS`: the known bytes lie in so many pieces that the scratch pipe has no room for more.
pub(crate) fn peek(
    pipe: impl AsFd,
    size: usize,
    known: usize,
    buffer: &mut BytesMut,
) -> Result<Peeked, Errno> {
    let room = (buffer.capacity() - buffer.len()).min(LOOK);
    if room == 0 {
        return Err(Errno::INVAL);
    }
    SCRATCH.with_borrow_mut(|slot| {
        // Taken, so that after a failure nothing of it is left in the slot.
        let scratch = match slot.take() {
            Some(scratch) => scratch,
            None => {
                let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                let size = resize(&into, ROOM);
                Scratch { out, into, size }
            }
        };
        let teed = tee(pipe, &scratch.into, known + room, SpliceFlags::NONBLOCK);
        // Fewer pieces than there are fit only into a scratch pipe that holds less.
        let has_all = |teed: usize| teed < known + room && size <= scratch.size;
        let copied = match teed {
            Ok(teed) => scratch.take(known, teed, buffer)?,
            Err(_) => 0,
        };
        let is_all = teed.is_ok_and(has_all);
        *slot = Some(scratch);
        match teed? {
            0 => Ok(Peeked { new: 0, is_all }),
            _ if copied > 0 => Ok(Peeked { new: copied, is_all }),
            _ if is_all => Err(Errno::AGAIN),
            _ => Err(Errno::NOBUFS),
        }
    })
}

impl Scratch {
    /// Takes all that was teed: what is known is thrown away. Gives how much was new.
    fn take(&self, known: usize, teed: usize, buffer: &mut BytesMut) -> Result<usize, Errno> {
        let mut old = known.min(teed);
        while old > 0 {
            old -= discard(&self.out, old)?;
        }
        let new = teed.saturating_sub(known);
        let begin = buffer.len();
        buffer.resize(begin + new, 0);
        let mut read = 0;
        while read < new {
            match rustix::io::read(&self.out, &mut buffer[begin + read..]) {
                Ok(more) if more > 0 => read += more,
                failed => {
                    buffer.truncate(begin);
                    return failed.and(Err(Errno::IO));
                }
            }
        }
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // ADR 21: what is known is skipped, and nothing is taken out
    #[test]
    fn a_look_takes_nothing_out() {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
        let mut buffer = BytesMut::with_capacity(4);
        let size = size_of(&out);
        let found = |new, is_all| Ok(Peeked { new, is_all });
        assert_eq!(peek(&out, size, 0, &mut buffer), Err(Errno::AGAIN));
        rustix::io::write(&into, b"abcdef").expect("there is room");
        assert_eq!((peek(&out, size, 0, &mut buffer), &buffer[..]), (found(4, false), &b"abcd"[..]));
        assert_eq!(peek(&out, size, 4, &mut buffer), Err(Errno::INVAL), "there is no room");
        buffer.reserve(4);
        assert_eq!((peek(&out, size, 4, &mut buffer), &buffer[..]), (found(2, true), &b"abcdef"[..]));
        assert_eq!((peek(&out, size, 6, &mut buffer), queued(&out)), (Err(Errno::AGAIN), Ok(6)));
        drop(into);
        // A program that another test is just starting has the end for writing until it replaces itself.
        let mut hung_up = [PollFd::new(&out, PollFlags::empty())];
        assert_eq!(poll(&mut hung_up, None), Ok(1));
        assert_eq!(peek(&out, size, 6, &mut buffer), Err(Errno::AGAIN));
        assert_eq!(discard(&out, 6), Ok(6));
        assert_eq!((peek(&out, size, 0, &mut buffer), discard(&out, 6)), (found(0, true), Ok(0)));
    }

    // ADR 21: more pieces than a pipe of the default size has
    #[test]
    fn a_big_pipe_is_seen_in_parts() {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe");
        rustix::pipe::fcntl_setpipe_size(&out, 1 << 20).expect("it is allowed to all");
        for number in 0..100_u8 {
            // A piece of its own each.
            rustix::io::write(&into, &[number; 4000]).expect("there is room");
        }
        let (mut seen, mut consumed) = (BytesMut::new(), 0);
        while seen.len() < 400_000 {
            seen.reserve(LOOK);
            match peek(&out, 1 << 20, seen.len() - consumed, &mut seen) {
                Ok(Peeked { new, is_all }) => assert!(new > 0 && !is_all),
                Err(error) => {
                    assert_eq!(error, Errno::NOBUFS);
                    consumed += discard(&out, seen.len() - consumed).expect("it is there");
                }
            }
        }
        assert!(seen.chunks(4000).enumerate().all(|(number, piece)| piece == [number as u8; 4000]));
    }
}
