//! HTTP/1.1 by hand: requests as a test writes them, answers as they came, events as they come.
//!
//! Not a client library: it sends wrong things too, and follows nothing.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// One connection.
#[derive(Debug)]
pub struct Http {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Names in lower case, in their order.
    pub headers: Vec<(String, String)>,
    /// The whole body; empty for a stream.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> serde_json::Value {
        let body = &self.body;
        serde_json::from_slice(body)
            .unwrap_or_else(|error| panic!("{error} in {}: {}", self.status, String::from_utf8_lossy(body)))
    }

    /// The last part of the type of a problem.
    pub fn problem(&self) -> String {
        let json = self.json();
        let kind = json["type"].as_str().unwrap_or_else(|| panic!("this is no problem: {json}"));
        kind.rsplit(':').next().unwrap_or_default().to_owned()
    }
}

impl Http {
    /// HTTP on a connection.
    pub fn on(stream: TcpStream) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// Sends a request and reads the answer.
    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(method, path, headers, body);
        self.answer()
    }

    /// Sends a request.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut request = [method, " ", path, " HTTP/1.1\r\n"].concat();
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            let address = self.stream.get_ref().peer_addr().expect("it is connected");
            request += &format!("Host: {address}\r\n");
        }
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        if !body.is_empty() || method == "POST" {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        request.extend(["\r\n", body]);
        self.write(request.as_bytes());
    }

    /// Writes bytes as they are.
    ///
    /// # Panics
    /// When the daemon does not take them.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).expect("the daemon reads");
    }

    /// The next answer.
    ///
    /// # Panics
    /// When there is none.
    pub fn answer(&mut self) -> Answer {
        let head = self.head();
        Answer { body: self.body(&head), ..head }
    }

    /// The head of the next answer, without its body.
    ///
    /// # Panics
    /// When there is none.
    pub fn head(&mut self) -> Answer {
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            let read = self.stream.read_until(b'\n', &mut text).expect("the daemon answers");
            assert!(read > 0, "this is no answer: {:?}", String::from_utf8_lossy(&text));
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut headers);
        if let Err(error) = head.parse(&text) {
            panic!("this is no answer ({error}): {:?}", String::from_utf8_lossy(&text));
        }
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Answer {
            status: head.code.expect("it was parsed"),
            headers: head.headers.iter().map(|it| (it.name.to_ascii_lowercase(), text(it.value))).collect(),
            body: Vec::new(),
        }
    }

    fn body(&mut self, head: &Answer) -> Vec<u8> {
        let mut body = Vec::new();
        if matches!(head.status, 100..200 | 204 | 304) {
            return body;
        }
        if is_chunked(head) {
            let mut chunks = Chunks { stream: &mut self.stream, left: 0, over: false };
            chunks.read_to_end(&mut body).expect("the body comes");
            assert!(chunks.over, "the body ended early");
            return body;
        }
        let length = head.header("content-length").map_or(0, |length| length.parse().expect("a number"));
        body.resize(length, 0);
        self.stream.read_exact(&mut body).expect("the body comes");
        body
    }

    /// Asks for a stream of events; the error is another answer.
    ///
    /// # Errors
    /// When it is no stream.
    pub fn events(mut self, path: &str, headers: &[(&str, &str)]) -> Result<Events, Answer> {
        let headers: Vec<(&str, &str)> =
            headers.iter().copied().chain([("Accept", "text/event-stream")]).collect();
        self.send("GET", path, &headers, "");
        let head = self.head();
        let is_stream = head.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if head.status == 200 && is_stream && is_chunked(&head) {
            let chunks = Chunks { stream: self.stream, left: 0, over: false };
            return Ok(Events { lines: BufReader::with_capacity(256 * 1024, chunks), head });
        }
        Err(Answer { body: self.body(&head), ..head })
    }

    /// The socket.
    pub fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    /// The socket, and what has come on it behind the last answer.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        let surplus = self.stream.buffer().to_vec();
        (self.into_stream(), surplus)
    }
}

fn is_chunked(answer: &Answer) -> bool {
    answer.header("transfer-encoding") == Some("chunked")
}

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `id:`.
    pub id: Option<String>,
    /// `event:`.
    pub event: Option<String>,
    /// `data:`.
    pub data: Option<String>,
    /// A comment.
    pub comment: Option<String>,
}

impl Event {
    /// The data as JSON.
    ///
    /// # Panics
    /// When there is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.data.as_ref().expect("it has data")).expect("it is JSON")
    }

    fn read(text: &str) -> Self {
        let mut event = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = Some(value.strip_prefix(' ').unwrap_or(value).to_owned());
            match name {
                "id" => event.id = value,
                "event" => event.event = value,
                "data" => event.data = value,
                "" => event.comment = value,
                other => panic!("an event has no {other}"),
            }
        }
        event
    }
}

/// A stream of events.
#[derive(Debug)]
pub struct Events {
    lines: BufReader<Chunks<BufReader<TcpStream>>>,
    /// The head of the answer.
    pub head: Answer,
}

impl Events {
    /// The next event or comment; None at the end of the stream.
    ///
    /// # Panics
    /// When nothing comes.
    pub fn next_event(&mut self) -> Option<Event> {
        self.next_text().map(|text| Event::read(&text))
    }

    /// The lines of the next event or comment as they came; None at the end of the stream.
    ///
    /// # Panics
    /// When nothing comes, or no text.
    pub fn next_text(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            let before = text.len();
            // A connection that breaks is the end of the stream as well, one that is silent is not.
            match self.lines.read_until(b'\n', &mut text) {
                Ok(0) => return None,
                Ok(1) if before > 0 => return Some(String::from_utf8(text).expect("a stream is text")),
                Ok(_) => {}
                Err(error) => {
                    let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                    assert!(!silent, "nothing came");
                    return None;
                }
            }
        }
    }

    /// The next event that has data; None at the end of the stream.
    pub fn next_data(&mut self) -> Option<Event> {
        loop {
            let event = self.next_event()?;
            if event.data.is_some() {
                return Some(event);
            }
        }
    }

    /// Reads until an event is what is looked for.
    ///
    /// # Panics
    /// When the stream ends before.
    pub fn until(&mut self, what: &str, found: impl Fn(&Event) -> bool) -> Event {
        loop {
            match self.next_data() {
                Some(event) if found(&event) => return event,
                Some(_) => {}
                None => panic!("the stream ended before {what}"),
            }
        }
    }

    /// Another handle of the socket, to break it.
    ///
    /// # Panics
    /// When the system gives none.
    pub fn socket(&self) -> TcpStream {
        self.lines.get_ref().stream.get_ref().try_clone().expect("a socket has many handles")
    }

    /// Breaks the connection.
    pub fn close(self) {
        // One that is broken already is as good.
        let _closed = self.socket().shutdown(Shutdown::Both);
    }
}

/// A body in chunks, without their sizes.
#[derive(Debug)]
struct Chunks<R> {
    stream: R,
    /// Of the chunk that is being read, with the end of its line.
    left: usize,
    over: bool,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !self.over {
            let mut size = String::new();
            if self.stream.read_line(&mut size)? == 0 {
                return Ok(0);
            }
            self.left = usize::from_str_radix(size.trim(), 16).map_err(|_| ErrorKind::InvalidData)?;
            self.over = self.left == 0;
            if self.over {
                self.stream.read_line(&mut size)?;
            }
        }
        if self.over {
            return Ok(0);
        }
        let most = out.len().min(self.left);
        let read = self.stream.read(&mut out[..most])?;
        self.left -= read;
        if self.left == 0 {
            self.stream.read_exact(&mut [0; 2])?;
        }
        Ok(read)
    }
}
