//! A socket to a keeper, on which little is written and much is waited for.
//!
//! Registered for reading only: the kernel tells whoever waits for room in a Unix socket of each read at its other end, so
//! each message to a keeper would wake this process once more. Room is asked for by a second handle, while it is lacking. Not
//! here: what is said.

use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendFlags, recvmsg, send};
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio_util::bytes::BytesMut;

/// How often is looked for room where it cannot be waited for.
const AGAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct KeeperSocket(pipe::Receiver);

impl KeeperSocket {
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Unchecked since it is no pipe; it is read like one.
        pipe::Receiver::from_owned_fd_unchecked(socket.into()).map(Self)
    }

    /// Waits until there is something to read.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        // By its poll function: the future of `readable` is a list entry of its own, for many that wait.
        poll_fn(|cx| self.0.poll_read_ready(cx)).await
    }

    /// Reads what is there; 0 when the other end is gone.
    pub(crate) fn try_read_buf(&self, buffer: &mut BytesMut) -> io::Result<usize> {
        self.0.try_read_buf(buffer)
    }

    /// The same with descriptors that come along.
    pub(crate) fn try_receive(
        &self,
        buffer: &mut [u8],
        ancillary: &mut RecvAncillaryBuffer<'_>,
    ) -> io::Result<usize> {
        let mut parts = [IoSliceMut::new(buffer)];
        self.0.try_io(|| Ok(recvmsg(&self.0, &mut parts, ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes))
    }

    /// Writes what fits now.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.0, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    /// Waits until there may be room.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn writable(&self) {
        let second = self.as_fd().try_clone_to_owned().and_then(pipe::Sender::from_owned_fd_unchecked);
        match second {
            // An error is seen by the write.
            Ok(second) => drop(second.writable().await),
            // There is no descriptor left.
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

impl AsFd for KeeperSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    // KEEP: what did not fit goes on when the keeper has read, though nothing tells of that before
    #[tokio::test]
    async fn room_is_waited_for_when_there_is_none() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let socket = KeeperSocket::new(ours).unwrap();
        let (mut written, mut read) = (0, 0);
        let mut space = vec![0; 1 << 20];
        for _ in 0..3 {
            while let Ok(more) = socket.try_write(&[7; 4096]) {
                written += more;
            }
            read += theirs.read(&mut space).unwrap();
            socket.writable().await;
        }
        drop(socket);
        read += io::copy(&mut theirs, &mut io::sink()).unwrap() as usize;
        assert_eq!(read, written);
    }

    // KEEP: the end of a keeper is seen by who reads and by who waits for room
    #[tokio::test]
    async fn the_end_of_the_other_side_is_seen() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let socket = KeeperSocket::new(ours).unwrap();
        while socket.try_write(&[7; 4096]).is_ok() {}
        drop(theirs);
        socket.writable().await;
        assert_eq!(socket.try_write(b"x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        socket.readable().await.unwrap();
        let read = socket.try_read_buf(&mut BytesMut::with_capacity(8));
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
}
