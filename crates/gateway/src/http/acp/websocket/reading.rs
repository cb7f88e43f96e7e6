//! Frames of a client, to the lines of its connection.
//!
//! Goes on while nothing can be written. Binary frames are ignored; what is malformed is for the connection to answer.

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
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

/// How long a client that does not initialize may stay.
const INITIALIZED: Duration = Duration::from_secs(60);

pub(super) struct Reader<S> {
    pub(super) stream: SplitStream<WebSocketStream<S>>,
    pub(super) arrivals: mpsc::Sender<Arrival>,
    /// Cancelled when the client is gone, or is let go of.
    pub(super) gone: CancellationToken,
    pub(super) life: Arc<Life>,
}

enum Heard {
    Text(Bytes),
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
                Heard::Other if !initialized && begun.elapsed() >= INITIALIZED => {
                    return Ending::NotInitialized;
                }
                Heard::Other => continue,
                Heard::End(ending) => return ending,
            };
            if !initialized && let Ok(message) = Line::parse(&text) {
                if !is_initialize(&message) {
                    return Ending::NotInitialized;
                }
                initialized = true;
            }
            if self.arrivals.send(Arrival::Line(text)).await.is_err() {
                return Ending::Left;
            }
        }
    }

    async fn next(&mut self, silence: Duration) -> Heard {
        loop {
            let until = self.life.until(silence);
            let Ok(frame) = tokio::time::timeout_at(until, self.stream.next()).await else {
                // Unless it took something meanwhile.
                match self.life.until(silence) > until {
                    true => continue,
                    false => return Heard::End(Ending::Silent),
                }
            };
            self.life.heard();
            return match frame {
                Some(Ok(Message::Text(text))) => Heard::Text(text.into()),
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
