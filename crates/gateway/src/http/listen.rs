//! Sockets: accepts, speaks HTTP/1.1 or HTTP/2 as the client does, and closes in order.
//!
//! Owned by [`HttpServer`](super::HttpServer). A socket that takes nothing for too long is given up here, below HTTP,
//! so that no client can hold one for ever.

use super::local_peer::{admit, refusing};
use super::pulse::Pulse;
use super::timer::ClientTimer;
use super::write_timeout::{Turns, WriteTimeout};
use super::{Peer, turns};
use acpd_host::{Host, TaskScope};
use axum::Router;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit as Place, Semaphore};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// Sockets of one listener's clients. At the limit none is accepted there until one closes; the Unix socket has its
/// own, so that the owner of the machine can still look.
const SOCKETS: usize = 16 * 1024;
/// How long a client may take for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection that is kept alive waits for the next request: longer than most clients keep one, since a POST
/// that meets its end on the way is lost. A head that has begun has less time, by [`WriteTimeout`].
const NEXT_HEAD: Duration = Duration::from_secs(100);
/// How often an HTTP/2 client is asked whether it is there, and how long it may take.
const PING: Duration = Duration::from_secs(15);
/// How long a client that was let in may take for its first request when connections end: what it has said by then may be on
/// its way, and would get no answer.
const FIRST_REQUEST: Duration = Duration::from_millis(250);
/// A buffer of a connection grows to this at most, in bytes.
const BUFFER: usize = 64 * 1024;
/// What the system takes of a TCP client's answers ahead of the client, in bytes; Linux doubles it. Left to itself it takes
/// some MiB, and more only when a third of that was read: a slow reader would look as if it took nothing at all.
const AHEAD: usize = 256 * 1024;
/// Requests of one HTTP/2 connection at a time, streams of events among them.
const STREAMS: u32 = 1024;
/// Out of file descriptors, most likely: there will be some when a client leaves.
const BREATH: Duration = Duration::from_millis(100);
/// How often it is said that clients cannot be accepted.
const COMPLAIN_AGAIN: Duration = Duration::from_secs(60);

/// Where clients come in.
pub enum Listener {
    /// TCP, with TLS if there is a configuration for it.
    Tcp(TcpListener, Option<Arc<rustls::ServerConfig>>),
    /// A Unix socket.
    Unix(UnixListener),
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(listener, tls) => write!(f, "Tcp({:?}, tls: {})", listener.local_addr(), tls.is_some()),
            Self::Unix(listener) => write!(f, "Unix({:?})", listener.local_addr()),
        }
    }
}

/// What every accepted socket needs.
#[derive(Clone)]
pub(super) struct Door {
    pub(super) router: Router,
    pub(super) host: Host,
    /// When a refusal at the Unix socket was last told.
    pub(super) refused: Arc<Mutex<Complaint>>,
    pub(super) scope: TaskScope,
    /// Cancelled when no client is accepted any more.
    pub(super) quit: CancellationToken,
    /// Cancelled when streams end, and connections with them.
    pub(super) stop: CancellationToken,
    /// How long a socket may take nothing.
    pub(super) patience: Duration,
    pub(super) pulse: Arc<Pulse>,
}

/// Accepts until it is told to stop.
pub(super) async fn accept(listener: Listener, door: Door) {
    let accepting = accept_all(&listener, &door);
    door.quit.run_until_cancelled(accepting).await;
}

async fn accept_all(listener: &Listener, door: &Door) -> std::convert::Infallible {
    let places = Arc::new(Semaphore::new(SOCKETS));
    let (mut full, mut failing) = (Complaint::default(), Complaint::default());
    loop {
        if places.available_permits() == 0 && full.is_due(Instant::now()) {
            tracing::warn!(limit = SOCKETS, ?listener, "no more clients are accepted until one leaves");
        }
        let place = Arc::clone(&places).acquire_owned().await.expect("it is never closed");
        let (socket, peer) = match accept_one(listener).await {
            Ok(accepted) => accepted,
            Err(error) => {
                if failing.is_due(Instant::now()) {
                    tracing::warn!(%error, ?listener, "cannot accept a client");
                }
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        let tls = match listener {
            Listener::Tcp(_, tls) => tls.clone(),
            Listener::Unix(_) => None,
        };
        door.clone().serve(socket, peer, tls, place);
    }
}

/// What would be said many times a second, as long as it lasts.
#[derive(Default)]
pub(super) struct Complaint(Option<Instant>);

impl Complaint {
    /// Whether it is to be said again.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.0.is_none_or(|said| now.duration_since(said) >= COMPLAIN_AGAIN);
        if is_due {
            self.0 = Some(now);
        }
        is_due
    }
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

async fn accept_one(listener: &Listener) -> io::Result<(Socket, Peer)> {
    match listener {
        Listener::Tcp(listener, tls) => {
            let (stream, remote) = listener.accept().await?;
            let local: SocketAddr = stream.local_addr()?;
            Ok((Socket::Tcp(stream), Peer::Tcp { local, remote, tls: tls.is_some() }))
        }
        Listener::Unix(listener) => Ok((Socket::Unix(listener.accept().await?.0), Peer::Unix)),
    }
}

/// Answers are small and wanted at once, and not more of them are in the system's hands than must be.
fn tune(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    rustix::net::sockopt::set_socket_send_buffer_size(stream, AHEAD)?;
    Ok(())
}

impl Door {
    /// Starts the task of a client; `place` is free again at its end.
    fn serve(self, socket: Socket, peer: Peer, tls: Option<Arc<rustls::ServerConfig>>, place: Place) {
        if let Socket::Tcp(stream) = &socket
            && let Err(error) = tune(stream)
        {
            // It was gone again before that.
            tracing::debug!(%error, "a client's socket could not be set up");
            return;
        }
        // A task of each kind: the room of a future is that of its largest part, and most clients need the smallest.
        let scope = self.scope.clone();
        match (socket, tls) {
            (Socket::Unix(stream), _) => drop(scope.spawn("http", async move {
                Box::pin(self.admitted(&stream).speak(stream, peer, place)).await;
            })),
            (Socket::Tcp(stream), None) => drop(scope.spawn_lasting("http", self.speak(stream, peer, place))),
            (Socket::Tcp(stream), Some(tls)) => {
                drop(scope.spawn("http", async move {
                    if let Some(stream) = self.shake_hands(stream, tls).await {
                        Box::pin(self.speak(stream, peer, place)).await;
                    }
                }));
            }
        }
    }

    /// The way in for a client at the Unix socket: everywhere, or to a refusal.
    fn admitted(mut self, stream: &UnixStream) -> Self {
        if let Err(reason) = admit(&self.host, stream) {
            if self.refused.lock().is_due(Instant::now()) {
                let reason = reason.to_string();
                tracing::warn!(reason, "a client was refused at the Unix socket");
            }
            self.router = refusing(&reason);
        }
        self
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
        tls: Arc<rustls::ServerConfig>,
    ) -> Option<TlsStream<TcpStream>> {
        let handshake = Box::pin(TlsAcceptor::from(tls).accept(stream));
        tokio::select! {
            biased;
            shaken = handshake => {
                shaken.inspect_err(|error| tracing::debug!(%error, "a TLS handshake failed")).ok()
            }
            () = self.pulse.run_out(Instant::now(), HANDSHAKE) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }

    async fn speak<S>(self, stream: S, peer: Peer, _place: Place)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = auto::Builder::new(InScope(self.scope));
        let timer = ClientTimer::new(Arc::clone(&self.pulse));
        http.http1().timer(timer.clone()).header_read_timeout(NEXT_HEAD).max_buf_size(BUFFER);
        http.http2()
            .timer(timer)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .max_concurrent_streams(STREAMS);
        let router = TowerToHyperService::new(self.router);
        let turns = Arc::new(Turns::new(Instant::now()));
        let stream = TokioIo::new(WriteTimeout::new(stream, self.patience, self.pulse, Arc::clone(&turns)));
        let service =
            hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                turns.update(super::exchange::Exchange::requested);
                request.extensions_mut().insert(peer);
                let (answering, turns) =
                    (hyper::service::Service::call(&router, request), Arc::clone(&turns));
                async move { answering.await.map(|response| turns::answered(response, turns)) }
            });
        let begun = Instant::now();
        let connection = http.serve_connection_with_upgrades(stream, service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = &mut connection => ended,
            () = self.stop.cancelled() => {
                let left = FIRST_REQUEST.saturating_sub(begun.elapsed());
                match tokio::time::timeout(left, connection.as_mut()).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a client's connection ended");
        }
    }
}

/// Runs hyper's own tasks where their owner sees their end.
#[derive(Clone)]
struct InScope(TaskScope);

impl<F> hyper::rt::Executor<F> for InScope
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        drop(self.0.spawn("http stream", task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_said_now_and_then() {
        let (mut complaint, now) = (Complaint::default(), Instant::now());
        let said: Vec<bool> =
            [0, 1, 59, 60, 61, 119, 120].map(|at| complaint.is_due(now + Duration::from_secs(at))).into();
        assert_eq!(said, [true, false, false, true, false, false, true]);
    }
}
