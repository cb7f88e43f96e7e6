//! The stdio transport: one client on stdin and stdout, newline-delimited (ACP page "transports").
//!
//! stdout carries messages only. The client's end is end of file on stdin or a closed stdout.

mod ends;

use crate::connection::{Arrival, ConnectionIo, ConnectionOptions, serve};
use crate::outbox::outbox;
use acpd_host::Host;
use acpd_wire::LineBuffer;
use bytes::{Bytes, BytesMut};
use ends::{Input, Output};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Lines read ahead of the connection. Full: stdin is not read.
const ARRIVALS: usize = 64;
/// Pieces below this many bytes are written together, up to about as many again.
const WRITE: usize = 256 * 1024;
/// How long a client that does not read may hold up the end.
const FLUSH: Duration = Duration::from_secs(1);

/// Serves the client on stdin and stdout until it is gone or `stop` is cancelled.
///
/// # Errors
/// When stdin or stdout cannot be used at all.
pub async fn serve_stdio(
    host: Host,
    options: ConnectionOptions,
    line_limit: usize,
    stop: CancellationToken,
) -> io::Result<()> {
    let (input, output) = (Input::stdin()?, Output::stdout()?);
    let (sender, arrivals) = mpsc::channel(ARRIVALS);
    let (outbox, pieces) = outbox();
    let scope = host.scope().clone();
    let gone = stop.child_token();
    let reader = scope.spawn("stdin", read(input, line_limit, sender, gone.clone()));
    let (given_up, lost) = (CancellationToken::new(), gone.clone());
    let writer = scope.spawn("stdout", {
        let given_up = given_up.clone();
        async move { given_up.run_until_cancelled(write(output, pieces, lost)).await }
    });
    serve(host, options, ConnectionIo { arrivals, gone: gone.clone(), outbox }).await;
    gone.cancel();
    drop(reader);
    // Viewers hold the outbox until the last event was written; then the writer runs dry and ends.
    if tokio::time::timeout(FLUSH, writer).await.is_err() {
        tracing::warn!("the client did not read its last messages");
        // Viewers that wait for room in the outbox end with the writer, or acpd would not.
        given_up.cancel();
    }
    Ok(())
}

async fn read(mut input: Input, line_limit: usize, arrivals: mpsc::Sender<Arrival>, gone: CancellationToken) {
    let mut lines = LineBuffer::new(line_limit);
    loop {
        let read = tokio::select! {
            read = input.read_buf(lines.space()) => read,
            () = gone.cancelled() => break,
        };
        let ended = !matches!(read, Ok(n) if n > 0);
        loop {
            let line = if ended { lines.finish() } else { lines.next_line() };
            let arrival = match line {
                Ok(Some(line)) => Arrival::Line(line),
                Ok(None) => break,
                Err(too_long) => Arrival::TooLong { limit: too_long.limit },
            };
            let sent = tokio::select! {
                sent = arrivals.send(arrival) => sent,
                () = gone.cancelled() => return,
            };
            if sent.is_err() {
                return;
            }
        }
        if ended {
            break;
        }
    }
    drop(arrivals);
    gone.cancel();
}

async fn write(mut output: Output, mut pieces: mpsc::Receiver<Bytes>, gone: CancellationToken) {
    let mut together = BytesMut::new();
    let mut next = None;
    while let Some(piece) = or_received(next.take(), &mut pieces).await {
        // What is large enough is written as it is; only small pieces are worth a copy.
        let written = if piece.len() >= WRITE {
            output.write_all(&piece).await
        } else {
            together.extend_from_slice(&piece);
            while together.len() < WRITE
                && let Ok(piece) = pieces.try_recv()
            {
                if piece.len() >= WRITE {
                    next = Some(piece);
                    break;
                }
                together.extend_from_slice(&piece);
            }
            output.write_all(&together).await
        };
        if let Err(error) = written {
            tracing::debug!(%error, "the client has closed stdout");
            gone.cancel();
            return;
        }
        together.clear();
    }
}

async fn or_received(piece: Option<Bytes>, pieces: &mut mpsc::Receiver<Bytes>) -> Option<Bytes> {
    match piece {
        Some(piece) => Some(piece),
        None => pieces.recv().await,
    }
}
