//! What a prompt may contain (PR-2), read once, where it enters the session. Pure.

use crate::acp::{META, view};
use crate::agent::PromptCapabilities;
use crate::error::HostError;
use acpd_record::RequestKey;
use acpd_wire::{member, span_of, splice};
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// The params of a prompt that was read.
#[derive(Debug)]
pub(super) struct PromptParams {
    /// Under the agent's session id.
    pub(super) params: Bytes,
    /// Where the content blocks stand in them.
    pub(super) content: Range<usize>,
    /// The client's key for it.
    pub(super) key: Option<RequestKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt: &'a RawValue,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

/// Reads a prompt and puts the agent's session id `native` in place of ours. Content that the agent has not said it takes is
/// refused; text and resource links always pass.
pub(super) fn read(
    params: Option<Bytes>,
    agent: PromptCapabilities,
    native: &str,
) -> Result<PromptParams, HostError> {
    let params = params.unwrap_or_default();
    let read = view::<Params<'_>>(&params).ok_or_else(no_blocks)?;
    check_content(read.prompt, agent)?;
    let key = read.meta.map(|meta| key_in(meta, read.prompt)).transpose()?.flatten();
    let content = span_of(&params, read.prompt).expect("it was borrowed from there");
    let Some(session) = read.session_id.and_then(|session| span_of(&params, session)) else {
        return Ok(PromptParams { params, content, key });
    };
    let mut out = BytesMut::with_capacity(params.len() + native.len());
    let length = session.len();
    let moves = |at: usize| if session.start < content.start { at + native.len() - length } else { at };
    let content = moves(content.start)..moves(content.end);
    splice(&mut out, &params, &[(session, native.as_bytes())]);
    Ok(PromptParams { params: out.freeze(), content, key })
}

/// The key of a prompt, for those that do not pass it on. What else is wrong with it does not matter.
pub(crate) fn key_of(params: &[u8]) -> Result<Option<RequestKey>, HostError> {
    let Some(Params { prompt, meta: Some(meta), .. }) = view(params) else { return Ok(None) };
    key_in(meta, prompt)
}

/// `_meta["sandboxagent.dev"].idempotencyKey` (contract 7.3).
fn key_in(meta: &RawValue, prompt: &RawValue) -> Result<Option<RequestKey>, HostError> {
    let own = member(meta, META).and_then(|own| member(own, "idempotencyKey"));
    let Some(given) = own.filter(|given| given.get() != "null") else { return Ok(None) };
    let key = crate::acp::text(given).and_then(|key| RequestKey::new(&key, prompt));
    key.map(Some).ok_or_else(|| HostError::InvalidParams {
        message: format!(
            "_meta[{META:?}].idempotencyKey: a string of 1 to {} visible ASCII characters is required",
            RequestKey::LONGEST
        ),
    })
}

fn no_blocks() -> HostError {
    let message = "prompt: an array of content blocks is required, each an object with a type".to_owned();
    HostError::InvalidParams { message }
}

/// Whether the agent takes this content.
pub(crate) fn check_content(content: &RawValue, agent: PromptCapabilities) -> Result<(), HostError> {
    let blocks: Vec<Block<'_>> = view(content.get().as_bytes()).ok_or_else(no_blocks)?;
    for (place, block) in blocks.iter().enumerate() {
        let (taken, capability) = match block.kind.as_ref() {
            "image" => (agent.image, "image"),
            "audio" => (agent.audio, "audio"),
            "resource" => (agent.embedded_context, "embeddedContext"),
            // Kinds that acpd does not know are the agent's to judge.
            _ => continue,
        };
        if !taken {
            let message = format!(
                "prompt[{place}]: this agent does not take content of type {:?} (promptCapabilities.{capability} is not set)",
                block.kind
            );
            return Err(HostError::InvalidParams { message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(params: &str, agent: PromptCapabilities) -> Option<String> {
        let params = Some(Bytes::copy_from_slice(params.as_bytes()));
        read(params, agent, "\"native\"").err().map(|error| error.to_string())
    }

    // PR-2
    #[test]
    fn content_the_agent_lacks_is_refused_with_its_place() {
        let none = PromptCapabilities::default();
        let prompt =
            |kind: &str| format!(r#"{{"prompt":[{{"type":"text","text":"a"}},{{"type":"{kind}"}}]}}"#);
        for kind in ["text", "resource_link", "something_new"] {
            assert_eq!(said(&prompt(kind), none), None, "{kind}");
        }
        for kind in ["image", "audio", "resource"] {
            let message = said(&prompt(kind), none).expect("refused");
            assert!(message.starts_with("prompt[1]: ") && message.contains(kind), "{message}");
        }
        let all = PromptCapabilities { image: true, audio: true, embedded_context: true };
        assert_eq!(said(&prompt("image"), all), None);
    }

    // FR-10
    #[test]
    fn a_prompt_of_another_shape_is_refused() {
        for params in [r#"{}"#, r#"{"prompt":"text"}"#, r#"{"prompt":[1]}"#, r#"{"prompt":[{}]}"#] {
            assert!(said(params, PromptCapabilities::default()).expect("refused").starts_with("prompt: "));
        }
    }

    // contract 7.3: the key of a prompt is read, and what cannot be one is named
    #[test]
    fn a_key_is_read() {
        let params = |key: &str| {
            format!(r#"{{"prompt":[],"_meta":{{"x":1,"sandboxagent.dev":{{"idempotencyKey":{key}}}}}}}"#)
        };
        let key = |params: &str| {
            let read =
                read(Some(params.to_owned().into()), PromptCapabilities::default(), "\"n\"").expect("read");
            assert_eq!(key_of(params.as_bytes()).expect("the same"), read.key);
            read.key.map(|key| key.as_str().to_owned())
        };
        assert_eq!(key(&params(r#""a-1""#)).as_deref(), Some("a-1"));
        for none in [params("null"), r#"{"prompt":[]}"#.to_owned(), r#"{"prompt":[],"_meta":7}"#.to_owned()] {
            assert_eq!(key(&none), None, "{none}");
        }
        for wrong in ["7", "\"\"", "\"a b\"", "{}"] {
            let message = said(&params(wrong), PromptCapabilities::default()).expect("refused");
            assert!(message.starts_with("_meta[\"sandboxagent.dev\"].idempotencyKey: "), "{message}");
        }
    }

    // SE-1: the content is found where it stands after the agent's id has taken the place of ours
    #[test]
    fn the_content_is_where_it_is_said_to_be() {
        for params in [
            r#"{"sessionId":"a-long-id-of-ours","prompt":[ {"type":"text"} ],"x":1.0}"#,
            r#"{"prompt":[ {"type":"text"} ],"sessionId":"a-long-id-of-ours"}"#,
            r#"{"prompt":[ {"type":"text"} ]}"#,
        ] {
            let read = read(Some(params.into()), PromptCapabilities::default(), "\"n\"").expect("it is one");
            assert_eq!(&read.params[read.content], br#"[ {"type":"text"} ]"#);
            assert_eq!(read.params, params.replace("a-long-id-of-ours", "n"));
        }
    }
}
