//! The one writer of standard output, shared by all threads.
//!
//! Invariants: a line is written whole before the next begins; nothing is buffered between calls, so what was
//! sent before an exit has been sent. Losing the reader ends the agent as the end of its input would.
//! Not a queue: a full pipe blocks the writer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::wire::Raw;

/// Standard output.
#[derive(Debug, Default)]
pub(crate) struct Output {
    turn_to_write: Mutex<()>,
    outlives_client: AtomicBool,
}

impl Output {
    /// Sends one JSON object as one line.
    pub(crate) fn send(&self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn update(&self, session: &str, update: &Value) {
        self.notify("session/update", &json!({"sessionId": session, "update": update}));
    }

    /// Answers the request `id`; `None` is the `null` of a message whose id is unknown.
    pub(crate) fn answer(&self, id: Option<&Raw>, answer: Result<Value, Failure>) {
        let id = id.map_or("null", |id| id.get());
        let (member, value) = match answer {
            Ok(result) => ("result", result),
            Err(failure) => ("error", failure.to_json()),
        };
        self.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{member}\":{value}}}\n").as_bytes());
    }

    /// Writes bytes that the caller has made into whole lines.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        self.parts(std::iter::once(bytes));
    }

    /// Writes several pieces with nothing of another thread between them.
    pub(crate) fn parts<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) {
        let _one_writer = self.turn_to_write.lock().expect("no writer panics");
        for part in parts {
            if self.write_all(part).is_err() {
                return self.reader_is_gone();
            }
        }
    }

    /// Points the descriptor away from the client, which then sees the end of our output.
    pub(crate) fn close(&self) -> std::io::Result<()> {
        let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
        let _one_writer = self.turn_to_write.lock().expect("no writer panics");
        Ok(rustix::stdio::dup2_stdout(nowhere)?)
    }

    /// From here on, a client that is gone no longer ends the agent.
    pub(crate) fn outlive_client(&self) {
        self.outlives_client.store(true, Ordering::SeqCst);
    }

    pub(crate) fn outlives_client(&self) -> bool {
        self.outlives_client.load(Ordering::SeqCst)
    }

    fn write_all(&self, mut bytes: &[u8]) -> rustix::io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                // The parent may have left its end in this mode.
                Err(Errno::AGAIN) => {
                    let stdout = rustix::stdio::stdout();
                    let mut writable = [PollFd::new(&stdout, PollFlags::OUT)];
                    rustix::event::poll(&mut writable, None).ok();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn reader_is_gone(&self) {
        if !self.outlives_client() {
            std::process::exit(0);
        }
    }
}
