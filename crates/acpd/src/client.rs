//! A client of the host in this process, or of a daemon: ACP over channels instead of pipes, for `acpd run`.
//!
//! It goes through the same connection as an editor, so what it sees is what an editor would see.

use crate::daemon::{Daemon, Link, Trouble};
use crate::front::{Carried, News, carry};
use crate::runtime::if_any;
use acpd_gateway::{
    Allowance, Arrival, ConnectionIo, ConnectionOptions, Identity, LAST_EVENTS, outbox, serve,
};
use acpd_host::Host;
use acpd_wire::{LineBuffer, Message, OwnedId, RawId};
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Lines on their way to the connection; this client has few requests open at a time.
const ARRIVALS: usize = 8;

/// Pieces of a daemon on their way here. Full: its connection is not read.
const PIECES: usize = 8;

/// News of the connection. Full: they are not told.
const NEWS: usize = 4;

/// One line from the host.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The answer to a request.
    Answer { id: u64, outcome: Result<Value, Value> },
    /// A notification; its params as they came.
    Notification { method: String, params: Bytes },
    /// A request of the agent's or of acpd's own; its params as they came. It wants [`Client::answer`] or
    /// [`Client::refuse`].
    Request { id: OwnedId, method: String, params: Bytes },
    /// The connection was lost a while ago, or is there again.
    News(String),
}

/// A connection to a host.
pub(crate) struct Client {
    /// What carries the lines of a daemon.
    link: Option<JoinHandle<Option<Trouble>>>,
    arrivals: Option<mpsc::Sender<Arrival>>,
    /// Cancelled when it hangs up: a host reads nothing while an agent starts.
    gone: CancellationToken,
    /// What is told of the connection to a daemon.
    news: Option<mpsc::Receiver<News>>,
    /// The reason for which the daemon was lost, while it is tried again.
    away: Option<String>,
    pieces: mpsc::Receiver<Bytes>,
    lines: LineBuffer,
    ready: VecDeque<Incoming>,
    next_id: u64,
}

impl Client {
    /// Connects to an agent; the host ends with the connection.
    pub(crate) fn connect(host: &Host, agent: &str) -> Self {
        let (sender, arrivals) = mpsc::channel(ARRIVALS);
        let (outbox, pieces) = outbox();
        let gone = CancellationToken::new();
        let io = ConnectionIo { arrivals, gone: gone.clone(), outbox, last_events: LAST_EVENTS };
        let options = ConnectionOptions {
            identity: Identity::local(Allowance::UNLIMITED),
            agent: agent.to_owned(),
            transport: "embedded",
            ends_host: true,
            // This client knows the stable names.
            session_stop: false,
            fleet: None,
        };
        host.scope().spawn("connection", serve(host.clone(), options, io));
        Self::with(None, sender, gone, pieces)
    }

    /// A client of a daemon.
    pub(crate) fn over(link: Link, daemon: &Daemon, agent: Option<String>) -> Self {
        let (sender, lines) = mpsc::channel(ARRIVALS);
        let (said, pieces) = mpsc::channel(PIECES);
        let (told, news) = mpsc::channel(NEWS);
        let gone = CancellationToken::new();
        let carried = Carried {
            daemon: daemon.clone(),
            agent,
            lines,
            gone: gone.clone(),
            pieces: said,
            news: told,
            // A client that hangs up here wants no more answers.
            patience: Duration::ZERO,
        };
        let link = daemon.scope().spawn("link", carry(link, carried));
        let client = Self::with(Some(link), sender, gone, pieces);
        Self { news: Some(news), ..client }
    }

    fn with(
        link: Option<JoinHandle<Option<Trouble>>>,
        arrivals: mpsc::Sender<Arrival>,
        gone: CancellationToken,
        pieces: mpsc::Receiver<Bytes>,
    ) -> Self {
        // What comes is bounded already: by this very program, or as a message of the daemon.
        let lines = LineBuffer::new(usize::MAX / 2);
        let (arrivals, ready) = (Some(arrivals), VecDeque::new());
        Self { link, arrivals, gone, news: None, away: None, pieces, lines, ready, next_id: 0 }
    }

    /// Whether lines still come and go.
    pub(crate) fn is_connected(&self) -> bool {
        self.away.is_none() && self.may_come_back()
    }

    /// The reason for which the daemon was lost, while it is tried again.
    pub(crate) fn away(&self) -> Option<&str> {
        self.away.as_deref()
    }

    /// Returns `true` while a daemon that is away is tried again; requests wait for it.
    pub(crate) fn may_come_back(&self) -> bool {
        self.arrivals.as_ref().is_some_and(|arrivals| !arrivals.is_closed())
    }

    /// Why a daemon was lost, if it was. Waits for the end of the connection, so that it belongs after that.
    pub(crate) async fn trouble(&mut self) -> Option<String> {
        self.link.take()?.await.ok().flatten().flatten()
    }

    /// Sends a request; its answer comes with the id that is returned.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> u64 {
        let (id, params) = (self.next_id, params.to_string());
        self.next_id += 1;
        self.send(|line| acpd_wire::write_request(line, id, method, Some(params.as_bytes()))).await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &Value) {
        let params = params.to_string();
        self.send(|line| acpd_wire::write_notification(line, method, Some(params.as_bytes()))).await;
    }

    /// Answers a request.
    pub(crate) async fn answer(&mut self, id: &OwnedId, result: &Value) {
        self.send(|line| acpd_wire::write_result(line, id.as_id(), result.to_string().as_bytes())).await;
    }

    /// Answers a request with an error.
    pub(crate) async fn refuse(&mut self, id: &OwnedId, code: i64, message: &str) {
        self.send(|line| acpd_wire::write_error(line, id.as_id(), code, message, None)).await;
    }

    async fn send(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let mut line = BytesMut::new();
        write(&mut line);
        line.truncate(line.len() - 1);
        if let Some(arrivals) = &self.arrivals {
            // A connection that is gone says so by the end of its lines.
            let _gone = arrivals.send(Arrival::Line(line.freeze())).await;
        }
    }

    /// Hangs up; what the host still says can be read to its end.
    pub(crate) fn hang_up(&mut self) {
        self.arrivals = None;
        self.gone.cancel();
    }

    /// The next line; None at the end.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Incoming> {
        loop {
            if let Some(incoming) = self.ready.pop_front() {
                return Some(incoming);
            }
            let piece = tokio::select! {
                biased;
                piece = self.pieces.recv() => piece?,
                news = if_any(self.news.as_mut().map(mpsc::Receiver::recv)) => match news {
                    Some(news) => {
                        let told = news.to_string();
                        self.away = match news {
                            News::Away(why) => Some(why),
                            News::Back => None,
                        };
                        return Some(Incoming::News(told));
                    }
                    None => {
                        self.news = None;
                        continue;
                    }
                },
            };
            self.lines.push(&piece);
            self.take_lines();
        }
    }

    fn take_lines(&mut self) {
        while let Ok(Some(line)) = self.lines.next_line() {
            let incoming = match Message::parse(&line) {
                Ok(Message::Response { id, outcome }) => id.as_ref().and_then(RawId::as_u64).map(|id| {
                    let value = |raw: &RawValue| acpd_wire::value(raw.get().as_bytes());
                    Incoming::Answer { id, outcome: outcome.map(value).map_err(value) }
                }),
                Ok(Message::Notification { method, params }) => {
                    Some(Incoming::Notification { method: method.into_owned(), params: copied(params) })
                }
                Ok(Message::Request { id, method, params }) => Some(Incoming::Request {
                    id: id.to_owned(),
                    method: method.into_owned(),
                    params: copied(params),
                }),
                Err(_) => None,
            };
            self.ready.extend(incoming);
        }
    }
}

fn copied(params: Option<&RawValue>) -> Bytes {
    params.map(|params| Bytes::copy_from_slice(params.get().as_bytes())).unwrap_or_default()
}
