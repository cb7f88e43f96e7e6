//! `GET /acp` with an upgrade: ACP over a WebSocket, one message per text frame.
//!
//! Reading and writing are tasks of their own, so that a client that does not read can still cancel (WS-4). The end of
//! the socket ends the connection and no session.

mod ending;
mod life;
mod reading;
mod writing;

use super::super::handshake::{Handshake, UPGRADE};
use super::super::metrics::ViewerCount;
use super::super::problem::Problem;
use super::super::pulse::Pulse;
use super::headers::CONNECTION;
use super::{ARRIVALS, Acp, connections, initialize};
use crate::connection::ConnectionIo;
use crate::farewell::Farewell;
use crate::identity::Identity;
use crate::outbox::outbox;
use crate::relay::serve;
use acpd_host::TaskScope;
use axum::extract::Request;
use axum::response::Response;
use ending::Ending;
use futures_util::StreamExt;
use http::HeaderValue;
use hyper_util::rt::TokioIo;
use life::Life;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

/// How long the last events may take when the daemon stops, and a client to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
/// How long of that viewers may write, before the requests that are open are answered.
const LAST_EVENTS: Duration = Duration::from_millis(300);
/// Bytes of what a client still says that are read after the end, so that it gets to read why.
const LEFTOVERS: u64 = 16 * 1024 * 1024;
/// Buffers of a socket: it has them all the time, and most sockets are idle.
const READ_BUFFER: usize = 8 * 1024;
const WRITE_BUFFER: usize = 32 * 1024;

/// How a socket is looked after.
#[derive(Clone, Copy, Debug)]
struct Care {
    /// The longest message, in bytes.
    message_bytes: usize,
    /// How long a client may take nothing while something waits for it.
    stall: Duration,
    /// How often it is asked whether it is there.
    ping: Duration,
    /// How long it may say nothing at all.
    silence: Duration,
}

/// Agrees to a WebSocket and serves the client on it.
pub(super) fn upgrade(acp: &Arc<Acp>, identity: Identity, request: Request) -> Result<Response, Problem> {
    let (mut head, _) = request.into_parts();
    let handshake = Handshake::read(&mut head)?;
    let client = acp.served(identity.clone(), &head, "websocket")?;
    let permit = identity.connect().ok_or_else(initialize::too_many)?;
    let id = HeaderValue::from_str(&connections::fresh_id()).expect("digits are ASCII");

    let settings = acp.shared.settings();
    let care = Care {
        message_bytes: settings.message_bytes,
        stall: settings.viewer_stall,
        ping: Duration::from_secs(15),
        silence: Duration::from_secs(45),
    };
    let (host, stop, pulse) =
        (acp.shared.host.clone(), acp.shared.stop.clone(), Arc::clone(&acp.shared.pulse));
    let (scope, revoked) = (host.scope().clone(), identity.revoked().clone());
    let farewell = acp.shared.daemon.farewell.clone();
    let (mut response, upgrade) = handshake.agree();
    response.headers_mut().insert(CONNECTION, id);
    acp.shared.host.scope().spawn("client over websocket", async move {
        let upgraded = stop.run_until_cancelled(tokio::time::timeout(UPGRADE, upgrade)).await;
        let Some(Ok(Ok(upgraded))) = upgraded else { return };
        let counted = ViewerCount::new("websocket");
        let socket = server_side(TokioIo::new(upgraded), care).await;
        let ends = Ends { stop: &stop, farewell: &farewell, revoked: &revoked };
        converse(socket, (care, pulse), &scope, ends, |io| serve(host, client, io)).await;
        drop((permit, counted));
    });

    Ok(response)
}

/// What a line of acpd's may have around a message of an agent's, in bytes.
const ENVELOPE: usize = 1 << 20;

async fn server_side<S: AsyncRead + AsyncWrite + Unpin>(stream: S, care: Care) -> WebSocketStream<S> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        // A message and what is put together before it; few answers to pings come beside it, by the reader's care.
        .max_write_buffer_size(WRITE_BUFFER + care.message_bytes + ENVELOPE)
        .max_message_size(Some(care.message_bytes))
        .max_frame_size(Some(care.message_bytes));
    WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await
}

/// What ends a socket from here.
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    /// The daemon stops.
    stop: &'a CancellationToken,
    /// What it says then.
    farewell: &'a Farewell,
    /// The client may not call any more.
    revoked: &'a CancellationToken,
}

/// Serves the client on a socket until it is gone, or either of these.
async fn converse<S, F>(
    socket: WebSocketStream<S>,
    (care, pulse): (Care, Arc<Pulse>),
    scope: &TaskScope,
    Ends { stop, farewell, revoked }: Ends<'_>,
    serve: impl FnOnce(ConnectionIo) -> F,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (sink, stream) = socket.split();
    let (sender, arrivals) = mpsc::channel(ARRIVALS);
    let (outbox, pieces) = outbox();
    let gone = stop.child_token();
    let life = Arc::new(Life::new(pulse));
    let (owing, owed) = mpsc::channel(1);
    let reader = reading::Reader {
        stream,
        arrivals: sender,
        owed: owing,
        pings: 0,
        gone: gone.clone(),
        life: Arc::clone(&life),
    };
    let reader = scope.spawn("websocket in", reader.read(care.silence));
    let writer =
        writing::Writer { sink, gone: gone.clone(), life: Arc::clone(&life), care, together: 0, owed };
    let writer = scope.spawn("websocket out", writer.write(pieces));
    let io = ConnectionIo { arrivals, gone: gone.clone(), outbox, last_events: LAST_EVENTS };
    let serving = scope.spawn("connection", serve(io));
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = revoked.cancelled() => {
            life.end(Ending::Revoked);
            gone.cancel();
            life.hang_up();
            serving.await
        }
    };
    if !matches!(served, Ok(Some(()))) {
        life.end(Ending::Internal);
    }
    gone.cancel();
    if stop.is_cancelled() {
        life.end(if farewell.hands_over() { Ending::Handover } else { Ending::Shutdown });
    }
    life.settle();
    let written = last_words(writer, &life, stop).await;
    let (Ok(Some(sink)), Ok(Some(stream))) = (written, reader.await) else { return };
    let Ok(socket) = stream.reunite(sink) else { return };
    let _late = tokio::time::timeout(GOODBYE, leave(socket.into_inner())).await;
}

/// Waits until the writer has ended: when the daemon stops, viewers still write what the ends of their sessions said, and the
/// last answers come behind that.
async fn last_words<T>(writer: impl Future<Output = T>, life: &Life, stop: &CancellationToken) -> T {
    tokio::pin!(writer);
    if stop.is_cancelled()
        && let Ok(written) = tokio::time::timeout(GOODBYE, &mut writer).await
    {
        return written;
    }
    life.hang_up();
    writer.await
}

/// Closes the socket, and reads what the client still says: to end with that unread would take from the client what it
/// has not read yet.
async fn leave<S: AsyncRead + AsyncWrite + Unpin>(mut socket: S) {
    if socket.shutdown().await.is_ok() {
        let _rest = tokio::io::copy(&mut socket.take(LEFTOVERS), &mut tokio::io::sink()).await;
    }
}

#[cfg(test)]
mod tests;
