//! ACP with a daemon over a WebSocket: lines in, lines out.
//!
//! Owned by a front end. Invariants: the directions are independent; a message is one line, also when it came in several.
//! Not here: what a line says, and what becomes of a link that is lost.

use super::error::DaemonError;
use super::request::Daemon;
use crate::address::encoded;
use crate::clean::line;
use crate::exit::Failure;
use acpd_host::chain;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{SplitSink, SplitStream};
use http::StatusCode;
use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
pub(crate) use tokio_tungstenite::tungstenite::{Error as WsError, Message as Frame};

/// The longest message: the longest line that can be configured, and what our ids add to it.
const MESSAGE: usize = (1 << 30) + (1 << 20);
/// The daemon is gone when it has said nothing for so long, not even to a ping.
const SILENCE: Duration = Duration::from_secs(65);

pub(crate) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// What to tell of an end that the daemon or the way to it made; None when we left, or its messages are not read.
pub(crate) type Trouble = Option<String>;

/// An open WebSocket to a daemon's ACP endpoint.
pub(crate) struct Link {
    socket: Socket,
    at: String,
}

impl Daemon {
    /// Connects for the first time, for something that has not begun: a daemon that goes away meanwhile is tried again, and
    /// counts as missing when it does not come back.
    pub(crate) async fn first_link(&self, agent: Option<&str>) -> Result<Link, Failure> {
        let linked = self.retry(false, || self.link(agent)).await;
        linked.map_err(|error| match error.is_away() {
            true => Failure::missing(chain(&error)),
            false => error.into(),
        })
    }

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

impl Link {
    /// Both directions, and where the daemon is.
    pub(crate) fn split(self) -> (SplitSink<Socket, Frame>, SplitStream<Socket>, String) {
        let (sink, stream) = self.socket.split();
        (sink, stream, self.at)
    }
}

/// What a daemon at `at` says next.
pub(crate) enum Heard {
    /// A message, as one line without its end.
    Line(Bytes),
    /// Something that is no message.
    Nothing,
    /// The end, and why.
    End(String),
}

/// Receives the next thing.
///
/// # Cancel safety
/// Nothing is lost when the future is dropped.
pub(crate) async fn hear(stream: &mut SplitStream<Socket>, at: &str) -> Heard {
    match tokio::time::timeout(SILENCE, stream.next()).await {
        Err(_) => Heard::End(format!("the daemon at {at} says nothing any more")),
        Ok(None | Some(Err(WsError::ConnectionClosed))) => {
            Heard::End(format!("the daemon at {at} closed the connection"))
        }
        Ok(Some(Err(error))) => Heard::End(lost(at, &error)),
        Ok(Some(Ok(Frame::Close(frame)))) => {
            let words = frame.map(|frame| line(&frame.reason, 200)).unwrap_or_default();
            let words = if words.is_empty() { words } else { format!(": {words}") };
            Heard::End(format!("the daemon at {at} closed the connection{words}"))
        }
        Ok(Some(Ok(Frame::Text(text)))) => Heard::Line(as_line(text)),
        // Pongs, and frames that are not in use yet.
        Ok(Some(Ok(_))) => Heard::Nothing,
    }
}

pub(crate) fn lost(at: &str, error: &WsError) -> String {
    format!("the connection to the daemon at {at} was lost: {}", line(&error.to_string(), 200))
}

/// A message as one line. JSON has line ends only between its parts, where a space is as good.
fn as_line(text: Utf8Bytes) -> Bytes {
    match text.contains(['\n', '\r']) {
        // Unusual, but JSON all the same.
        true => text.replace(['\n', '\r'], " ").into(),
        false => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 6: acpd stdio --connect writes one line for each message
    #[test]
    fn a_message_is_one_line() {
        assert_eq!(as_line("{\"a\":\r\n 1}".into()), "{\"a\":   1}");
    }
}
