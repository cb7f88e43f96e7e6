//! `/acp`: clients that speak ACP over HTTP, by POST and event streams, or over a WebSocket.
//!
//! Wire contract of ACP's draft "streamable HTTP and WebSocket transport", with what it leaves open: event ids, streams
//! that are taken up again, stalls and expiry. Each HTTP connection and each WebSocket is one
//! [`connection`](crate::serve); its end ends no session. Everything here has passed the guard.

mod connections;
mod delete;
mod events;
mod headers;
mod initialize;
mod message;
mod post;
mod websocket;

use super::forwarding::token_for_others;
use super::handshake::Handshake;
use super::parameters;
use super::problem::Problem;
use super::settings::Shared;
use crate::connection::ConnectionOptions;
use crate::fleet::{FORWARDED_BY, exists_for};
use crate::identity::Identity;
use crate::relay::{FleetAccess, Served};
use acpd_api::{ProblemKind, member_names};
use acpd_record::SessionId;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use connections::Connections;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;

/// Messages of one client that are read ahead of its connection. Full: a POST waits, a WebSocket is not read.
const ARRIVALS: usize = 16;

/// The door of ACP clients.
pub(super) struct Acp {
    shared: Arc<Shared>,
    connections: Connections,
}

impl Acp {
    /// A door; what is left behind at it is cleared away until the daemon stops.
    pub(super) fn open(shared: Arc<Shared>) -> Arc<Self> {
        let acp = Arc::new(Self { shared, connections: Connections::default() });
        acp.shared.host.scope().spawn("acp connections", connections::sweep(Arc::clone(&acp)));
        acp
    }

    /// Whether a session is there for a caller.
    async fn exists(&self, session: &SessionId, identity: &Identity) -> bool {
        let fleet = self.shared.fleet();
        if let Some(fleet) = fleet {
            let _is_sure = fleet.is_sure(&self.shared.host, session, identity).await;
        }
        let elsewhere = fleet.and_then(|fleet| fleet.member.elsewhere(session));
        elsewhere.is_some_and(|owned| exists_for(&owned, identity))
            || self.shared.host.find(session, |creator| identity.sees(creator)).await.is_ok()
    }

    /// How a client's connection is served.
    fn served(&self, identity: Identity, head: &Parts, transport: &'static str) -> Result<Served, Problem> {
        let settings = self.shared.settings();
        let Query(query) = Query::<AcpQuery>::try_from_uri(&head.uri)
            .map_err(|error| Problem::bad_request(format!("query: {}", error.body_text())))?;
        let fleet = self.shared.fleet();
        let options = ConnectionOptions {
            identity,
            agent: query.agent.unwrap_or_else(|| settings.default_agent.clone()),
            transport,
            ends_host: false,
            session_stop: settings.session_stop,
            fleet: fleet.cloned(),
        };
        let access = fleet.map(|fleet| FleetAccess {
            farewell: self.shared.daemon.farewell.clone(),
            fleet: fleet.clone(),
            token: token_for_others(&head.headers),
            is_forwarded: head.headers.contains_key(FORWARDED_BY),
        });
        Ok(Served { options, access })
    }
}

/// What a connection may ask for with its first request.
#[derive(Deserialize)]
struct AcpQuery {
    /// The agent that its sessions run on.
    agent: Option<String>,
}

/// `/acp`, for requests that carry their [`Identity`].
pub(super) fn routes<S: Clone + Send + Sync + 'static>(acp: Arc<Acp>) -> Router<S> {
    Router::new().route("/acp", any(answer)).with_state(acp)
}

async fn answer(State(acp): State<Arc<Acp>>, request: Request) -> Response {
    if let Err(problem) = parameters::check(request.uri(), member_names::<AcpQuery>()) {
        return problem.into_response();
    }
    let Some(identity) = request.extensions().get::<Identity>().cloned() else {
        return Problem::new(
            StatusCode::UNAUTHORIZED,
            ProblemKind::Unauthorized,
            "the request has no identity",
        )
        .into_response();
    };
    let answered = match *request.method() {
        Method::POST => post::post(&acp, identity, request).await,
        Method::GET if Handshake::is_wanted(request.headers()) => websocket::upgrade(&acp, identity, request),
        Method::GET => events::open(&acp, &identity, request.headers()).await,
        Method::DELETE => delete::delete(&acp, &identity, request.headers()),
        _ => Err(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            ProblemKind::MethodNotAllowed,
            "GET, POST and DELETE are served here",
        )
        .with(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"))),
    };
    answered.unwrap_or_else(IntoResponse::into_response)
}
