//! The network front door: HTTP/1.1 and HTTP/2 on TCP, TLS and a Unix socket.
//!
//! A request passes the guard (Host, Origin, token), then goes to `/acp`, where clients speak ACP, or to REST, where
//! they look at sessions and prompt them. Nothing here decides about sessions.

mod accept;
mod acp;
mod body;
mod codes;
mod event_socket;
mod exchange;
mod forwarded_headers;
mod forwarded_stream;
mod forwarding;
mod guard;
mod handshake;
mod health;
mod journal;
mod listen;
mod local_peer;
mod metrics;
mod pages;
mod parameters;
mod problem;
mod pulse;
mod rest;
mod secret;
mod settings;
mod sse;
mod timer;
mod tls;
mod tokens;
mod turns;
mod write_timeout;

pub use listen::Listener;
pub use metrics::{Measurements, MeasurementsError};
pub use rest::{Asked, EventRenderer};
pub use settings::HttpSettings;
pub use tls::{TlsError, tls_config};
pub use tokens::{TokenHash, Tokens, fingerprint, hash_token};

use crate::agent_list::AgentSight;
use crate::fleet::Fleet;
use acp::Acp;
use acpd_api::ProblemKind;
use acpd_host::{Host, Pending};
use acpd_inspector::Pages;
use axum::routing::get;
use axum::{Router, middleware};
use http::{HeaderName, Method, StatusCode, header};
use problem::Problem;
use settings::Shared;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a client that has taken nothing for too long may take to read why it was closed.
const FAREWELL: Duration = Duration::from_secs(30);
/// How long connections may take to end after their streams did.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a client came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Over the Unix socket, which only its owner can open.
    Unix,
    /// Over TCP, at this address of ours.
    Tcp {
        /// The address that the client called.
        local: SocketAddr,
        /// From this address.
        remote: SocketAddr,
        /// With TLS.
        tls: bool,
    },
}

/// For the log.
impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix => f.write_str("unix"),
            Self::Tcp { remote, .. } => write!(f, "{remote}"),
        }
    }
}

/// The front door of a daemon.
#[derive(Clone)]
pub struct HttpServer {
    shared: Arc<Shared>,
}

impl HttpServer {
    /// A door to `host` for the bearers of `tokens`, with what `sight` sees of agents and `pages` for browsers, and what the daemon
    /// itself is asked, which is to be answered; streams end when `stop` is cancelled.
    pub fn new(
        host: Host,
        tokens: Tokens,
        settings: HttpSettings,
        sight: Arc<dyn AgentSight>,
        pages: Pages,
        measurements: Option<Measurements>,
        stop: CancellationToken,
    ) -> (Self, mpsc::Receiver<Asked>) {
        let (shared, asked) = Shared::new(host, tokens, settings, sight, pages, measurements, stop);
        (Self { shared: Arc::new(shared) }, asked)
    }

    /// Goes by these settings from now on.
    pub fn set(&self, settings: HttpSettings) {
        self.shared.set(settings);
    }

    /// Is one of the doors of a fleet from now on.
    pub fn join(&self, fleet: Fleet) {
        let _joined_before = self.shared.daemon.fleet.set(fleet);
    }

    /// Has streams say, when they end, that the next image of acpd goes on.
    pub fn hand_over(&self) {
        self.shared.daemon.farewell.hand_over();
    }

    /// Serves clients on `listeners`: accepts until `quit` is cancelled, then waits for the token that ends streams, and
    /// then a second at most for the connections.
    pub fn serve(&self, listeners: Vec<Listener>, quit: CancellationToken) -> Pending<'_, ()> {
        Box::pin(self.serve_until(listeners, quit))
    }

    async fn serve_until(&self, listeners: Vec<Listener>, quit: CancellationToken) {
        let scope = self.shared.host.scope().child(tracing::Span::none());
        // As long as there are clients: without a beat every wait for one would seem to begin anew.
        let (pulse, served) = (Arc::clone(&self.shared.pulse), CancellationToken::new());
        let _until_served = served.clone().drop_guard();
        scope.spawn("pulse", {
            let served = served.clone();
            async move { served.run_until_cancelled(pulse.keep()).await }
        });
        let tokens = self.shared.tokens.clone();
        scope.spawn("expiries", {
            let served = served.clone();
            async move { served.run_until_cancelled(tokens.watch_expiries()).await }
        });
        if let Some(measurements) = self.shared.measurements.clone() {
            let served = served.clone();
            scope.spawn("steps", async move { served.run_until_cancelled(measurements.keep_steps()).await });
        }
        let watched = self.shared.host.clone();
        scope.spawn("readiness", async move { watched.watch().await });
        // A stalled client is told so, if it reads again in time.
        let patience = self.shared.settings().viewer_stall + FAREWELL;
        let router = self.router();
        let connections = acpd_host::TaskScope::default();
        let accepting: Vec<_> = listeners
            .into_iter()
            .map(|listener| {
                let door = listen::Door {
                    router: router.clone(),
                    host: self.shared.host.clone(),
                    refused: Arc::default(),
                    scope: connections.clone(),
                    quit: quit.clone(),
                    stop: self.shared.stop.clone(),
                    patience,
                    pulse: Arc::clone(&self.shared.pulse),
                };
                scope.spawn("listener", listen::accept(listener, door))
            })
            .collect();
        for listener in accepting {
            let _ended = listener.await;
        }
        self.shared.stop.cancelled().await;
        if tokio::time::timeout(LAST_WORDS, connections.finished()).await.is_err() {
            tracing::debug!("some clients did not close their connections in time");
        }
    }

    // The layers of a tuple, of which the first is the outermost, are one to axum, which copies all below each of them for
    // each request.
    fn router(&self) -> Router {
        let shared = &self.shared;
        let guarded = acp::routes(Acp::open(Arc::clone(shared)))
            .merge(rest::routes())
            .route("/metrics", get(metrics::metrics))
            .fallback(async || {
                Problem::new(StatusCode::NOT_FOUND, ProblemKind::NotFound, "there is nothing at this path")
            })
            .method_not_allowed_fallback(not_allowed)
            .layer((
                middleware::from_fn_with_state(Arc::clone(shared), guard::check_token),
                middleware::from_fn_with_state(Arc::clone(shared), event_socket::upgrade),
                middleware::from_fn_with_state(Arc::clone(shared), forwarding::forward),
            ));
        rest::open_routes()
            .method_not_allowed_fallback(not_allowed)
            .with_state(Arc::clone(shared))
            .merge(guarded.with_state(Arc::clone(shared)))
            .layer((
                middleware::from_fn_with_state(Arc::clone(shared), journal::observe),
                middleware::from_fn(problem::answer_panics),
                middleware::from_fn_with_state(Arc::clone(shared), guard::check_place),
                cors(Arc::clone(shared)),
                middleware::from_fn_with_state(Arc::clone(shared), pages::show),
            ))
    }
}

impl std::fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").finish_non_exhaustive()
    }
}

/// The header `Allow` comes with the route.
async fn not_allowed() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        ProblemKind::MethodNotAllowed,
        "Allow says what is served here",
    )
}

/// Answers browsers that ask first, for the pages that may call.
fn cors(shared: Arc<Shared>) -> CorsLayer {
    let exposed = [HeaderName::from_static("acp-connection-id"), header::RETRY_AFTER];
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| {
            guard::is_allowed_origin(&shared.settings().allowed_origins, origin)
        }))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers([
            header::ACCEPT,
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("acp-connection-id"),
            HeaderName::from_static("acp-session-id"),
            rest::CLIENT,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
        ])
        .expose_headers(exposed)
        .max_age(Duration::from_secs(600))
}
