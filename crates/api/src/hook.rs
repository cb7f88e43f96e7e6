//! The body that a hook is sent.

use acpd_record::{Cause, QuestionNumber, Reason, TerminatedBy, TurnNumber};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a hook is told.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Body"))]
pub struct HookBody<'a> {
    /// The event.
    #[serde(flatten)]
    pub what: HookEvent<'a>,
    /// Where it happened.
    pub session: HookSession<'a>,
    /// The number of its event in the session.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub seq: u64,
    /// When it happened, ISO 8601.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub at: String,
}

/// A session.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Session"))]
pub struct HookSession<'a> {
    /// Its id.
    pub id: &'a str,
    /// The name of its agent.
    pub agent: &'a str,
    /// Its working directory.
    pub cwd: &'a str,
    /// Its title, if it has one.
    pub title: Option<String>,
}

/// What happened.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "What"))]
pub enum HookEvent<'a> {
    /// The agent asks.
    Question {
        /// By which it is answered.
        question: QuestionNumber,
        /// What it is about.
        #[cfg_attr(feature = "schema", schemars(extend("enum" = ["permission", "elicitation"])))]
        topic: &'static str,
        /// The question itself.
        #[serde(flatten)]
        asked: HookQuestion<'a>,
    },
    /// A turn has ended.
    TurnEnded {
        /// Its number.
        turn: TurnNumber,
        /// Why, unless with an error.
        stop_reason: Option<Cow<'a, str>>,
        /// The error that it ended with.
        error: Option<HookError<'a>>,
        /// With content: the text of the prompt, 64 KiB at most.
        prompt: Option<String>,
        /// With content: the text of the answer, 64 KiB at most.
        answer: Option<String>,
        /// There was more of one of them.
        truncated: Option<bool>,
    },
    /// The run of a session has ended.
    RunEnded {
        /// What came to its end.
        reason: Reason,
        /// What ended it.
        terminated_by: TerminatedBy,
        /// The exact cause.
        cause: Option<Cause>,
        /// The client that asked for it.
        initiator: Option<String>,
        /// What there is to say of it.
        message: Option<String>,
        /// The exit code of its agent.
        exit_code: Option<i32>,
        /// The signal that ended its agent.
        signal: Option<String>,
        /// Whether a turn was running.
        turn_active: bool,
    },
    /// Nothing comes from the agent in a turn, or something again.
    Stalled {
        /// The turn.
        turn: TurnNumber,
        /// How long nothing has come.
        silent_ms: u64,
        /// It goes on.
        goes_on: Option<bool>,
    },
}

/// What is told of a question: the options; what it is about with `content`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Asked"))]
pub struct HookQuestion<'a> {
    /// The kind of the tool call.
    pub kind: Option<Cow<'a, str>>,
    /// What can be answered to a permission request.
    pub options: Option<Vec<HookOption<'a>>>,
    /// With content: the title of the tool call.
    pub title: Option<Cow<'a, str>>,
    /// With content: what an elicitation asks.
    pub message: Option<Cow<'a, str>>,
}

/// An option of a permission request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Option"))]
pub struct HookOption<'a> {
    /// By which it is chosen.
    #[serde(borrow)]
    pub option_id: Cow<'a, str>,
    /// What it is called.
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    /// Whether it allows or rejects, in the words of ACP.
    #[serde(borrow, default)]
    pub kind: Cow<'a, str>,
}

/// An error.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Error"))]
pub struct HookError<'a> {
    /// The code of JSON-RPC or ACP.
    #[serde(default)]
    pub code: Option<i64>,
    /// With content: what went wrong.
    #[serde(borrow, default)]
    pub message: Option<Cow<'a, str>>,
}
