//! An upstream: the WebSocket to the node that has a session, and the task that reads and writes it.
//!
//! Invariants: it is the same to the node as a WebSocket of the client's own; while the node owes something or takes nothing, or
//! the fleet has not heard of it, it is asked whether it lives, so that one that is lost is known within seconds; what comes is read no faster than
//! the client reads. Not here: what a line means (`core.rs`).

mod opening;

use super::Shared;
use super::core::{Address, Heard, To, UpstreamId};
use super::refusal::Loss;
use crate::fleet::ASK_AFTER;
use crate::outbox::Outbox;
use acpd_record::SessionId;
use acpd_wire::Message;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt, SinkExt, StreamExt};
use opening::Socket;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::{Error, Message as Frame, Utf8Bytes};

/// How long it may take until the node has agreed to a WebSocket.
const REACHED: Duration = Duration::from_millis(3500);
/// It is gone when nothing has come for so long: it pings.
const SILENCE: Duration = Duration::from_secs(65);
/// How long it stays when nothing needs it.
const IDLE: Duration = Duration::from_secs(30);

pub(super) struct Upstream {
    shared: Arc<Shared>,
    id: UpstreamId,
    to: To,
    /// For the node.
    lines: mpsc::Receiver<Bytes>,
    /// Where the client reads what there is of the sessions that it watches.
    viewers: HashMap<SessionId, Outbox>,
    /// Something waits for the node to take it.
    writes: Arc<AtomicBool>,
}

/// Why it ends.
enum End {
    Lost(Loss),
    /// Nothing needs it any more, or the client is gone.
    Over,
}

impl From<Loss> for End {
    fn from(loss: Loss) -> Self {
        Self::Lost(loss)
    }
}

impl Upstream {
    pub(super) fn new(shared: Arc<Shared>, id: UpstreamId, to: To, lines: mpsc::Receiver<Bytes>) -> Self {
        Self { shared, id, to, lines, viewers: HashMap::new(), writes: Arc::default() }
    }

    /// Carries lines until the node is lost, or nothing needs it.
    pub(super) async fn run(mut self) {
        let over = self.shared.over.clone();
        let _client_gone = over.run_until_cancelled(self.carry()).await;
    }

    async fn carry(&mut self) {
        let conversed = AssertUnwindSafe(self.converse()).catch_unwind().await;
        let loss = match conversed {
            Ok(End::Over) => return,
            Ok(End::Lost(loss)) => loss,
            Err(_) => {
                tracing::error!("what is said with another node was lost to a panic");
                Loss::Lost("internal error".to_owned())
            }
        };
        tracing::debug!(node = %self.to.node, session = self.to.session.as_str(), ?loss, "a node is not reached");
        let told = self.shared.core().lost(self.id, &self.to.node, &loss);
        for (session, line) in told {
            if self.outbox(&Address::About(session)).send(line).await.is_err() {
                return;
            }
        }
    }

    async fn converse(&mut self) -> End {
        let opened = tokio::time::timeout(REACHED, opening::open(&self.shared.access, &self.to)).await;
        let late = || Err(Loss::NoAnswer(format!("nothing within {} s", REACHED.as_secs_f32())));
        let socket = match opened.unwrap_or_else(|_| late()) {
            Ok(socket) => socket,
            Err(loss) => return loss.into(),
        };
        let (mut sink, mut stream) = socket.split();
        if let Err(end) = self.initialize(&mut sink, &mut stream).await {
            return end;
        }
        let (_, nothing) = mpsc::channel(1);
        let mut lines = std::mem::replace(&mut self.lines, nothing);
        let writes = Arc::clone(&self.writes);
        let end = tokio::select! {
            end = self.read(&mut stream) => end,
            end = write(&mut sink, &mut lines, &writes) => end,
        };
        // What has come until nothing more is taken still goes there.
        lines.close();
        while let (End::Over, Ok(line)) = (&end, lines.try_recv()) {
            if send(&mut sink, line).await.is_err() {
                break;
            }
        }
        let _closed = tokio::time::timeout(ASK_AFTER, sink.close()).await;
        end
    }

    /// Says to the node what the client has said to this one, and which session it is about.
    async fn initialize(
        &mut self,
        sink: &mut SplitSink<Socket, Frame>,
        stream: &mut SplitStream<Socket>,
    ) -> Result<(), End> {
        send(sink, self.to.initialize.clone()).await.map_err(End::Lost)?;
        loop {
            let line = self.next(stream, true).await?;
            let Ok(Message::Response { outcome, .. }) = Message::parse(&line) else { continue };
            if self.to.is_asked {
                self.hear(&line).await?;
            }
            return match outcome {
                Ok(_) => Ok(()),
                Err(error) => {
                    Err(Loss::NotInitialized(Bytes::copy_from_slice(error.get().as_bytes())).into())
                }
            };
        }
    }

    async fn read(&mut self, stream: &mut SplitStream<Socket>) -> End {
        loop {
            let line = match self.next(stream, false).await {
                Ok(line) => line,
                Err(end) => return end,
            };
            if let Err(end) = self.hear(&line).await {
                return end;
            }
        }
    }

    /// Takes a line of the node.
    async fn hear(&mut self, line: &Bytes) -> Result<(), End> {
        let heard = self.shared.core().heard(self.id, line);
        let sent = match heard {
            Heard::Told { to, begins, line } => {
                if let Some(session) = begins {
                    let viewer = self.shared.outbox.viewer(&session, true);
                    self.viewers.insert(session, viewer);
                }
                self.outbox(&to).send(line).await
            }
            Heard::Removed(session) => {
                let removed = self.shared.outbox.removed(&session, true).await;
                self.viewers.remove(&session);
                removed
            }
            Heard::Nothing => Ok(()),
            Heard::Broken(what) => return Err(Loss::Lost(what.to_owned()).into()),
        };
        sent.map_err(|_| End::Over)
    }

    /// The next message of the node. While it owes one it is asked whether it lives.
    async fn next(&mut self, stream: &mut SplitStream<Socket>, begins: bool) -> Result<Bytes, End> {
        // What was not read before was for the client to take.
        let (since, mut heard) = (Instant::now(), Instant::now());
        loop {
            let frame = match tokio::time::timeout(ASK_AFTER, stream.next()).await {
                Ok(frame) => frame,
                Err(_) => {
                    if heard.elapsed() > SILENCE {
                        return Err(Loss::Lost("it says nothing any more".to_owned()).into());
                    }
                    let owes =
                        begins || self.writes.load(Ordering::Relaxed) || self.shared.core().owes(self.id);
                    let is_idle = !owes && since.elapsed() > IDLE;
                    if is_idle && self.shared.core().forget_idle(self.id) {
                        return Err(End::Over);
                    }
                    let fleet = &self.shared.access.fleet;
                    if !owes && fleet.member.gone_for(&self.to.node).is_none() {
                        continue;
                    }
                    tokio::select! {
                        frame = stream.next() => frame,
                        lives = fleet.peers.lives(&self.to.address) => match lives {
                            Ok(()) => continue,
                            Err(error) => return Err(Loss::Lost(error.reason).into()),
                        },
                    }
                }
            };
            heard = Instant::now();
            match frame {
                Some(Ok(Frame::Text(text))) => return Ok(text.into()),
                Some(Ok(Frame::Close(frame))) => {
                    let words = frame.map(|frame| frame.reason.to_string()).filter(|words| !words.is_empty());
                    return Err(lost(words.unwrap_or_else(|| "it closed the connection".to_owned())));
                }
                Some(Ok(_)) => {}
                None | Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                    return Err(lost("its connection broke".to_owned()));
                }
                Some(Err(error)) => return Err(lost(error.to_string())),
            }
        }
    }

    /// Where the client reads what is for an address.
    fn outbox(&mut self, to: &Address) -> Outbox {
        let outbox = &self.shared.outbox;
        match to {
            Address::Connection => outbox.clone(),
            Address::Viewer(session) => {
                let viewer = || outbox.viewer(session, false);
                self.viewers.entry(session.clone()).or_insert_with(viewer).clone()
            }
            Address::About(session) => {
                self.viewers.get(session).cloned().unwrap_or_else(|| outbox.about(session))
            }
        }
    }
}

async fn write(
    sink: &mut SplitSink<Socket, Frame>,
    lines: &mut mpsc::Receiver<Bytes>,
    writes: &AtomicBool,
) -> End {
    while let Some(line) = lines.recv().await {
        writes.store(true, Ordering::Relaxed);
        if let Err(loss) = send(sink, line).await {
            return loss.into();
        }
        writes.store(false, Ordering::Relaxed);
    }
    End::Over
}

async fn send(sink: &mut SplitSink<Socket, Frame>, line: Bytes) -> Result<(), Loss> {
    let text = Utf8Bytes::try_from(line).map_err(|error| Loss::Lost(error.to_string()))?;
    match sink.send(Frame::Text(text)).await {
        // Why it was closed is still to be read.
        Err(Error::ConnectionClosed | Error::AlreadyClosed) => std::future::pending().await,
        sent => sent.map_err(|error| Loss::Lost(error.to_string())),
    }
}

fn lost(reason: String) -> End {
    Loss::Lost(reason).into()
}
