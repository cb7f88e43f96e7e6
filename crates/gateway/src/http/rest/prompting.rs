//! Prompting a session, and cancelling a turn (contract 7.3). Nothing that comes of either is waited for.

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::sessions::initiator;
use super::{SessionPath, body, find};
use crate::access::Needs;
use crate::identity::Identity;
use acpd_api::{CancelBody, ProblemKind, PromptAccepted, PromptBody, Scope};
use acpd_host::{ClientRef, Prompted, method, prompt_content, prompt_params};
use acpd_record::ConnectionId;
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// `POST /v1/sessions/{id}/prompt`: begins a turn, or puts the prompt in line.
pub(super) async fn prompt(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
    body: Body,
) -> Result<(StatusCode, Json<PromptAccepted>), Problem> {
    find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    let key = body::key(&headers)?;
    let body = body::read(&shared, &headers, body).await?;
    let PromptBody { prompt } = body::parse(&body)?;
    let params = prompt_params(&id, &prompt_content(prompt), key);
    let prompted = shared.host.prompt(&id, params, caller(&identity, &headers)).await?;
    let accepted = match prompted {
        Prompted::Began { turn, seq } => PromptAccepted { turn: Some(turn), seq: Some(seq), waiting: None },
        Prompted::Waits { before } => PromptAccepted { turn: None, seq: None, waiting: Some(before) },
    };
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// `POST /v1/sessions/{id}/cancel`: ends the running turn, as `session/cancel` does, or the prompt under a key.
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
    body: Body,
) -> Result<StatusCode, Problem> {
    find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    let body = body::read_if_any(&shared, &headers, body).await?;
    let CancelBody { idempotency_key } = body.as_ref().map_or(Ok(CancelBody::default()), body::parse)?;
    let live = shared.host.session(&id).await?;
    let client = caller(&identity, &headers);
    let Some(key) = idempotency_key else {
        live.notify(method::SESSION_CANCEL.to_owned(), None, client).await;
        return Ok(StatusCode::ACCEPTED);
    };
    if live.take_back(key.clone(), client).await? {
        return Ok(StatusCode::ACCEPTED);
    }
    let detail =
        format!("idempotencyKey: no prompt under {key:?} waits or runs: its turn is over, or there was none");
    Err(Problem::new(StatusCode::CONFLICT, ProblemKind::PromptOver, detail).about(id.as_str()))
}

/// A caller as a client of a session.
pub(super) fn caller(identity: &Identity, headers: &HeaderMap) -> ClientRef {
    ClientRef { name: initiator(identity, headers).into(), connection: ConnectionId::rest() }
}
