//! Giving an agent the transcript of a session that it could not resume or load.
//!
//! Part of the session task. Invariant: the prompt in the log is the user's own; what was added to it is an event of its
//! own.

use super::{Outputs, SessionTask};
use crate::acp;
use crate::agent::Ticket;
use acpd_record::{EventKind, TranscriptFacts, TurnNumber, update_kind};
use acpd_wire::{member, span_of};
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use serde_json::value::RawValue;

impl SessionTask {
    /// Puts the transcript before the prompt that is about to be sent. It is given again when the turn fails, since then
    /// nobody knows what the agent has kept of it.
    pub(super) fn give_transcript(&mut self, ticket: Ticket, out: &mut Outputs) {
        let Some(transcript) = &self.transcript else { return };
        let takes_resources = self.parts.agent.info().prompt.embedded_context;
        let block = transcript.block(self.parts.id.as_str(), takes_resources);
        let Some(pending) = self.pending.get_mut(ticket) else { return };
        let Some(params) = pending.params.as_deref().and_then(|params| with_block(params, &block)) else {
            return;
        };
        pending.params = Some(params);
        let facts = TranscriptFacts { turn: Some(TurnNumber(self.turn)), ..transcript.facts() };
        out.record.object(EventKind::Transcript, &serde_json::json!(facts));
        self.given = Some(Box::new(block));
    }

    /// The agent has it now, as far as can be known.
    pub(super) fn transcript_was_taken(&mut self) {
        self.transcript = None;
    }

    /// Whether an update repeats the transcript as if the user had said it.
    pub(super) fn repeats_transcript(&self, line: &[u8]) -> bool {
        if self.given.is_none() || update_kind(line) != Some("user_message_chunk") {
            return false;
        }
        let message: Option<Value> = acp::view(line);
        message.is_some_and(|message| Some(&message["params"]["update"]["content"]) == self.given.as_deref())
    }
}

/// `params` of a prompt with one more block, the first.
fn with_block(params: &[u8], block: &Value) -> Option<Bytes> {
    let raw: &RawValue = serde_json::from_slice(params).ok()?;
    let prompt = member(raw, "prompt")?;
    let inside = prompt.get().strip_prefix('[')?.trim_start();
    let start = span_of(params, prompt)?.start;
    let comma = if inside.starts_with(']') { "" } else { "," };
    let mut out = BytesMut::with_capacity(params.len() + 1024);
    acpd_wire::splice(&mut out, params, &[(start..start + 1, format!("[{block}{comma}").as_bytes())]);
    Some(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // contract 1.4: before the user's own words, which are untouched
    #[test]
    fn the_block_comes_first() {
        let with = |params: &str| {
            let out = with_block(params.as_bytes(), &json!({"type": "text", "text": "t"}))?;
            Some(String::from_utf8(out.to_vec()).expect("text"))
        };
        let block = r#"{"type":"text","text":"t"}"#;
        for (params, expected) in [
            (
                r#"{"x":1.0,"prompt": [ {"type":"text","text":"a"}],"sessionId":"s"}"#,
                format!(r#"{{"x":1.0,"prompt": [{block}, {{"type":"text","text":"a"}}],"sessionId":"s"}}"#),
            ),
            (r#"{"prompt":[ ]}"#, format!(r#"{{"prompt":[{block} ]}}"#)),
        ] {
            assert_eq!(with(params), Some(expected));
        }
        assert_eq!(with(r#"{"prompt":"a"}"#), None);
        assert_eq!(with("{}"), None);
    }
}
