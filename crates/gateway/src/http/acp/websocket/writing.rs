//! Lines for a client, to text frames.
//!
//! Many lines are put together and written at once. A client that takes nothing for too long is closed, and told why
//! if it reads again.

use super::Care;
use super::ending::Ending;
use super::life::Life;
use crate::http::FAREWELL;
use crate::http::metrics::count_stalls;
use bytes::Bytes;
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

/// Bytes after which what was put together is written.
const TOGETHER: usize = 256 * 1024;
/// Bytes a second that the slowest client takes: a large message may take longer than a small one.
const SLOWEST: usize = 64 * 1024;
/// A write that takes this long has waited for the client, which then took something: it is there.
const WAITED: Duration = Duration::from_millis(50);

pub(super) struct Writer<S> {
    pub(super) sink: SplitSink<WebSocketStream<S>, Message>,
    pub(super) gone: CancellationToken,
    pub(super) life: Arc<Life>,
    pub(super) care: Care,
    /// Bytes that were put together since the last time all was written.
    pub(super) together: usize,
    /// The reader waits until what there is was written.
    pub(super) owed: mpsc::Receiver<oneshot::Sender<()>>,
}

enum Next {
    Ping,
    Owed(oneshot::Sender<()>),
    Lines(Option<Bytes>),
}

/// Nothing more can be written.
enum Lost {
    /// The client takes nothing.
    Stalled,
    /// The socket is gone, or the end was asked for.
    Over,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Writer<S> {
    /// Writes until nothing comes any more, then why it ends. Gives the sink back.
    pub(super) async fn write(
        mut self,
        mut pieces: mpsc::Receiver<Bytes>,
    ) -> SplitSink<WebSocketStream<S>, Message> {
        let written = self.frames(&mut pieces).await;
        if let Err(Lost::Stalled) = written {
            self.life.end(Ending::Stalled);
            count_stalls("websocket", 1);
        }
        if written.is_err() {
            drop(pieces);
            self.gone.cancel();
        }
        // Answers are not waited for any more.
        self.owed.close();
        while self.owed.try_recv().is_ok() {}
        self.life.settled().cancelled().await;
        let close = self.sink.send(Message::Close(Some(self.life.ending().frame())));
        let _late = tokio::time::timeout(FAREWELL, close).await;
        self.sink
    }

    async fn frames(&mut self, pieces: &mut mpsc::Receiver<Bytes>) -> Result<(), Lost> {
        let mut ping = tokio::time::interval_at(Instant::now() + self.care.ping, self.care.ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                biased;
                () = self.life.hung_up().cancelled() => return Ok(()),
                _ = ping.tick() => Next::Ping,
                Some(written) = self.owed.recv() => Next::Owed(written),
                lines = pieces.recv() => Next::Lines(lines),
            };
            match next {
                Next::Ping => self.put(Message::Ping(Bytes::new())).await?,
                Next::Owed(written) => {
                    self.flush().await?;
                    // The reader may be gone.
                    let _told = written.send(());
                    continue;
                }
                Next::Lines(Some(lines)) => self.batch(lines, pieces).await?,
                Next::Lines(None) => return Ok(()),
            }
            self.flush().await?;
        }
    }

    /// These lines, and what else is there.
    async fn batch(&mut self, lines: Bytes, pieces: &mut mpsc::Receiver<Bytes>) -> Result<(), Lost> {
        let mut next = Some(lines);
        while let Some(lines) = next {
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', &lines).chain([lines.len()]) {
                if end > start {
                    self.put(Message::Text(text(lines.slice(start..end)))).await?;
                }
                start = end + 1;
            }
            next = if self.together < TOGETHER { pieces.try_recv().ok() } else { None };
        }
        Ok(())
    }

    async fn put(&mut self, frame: Message) -> Result<(), Lost> {
        let (allowed, bytes) = (self.allowed(), frame.len());
        let mut feed = std::pin::pin!(self.sink.feed(frame));
        match poll_fn(|cx| Poll::Ready(feed.as_mut().poll(cx))).await {
            // Most frames find room: a bound for each would be felt.
            Poll::Ready(fed) => fed.map_err(|_| Lost::Over)?,
            Poll::Pending => bounded(&self.life, allowed, feed).await?,
        }
        self.together += bytes;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Lost> {
        bounded(&self.life, self.allowed(), self.sink.flush()).await?;
        self.together = 0;
        Ok(())
    }

    fn allowed(&self) -> Duration {
        self.care.stall + Duration::from_secs((self.together / SLOWEST) as u64)
    }
}

/// Writes as long as the client may take for it.
async fn bounded(
    life: &Life,
    allowed: Duration,
    write: impl Future<Output = Result<(), tungstenite::Error>>,
) -> Result<(), Lost> {
    let begun = Instant::now();
    let written = tokio::select! {
        biased;
        () = life.hung_up().cancelled() => return Err(Lost::Over),
        written = write => written.map_err(|_| Lost::Over),
        () = life.pulse().run_out(begun, allowed) => Err(Lost::Stalled),
    };
    if begun.elapsed() >= WAITED {
        life.heard();
    }
    written
}

/// The log has UTF-8 only; a line that had not would still be a line.
fn text(line: Bytes) -> Utf8Bytes {
    Utf8Bytes::try_from(line.clone()).unwrap_or_else(|_| String::from_utf8_lossy(&line).into_owned().into())
}
