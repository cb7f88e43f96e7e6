//! The client of other nodes: its connections are kept, since a new one with TLS takes longer than most answers.

use super::{Dial, PeerStream};
use acpd_host::chain;
use axum::body::Body;
use http::{HeaderName, Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The node that a request came by.
pub(crate) const FORWARDED_BY: HeaderName = HeaderName::from_static("acpd-forwarded-by");
/// After so long without an answer a node is asked whether it lives, again and again.
pub(crate) const ASK_AFTER: Duration = Duration::from_millis(1500);
/// How long a connection that nothing uses is kept: a node in front of which is a proxy may close it sooner than that.
const IDLE: Duration = Duration::from_secs(20);
/// And how many to each node.
const IDLE_CONNECTIONS: usize = 32;
/// How long a node may take to say that it lives.
const LIFE: Duration = Duration::from_secs(2);

/// How to connect, for the pool.
#[derive(Clone)]
struct Connector(Arc<dyn Dial>);

/// A connection to a node.
struct Carried(Box<dyn PeerStream>);

/// Sends requests to nodes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct PeerClient(Client<Connector, Body>);

/// Why a node has not answered.
#[derive(Debug)]
pub(crate) struct PeerError {
    /// In one line.
    pub(crate) reason: String,
    /// There was no connection, so nothing of the request was sent.
    pub(crate) is_unsent: bool,
}

impl PeerError {
    fn lost(reason: &str) -> Self {
        Self { reason: reason.to_owned(), is_unsent: false }
    }
}

impl PeerClient {
    pub(crate) fn new(dial: Arc<dyn Dial>) -> Self {
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_idle_timeout(IDLE).pool_max_idle_per_host(IDLE_CONNECTIONS).pool_timer(TokioTimer::new());
        Self(client.build(Connector(dial)))
    }

    /// Sends a request, whose address is a path, to the node at `address`; the head of its answer.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn send(
        &self,
        address: &str,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, PeerError> {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = format!("{address}{path}").parse::<Uri>().map_err(|error| PeerError {
            reason: format!("its address is none: {error}"),
            is_unsent: true,
        })?;
        let answer = self.0.request(request).await.map(|answer| answer.map(Body::new));
        answer.map_err(|error| PeerError { reason: chain(&error), is_unsent: error.is_connect() })
    }

    /// Asks a node whether it lives.
    ///
    /// # Errors
    /// Why it counts as gone. What was sent before may have been done.
    pub(crate) async fn lives(&self, address: &str) -> Result<(), PeerError> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = Uri::from_static("/v1/health");
        match tokio::time::timeout(LIFE, self.send(address, request)).await {
            Ok(answer) => answer.map(drop).map_err(|error| PeerError { is_unsent: false, ..error }),
            Err(_) => Err(PeerError::lost("it takes connections and says nothing")),
        }
    }
}

impl fmt::Debug for PeerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerClient").finish_non_exhaustive()
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<Carried>;
    type Error = io::Error;
    type Future = acpd_host::Pending<'static, io::Result<TokioIo<Carried>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let dial = Arc::clone(&self.0);
        Box::pin(async move {
            let scheme = to.scheme_str().unwrap_or("http");
            let authority = to.authority().map(http::uri::Authority::as_str).unwrap_or_default();
            let stream = dial.dial(format!("{scheme}://{authority}")).await;
            stream.map(|stream| TokioIo::new(Carried(stream))).map_err(io::Error::other)
        })
    }
}

impl Connection for Carried {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Carried {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Carried {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
