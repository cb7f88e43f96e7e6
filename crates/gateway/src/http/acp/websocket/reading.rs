//! Frames of a client, to the lines of its connection.
//!
//! Goes on while nothing can be written, unless that is answers to pings. Binary frames are ignored; what is malformed is
//! for the connection to answer, but a first message that is not `initialize` ends it.

use super::GOODBYE;
use super::ending::Ending;
use super::life::Life;
use crate::connection::Arrival;
use crate::http::acp::message::{is_initialize, on_one_row};
use acpd_wire::Message as Line;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

/// How long a client that does not initialize may stay.
const INITIALIZED: Duration = Duration::from_secs(60);
/// Pings that are read before the answers to them were written. A client that asks for more without taking them is not
/// read: it owes that before anything else, and is disconnected like any that takes nothing.
const PINGS: usize = 64;

pub(super) struct Reader<S> {
    pub(super) stream: SplitStream<WebSocketStream<S>>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    /// Asks the writer to write what there is, and to say so.
    pub(super) owed: mpsc::Sender<oneshot::Sender<()>>,
    /// Pings since it last did.
    pub(super) pings: usize,
    /// Cancelled when the client is gone, or is closed.
    pub(super) gone: CancellationToken,
    pub(super) life: Arc<Life>,
}

enum Heard {
    Text(Bytes),
    Ping,
    Other,
    End(Ending),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Reader<S> {
    /// Reads until the client is gone. Gives the stream back for what may still come.
    pub(super) async fn read(mut self, silence: Duration) -> SplitStream<WebSocketStream<S>> {
        let gone = self.gone.clone();
        if let Some(ending) = gone.run_until_cancelled(self.lines(silence)).await {
            self.life.end(ending);
        }
        gone.cancel();
        self.stream
    }

    async fn lines(&mut self, silence: Duration) -> Ending {
        let mut initialized = false;
        let begun = Instant::now();
        loop {
            let text = match self.next(silence).await {
                Heard::Text(text) => on_one_row(text),
                // To be there is not enough.
                Heard::Ping | Heard::Other
                    if !initialized && self.life.pulse().until(begun, INITIALIZED) <= Instant::now() =>
                {
                    return Ending::NotInitialized;
                }
                Heard::Ping => {
                    self.answered().await;
                    continue;
                }
                Heard::Other => continue,
                Heard::End(ending) => return ending,
            };
            if !initialized {
                match Line::parse(&text) {
                    Ok(message) if is_initialize(&message) => initialized = true,
                    _ => return Ending::NotInitialized,
                }
            }
            if self.arrivals.send(Arrival::Line(text)).await.is_err() {
                return Ending::Left;
            }
        }
    }

    /// Counts a ping; waits for the answers when there may be many.
    async fn answered(&mut self) {
        self.pings += 1;
        if self.pings < PINGS {
            return;
        }
        self.pings = 0;
        let (written, answers) = oneshot::channel();
        // A writer that has ended has ended the reader too.
        if self.owed.send(written).await.is_ok() {
            let _written = answers.await;
        }
    }

    async fn next(&mut self, silence: Duration) -> Heard {
        loop {
            let until = self.life.until(silence);
            let Ok(frame) = tokio::time::timeout_at(until, self.stream.next()).await else {
                // Unless it took something meanwhile, or acpd did not run.
                match self.life.until(silence) > until {
                    true => continue,
                    false => return Heard::End(Ending::Silent),
                }
            };
            self.life.heard();
            return match frame {
                Some(Ok(Message::Text(text))) => Heard::Text(text.into()),
                Some(Ok(Message::Ping(_))) => Heard::Ping,
                Some(Ok(Message::Close(_))) => {
                    // Reading on sends the answer to it.
                    let _answered = tokio::time::timeout(GOODBYE, self.stream.next()).await;
                    Heard::End(Ending::Left)
                }
                Some(Ok(_)) => Heard::Other,
                Some(Err(error)) => Heard::End(Ending::of(&error)),
                None => Heard::End(Ending::Left),
            };
        }
    }
}
