//! A WebSocket by hand: frames as a test writes them, frames as they came.
//!
//! Not a client library: it sends wrong frames too, and answers no ping by itself.

use crate::http::{Answer, Http};
use crate::message::initialize;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Goes on with the message of the frame before.
    Continuation = 0,
    /// Text.
    Text = 1,
    /// Bytes.
    Binary = 2,
    /// Goodbye, with a code and a reason.
    Close = 8,
    /// Are you there?
    Ping = 9,
    /// I am.
    Pong = 10,
}

/// One frame of the daemon's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub opcode: Opcode,
    /// What it holds.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code and the reason of a close frame.
    pub fn close(&self) -> Option<(u16, String)> {
        let code = self.payload.first_chunk().filter(|_| self.opcode == Opcode::Close)?;
        let reason = String::from_utf8_lossy(&self.payload[2..]).into_owned();
        Some((u16::from_be_bytes(*code), reason))
    }
}

/// The client's end of a WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    stream: TcpStream,
    /// What came in one piece with the answer to the upgrade.
    early: VecDeque<u8>,
    /// The answer to the upgrade.
    pub head: Answer,
}

impl WebSocket {
    /// Asks for a WebSocket; the error is another answer.
    ///
    /// # Errors
    /// When the daemon does not agree.
    pub fn open(stream: TcpStream, path: &str, headers: &[(&str, &str)]) -> Result<Self, Answer> {
        let mut http = Http::on(stream);
        let upgrade = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let headers: Vec<(&str, &str)> = upgrade.into_iter().chain(headers.iter().copied()).collect();
        let head = http.request("GET", path, &headers, "");
        if head.status != 101 {
            return Err(head);
        }
        // What RFC 6455 gives for its example key.
        assert_eq!(head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        let (stream, early) = http.into_parts();
        Ok(Self { stream, early: early.into(), head })
    }

    /// A WebSocket at `/acp` on which `initialize` was answered.
    ///
    /// # Panics
    /// When the daemon does not agree.
    pub fn initialized(stream: TcpStream) -> Self {
        let mut socket = Self::open(stream, "/acp", &[]).expect("a WebSocket");
        socket.text(&initialize().to_string());
        socket.next_json().expect("an answer");
        socket
    }

    /// Another handle of the same socket, to write in one thread and read in another.
    ///
    /// # Panics
    /// When the system gives none.
    pub fn handle(&self) -> Self {
        let stream = self.stream.try_clone().expect("a socket has many handles");
        Self { stream, early: self.early.clone(), head: self.head.clone() }
    }

    /// The socket.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends text.
    ///
    /// # Panics
    /// When the daemon does not take it.
    pub fn text(&mut self, text: &str) {
        self.try_frame(Opcode::Text, true, text.as_bytes()).expect("the daemon reads");
    }

    /// Sends a frame; `last` of its message.
    ///
    /// # Errors
    /// When the daemon does not take it.
    pub fn try_frame(&mut self, opcode: Opcode, last: bool, payload: &[u8]) -> std::io::Result<()> {
        let mut frame = vec![opcode as u8 | if last { 0x80 } else { 0 }];
        match payload.len() {
            length @ 0..126 => frame.push(0x80 | length as u8),
            length @ 126..65_536 => {
                frame.push(0x80 | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        // A client must mask; with which key is its own business.
        frame.extend([0; 4]);
        frame.extend(payload);
        self.stream.write_all(&frame)
    }

    /// The next frame; None when the connection is over.
    ///
    /// # Panics
    /// When nothing comes, or a frame that no server may send.
    pub fn next_frame(&mut self) -> Option<Frame> {
        let mut head = [0; 2];
        if let Err(error) = self.read_exact(&mut head) {
            let waited =
                matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
            assert!(!waited, "nothing came");
            return None;
        }
        assert_eq!((head[0] & 0x80, head[1] & 0x80), (0x80, 0), "whole messages, without a mask");
        let length = match head[1] {
            126 => u64::from(u16::from_be_bytes(self.read()?)),
            127 => u64::from_be_bytes(self.read()?),
            short => short.into(),
        };
        let mut payload = vec![0; usize::try_from(length).expect("it fits into memory")];
        self.read_exact(&mut payload).ok()?;
        let opcode = match head[0] & 15 {
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            other => panic!("no frame has the kind {other}"),
        };
        Some(Frame { opcode, payload })
    }

    /// The next text, as JSON; None when the connection is over.
    ///
    /// # Panics
    /// When it is none.
    pub fn next_json(&mut self) -> Option<serde_json::Value> {
        loop {
            let frame = self.next_frame()?;
            match frame.opcode {
                Opcode::Text => return Some(serde_json::from_slice(&frame.payload).expect("it is JSON")),
                Opcode::Close => return None,
                _ => {}
            }
        }
    }

    /// Reads up to the answer to a request.
    ///
    /// # Panics
    /// When the connection is over before.
    pub fn answer(&mut self, id: u64) -> serde_json::Value {
        loop {
            let message = self.next_json().expect("an answer");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Reads to the close frame: its code and reason.
    ///
    /// # Panics
    /// When the connection ends without one.
    pub fn until_close(&mut self) -> (u16, String) {
        self.until_end().expect("a close frame comes before the end")
    }

    /// Reads to the close frame, or to the end of a connection that ends without one.
    pub fn until_end(&mut self) -> Option<(u16, String)> {
        loop {
            if let Some(close) = self.next_frame()?.close() {
                return Some(close);
            }
        }
    }

    fn read<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    fn read_exact(&mut self, out: &mut [u8]) -> std::io::Result<()> {
        // A queue of bytes is always there to read.
        let early = self.early.read(out)?;
        self.stream.read_exact(&mut out[early..])
    }
}
