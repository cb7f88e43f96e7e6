//! Prompts, cancels, and answers to what an agent asks.

use crate::operation::{BAD_BODY, FORBIDDEN, Header, Operation, Spec, Verb, json, nothing, problem};
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

/// Prompts a session.
#[derive(Clone, Copy, Debug)]
pub struct PromptSession;

impl Operation for PromptSession {
    type Input<'a> = PromptBody<'a>;
    type Answer = PromptAccepted;
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/prompt",
        id: "promptSession",
        headers: &[Header::IdempotencyKey],
        summary: "begins a turn, or puts the prompt in line.",
        detail: "A 202 stands behind the commit of the turn's first event, unless the prompt waits. With an `Idempotency-Key` \
                 it may be sent again:\nthe same prompt under the same key is answered with what became of the first one and \
                 runs once, also after restarts of acpd. The last 256\nkeys of a session are remembered, and those of \
                 prompts that wait.",
        answers: &[
            json(202, "its turn began, or it waits in line"),
            problem(400, "the body or the key is not as described, or the agent does not take such content"),
            FORBIDDEN,
            problem(409, "the session has ended, or another process has it"),
            problem(422, "the key belongs to another prompt"),
            problem(429, "as many prompts wait as may, or the token sends too many requests"),
        ],
        ..Spec::OF_SESSION
    };
}

/// Cancels a turn, or a prompt.
#[derive(Clone, Copy, Debug)]
pub struct CancelTurn;

impl Operation for CancelTurn {
    type Input<'a> = CancelBody;
    type Answer = ();
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/cancel",
        id: "cancelTurn",
        summary: "ends the running turn, as `session/cancel` does, or the prompt under a key.",
        detail: "A prompt that waits in line leaves it, one that runs is cancelled; its key says which. \
                 What waits has no number of a turn yet.",
        answers: &[
            nothing(
                202,
                "the agent is told to end its turn, if it has one; a prompt that waited has left the line",
            ),
            BAD_BODY,
            FORBIDDEN,
            problem(
                409,
                "no prompt under the key waits or runs, the session has ended, or another process has it",
            ),
        ],
        ..Spec::OF_SESSION
    };
}

/// Answers a question of the agent.
#[derive(Clone, Copy, Debug)]
pub struct AnswerQuestion;

impl Operation for AnswerQuestion {
    type Input<'a> = AnswerBody<'a>;
    type Answer = ();
    const SPEC: Spec = Spec {
        verb: Verb::Post,
        path: "/sessions/{id}/answer",
        id: "answerQuestion",
        summary: "answers a question of the agent. The first answer counts.",
        answers: &[
            nothing(204, "the agent has the answer"),
            BAD_BODY,
            FORBIDDEN,
            problem(409, "the question is not open, the session has ended, or another process has it"),
            problem(422, "the agent has not offered that, or the question is of another kind; it stays open"),
        ],
        ..Spec::OF_SESSION
    };
}
