//! Reading a pipe to its end in a thread, line by line.
//!
//! Invariant: the queue is bounded, so a test that stops reading stalls the program as a real client would.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Lines read ahead of the test. Full: the program's pipe fills.
const AHEAD: usize = 256;

/// The lines of a pipe.
#[derive(Debug)]
pub(crate) struct Lines(Receiver<Vec<u8>>);

/// What there is to read.
#[derive(Debug)]
pub(crate) enum Next {
    /// A line without its newline; `torn` when the pipe ended before it.
    Line {
        bytes: Vec<u8>,
        torn: bool,
    },
    End,
    Nothing,
}

impl Lines {
    pub(crate) fn of(pipe: impl Read + Send + 'static) -> Self {
        let (sender, lines) = sync_channel(AHEAD);
        std::thread::spawn(move || {
            let mut pipe = BufReader::with_capacity(256 * 1024, pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// No lines at all; what is replaced by it stops reading, and closes its pipe.
    pub(crate) fn none() -> Self {
        Self(sync_channel(0).1)
    }

    pub(crate) fn next(&self, within: Duration) -> Next {
        match self.0.recv_timeout(within) {
            Ok(mut bytes) => {
                let torn = bytes.pop_if(|last| *last == b'\n').is_none();
                Next::Line { bytes, torn }
            }
            Err(RecvTimeoutError::Disconnected) => Next::End,
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
        }
    }
}

/// All of a pipe as text, once it has ended.
pub(crate) fn text_of(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, text) = sync_channel(1);
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is worth showing too.
        let _cut_short = pipe.read_to_end(&mut bytes);
        // A test that has failed does not ask any more.
        let _unread = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}
