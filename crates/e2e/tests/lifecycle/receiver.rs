//! A server of the tests' own that hooks tell, and that does as it likes with them.

use acpd_e2e::{hook_body, until};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

pub(crate) struct Receiver(TcpListener);

/// A request that waits for its answer.
pub(crate) struct Received {
    stream: TcpStream,
    pub(crate) first: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be looked at");
        Self(listener)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.0.local_addr().expect("it listens"))
    }

    /// The next request.
    pub(crate) fn next(&self) -> Received {
        let (stream, _) = until("a hook is told", || self.0.accept().ok());
        stream.set_nonblocking(false).expect("it can be waited for");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("the time is not zero");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket has two ends"));
        let mut line = || {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a line");
            line.trim_end().to_owned()
        };
        let first = line();
        let headers: Vec<(String, String)> = std::iter::from_fn(|| {
            let line = line();
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        })
        .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").expect("a length");
        let mut body = vec![0; length.1.parse().expect("a number")];
        reader.read_exact(&mut body).expect("a body");
        Received { stream, first, headers, body: String::from_utf8(body).expect("text") }
    }

    /// Nothing has come.
    pub(crate) fn is_silent(&self) -> bool {
        self.0.accept().is_err()
    }
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| *own == name.to_lowercase());
        &found.unwrap_or_else(|| panic!("there is no {name}: {:?}", self.headers)).1
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| *own == name.to_lowercase())
    }

    pub(crate) fn json(&self) -> Value {
        hook_body(&self.body)
    }

    /// The id of the delivery.
    pub(crate) fn delivery(&self) -> String {
        self.header("X-Acpd-Delivery").to_owned()
    }

    /// Answers, with other headers perhaps, and closes.
    pub(crate) fn answer(mut self, status: &str) {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        self.stream.write_all(answer.as_bytes()).expect("it is read");
    }

    /// Says nothing until the other side goes.
    pub(crate) fn until_left(mut self) {
        assert_eq!(self.stream.read(&mut [0]).expect("it is closed in good order"), 0);
    }

    /// Whether it is signed with this key (contract 7.2).
    pub(crate) fn is_signed(&self, key: &[u8]) -> bool {
        let (timestamp, delivery) = (self.header("X-Acpd-Timestamp"), self.header("X-Acpd-Delivery"));
        let message = format!("{timestamp}.{delivery}.{}", self.body);
        let pad = |with: u8| -> Vec<u8> {
            let mut block = [0; 64];
            block[..key.len()].copy_from_slice(key);
            block.iter().map(|byte| byte ^ with).collect()
        };
        let inner = Sha256::digest([pad(0x36), message.into_bytes()].concat());
        let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
        let hex: String = outer.iter().map(|byte| format!("{byte:02x}")).collect();
        self.header("X-Acpd-Signature") == format!("sha256={hex}")
    }
}
