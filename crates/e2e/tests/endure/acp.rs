//! A viewer over `/acp` that does what a test says: its posts, and its streams from a cursor on.

use acpd_e2e::{Events, Http, Scratch, WebSocket, connect, initialize, request};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// The parameters of load and resume.
pub(crate) fn attach(scratch: &Scratch, session: &str) -> Value {
    json!({"sessionId": session, "cwd": scratch.work(), "mcpServers": []})
}

/// A connection over HTTP that is attached to one session.
#[derive(Debug)]
pub(crate) struct Connection {
    address: SocketAddr,
    id: String,
    session: String,
    posts: Http,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr, session: &str) -> Self {
        let mut posts = Http::on(connect(address));
        let json = ("Content-Type", "application/json");
        let answer = posts.request("POST", "/acp", &[json], &initialize().to_string());
        let id = answer.header("acp-connection-id").expect("it is given").to_owned();
        Self { address, id, session: session.to_owned(), posts }
    }

    pub(crate) fn post(&mut self, message: &Value) {
        let headers = [("Content-Type", "application/json"), ("Acp-Connection-Id", &*self.id)];
        let answer = self.posts.request("POST", "/acp", &headers, &message.to_string());
        assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(&answer.body));
    }

    /// Loads the session; the answer comes behind the history.
    pub(crate) fn load(&mut self, scratch: &Scratch) {
        self.post(&request(2, "session/load", &attach(scratch, &self.session)));
    }

    /// The session's stream, by way of `address`, behind an event or from its beginning.
    pub(crate) fn open_by(&self, address: SocketAddr, last: Option<&str>) -> Events {
        let mut headers = vec![("Acp-Connection-Id", &*self.id), ("Acp-Session-Id", &*self.session)];
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        // A proxy has an address of its own; the daemon knows itself by its own.
        let host = self.address.to_string();
        headers.push(("Host", &host));
        Http::on(connect(address)).events("/acp", &headers).expect("a stream of events")
    }

    pub(crate) fn open(&self, last: Option<&str>) -> Events {
        self.open_by(self.address, last)
    }

    /// The connection's own stream.
    pub(crate) fn open_own(&self) -> Events {
        let headers = [("Acp-Connection-Id", &*self.id)];
        Http::on(connect(self.address)).events("/acp", &headers).expect("a stream of events")
    }
}

/// A WebSocket that has asked to be attached to a session, by this method; the answer has the id 2.
pub(crate) fn attached(address: SocketAddr, scratch: &Scratch, method: &str, session: &str) -> WebSocket {
    let mut socket = WebSocket::initialized(connect(address));
    socket.text(&request(2, method, &attach(scratch, session)).to_string());
    socket
}
