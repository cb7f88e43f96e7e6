//! The lines of a daemon's log on their way to stderr, by a thread of their own: a pipe that nothing reads, or a terminal
//! that was stopped, holds no session up.
//!
//! Invariant: lines keep their order; what does not fit is left out, counted, and told when there is room again. Not here:
//! what a line says, and the other commands, whose lines go straight to stderr among what they print.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// Lines that wait to be written: of a usual one that is some hundred KiB. Full: they are left out.
const WAITING: usize = 4096;

/// How long the last lines may take when the process ends.
const LAST_LINES: Duration = Duration::from_millis(500);

/// How often it is tried to get the end into a queue that is full.
const TRY_AGAIN: Duration = Duration::from_millis(10);

enum Entry {
    Line(Vec<u8>),
    End,
}

/// Takes lines; each write is one.
#[derive(Clone)]
pub(crate) struct LogWriter {
    lines: SyncSender<Entry>,
    /// Since the start.
    left_out: Arc<AtomicU64>,
}

/// Dropped, it waits until what was logged is written, but not for long.
pub(crate) struct LogThread {
    lines: SyncSender<Entry>,
    ended: Receiver<()>,
}

/// Starts the thread, which writes to `out`.
///
/// # Errors
/// No thread can be had.
pub(crate) fn start(out: impl Write + Send + 'static) -> std::io::Result<(LogWriter, LogThread)> {
    let (lines, entries) = sync_channel(WAITING);
    let (end, ended) = sync_channel(1);
    let left_out = Arc::new(AtomicU64::new(0));
    let writer = LogWriter { lines: lines.clone(), left_out: Arc::clone(&left_out) };
    std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        write_all(out, &entries, &left_out);
        // Without a guard nothing waits for the end.
        let _unheard = end.send(());
    })?;
    Ok((writer, LogThread { lines, ended }))
}

fn write_all(mut out: impl Write, entries: &Receiver<Entry>, left_out: &AtomicU64) {
    let mut told = 0;
    while let Ok(Entry::Line(line)) = entries.recv() {
        // There is no other place to say that stderr is gone.
        let _gone = out.write_all(&line);
        let lines = left_out.load(Ordering::Relaxed) - told;
        if lines > 0 {
            told += lines;
            tracing::warn!(lines, "lines of the log left out: they came faster than stderr takes them");
        }
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Entry::Line(line.to_owned())) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        let tries = LAST_LINES.as_millis() / TRY_AGAIN.as_millis();
        for _ in 0..tries {
            match self.lines.try_send(Entry::End) {
                // While the queue is full the thread has not ended: this only waits.
                Err(TrySendError::Full(_)) => drop(self.ended.recv_timeout(TRY_AGAIN)),
                Ok(()) => {
                    let _late = self.ended.recv_timeout(LAST_LINES);
                    return;
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    // contract 6: a daemon whose stderr nothing reads goes on; lines keep their order, and the end waits for them
    #[test]
    fn an_unread_pipe_holds_nobody_up() {
        let (output, input) = std::io::pipe().expect("a pipe");
        let (mut writer, thread) = start(input).expect("a thread");
        // Far more than a pipe and the queue take.
        let lines = 4 * WAITING;
        for number in 0..lines {
            let line = format!("{number:>99}\n");
            assert_eq!(writer.write(line.as_bytes()).expect("it takes all"), line.len());
        }
        let left_out = writer.left_out.load(Ordering::Relaxed);
        assert!(left_out > 0 && left_out < lines as u64, "{left_out}");
        let (reads, has_read) = sync_channel(1);
        let reading = std::thread::spawn(move || {
            let mut read: Vec<u64> = Vec::new();
            for line in BufReader::new(output).lines() {
                read.push(line.expect("text").trim().parse().expect("a number"));
                if read.len() == WAITING {
                    reads.send(()).expect("it is waited for");
                }
            }
            read
        });
        // The queue has room for the end then.
        has_read.recv().expect("it reads");
        drop(thread);
        // Else a thread that is late would have to wait for more.
        drop(writer);
        let read = reading.join().expect("it reads");
        assert_eq!(read.len() as u64, lines as u64 - left_out);
        assert!(read.is_sorted());
    }
}
