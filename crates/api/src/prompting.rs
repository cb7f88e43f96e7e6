//! Prompts, cancels, and answers to what an agent asks.

use acpd_record::TurnNumber;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A prompt.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromptBody<'a> {
    /// Text, or content blocks as in ACP.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Content"))]
    pub prompt: &'a RawValue,
}

/// Text, or content blocks as in ACP.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only described")]
pub(crate) enum Content {
    /// Text.
    Text(String),
    /// Content blocks.
    Blocks(Vec<ContentBlock>),
}

/// A content block of ACP. Its members depend on its type.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
pub(crate) struct ContentBlock {
    /// `text`, or another that the agent takes.
    #[serde(rename = "type")]
    _type: String,
}

/// Where a prompt is.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptAccepted {
    /// Its turn, which has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnNumber>,
    /// The event that began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Instead, for a prompt that waits in line and is no event yet: the prompts before it, with the one that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
}

/// Which prompt to cancel.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CancelBody {
    /// The key that the prompt was sent under, over REST or ACP. Without one the running turn is cancelled.
    // Null is no key, and would cancel what runs.
    #[serde(default, with = "serde_with::rust::unwrap_or_skip")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub idempotency_key: Option<String>,
}

/// An answer to a question of the agent.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AnswerBody<'a> {
    /// The number of the event that asks: `permission_requested` or `elicitation_requested`.
    pub question: u64,
    /// The outcome, as in ACP.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Outcome"))]
    pub outcome: &'a RawValue,
}

/// The outcome, as in ACP.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only described")]
enum Outcome {
    /// Of a permission request.
    Permission {
        /// `selected`, with the option, or `cancelled`.
        outcome: String,
        /// The option.
        #[serde(rename = "optionId")]
        option_id: Option<String>,
    },
    /// Of an elicitation.
    Elicitation {
        /// `accept`, `decline` or `cancel`.
        action: String,
        /// What was filled in.
        content: Option<serde_json::Map<String, serde_json::Value>>,
    },
}
