//! HTTP/1.1 on one socket, as plainly as can be: a request, its answer, the events of a stream.

use super::super::peer::PeerError;
use super::daemon::Daemon;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A daemon that says nothing for so long is stuck.
const SILENCE: Duration = Duration::from_secs(60);

pub(super) struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
    used: usize,
    space: Vec<u8>,
}

/// The head of an answer.
pub(super) struct Head(String);

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.0.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(super) fn status(&self) -> &str {
        self.0.split(' ').nth(1).unwrap_or_default()
    }
}

impl Socket {
    pub(super) fn connect(daemon: &Daemon) -> Result<Self, PeerError> {
        let stream = daemon.connect()?;
        stream.set_read_timeout(Some(SILENCE))?;
        Ok(Self { stream, buffer: Vec::new(), used: 0, space: vec![0; 64 * 1024] })
    }

    /// Sends a request and reads its answer.
    pub(super) fn request(
        &mut self,
        line: &str,
        headers: &str,
        body: &str,
    ) -> Result<(Head, Vec<u8>), PeerError> {
        self.send(line, headers, body)?;
        let head = self.head()?;
        let length = head.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        while self.buffer.len() - self.used < length {
            self.more()?;
        }
        let body = self.buffer[self.used..self.used + length].to_vec();
        self.used += length;
        match head.status().starts_with('2') {
            true => Ok((head, body)),
            false => Err(PeerError::Refused {
                method: line.to_owned(),
                line: String::from_utf8_lossy(&body).into_owned(),
            }),
        }
    }

    /// Sends a request.
    pub(super) fn send(&mut self, line: &str, headers: &str, body: &str) -> Result<(), PeerError> {
        let length = body.len();
        let text = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             {headers}\r\n{body}"
        );
        Ok(self.stream.write_all(text.as_bytes())?)
    }

    /// Sends raw bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), PeerError> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Reads the head of an answer.
    pub(super) fn head(&mut self) -> Result<Head, PeerError> {
        let text = self.until(b"\r\n\r\n")?;
        Ok(Head(String::from_utf8_lossy(&text).into_owned()))
    }

    /// Everything up to and with `mark`.
    pub(super) fn until(&mut self, mark: &[u8]) -> Result<Vec<u8>, PeerError> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.buffer[self.used..], mark) {
                let end = self.used + at + mark.len();
                let text = self.buffer[self.used..end].to_vec();
                self.used = end;
                return Ok(text);
            }
            self.more()?;
        }
    }

    /// The answer to request `id` among the messages of a stream of events or frames.
    pub(super) fn answer(&mut self, id: u64) -> Result<Value, PeerError> {
        let mark = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
        self.until(mark.as_bytes())?;
        // The result begins here, whatever follows it.
        loop {
            let rest = &self.buffer[self.used..];
            let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
            if let Some(Ok(result)) = values.next() {
                self.used += values.byte_offset();
                return Ok(result);
            }
            self.more()?;
        }
    }

    /// Reads until `mark` has come, keeping nothing.
    pub(super) fn skip_to(&mut self, mark: &[u8]) -> Result<(), PeerError> {
        let mut space = vec![0; 256 * 1024];
        let mut tail = self.buffer.split_off(self.used);
        self.buffer.clear();
        self.used = 0;
        loop {
            if memchr::memmem::find(&tail, mark).is_some() {
                return Ok(());
            }
            let count = self.stream.read(&mut space)?;
            if count == 0 {
                return Err(PeerError::Ended);
            }
            tail.drain(..tail.len().saturating_sub(mark.len()));
            // The mark is the last that comes, so it is near the end of a read.
            tail.extend_from_slice(&space[count.saturating_sub(4096)..count]);
        }
    }

    fn more(&mut self) -> Result<(), PeerError> {
        self.buffer.drain(..self.used);
        self.used = 0;
        match self.stream.read(&mut self.space)? {
            0 => Err(PeerError::Ended),
            count => {
                self.buffer.extend_from_slice(&self.space[..count]);
                Ok(())
            }
        }
    }
}
