//! The stdio transport: one client on stdin and stdout, newline-delimited (ACP page "transports").
//!
//! stdout carries messages only. The client's end is end of file on stdin or a closed stdout.

mod ends;

use crate::connection::{Arrival, ConnectionIo, ConnectionOptions, serve};
use crate::outbox::outbox;
use acpd_host::{Host, Pending, TaskScope};
use acpd_wire::LineBuffer;
use bytes::{Bytes, BytesMut};
use ends::{Input, Output};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Lines read ahead of the connection. Full: stdin is not read.
const ARRIVALS: usize = 64;
/// Pieces below this many bytes are written together, up to about as many again.
const WRITE: usize = 256 * 1024;
/// How long a client that does not read may hold up the end: it takes [`PART`] bytes in this time, or gets no more.
const FLUSH: Duration = Duration::from_secs(1);
/// How long a client may hold up the end that reads slowly, or whatever else its last messages wait for.
const LONGEST_FLUSH: Duration = Duration::from_secs(5);
/// Most bytes that are written at once: what a pipe takes by default.
const PART: usize = 64 * 1024;

/// The client on stdin and stdout, line by line.
#[derive(Debug)]
pub struct StdioLines {
    /// Cancelled when the client is gone, even while its lines are not being read.
    pub gone: CancellationToken,
    writer: JoinHandle<Option<Option<()>>>,
    /// Cancelled when what is left is all that is written.
    finishing: CancellationToken,
    given_up: CancellationToken,
}

impl StdioLines {
    /// Reads lines of at most `line_limit` bytes into the queue that comes back, to their end, and writes `pieces` of
    /// whole lines, in tasks of `scope`. When `stop` is cancelled, nothing is read any more.
    ///
    /// # Errors
    /// When stdin or stdout cannot be used at all.
    pub fn open(
        scope: &TaskScope,
        line_limit: usize,
        pieces: mpsc::Receiver<Bytes>,
        stop: &CancellationToken,
    ) -> io::Result<(mpsc::Receiver<Arrival>, Self)> {
        let (input, output) = (Input::stdin()?, Output::stdout()?);
        let (sender, arrivals) = mpsc::channel(ARRIVALS);
        let gone = stop.child_token();
        drop(scope.spawn("stdin", read(input, line_limit, sender, gone.clone())));
        let (finishing, given_up) = (CancellationToken::new(), CancellationToken::new());
        let writer = scope.spawn("stdout", {
            let (given_up, lost) = (given_up.clone(), gone.clone());
            let output = Paced { output, finishing: finishing.clone() };
            async move { given_up.run_until_cancelled(write(output, pieces, lost)).await }
        });
        Ok((arrivals, Self { gone, writer, finishing, given_up }))
    }

    /// Reads no more, and waits until the last piece was written: 5 s at most, and 1 s when the client does not read.
    pub async fn finish(self) {
        self.gone.cancel();
        self.finishing.cancel();
        // The senders hold the queue until the last piece was put into it; then the writer runs dry and ends.
        if tokio::time::timeout(LONGEST_FLUSH, self.writer).await.is_err() {
            tracing::warn!("the client did not read its last messages");
            // Those who wait for room in the queue end with the writer, or acpd would not.
            self.given_up.cancel();
        }
    }
}

/// Serves the client on stdin and stdout until it is gone or `stop` is cancelled.
///
/// # Errors
/// When stdin or stdout cannot be used at all.
pub fn serve_stdio(
    host: Host,
    options: ConnectionOptions,
    line_limit: usize,
    stop: CancellationToken,
) -> Pending<'static, io::Result<()>> {
    Box::pin(serve_until_end(host, options, line_limit, stop))
}

async fn serve_until_end(
    host: Host,
    options: ConnectionOptions,
    line_limit: usize,
    stop: CancellationToken,
) -> io::Result<()> {
    let (outbox, pieces) = outbox();
    let (arrivals, lines) = StdioLines::open(host.scope(), line_limit, pieces, &stop)?;
    serve(host, options, ConnectionIo { arrivals, gone: lines.gone.clone(), outbox }).await;
    lines.finish().await;
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

/// What is written to the client, which may take its time until the end.
struct Paced {
    output: Output,
    finishing: CancellationToken,
}

impl Paced {
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.chunks(PART) {
            let unread = async {
                self.finishing.cancelled().await;
                tokio::time::sleep(FLUSH).await;
            };
            tokio::select! {
                biased;
                written = self.output.write_all(part) => written?,
                () = unread => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        Ok(())
    }
}

async fn write(mut output: Paced, mut pieces: mpsc::Receiver<Bytes>, gone: CancellationToken) {
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
            match error.kind() {
                io::ErrorKind::TimedOut => tracing::warn!("the client did not read its last messages"),
                _ => tracing::debug!(%error, "the client has closed stdout"),
            }
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
