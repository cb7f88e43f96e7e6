//! `GET /v1/sessions/{id}/events` with an upgrade: the event stream over a WebSocket.
//!
//! A browser has six connections to a host over HTTP/1.1, for all of its tabs together, and hundreds of WebSockets
//! (Chromium 255, Firefox 200): a page that keeps a stream open would take one of the six, and the seventh page would not load.
//!
//! Invariant: a text frame has whole messages of the stream, as `text/event-stream` writes them, so that one parser
//! reads both. Boundary: carries a stream. Whoever answers the request writes it: this node, another one, or the archive.

use super::handshake::{Handshake, UPGRADE};
use super::settings::Shared;
use super::sse::Sse;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, Stream, StreamExt};
use http::{HeaderValue, Method, StatusCode, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// The route, below each version.
const ROUTE: &str = "/sessions/{id}/events";
/// What ends a message of the stream.
const BLANK_LINE: &[u8] = b"\n\n";
/// How long the last messages may take when the daemon stops, and a client to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);
/// The longest message of a client, in bytes: it has nothing to say but goodbye.
const CLIENT_BYTES: usize = 4096;

/// Answers a request that asks for the events over a WebSocket; all others pass.
pub(super) async fn upgrade(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if !is_wanted(&request) {
        return next.run(request).await;
    }
    let (mut head, body) = request.into_parts();
    let handshake = match Handshake::read(&mut head) {
        Ok(handshake) => handshake,
        Err(problem) => return problem.into_response(),
    };
    head.headers.insert(header::ACCEPT, HeaderValue::from_static(Sse::KIND));
    let answer = next.run(Request::from_parts(head, body)).await;
    let kind = answer.headers().get(header::CONTENT_TYPE);
    // Whatever is no stream says why there is none; one behind the last event is over at once.
    let is_over = answer.status() == StatusCode::NO_CONTENT;
    if !is_over && (answer.status() != StatusCode::OK || kind.is_none_or(|kind| kind != Sse::KIND)) {
        return answer;
    }
    let (mut response, upgrade) = handshake.agree();
    let (mut answer, stream) = answer.into_parts();
    // The node that has answered, for one.
    answer.headers.remove(header::CONTENT_TYPE);
    response.headers_mut().extend(answer.headers);
    response.extensions_mut().extend(answer.extensions);
    let stop = shared.stop.clone();
    shared.host.scope().spawn("events over websocket", async move {
        let Some(Ok(Ok(upgraded))) = stop.run_until_cancelled(tokio::time::timeout(UPGRADE, upgrade)).await
        else {
            return;
        };
        let socket = server_side(TokioIo::new(upgraded)).await;
        let stopped = async {
            stop.cancelled().await;
            tokio::time::sleep(GOODBYE).await;
        };
        tokio::select! {
            () = carry(stream, socket) => {}
            () = stopped => {}
        }
    });
    response
}

fn is_wanted(request: &Request) -> bool {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    request.method() == Method::GET && path.ends_with(ROUTE) && Handshake::is_wanted(request.headers())
}

async fn server_side<S: AsyncRead + AsyncWrite + Unpin>(io: S) -> WebSocketStream<S> {
    let config = WebSocketConfig::default()
        .read_buffer_size(CLIENT_BYTES)
        .max_message_size(Some(CLIENT_BYTES))
        .max_frame_size(Some(CLIENT_BYTES));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

/// Writes the stream to the socket until either ends. What is said of a slow reader, and of a token that is revoked, is
/// in the stream; a socket that takes nothing is given up below HTTP.
async fn carry<S: AsyncRead + AsyncWrite + Unpin>(stream: Body, mut socket: WebSocketStream<S>) {
    let mut frames = std::pin::pin!(frames(stream.into_data_stream()));
    loop {
        let sent = tokio::select! {
            heard = socket.next() => match heard {
                Some(Ok(Message::Close(_))) | None => break,
                // The answer goes out before anything else is read: a flood of pings waits in the client.
                Some(Ok(Message::Ping(_))) => socket.flush().await,
                Some(heard) => heard.map(drop),
            },
            frame = frames.next() => match frame {
                Some(frame) => socket.send(Message::Text(frame)).await,
                None => break,
            },
        };
        if sent.is_err() {
            return;
        }
    }
    let close = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
    let goodbye = async {
        // Fails where the client has said goodbye before; then its answer is on the way.
        let _said = socket.send(Message::Close(Some(close))).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    let _late = tokio::time::timeout(GOODBYE, goodbye).await;
}

/// The whole messages of a stream, however it is cut into pieces. An unfinished one at its end is no message.
fn frames<E>(pieces: impl Stream<Item = Result<Bytes, E>> + Unpin) -> impl Stream<Item = Utf8Bytes> {
    futures_util::stream::unfold((pieces, BytesMut::new()), async |(mut pieces, mut rest)| {
        loop {
            let piece = pieces.next().await?.ok()?;
            // Only whole messages are UTF-8 for sure: a piece from another node may end within a character.
            if let Some(whole) = whole_messages(&mut rest, piece) {
                return Some((Utf8Bytes::try_from(whole).ok()?, (pieces, rest)));
            }
        }
    })
}

/// What is whole by this piece; the other bytes wait in `rest`.
fn whole_messages(rest: &mut BytesMut, piece: Bytes) -> Option<Bytes> {
    if rest.is_empty() && piece.ends_with(BLANK_LINE) {
        return Some(piece);
    }
    // The blank line may be cut itself.
    let from = rest.len().saturating_sub(1);
    rest.extend_from_slice(&piece);
    let end = memchr::memmem::rfind(&rest[from..], BLANK_LINE)? + from + BLANK_LINE.len();
    Some(rest.split_to(end).freeze())
}

#[cfg(test)]
mod tests;
