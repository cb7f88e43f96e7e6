//! What an event holds, one struct for each kind: members of acpd's own around raw ACP messages (contract 1.6).
//!
//! Borrowed from the stored bytes or from what the host is about to store. Members may be added, and a reader takes what is
//! missing from an older log as absent.

use crate::ids::{ConnectionId, QuestionNumber, SessionId, TurnNumber};
use crate::state::AgentState;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

fn is_false(flag: &bool) -> bool {
    !flag
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

// SE-3
/// The session was created. The client's parameters are not recorded: the environment of MCP servers may hold secrets.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Created<'a> {
    /// The name of its agent.
    #[serde(borrow)]
    pub agent: Cow<'a, str>,
    /// Its working directory.
    #[serde(borrow)]
    pub cwd: Cow<'a, str>,
    /// The client that asked.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// The session whose history it begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
}

/// An agent process goes on with the session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStarted<'a> {
    /// Its process id.
    #[serde(default)]
    pub pid: u32,
    /// What it calls itself, raw; null when it does not.
    #[serde(borrow, default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Json>"))]
    pub agent_info: Option<&'a RawValue>,
    /// The client that asked, unless the session was created with this run.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
    /// The method by which the agent goes on with the session.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Cow<'a, str>>,
    /// The transcript that the agent is given with the next prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<TranscriptFacts>,
    /// What the agent said of its state in its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<AgentState>,
}

/// How much of a history a transcript has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptFacts {
    /// Messages in it.
    #[serde(default)]
    pub messages: u64,
    /// Messages before them.
    #[serde(default)]
    pub omitted_messages: u64,
    /// Its length in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// It does not hold the whole conversation.
    #[serde(default)]
    pub truncated: bool,
    /// The turn with whose prompt the agent was given it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnNumber>,
}

/// A turn began.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prompt<'a> {
    /// Its number.
    pub turn: TurnNumber,
    /// The client that prompted.
    #[serde(borrow, default)]
    pub by: Cow<'a, str>,
    /// The connection that it came through; not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub via: Option<ConnectionId>,
    /// The client's key: the same prompt under it does not begin another turn.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// The content blocks, raw.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::Json>"))]
    pub prompt: &'a RawValue,
}

/// A turn ended: with the agent's result, with an error, or without the agent.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnEnded<'a> {
    /// Its number.
    pub turn: TurnNumber,
    /// Why it ended, unless with an error.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Cow<'a, str>>,
    /// The agent's result, raw.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Json>"))]
    pub result: Option<&'a RawValue>,
    /// The error that answered the prompt.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Json>"))]
    pub error: Option<&'a RawValue>,
    /// The agent was asked to cancel and went on; it may still work on this turn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub agent_ignored_cancel: bool,
}

/// A client asked for the running turn to end.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CancelRequested<'a> {
    /// The client.
    #[serde(borrow, default)]
    pub by: Cow<'a, str>,
}

/// A request of the agent that acpd answered.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentRequest<'a> {
    /// What it was answered, as far as it is worth keeping.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::Json"))]
    pub answer: &'a RawValue,
    /// The request; a write without the content.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub message: &'a RawValue,
}

/// The agent asks its clients something: a permission, data, or a file.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question<'a> {
    /// The only connection that is asked; not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub only: Option<ConnectionId>,
    /// It was answered at once, without asking any client.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unasked: bool,
    /// Its number.
    pub request: QuestionNumber,
    /// The agent's request, raw.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub message: &'a RawValue,
}

/// A question was answered.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resolution<'a> {
    /// Its number.
    pub request: QuestionNumber,
    /// By whom or what.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AnsweredBy<'a>>,
    /// The result for the agent, raw; none for a file, which is in the file.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Json>"))]
    pub result: Option<&'a RawValue>,
}

/// What answered a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AnsweredBy<'a> {
    /// A client, by its name.
    Client(#[serde(borrow)] Cow<'a, str>),
    /// The permission mode of the session.
    Mode(#[serde(borrow)] Cow<'a, str>),
    /// An event that made an answer needless or impossible: `cancel`, `turn_ended`, `end`, `agent`, `timeout`, `declined`,
    /// `nobody`.
    Cause(#[serde(borrow)] Cow<'a, str>),
}

/// What the user was asked to do at a URL is done.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ElicitationCompleted<'a> {
    /// The connection that was asked; not shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub only: Option<ConnectionId>,
    /// The agent's notification, raw.
    #[serde(borrow)]
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, serde_json::Value>"))]
    pub message: &'a RawValue,
}

/// A terminal of the session wrote something, or its command ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TerminalNews<'a> {
    /// Its command ended.
    #[serde(borrow)]
    Ended(TerminalEnded<'a>),
    /// It wrote something.
    #[serde(borrow)]
    Output(TerminalOutput<'a>),
}

/// Some output of a terminal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TerminalOutput<'a> {
    /// The terminal.
    #[serde(borrow)]
    pub terminal_id: Cow<'a, str>,
    /// The text.
    #[serde(borrow)]
    pub output: Cow<'a, str>,
    /// Output before it that came faster than it could be recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
}

/// The end of a terminal's command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TerminalEnded<'a> {
    /// The terminal.
    #[serde(borrow)]
    pub terminal_id: Cow<'a, str>,
    /// How it ended: `finished`, `killed`, `timed_out` or `released`.
    #[serde(borrow)]
    pub state: Cow<'a, str>,
    /// The code or the signal, as the operating system says it.
    pub exit_status: ExitStatus,
    /// The end of all that it wrote.
    #[serde(borrow)]
    pub final_output: FinalOutput<'a>,
}

/// The code or the signal with which a command ended; null for the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitStatus {
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The name of the signal.
    pub signal: Option<String>,
}

/// The end of a terminal's output.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinalOutput<'a> {
    /// The text.
    #[serde(borrow)]
    pub text: Cow<'a, str>,
    /// There was more before it.
    pub truncated: bool,
}

/// Nothing came from the agent for long, or it goes on after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stalled {
    /// The turn in which it was waited for.
    pub turn: TurnNumber,
    /// How long nothing came, in milliseconds.
    #[serde(default)]
    pub silent_ms: u64,
    /// Something comes again: this tells the end of the silence.
    #[serde(default, skip_serializing_if = "is_false")]
    pub goes_on: bool,
}

/// Another host goes on with the agent process. What the agent wrote meanwhile follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reattached {
    /// How long the session had no host, in milliseconds.
    pub gap_ms: u64,
}

/// What the agent said of its state in the answer to a request, and not in an update.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateChanged<'a> {
    /// The members that changed.
    #[serde(flatten)]
    pub state: AgentState,
    /// The client whose request it was; absent in a fork, which begins with the state of its source.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Cow<'a, str>>,
}
