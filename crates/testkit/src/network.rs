//! Clients over the network that a test drives as any other: what it writes as lines goes out as messages, and what comes
//! in on whichever stream it reads as lines.
//!
//! They behave as the official clients do: a session's stream is opened before anything is asked of the session, and as
//! soon as an answer names it. The order between streams is not judged here.

use crate::client::Client;
use crate::daemon::Daemon;
use crate::http::{Events, Http};
use crate::scratch::Scratch;
use crate::websocket::{Opcode, WebSocket};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

const JSON: (&str, &str) = ("Content-Type", "application/json");

impl Daemon {
    /// A client over a WebSocket. Closing its input says goodbye.
    ///
    /// # Panics
    /// When the daemon does not agree.
    pub fn over_websocket(&self, scratch: &Scratch, path: &str) -> Client {
        self.over_websocket_with(scratch, path, &[])
    }

    /// The same with headers of the test's own, a token most likely.
    ///
    /// # Panics
    /// When the daemon does not agree.
    pub fn over_websocket_with(&self, scratch: &Scratch, path: &str, headers: &[(&str, &str)]) -> Client {
        let socket = WebSocket::open(self.connect(), path, headers);
        let mut socket = socket.expect("the daemon speaks WebSocket");
        socket.stream().set_read_timeout(None).expect("none is fine");
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let lines = BufReader::new(theirs.try_clone().expect("a socket has many handles"));
        let sender = Arc::new(Mutex::new(socket.handle()));
        let answering = Arc::clone(&sender);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                if lock(&sender).try_frame(Opcode::Text, true, line.as_bytes()).is_err() {
                    return;
                }
            }
            // A peer that is gone already needs no goodbye.
            let _gone = lock(&sender).try_frame(Opcode::Close, true, &1000u16.to_be_bytes());
        });
        std::thread::spawn(move || {
            let mut out = theirs;
            while let Some(frame) = socket.next_frame() {
                let written = match frame.opcode {
                    Opcode::Text => out.write_all(&[frame.payload, b"\n".to_vec()].concat()),
                    Opcode::Ping => lock(&answering).try_frame(Opcode::Pong, true, &frame.payload),
                    Opcode::Close => break,
                    _ => Ok(()),
                };
                if written.is_err() {
                    break;
                }
            }
            let _closed = out.shutdown(Shutdown::Both);
        });
        Client::over(ours, scratch)
    }

    /// A client over HTTP. Closing its input ends its connection.
    pub fn over_http(&self, scratch: &Scratch, path: &str) -> Client {
        self.over_http_with(scratch, path, &[])
    }

    /// The same with headers of the test's own on each request, a token most likely.
    ///
    /// # Panics
    /// When the sockets cannot be made.
    pub fn over_http_with(&self, scratch: &Scratch, path: &str, headers: &[(&str, &str)]) -> Client {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let lines = BufReader::new(theirs.try_clone().expect("a socket has many handles"));
        let transport = Arc::new(Transport {
            address: self.address(),
            path: path.to_owned(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            out: Mutex::new(theirs),
            opened: Mutex::new(HashSet::new()),
            sessions: Mutex::new(Vec::new()),
            id: Mutex::new(String::new()),
        });
        std::thread::spawn(move || transport.run(lines));
        Client::over(ours, scratch)
    }
}

/// A client's side of HTTP.
struct Transport {
    address: SocketAddr,
    path: String,
    headers: Vec<(String, String)>,
    out: Mutex<UnixStream>,
    opened: Mutex<HashSet<String>>,
    /// The readers of sessions' streams.
    sessions: Mutex<Vec<JoinHandle<()>>>,
    id: Mutex<String>,
}

impl Transport {
    fn run(self: Arc<Self>, lines: BufReader<UnixStream>) {
        let mut posts = Http::on(self.connect());
        for line in lines.lines().map_while(Result::ok) {
            let id = lock(&self.id).clone();
            if id.is_empty() {
                let answer = posts.request("POST", &self.path, &self.with_own(&[JSON]), &line);
                assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
                if let Some(id) = answer.header("acp-connection-id") {
                    id.clone_into(&mut lock(&self.id));
                    self.open(None);
                }
                self.deliver(&answer.body);
                continue;
            }
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            let session = message["params"]["sessionId"].as_str().map(str::to_owned);
            let mut headers = vec![JSON, ("Acp-Connection-Id", id.as_str())];
            if let Some(session) = &session {
                self.open(Some(session));
                headers.push(("Acp-Session-Id", session));
            }
            let answer = posts.request("POST", &self.path, &self.with_own(&headers), &line);
            if answer.status != 202 {
                // What is refused here is answered here, as a message if it is one.
                self.deliver(&answer.body);
            }
        }
        let id = lock(&self.id).clone();
        if !id.is_empty() {
            posts.send("DELETE", &self.path, &self.with_own(&[("Acp-Connection-Id", &id)]), "");
            let _left = posts.answer();
        }
        let _closed = lock(&self.out).shutdown(Shutdown::Both);
    }

    /// Reads a stream in a thread, once.
    fn open(self: &Arc<Self>, session: Option<&str>) {
        if let Some(session) = session
            && !lock(&self.opened).insert(session.to_owned())
        {
            return;
        }
        let id = lock(&self.id).clone();
        let mut headers = vec![("Acp-Connection-Id", id.as_str())];
        headers.extend(session.map(|session| ("Acp-Session-Id", session)));
        let headers = self.with_own(&headers);
        let mut events = Http::on(self.connect()).events(&self.path, &headers).expect("a stream of events");
        let (transport, is_connection) = (Arc::clone(self), session.is_none());
        let reader = std::thread::spawn(move || {
            transport.read(&mut events);
            if is_connection {
                // It is over for the whole client, once what sessions' streams still said is read too.
                let sessions = std::mem::take(&mut *lock(&transport.sessions));
                sessions.into_iter().for_each(|reader| drop(reader.join()));
                let _closed = lock(&transport.out).shutdown(Shutdown::Both);
            }
        });
        if !is_connection {
            lock(&self.sessions).push(reader);
        }
    }

    fn read(self: &Arc<Self>, events: &mut Events) {
        while let Some(event) = events.next_data() {
            let Some(data) = event.data.filter(|_| event.event.is_none()) else { continue };
            let message: Value = serde_json::from_str(&data).unwrap_or_default();
            if let Some(session) = message["result"]["sessionId"].as_str() {
                self.open(Some(session));
            }
            self.deliver(data.as_bytes());
        }
    }

    fn deliver(&self, message: &[u8]) {
        // A test that has seen enough does not read any more.
        let _unread = lock(&self.out).write_all(&[message, b"\n"].concat());
    }

    /// These headers and the test's own.
    fn with_own<'a>(&'a self, headers: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let own = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        headers.iter().copied().chain(own).collect()
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("the daemon accepts")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
