//! stdin and stdout as async ends, whatever they are.
//!
//! Pipes are opened anew, so that our non-blocking mode is ours alone: the descriptor we were given is shared with
//! our parent. Sockets (Node's way of piping) are used with calls that do not block. Anything else, a terminal or
//! a file, goes through tokio's threads.

use bytes::BytesMut;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Stdin, Stdout};
use tokio::net::unix::pipe;

/// Most that one read takes.
const READ: usize = 256 * 1024;

pub(super) enum Input {
    Pipe(pipe::Receiver),
    Socket(AsyncFd<OwnedFd>),
    Other(Stdin),
}

impl Input {
    pub(super) fn stdin() -> io::Result<Self> {
        let fd = rustix::stdio::stdin();
        match file_type(fd)? {
            FileType::Fifo => match reopen(0, OFlags::RDONLY) {
                Ok(pipe) => Ok(Self::Pipe(pipe::Receiver::from_owned_fd(pipe)?)),
                Err(_) => Ok(Self::Other(tokio::io::stdin())),
            },
            FileType::Socket => Ok(Self::Socket(register(fd)?)),
            _ => Ok(Self::Other(tokio::io::stdin())),
        }
    }

    /// Reads what is there; 0 at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped, except for an [`Input::Other`], which a blocking thread reads.
    pub(super) async fn read_buf(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Pipe(pipe) => loop {
                pipe.readable().await?;
                match pipe.try_read_buf(buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            },
            Self::Socket(socket) => loop {
                let mut ready = socket.readable().await?;
                let start = buffer.len();
                buffer.resize(start + READ.min(buffer.capacity() - start).max(4096), 0);
                let read = ready.try_io(|socket| {
                    Ok(rustix::net::recv(socket, &mut buffer[start..], RecvFlags::DONTWAIT)?.0)
                });
                buffer.truncate(start + read.as_ref().ok().and_then(|read| read.as_ref().ok()).unwrap_or(&0));
                if let Ok(read) = read {
                    return read;
                }
            },
            Self::Other(stdin) => stdin.read_buf(buffer).await,
        }
    }
}

pub(super) enum Output {
    Pipe(pipe::Sender),
    Socket(AsyncFd<OwnedFd>),
    Other(Stdout),
}

impl Output {
    pub(super) fn stdout() -> io::Result<Self> {
        let fd = rustix::stdio::stdout();
        match file_type(fd)? {
            FileType::Fifo => match reopen(1, OFlags::WRONLY) {
                Ok(pipe) => Ok(Self::Pipe(pipe::Sender::from_owned_fd(pipe)?)),
                Err(_) => Ok(Self::Other(tokio::io::stdout())),
            },
            FileType::Socket => Ok(Self::Socket(register(fd)?)),
            _ => Ok(Self::Other(tokio::io::stdout())),
        }
    }

    pub(super) async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Pipe(pipe) => {
                while !bytes.is_empty() {
                    match pipe.try_write(bytes) {
                        Ok(written) => bytes = &bytes[written..],
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => pipe.writable().await?,
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
            Self::Socket(socket) => {
                while !bytes.is_empty() {
                    let mut ready = socket.writable().await?;
                    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                    if let Ok(written) = ready.try_io(|socket| Ok(rustix::net::send(socket, bytes, flags)?)) {
                        bytes = &bytes[written?..];
                    }
                }
                Ok(())
            }
            Self::Other(stdout) => {
                stdout.write_all(bytes).await?;
                stdout.flush().await
            }
        }
    }
}

fn file_type(fd: impl AsFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
}

fn reopen(number: u32, mode: OFlags) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    Ok(rustix::fs::open(path, mode | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

/// A socket under its own number. The descriptor stays open as long as the registration, because it is owned.
fn register(fd: impl AsFd) -> io::Result<AsyncFd<OwnedFd>> {
    let owned = fd.as_fd().try_clone_to_owned()?;
    #[expect(deprecated, reason = "its successor is unsafe for descriptors that are not owned; this one is")]
    AsyncFd::new(owned)
}
