//! Prompting a session without waiting for the end of the turn, and the prompts of one that has ended.

use crate::acp::META;
use crate::error::HostError;
use crate::host::Host;
use crate::session::{self, ClientRef, Prompted};
use acpd_record::{KeyedEnd, KeyedTurn, RequestKey, SessionId, SessionMeta};
use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;

impl Host {
    /// Prompts a live session; `params` are those of `session/prompt`. The turn has begun then, and that is committed, or
    /// the prompt waits in line. A prompt that came before under its key is not begun again, and is found also when the
    /// session has ended.
    ///
    /// # Errors
    /// When there is no such session or it has ended, as many prompts wait as may, or the params are wrong.
    pub async fn prompt(
        &self,
        id: &SessionId,
        params: Bytes,
        client: ClientRef,
    ) -> Result<Prompted, HostError> {
        let prompted = match self.session(id).await {
            Ok(live) => live.prompt(params.clone(), client).await,
            Err(error) => Err(error),
        };
        let refused = match prompted {
            Err(refused @ (HostError::SessionEnded { .. } | HostError::Fenced)) => refused,
            prompted => return prompted,
        };
        if let Some(key) = session::key_of(&params)?
            && let Some(prompted) = self.stored(id, &key).await?
        {
            return Ok(prompted);
        }
        self.pass_fence(id).await?;
        Err(refused)
    }

    /// Lets a client go on with a session that is not live, unless it may not run here now.
    ///
    /// # Errors
    /// [`HostError::Fenced`] then; when there is no such session.
    pub async fn pass_fence(&self, id: &SessionId) -> Result<(), HostError> {
        let fence = &self.shared.fleet.fence;
        if !fence.is_up() {
            return Ok(());
        }
        let row = self.shared.store.row(id).await?;
        fence.pass(SessionMeta::read(&row.info).partition)
    }

    /// The answer to a prompt of an ended session that came before under its key, if its turn had an end of its own.
    ///
    /// # Errors
    /// When the session cannot be read, or the key belongs to another prompt.
    pub async fn answered_before(
        &self,
        id: &SessionId,
        params: &[u8],
    ) -> Result<Option<Result<Bytes, HostError>>, HostError> {
        let Some(key) = session::key_of(params)? else { return Ok(None) };
        let known = self.stored_turn(id, &key).await?;
        let ended = known.as_ref().and_then(|known| Some((known.turn, known.end.as_ref()?)));
        let ended = ended.filter(|(_, end)| !matches!(end, KeyedEnd::Interrupted));
        Ok(ended.map(|(turn, end)| session::told_again(turn, end)))
    }

    /// The prompt of an ended session under a key.
    async fn stored(&self, id: &SessionId, key: &RequestKey) -> Result<Option<Prompted>, HostError> {
        let known = self.stored_turn(id, key).await?;
        Ok(known.map(|known| Prompted::Began { turn: known.turn, seq: known.seq }))
    }

    async fn stored_turn(&self, id: &SessionId, key: &RequestKey) -> Result<Option<KeyedTurn>, HostError> {
        let row = self.shared.store.row(id).await?;
        let _one_of_few = self.shared.store.one_of_few().await;
        let meta = SessionMeta::read(&row.info);
        let log = self.shared.store.recall(id, &meta, row.last_seq).await?;
        Ok(session::turn_under(&log, key)?.cloned())
    }
}

/// The content blocks of a prompt that may be a text instead.
pub fn prompt_content(prompt: &RawValue) -> Cow<'_, RawValue> {
    #[derive(Serialize)]
    #[serde(tag = "type", rename = "text")]
    struct TextBlock<'a> {
        text: &'a RawValue,
    }
    match prompt.get().starts_with('"') {
        true => Cow::Owned(to_raw_value(&[TextBlock { text: prompt }]).expect("its member is JSON")),
        // What is no array of blocks is refused as it is over ACP.
        false => Cow::Borrowed(prompt),
    }
}

/// Returns `true` for the params of a prompt that may have been sent before: one under a key, or one that cannot be read.
pub fn may_come_again(params: &[u8]) -> bool {
    !matches!(session::key_of(params), Ok(None))
}

/// The params of `session/prompt`, under a key if there is one.
pub fn prompt_params(session_id: &SessionId, prompt: &RawValue, key: Option<&str>) -> Bytes {
    let meta = key.map(|idempotency_key| Key { idempotency_key });
    serde_json::to_vec(&Params { session_id, prompt, meta }).expect("all of its members are JSON").into()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    session_id: &'a SessionId,
    prompt: &'a RawValue,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none", serialize_with = "in_own_meta")]
    meta: Option<Key<'a>>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Key<'a> {
    idempotency_key: &'a str,
}

fn in_own_meta<S: Serializer>(own: &Option<Key<'_>>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut meta = serializer.serialize_map(Some(1))?;
    meta.serialize_entry(META, own)?;
    meta.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: a string is one block of text, an array is passed on as it is
    #[test]
    fn a_prompt_is_as_over_acp() {
        let id = SessionId::parse("s").expect("an id");
        let of = |prompt: &str, key| {
            let prompt = serde_json::from_str(prompt).expect("JSON");
            let params = prompt_params(&id, &prompt_content(prompt), key);
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
