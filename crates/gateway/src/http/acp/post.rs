//! `POST /acp`: one message of a client.
//!
//! Accepted once its connection has it; the answer to a request comes on a stream, but for `initialize`, which makes a
//! connection and is answered at once.

use super::super::accept::accepts;
use super::super::body;
use super::super::problem::Problem;
use super::super::sse::Sse;
use super::connections::unknown;
use super::headers::{self, SESSION, connection_id};
use super::message::{addressed, is_initialize, on_one_row};
use super::{Acp, initialize};
use crate::connection::Arrival;
use crate::identity::Identity;
use acpd_api::ProblemKind;
use acpd_record::SessionId;
use acpd_wire::{Malformed, Message, RawId, codes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use std::sync::Arc;
use std::time::Duration;

/// The longest `initialize`, in bytes.
const INITIALIZE: usize = 1 << 20;
/// How long a message may wait for its connection.
const TAKEN: Duration = Duration::from_secs(10);

pub(super) async fn post(acp: &Arc<Acp>, identity: Identity, request: Request) -> Result<Response, Problem> {
    let (head, body) = request.into_parts();
    if !body::is_json(&head.headers) {
        return Err(body::not_json("a message is sent as application/json"));
    }
    // Clients are of two minds about what they should accept here.
    if accepts(&head.headers, &["application/json", Sse::KIND]) == Some(false) {
        let detail = "the answers are application/json and text/event-stream";
        return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, ProblemKind::NotAcceptable, detail));
    }
    let announced = body::announced(&head.headers);
    let connection = connection_id(&head.headers).and_then(|id| acp.connections.find(id, &identity));
    let most = acp.shared.settings().message_bytes;
    // A client without one, or one that has lost it, may only initialize one.
    let most = if connection.is_ok() { most } else { most.min(INITIALIZE) };
    let line = on_one_row(body::read(body, announced, most, (&acp.shared.bodies, &acp.shared.pulse)).await?);
    let message = match Message::parse(&line) {
        Ok(message) => message,
        Err(malformed) => return Ok(refused(&malformed)),
    };
    if is_initialize(&message) {
        let served = acp.served(identity, &head, "http")?;
        return initialize::initialize(acp, served, line.clone()).await;
    }
    let connection = connection?;
    let named = headers::id(&head.headers, &SESSION)?;
    let (line, session) = addressed(line.clone(), &message, named)
        .map_err(|wrong| Problem::new(StatusCode::BAD_REQUEST, ProblemKind::SessionId, wrong.to_string()))?;
    // A session in the header must be there: for the connection, or for the identity.
    if let Some(named) = named {
        let there = match SessionId::parse(named) {
            Some(id) => connection.streams.knows(&id) || acp.exists(&id, &identity).await,
            None => false,
        };
        if !there {
            return Err(Problem::session_not_found(named));
        }
    }
    let session = session.as_deref().and_then(SessionId::parse);
    connection.streams.heard(session.as_ref());
    let arrivals = connection.arrivals().ok_or_else(unknown)?;
    match tokio::time::timeout(TAKEN, arrivals.send(Arrival::Line(line))).await {
        Ok(Ok(())) => Ok(StatusCode::ACCEPTED.into_response()),
        Ok(Err(_over)) => Err(unknown()),
        Err(_full) => Err(Problem::busy("this connection has too many requests open")),
    }
}

/// What is no message is not executed, nor any part of it.
fn refused(malformed: &Malformed<'_>) -> Response {
    let mut body = BytesMut::new();
    let (id, code) = match malformed.code() {
        Some(code) => (malformed.answer_id(), code),
        // A stream would answer nothing; a POST is always answered.
        None => (RawId::NULL, codes::INVALID_REQUEST),
    };
    acpd_wire::write_error(&mut body, id, code, &malformed.to_string(), None);
    json(StatusCode::BAD_REQUEST, body.freeze())
}

/// A JSON-RPC message as an answer over HTTP.
pub(super) fn json(status: StatusCode, line: Bytes) -> Response {
    let end = line.len() - usize::from(line.ends_with(b"\n"));
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, kind, line.slice(..end)).into_response()
}
