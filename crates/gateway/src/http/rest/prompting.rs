//! Prompting a session, and cancelling a turn (contract 7.3). Nothing that comes of either is waited for.

use super::super::problem::{Kind, Problem};
use super::super::settings::Shared;
use super::sessions::initiator;
use super::{SessionPath, body, find};
use crate::access::Needs;
use crate::identity::{Identity, Scope};
use acpd_host::{ClientRef, Prompted, method, prompt_content, prompt_params};
use acpd_record::{ConnectionId, TurnNumber};
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// A prompt.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct PromptBody<'a> {
    /// Text, or content blocks as in ACP.
    #[serde(borrow)]
    #[cfg_attr(test, schemars(with = "Content"))]
    prompt: &'a RawValue,
}

/// Text, or content blocks as in ACP.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only described")]
pub(super) enum Content {
    /// Text.
    Text(String),
    /// Content blocks.
    Blocks(Vec<ContentBlock>),
}

/// A content block of ACP. Its members depend on its type.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
pub(super) struct ContentBlock {
    /// `text`, or another that the agent takes.
    #[serde(rename = "type")]
    _type: String,
}

/// Where a prompt is.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PromptAccepted {
    /// Its turn, which has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<TurnNumber>,
    /// The event that began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// Instead, for a prompt that waits in line and is no event yet: the prompts before it, with the one that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<usize>,
}

impl From<Prompted> for PromptAccepted {
    fn from(prompted: Prompted) -> Self {
        match prompted {
            Prompted::Began { turn, seq } => Self { turn: Some(turn), seq: Some(seq), waiting: None },
            Prompted::Waits { before } => Self { turn: None, seq: None, waiting: Some(before) },
        }
    }
}

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
    Ok((StatusCode::ACCEPTED, Json(prompted.into())))
}

/// Which prompt to cancel.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CancelBody {
    /// The key that the prompt was sent under, over REST or ACP. Without one the running turn is cancelled.
    // Null is no key, and would cancel what runs.
    #[serde(default, with = "serde_with::rust::unwrap_or_skip")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    idempotency_key: Option<String>,
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
    Err(Problem::new(StatusCode::CONFLICT, Kind::PromptOver, detail).about(id.as_str()))
}

/// A caller as a client of a session.
pub(super) fn caller(identity: &Identity, headers: &HeaderMap) -> ClientRef {
    ClientRef { name: initiator(identity, headers).into(), connection: ConnectionId::rest() }
}
