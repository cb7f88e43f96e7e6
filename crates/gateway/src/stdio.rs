//! The stdio transport: one client on stdin and stdout, newline-delimited (ACP page "transports").
//!
//! stdout carries messages only. The client's end is end of file on stdin or a closed stdout.

mod ends;

use crate::connection::{Arrival, ConnectionIo, ConnectionOptions, LAST_EVENTS, serve};
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
/// Time that the client has at the end for each [`PART`]; one that does not take it gets no more.
const FLUSH: Duration = Duration::from_secs(1);
/// Longest time that [`StdioLines::finish`] takes. Within it come the last events, [`LAST_EVENTS`], and the answers behind them:
/// a client that reads some MiB in each second has them all.
const LONGEST_FLUSH: Duration = Duration::from_secs(30);
/// Most bytes that are written at once: what a pipe takes by default.
const PART: usize = 64 * 1024;

/// The client on stdin and stdout, line by line.
#[derive(Debug)]
pub struct StdioLines {
    /// Cancelled when the client is gone, even while its lines are not being read.
    pub gone: CancellationToken,
    writer: JoinHandle<Option<Option<()>>>,
    /// Cancelled when `finish` begins: each write is bounded from then on.
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
            let output = BoundedOutput { output, finishing: finishing.clone() };
            async move { given_up.run_until_cancelled(write(output, pieces, lost)).await }
        });
        Ok((arrivals, Self { gone, writer, finishing, given_up }))
    }

    /// Reads no more, and waits until the last piece was written: as long as the client takes 64 KiB in each second, for 30 s at
    /// most, and not at all once `hurry` has ended.
    pub async fn finish(self, hurry: impl Future) {
        self.gone.cancel();
        self.finishing.cancel();
        // The senders hold the queue until the last piece was put into it; then the writer runs dry and ends.
        tokio::select! {
            _ended = self.writer => return,
            () = tokio::time::sleep(LONGEST_FLUSH) => tracing::warn!("the client is slow to read its last messages: {LONGEST_FLUSH:?} are over"),
            _hurried = hurry => {}
        }
        // Those who wait for room in the queue end with the writer, or acpd would not.
        self.given_up.cancel();
    }
}

/// Serves the client on stdin and stdout until it is gone or `stop` is cancelled; what is left is not written once `hurry` is.
///
/// # Errors
/// When stdin or stdout cannot be used at all.
pub fn serve_stdio(
    host: Host,
    options: ConnectionOptions,
    line_limit: usize,
    (stop, hurry): (CancellationToken, CancellationToken),
) -> Pending<'static, io::Result<()>> {
    Box::pin(serve_until_end(host, options, line_limit, (stop, hurry)))
}

async fn serve_until_end(
    host: Host,
    options: ConnectionOptions,
    line_limit: usize,
    (stop, hurry): (CancellationToken, CancellationToken),
) -> io::Result<()> {
    let (outbox, pieces) = outbox();
    let (arrivals, lines) = StdioLines::open(host.scope(), line_limit, pieces, &stop)?;
    serve(
        host,
        options,
        ConnectionIo { arrivals, gone: lines.gone.clone(), outbox, last_events: LAST_EVENTS },
    )
    .await;
    lines.finish(hurry.cancelled()).await;
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

/// Why nothing more is written.
enum WriteError {
    /// The client did not read for too long at the end.
    Unread,
    Io(io::Error),
}

/// The output, for which the client may take its time until the end.
struct BoundedOutput {
    output: Output,
    finishing: CancellationToken,
}

impl BoundedOutput {
    async fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        for part in bytes.chunks(PART) {
            let timed_out = async {
                self.finishing.cancelled().await;
                tokio::time::sleep(FLUSH).await;
            };
            tokio::select! {
                biased;
                written = self.output.write_all(part) => written.map_err(WriteError::Io)?,
                () = timed_out => return Err(WriteError::Unread),
            }
        }
        Ok(())
    }
}

async fn write(mut output: BoundedOutput, mut pieces: mpsc::Receiver<Bytes>, gone: CancellationToken) {
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
            match error {
                WriteError::Unread => tracing::warn!("the client did not read its last messages"),
                WriteError::Io(error) => tracing::debug!(%error, "the client has closed stdout"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::unix::pipe;

    /// Ten times what a pipe takes, in lines.
    fn lines() -> Bytes {
        b"0123456789abcde\n".repeat(10 * PART / 16).into()
    }

    /// Takes a part of what is there in each of `pauses`, and then the rest.
    async fn read_slowly(pipe: &mut pipe::Receiver, pauses: impl IntoIterator<Item = Duration>) -> Vec<u8> {
        let (mut read, mut part) = (Vec::new(), vec![0; PART]);
        for pause in pauses {
            // tidy: allow sleep, the clock is the test's own
            tokio::time::sleep(pause).await;
            let taken = pipe.try_read(&mut part).expect("there is something");
            read.extend_from_slice(&part[..taken]);
        }
        while let Ok(taken @ 1..) = pipe.try_read(&mut part) {
            read.extend_from_slice(&part[..taken]);
        }
        read
    }

    async fn write_at_the_end(pauses: impl IntoIterator<Item = Duration>) -> Vec<u8> {
        let (sender, mut receiver) = pipe::pipe().expect("a pipe");
        let (outbox, pieces) = mpsc::channel(8);
        let finishing = CancellationToken::new();
        finishing.cancel();
        let output = BoundedOutput { output: Output::Pipe(sender), finishing };
        outbox.send(lines()).await.expect("there is room");
        outbox.send(lines()).await.expect("there is room");
        drop(outbox);
        let (read, ()) =
            tokio::join!(read_slowly(&mut receiver, pauses), write(output, pieces, CancellationToken::new()));
        read
    }

    // FR-3, SC-5: at the end a client has time for as long as it reads, however slowly, and none when it does not
    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_written_all_and_one_that_stalls_is_not() {
        let all = lines().len() * 2;
        let slow = write_at_the_end(std::iter::repeat_n(FLUSH * 4 / 5, 20)).await;
        assert_eq!(slow.len(), all);
        let stalled = write_at_the_end([FLUSH * 3, FLUSH]).await;
        assert!(stalled.len() < all, "{}", stalled.len());
    }
}
