//! ACP with a daemon over a WebSocket: lines in, lines out.
//!
//! Owned by a front end, which gives a queue of lines for each direction. Invariants: the directions are independent,
//! each bounded by its queue; a message is one line, also when it came in several; one that hangs up is given the last
//! answers for a moment, and then leaves without ending anything. Not here: what a line says, but for the ids by which
//! open requests are known.

use super::error::DaemonError;
use super::request::Daemon;
use crate::address::encoded;
use crate::clean::line;
use acpd_gateway::Arrival;
use acpd_wire::{Message, OwnedId, RawId, codes, write_error};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::StatusCode;
use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as WsError, Message as Frame, Utf8Bytes};

/// The longest message: the longest line that can be configured, and what our ids add to it.
const MESSAGE: usize = (1 << 30) + (1 << 20);
/// How often the daemon gets a ping, which it has to answer.
const PING: Duration = Duration::from_secs(20);
/// The daemon is gone when it has said nothing for so long, not even to a ping.
const SILENCE: Duration = Duration::from_secs(65);
/// How long the daemon may take to take leave.
const LEAVE: Duration = Duration::from_secs(2);
/// Lines that are written together at most, so that an endless stream of them is flushed now and then.
const TOGETHER: usize = 64;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What to tell of an end that the daemon or the way to it made; None when we left, or its messages are not read.
pub(crate) type Trouble = Option<String>;

/// An open WebSocket to a daemon's ACP endpoint.
pub(crate) struct Link {
    socket: Socket,
    at: String,
}

impl Daemon {
    /// Connects to an agent of the daemon's; without a name, to the daemon's default one.
    pub(crate) async fn link(&self, agent: Option<&str>) -> Result<Link, DaemonError> {
        let query = agent.map(|agent| format!("?agent={}", encoded(agent))).unwrap_or_default();
        let key = generate_key();
        let headers = [
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
            (SEC_WEBSOCKET_KEY, HeaderValue::try_from(&key).expect("a key is base64")),
        ];
        let response = self.open(&format!("/acp{query}"), headers).await?;
        let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if response.status() != StatusCode::SWITCHING_PROTOCOLS
            || accepted != Some(derive_accept_key(key.as_bytes()).as_bytes())
        {
            return Err(self.unreadable(&"no WebSocket where /acp should be"));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(|error| self.lost(error))?;
        let config = WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await;
        Ok(Link { socket, at: self.address().to_string() })
    }
}

/// Requests that were sent and not answered.
type Open = watch::Sender<HashSet<OwnedId>>;

impl Link {
    /// Carries lines until either side leaves. When `lines` ends, open requests have `patience` to be answered.
    /// When the daemon leaves, what is open is answered with an error that says so.
    pub(crate) async fn carry(
        self,
        lines: mpsc::Receiver<Arrival>,
        pieces: mpsc::Sender<Bytes>,
        patience: Duration,
    ) -> Trouble {
        let Self { socket, at } = self;
        let (sink, stream) = socket.split();
        let open = Open::default();
        let end = {
            let outgoing = send_all(sink, lines, &pieces, &open, patience);
            let incoming = receive_all(stream, &pieces, &open, &at);
            tokio::pin!(outgoing, incoming);
            let sent = tokio::select! {
                end = &mut incoming => Err(end),
                sent = &mut outgoing => Ok(sent),
            };
            match sent {
                Err(end) => end,
                // What the daemon still says on its way out is read, for a moment. When writing has failed, reading
                // says best why.
                Ok(sent) => match (sent, tokio::time::timeout(LEAVE, &mut incoming).await) {
                    (Ok(()), _) => None,
                    (Err(_), Ok(end)) => end,
                    (Err(error), Err(_)) => Some(lost(&at, &error)),
                },
            }
        };
        if let Some(trouble) = &end {
            for id in open.send_replace(HashSet::new()) {
                let mut line = BytesMut::new();
                write_error(&mut line, id.as_id(), codes::INTERNAL_ERROR, trouble, None);
                if pieces.send(line.freeze()).await.is_err() {
                    break;
                }
            }
        }
        end
    }
}

/// Sends lines until they end, then takes leave.
async fn send_all(
    mut sink: SplitSink<Socket, Frame>,
    mut lines: mpsc::Receiver<Arrival>,
    pieces: &mpsc::Sender<Bytes>,
    open: &Open,
    patience: Duration,
) -> Result<(), WsError> {
    let mut pings = tokio::time::interval(PING);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let next = tokio::select! {
            line = lines.recv() => Some(line),
            _ = pings.tick() => None,
        };
        match next {
            None => sink.send(Frame::Ping(Bytes::new())).await?,
            Some(None) => break,
            Some(Some(first)) => {
                feed(&mut sink, first, pieces, open).await?;
                for _ in 1..TOGETHER {
                    let Ok(more) = lines.try_recv() else { break };
                    feed(&mut sink, more, pieces, open).await?;
                }
                sink.flush().await?;
            }
        }
    }
    let mut answered = open.subscribe();
    drop(tokio::time::timeout(patience, answered.wait_for(HashSet::is_empty)).await);
    match sink.close().await {
        Err(WsError::ConnectionClosed | WsError::AlreadyClosed) => Ok(()),
        closed => closed,
    }
}

/// Sends a line, or answers one that cannot be sent as a daemon would.
async fn feed(
    sink: &mut SplitSink<Socket, Frame>,
    arrival: Arrival,
    pieces: &mpsc::Sender<Bytes>,
    open: &Open,
) -> Result<(), WsError> {
    let refused = match arrival {
        Arrival::TooLong { limit } => {
            (codes::INVALID_REQUEST, format!("the line is longer than {limit} bytes"))
        }
        Arrival::Line(line) if line.iter().all(u8::is_ascii_whitespace) => return Ok(()),
        Arrival::Line(line) => {
            if let Ok(Message::Request { id, .. }) = Message::parse(&line) {
                open.send_if_modified(|ids| ids.insert(id.to_owned()));
            }
            match Utf8Bytes::try_from(line) {
                Ok(text) => return sink.feed(Frame::Text(text)).await,
                Err(_) => (codes::PARSE_ERROR, "the line is not UTF-8".to_owned()),
            }
        }
    };
    let mut line = BytesMut::new();
    write_error(&mut line, RawId::NULL, refused.0, &refused.1, None);
    // The receiver notices a reader that has gone.
    let _unread = pieces.send(line.freeze()).await;
    Ok(())
}

/// Receives messages until there are no more.
async fn receive_all(
    mut stream: SplitStream<Socket>,
    pieces: &mpsc::Sender<Bytes>,
    open: &Open,
    at: &str,
) -> Trouble {
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(SILENCE, stream.next()) => next,
            () = pieces.closed() => return None,
        };
        let text = match next {
            Err(_) => return Some(format!("the daemon at {at} says nothing any more")),
            Ok(None | Some(Err(WsError::ConnectionClosed))) => {
                return Some(format!("the daemon at {at} closed the connection"));
            }
            Ok(Some(Err(error))) => {
                return Some(lost(at, &error));
            }
            Ok(Some(Ok(Frame::Close(frame)))) => {
                let words = frame.map(|frame| line(&frame.reason, 200)).unwrap_or_default();
                let words = if words.is_empty() { words } else { format!(": {words}") };
                return Some(format!("the daemon at {at} closed the connection{words}"));
            }
            Ok(Some(Ok(Frame::Text(text)))) => text,
            // Pongs, and frames that are not in use yet.
            Ok(Some(Ok(_))) => continue,
        };
        if let Ok(Message::Response { id: Some(id), .. }) = Message::parse(text.as_bytes()) {
            open.send_if_modified(|ids| ids.remove(&id.to_owned()));
        }
        if pieces.send(as_line(&text)).await.is_err() {
            return None;
        }
    }
}

fn lost(at: &str, error: &WsError) -> String {
    format!("the connection to the daemon at {at} was lost: {}", line(&error.to_string(), 200))
}

/// A message as one line. JSON has line ends only between its parts, where a space is as good.
fn as_line(text: &str) -> Bytes {
    let mut line = BytesMut::with_capacity(text.len() + 1);
    match text.contains(['\n', '\r']) {
        // Unusual, but JSON all the same.
        true => line.extend_from_slice(text.replace(['\n', '\r'], " ").as_bytes()),
        false => line.extend_from_slice(text.as_bytes()),
    }
    line.extend_from_slice(b"\n");
    line.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: acpd stdio --connect writes one line for each message
    #[test]
    fn a_message_is_one_line() {
        assert_eq!(as_line("{\"a\":\r\n 1}"), "{\"a\":   1}\n");
    }
}
