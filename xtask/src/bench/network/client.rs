//! An ACP client of a daemon, over HTTP with event streams or over a WebSocket.

use super::super::now;
use super::super::peer::PeerError;
use super::daemon::Daemon;
use super::socket::Socket;
use serde_json::{Value, json};
use std::time::Duration;

const INITIALIZE: &str = r#"{"protocolVersion":1,"clientCapabilities":{}}"#;

/// Over a WebSocket.
pub(super) struct WebSocket {
    pub(super) socket: Socket,
    next_id: u64,
}

impl WebSocket {
    pub(super) fn connect(daemon: &Daemon) -> Result<Self, PeerError> {
        let mut socket = Socket::connect(daemon)?;
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        socket.send("GET /acp", upgrade, "")?;
        let head = socket.head()?;
        if head.status() != "101" {
            return Err(PeerError::Refused { method: "upgrade".to_owned(), line: head.status().to_owned() });
        }
        let mut client = Self { socket, next_id: 0 };
        client.request("initialize", INITIALIZE)?;
        Ok(client)
    }

    pub(super) fn request(&mut self, method: &str, params: &str) -> Result<Value, PeerError> {
        let id = self.send(method, params)?;
        self.socket.answer(id)
    }

    /// A request whose answer is not waited for.
    pub(super) fn send(&mut self, method: &str, params: &str) -> Result<u64, PeerError> {
        let id = self.next_id;
        self.next_id += 1;
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}");
        self.socket.write(&frame(text.as_bytes()))?;
        Ok(id)
    }

    pub(super) fn new_session(&mut self) -> Result<String, PeerError> {
        let result = self.request("session/new", r#"{"cwd":"/","mcpServers":[]}"#)?;
        let session = result["sessionId"].to_string();
        self.request("_example/ping", &format!("{{\"sessionId\":{session}}}"))?;
        Ok(session)
    }
}

/// A text frame of a client, whose mask changes nothing.
fn frame(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(text.len()) {
        Ok(length) if length < 126 => frame.push(0x80 | length.to_le_bytes()[0]),
        Ok(length) => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text);
    frame
}

/// Over HTTP: one socket for requests, one for the events of the connection, one for those of a session.
pub(super) struct Http {
    posts: Socket,
    id: String,
    connection: Socket,
    session: Option<(String, Socket)>,
    next_id: u64,
}

impl Http {
    pub(super) fn connect(daemon: &Daemon) -> Result<Self, PeerError> {
        let mut posts = Socket::connect(daemon)?;
        let body =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{INITIALIZE}}}");
        let (head, _) =
            posts.request("POST /acp", "Accept: application/json, text/event-stream\r\n", &body)?;
        let id = head.header("acp-connection-id").unwrap_or_default().to_owned();
        let connection = events(daemon, &format!("Acp-Connection-Id: {id}\r\n"))?;
        Ok(Self { posts, id, connection, session: None, next_id: 1 })
    }

    pub(super) fn new_session(&mut self, daemon: &Daemon) -> Result<String, PeerError> {
        let id = self.post("session/new", r#"{"cwd":"/","mcpServers":[]}"#)?;
        let result = self.connection.answer(id)?;
        let session = result["sessionId"].as_str().unwrap_or_default().to_owned();
        let headers = format!("Acp-Connection-Id: {}\r\nAcp-Session-Id: {session}\r\n", self.id);
        self.session = Some((session.clone(), events(daemon, &headers)?));
        self.request("_example/ping", &json!({"sessionId": session}).to_string())?;
        Ok(session)
    }

    /// A request in the session, from writing it to its acceptance, and to having its answer.
    pub(super) fn request(&mut self, method: &str, params: &str) -> Result<[Duration; 2], PeerError> {
        let begun = now();
        let id = self.post(method, params)?;
        let accepted = begun.elapsed();
        let (_, events) = self.session.as_mut().ok_or(PeerError::Ended)?;
        events.answer(id)?;
        Ok([accepted, begun.elapsed()])
    }

    /// Something that nobody answers, from writing it to its acceptance: what HTTP itself costs.
    pub(super) fn notify(&mut self) -> Result<Duration, PeerError> {
        let begun = now();
        self.send("{\"jsonrpc\":\"2.0\",\"method\":\"$/nothing\",\"params\":{}}")?;
        Ok(begun.elapsed())
    }

    fn post(&mut self, method: &str, params: &str) -> Result<u64, PeerError> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
        ))?;
        Ok(id)
    }

    fn send(&mut self, body: &str) -> Result<(), PeerError> {
        let mut headers =
            format!("Accept: application/json, text/event-stream\r\nAcp-Connection-Id: {}\r\n", self.id);
        if let Some((session, _)) = &self.session {
            headers += &format!("Acp-Session-Id: {session}\r\n");
        }
        self.posts.request("POST /acp", &headers, body).map(drop)
    }
}

fn events(daemon: &Daemon, headers: &str) -> Result<Socket, PeerError> {
    watch(daemon, "/acp", headers)
}

/// Opens a stream of events.
pub(super) fn watch(daemon: &Daemon, path: &str, headers: &str) -> Result<Socket, PeerError> {
    let mut socket = Socket::connect(daemon)?;
    socket.send(&format!("GET {path}"), &format!("Accept: text/event-stream\r\n{headers}"), "")?;
    let head = socket.head()?;
    match head.status() {
        "200" => Ok(socket),
        status => Err(PeerError::Refused { method: format!("GET {path}"), line: status.to_owned() }),
    }
}
