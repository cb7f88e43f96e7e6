//! Prompting a session, and cancelling a turn (contract 7.3). Nothing that comes of either is waited for.

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::sessions::initiator;
use super::{SessionPath, body, find};
use crate::access::Needs;
use crate::identity::{Identity, Scope};
use acpd_host::{ClientRef, META, Prompted, method};
use acpd_record::{SessionId, TurnNumber};
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::sync::Arc;

/// In place of a connection: what a client over REST is asked, it is asked by its events.
const NO_CONNECTION: &str = "REST";

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
    let params = params(&id, prompt, key);
    let prompted = shared.host.prompt(&id, params, caller(&identity, &headers)).await?;
    Ok((StatusCode::ACCEPTED, Json(prompted.into())))
}

/// `POST /v1/sessions/{id}/cancel`: ends the running turn, as `session/cancel` does.
pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
) -> Result<StatusCode, Problem> {
    find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    let live = shared.host.session(&id).await?;
    live.notify(method::SESSION_CANCEL.to_owned(), None, caller(&identity, &headers)).await;
    Ok(StatusCode::ACCEPTED)
}

/// A caller as a client of a session.
pub(super) fn caller(identity: &Identity, headers: &HeaderMap) -> ClientRef {
    ClientRef { name: initiator(identity, headers).into(), connection: NO_CONNECTION.into() }
}

/// The params of `session/prompt`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    session_id: &'a SessionId,
    prompt: Blocks<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none", serialize_with = "in_own_meta")]
    meta: Option<Key<'a>>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Key<'a> {
    idempotency_key: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Blocks<'a> {
    Given(&'a RawValue),
    Text([TextBlock<'a>; 1]),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct TextBlock<'a> {
    text: &'a RawValue,
}

fn in_own_meta<S: Serializer>(own: &Option<Key<'_>>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut meta = serializer.serialize_map(Some(1))?;
    meta.serialize_entry(META, own)?;
    meta.end()
}

fn params(session_id: &SessionId, prompt: &RawValue, key: Option<&str>) -> Bytes {
    let prompt = match prompt.get().starts_with('"') {
        true => Blocks::Text([TextBlock { text: prompt }]),
        // What is no array of blocks is refused as it is over ACP.
        false => Blocks::Given(prompt),
    };
    let meta = key.map(|idempotency_key| Key { idempotency_key });
    serde_json::to_vec(&Params { session_id, prompt, meta }).expect("all of its members are JSON").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: a string is one block of text, an array is passed on as it is
    #[test]
    fn a_prompt_is_as_over_acp() {
        let id = SessionId::parse("s").expect("an id");
        let of = |prompt: &str, key| {
            let params = params(&id, serde_json::from_str(prompt).expect("JSON"), key);
            String::from_utf8(params.to_vec()).expect("text")
        };
        assert_eq!(
            of(r#""a\u0062""#, None),
            r#"{"sessionId":"s","prompt":[{"type":"text","text":"a\u0062"}]}"#
        );
        assert_eq!(
            of(r#"[ {"x":1.0} ]"#, Some("k")),
            r#"{"sessionId":"s","prompt":[ {"x":1.0} ],"_meta":{"sandboxagent.dev":{"idempotencyKey":"k"}}}"#
        );
    }
}
