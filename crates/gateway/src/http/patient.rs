//! A socket whose peer must take something now and then, and say something first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long a peer may take to say what it speaks. Until then nothing above this bounds its silence.
const FIRST_WORDS: Duration = Duration::from_secs(10);
/// Bytes by which HTTP/2 is told from HTTP/1.1.
const PREFACE: usize = 24;

/// Fails writes that could not go on for longer than its patience, and a peer that says nothing at all.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Until the peer has said enough.
    silence: Option<Pin<Box<Sleep>>>,
    heard: usize,
    /// Runs while a write waits. Kept for the next one.
    waiting: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        let silence = Some(Box::pin(tokio::time::sleep(FIRST_WORDS)));
        Self { stream, patience, silence, heard: 0, waiting: None, is_waiting: false }
    }

    /// What a write came to, unless it has waited for too long.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let until = Instant::now() + self.patience;
            match &mut self.waiting {
                Some(waiting) => waiting.as_mut().reset(until),
                None => self.waiting = Some(Box::pin(tokio::time::sleep_until(until))),
            }
        }
        if let Some(waiting) = &mut self.waiting {
            ready!(waiting.as_mut().poll(cx));
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.heard = self.heard.saturating_add(buf.filled().len() - before);
        if self.heard >= PREFACE {
            self.silence = None;
        }
        if read.is_pending()
            && let Some(silence) = &mut self.silence
        {
            ready!(silence.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer says nothing")));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.bounded(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.bounded(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.bounded(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    // HT-12: who says nothing, or not enough, holds no socket; who has spoken may be silent
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_says_nothing_is_given_up() {
        for said in [&b""[..], b"PRI * HTTP"] {
            let (mut peer, stream) = tokio::io::duplex(64);
            let mut patient = Patient::new(stream, Duration::from_secs(30));
            peer.write_all(said).await.expect("there is room");
            let mut heard = vec![0; said.len()];
            patient.read_exact(&mut heard).await.expect("it was said");
            let silent = patient.read_u8().await.expect_err("no more comes");
            assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        }
        let (mut peer, stream) = tokio::io::duplex(64);
        let mut patient = Patient::new(stream, Duration::from_secs(30));
        peer.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").await.expect("there is room");
        let mut heard = [0; 25];
        patient.read_exact(&mut heard).await.expect("it was said");
        tokio::time::timeout(Duration::from_secs(60), patient.read_u8()).await.expect_err("it may be silent");
    }

    // UP-2: no client holds a socket for ever
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (mut reader, stream) = tokio::io::duplex(8);
        let mut patient = Patient::new(stream, Duration::from_secs(30));
        patient.write_all(b"12345678").await.expect("there is room");
        let late = patient.write_all(b"9").await.expect_err("there is none");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let mut taken = [0; 8];
        reader.read_exact(&mut taken).await.expect("it is there");
        patient.write_all(b"again").await.expect("there is room again");
    }
}
