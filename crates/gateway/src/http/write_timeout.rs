//! A socket whose peer must take something now and then, and say what it has begun to say.

use super::exchange::{End, Exchange};
use super::pulse::Pulse;
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// What the socket of a connection and the service of its requests know together.
#[derive(Debug)]
pub(super) struct Turns(Mutex<Known>);

#[derive(Debug)]
struct Known {
    exchange: Exchange,
    /// The read of a peer that has said its last, which ends with the answer. No other is to be woken by a request: it would
    /// wake the very task that serves it, and with that another thread of the runtime.
    reader: Option<Waker>,
}

impl Turns {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(Known { exchange: Exchange::new(now), reader: None }))
    }

    /// Something about a request has changed.
    pub(super) fn update(&self, change: impl FnOnce(&mut Exchange)) {
        let reader = self.with(|known| {
            change(&mut known.exchange);
            known.reader.take()
        });
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut Known) -> T) -> T {
        what(&mut self.0.lock())
    }
}

/// Fails writes that could not go on for longer than its patience, and gives up a peer that does not say in time what it
/// has begun to say.
pub(super) struct WriteTimeout<S> {
    stream: S,
    patience: Duration,
    pulse: Arc<Pulse>,
    turns: Arc<Turns>,
    /// Runs while something of the peer is due. Kept for the next time.
    due: Option<Pin<Box<Sleep>>>,
    /// The peer has said its last; it may wait for an answer.
    closed: bool,
    /// Runs while a write waits. Kept for the next one.
    waiting: Option<Pin<Box<Sleep>>>,
    waits_since: Option<Instant>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, patience: Duration, pulse: Arc<Pulse>, turns: Arc<Turns>) -> Self {
        Self { stream, patience, pulse, turns, due: None, closed: false, waiting: None, waits_since: None }
    }

    /// What a write came to, unless it has waited for too long.
    fn bounded<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits_since = None;
            return written;
        }
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        ready!(poll_until(&mut self.waiting, &self.pulse, since, self.patience, cx));
        self.waits_since = None;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer takes nothing")))
    }

    /// Nothing more has come: until when it may be so.
    fn silent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let due = self.turns.with(|known| {
            known.reader = self.closed.then(|| cx.waker().clone());
            known.exchange.due()
        });
        let Some(due) = due else { return Poll::Pending };
        ready!(poll_until(&mut self.due, &self.pulse, due.since, due.patience, cx));
        match self.closed {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer says too little"))),
        }
    }
}

/// Waits until a peer has had its time.
fn poll_until(
    sleep: &mut Option<Pin<Box<Sleep>>>,
    pulse: &Pulse,
    since: Instant,
    patience: Duration,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(since + patience)));
    loop {
        let until = pulse.until(since, patience);
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        ready!(sleep.as_mut().poll(cx));
        if pulse.until(since, patience) == until {
            return Poll::Ready(());
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if !self.closed {
            match Pin::new(&mut self.stream).poll_read(cx, buf) {
                Poll::Pending => return self.silent(cx),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) => {}
            }
            let new = &buf.filled()[before..];
            // Into no room nothing comes, which is no end.
            if !new.is_empty() || buf.remaining() == 0 {
                self.turns.with(|known| known.exchange.heard(new, Instant::now()));
                return Poll::Ready(Ok(()));
            }
            self.closed = true;
        }
        match self.turns.with(|known| known.exchange.closed(Instant::now())) {
            End::Over => Poll::Ready(Ok(())),
            End::Waits => self.silent(cx),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A peer with `room` bytes on the way, its socket, and what is known of its requests.
    fn slow_stream(room: usize) -> (DuplexStream, WriteTimeout<DuplexStream>, Arc<Turns>) {
        let (peer, stream) = tokio::io::duplex(room);
        let (pulse, turns) = (Arc::new(Pulse::new()), Arc::new(Turns::new(Instant::now())));
        let beat = Arc::clone(&pulse);
        acpd_host::TaskScope::default().spawn("pulse", async move { beat.keep().await });
        (peer, WriteTimeout::new(stream, PATIENCE, pulse, Arc::clone(&turns)), turns)
    }

    // HT-12: a peer that sends nothing, not enough, or too slowly holds no socket; after a request it may be silent
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_say_its_head_is_given_up() {
        for said in [&b""[..], b"PRI * HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n"] {
            let (mut peer, mut stream, _turns) = slow_stream(64);
            let begun = Instant::now();
            let saying = async {
                peer.write_all(said).await.expect("there is room");
                loop {
                    // tidy: allow sleep, how slowly it comes is what is tested
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    if !said.is_empty() && peer.write_all(b"x").await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
            };
            let reading = async {
                loop {
                    if let Err(late) = stream.read_u8().await {
                        return late;
                    }
                }
            };
            let late = tokio::select! {
                late = reading => late,
                () = saying => unreachable!("it goes on"),
            };
            assert_eq!((late.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 10), "{said:?}");
        }
        let (mut peer, mut stream, turns) = slow_stream(64);
        peer.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("there is room");
        stream.read_exact(&mut [0; 27]).await.expect("it was said");
        turns.update(Exchange::requested);
        tokio::time::timeout(PATIENCE * 2, stream.read_u8()).await.expect_err("it may be silent");
        turns.update(Exchange::answered);
        tokio::time::timeout(PATIENCE * 2, stream.read_u8()).await.expect_err("here too");
    }

    // HT-12: a peer that closes its half is there until it is answered
    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_half_is_told_behind_the_answer() {
        let (mut peer, mut stream, turns) = slow_stream(64);
        peer.write_all(b"x").await.expect("there is room");
        peer.shutdown().await.expect("it is open");
        stream.read_u8().await.expect("it was said");
        turns.update(Exchange::requested);
        {
            let mut room = [0; 8];
            let reading = stream.read(&mut room);
            tokio::pin!(reading);
            assert!(futures_util::poll!(&mut reading).is_pending());
            turns.update(Exchange::answered);
            assert_eq!(reading.await.expect("no error"), 0);
        }
        turns.update(Exchange::requested);
        let begun = Instant::now();
        assert_eq!(stream.read(&mut [0; 8]).await.expect("no error"), 0);
        assert_eq!(
            begun.elapsed().as_secs(),
            5,
            "a peer that may be gone does not keep its request for ever"
        );
    }

    // UP-2: no client holds a socket for ever, and none loses it because this process was stopped
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (mut reader, mut stream, _turns) = slow_stream(8);
        stream.write_all(b"12345678").await.expect("there is room");
        let begun = Instant::now();
        let late = stream.write_all(b"9").await.expect_err("there is none");
        assert_eq!((late.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, PATIENCE));
        let begun = Instant::now();
        {
            let writing = stream.write_all(b"9");
            tokio::pin!(writing);
            assert!(futures_util::poll!(&mut writing).is_pending());
            tokio::time::advance(PATIENCE * 2).await;
            writing.await.expect_err("still none");
        }
        assert_eq!(begun.elapsed(), PATIENCE * 3);
        reader.read_exact(&mut [0; 8]).await.expect("it is there");
        stream.write_all(b"again").await.expect("there is room again");
    }
}
