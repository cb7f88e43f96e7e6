//! Giving an agent the transcript of a session that it could neither resume nor load.
//!
//! Pure. Invariant: the prompt in the log is the user's own; what was added to it is an event of its own.

use crate::transcript::Transcript;
use acpd_record::{Json, SessionId, TranscriptFacts, update_of};
use acpd_wire::{member, span_of};
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an agent is given of a history that it does not know.
#[derive(Debug, Default)]
pub(crate) struct Handover(Option<Box<Given>>);

#[derive(Debug)]
struct Given {
    /// What it is given with the next prompt; kept until a turn with it ends well.
    transcript: Option<Transcript>,
    /// How much of the history it is, as long as the run lasts.
    facts: TranscriptFacts,
    /// The content block that it was given as.
    block: Option<Json>,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

impl Handover {
    /// `transcript` is given with the next prompt, if there is one.
    pub(crate) fn new(transcript: Option<Transcript>) -> Self {
        Self(transcript.map(|transcript| {
            Box::new(Given { facts: transcript.facts(), transcript: Some(transcript), block: None })
        }))
    }

    /// How much of the history the agent knows from it.
    pub(crate) fn facts(&self) -> Option<TranscriptFacts> {
        self.0.as_ref().map(|given| given.facts)
    }

    /// The params of a prompt with the transcript before it, if one is to be given. It is given again when the turn fails,
    /// since then it is unknown what the agent has kept of it.
    pub(super) fn give(
        &mut self,
        params: &[u8],
        session: &SessionId,
        takes_resources: bool,
    ) -> Option<(Bytes, TranscriptFacts)> {
        let given = self.0.as_mut()?;
        let block = given.transcript.as_ref()?.block(session, takes_resources);
        let params = with_block(params, &block)?;
        given.block = Some(block);
        Some((params, given.facts))
    }

    /// The agent has it now, as far as can be known.
    pub(super) fn was_taken(&mut self) {
        if let Some(given) = &mut self.0 {
            given.transcript = None;
        }
    }

    /// Whether an update repeats the transcript as if the user had said it.
    pub(super) fn is_repeated_by(&self, line: &[u8]) -> bool {
        let Some(block) = self.0.as_ref().and_then(|given| given.block.as_ref()) else { return false };
        update_of::<Update<'_>>(line).is_some_and(|update| block.says_the_same_as(update.content))
    }
}

/// `params` of a prompt with one more block, the first.
fn with_block(params: &[u8], block: &Json) -> Option<Bytes> {
    let raw: &RawValue = serde_json::from_slice(params).ok()?;
    let prompt = member(raw, "prompt")?;
    let inside = prompt.get().strip_prefix('[')?.trim_start();
    let start = span_of(params, prompt)?.start;
    let comma = if inside.starts_with(']') { "" } else { "," };
    let mut out = BytesMut::with_capacity(params.len() + 1024);
    let put = format!("[{}{comma}", block.get());
    acpd_wire::splice(&mut out, params, &[(start..start + 1, put.as_bytes())]);
    Some(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.4: before the user's own words, which are untouched
    #[test]
    fn the_block_comes_first() {
        let block = r#"{"type":"text","text":"t"}"#;
        let json: Json = serde_json::from_str(block).expect("JSON");
        let with = |params: &str| {
            let out = with_block(params.as_bytes(), &json)?;
            Some(String::from_utf8(out.to_vec()).expect("text"))
        };
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
