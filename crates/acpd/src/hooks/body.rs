//! What hooks are told of an event, as JSON.
//!
//! Without `content` there is nothing in it of what clients and agents say, but for the options of a question and the
//! session's title.

use super::content::{self, Words};
use acpd_eventlog::{CursorError, EventLog, Note, QueryError};
use acpd_host::iso8601;
use acpd_record::{
    Cause, Event, Question, QuestionNumber, Reason, SessionMeta, TerminatedBy, TerminationInfo, TurnEnded,
    TurnNumber,
};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A body, and when its event happened, in milliseconds since 1970.
pub(super) struct Body {
    pub(super) json: Bytes,
    pub(super) at_ms: i64,
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the session cannot be read")]
    Row(#[from] QueryError),
    #[error("the event cannot be read")]
    Event(#[from] CursorError),
}

/// What a hook is told.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Body"))]
struct Told<'a> {
    #[serde(flatten)]
    what: What<'a>,
    /// Where it happened.
    session: Session<'a>,
    /// The number of its event in the session.
    #[cfg_attr(test, schemars(range(min = 1)))]
    seq: u64,
    /// When it happened, ISO 8601.
    #[cfg_attr(test, schemars(extend("format" = "date-time")))]
    at: String,
}

/// A session.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Session<'a> {
    /// Its id.
    id: &'a str,
    /// The name of its agent.
    agent: &'a str,
    /// Its working directory.
    cwd: &'a str,
    /// Its title, if it has one.
    title: Option<String>,
}

/// What happened.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum What<'a> {
    /// The agent asks.
    Question {
        /// By which it is answered.
        question: QuestionNumber,
        /// What it is about.
        #[cfg_attr(test, schemars(extend("enum" = ["permission", "elicitation"])))]
        topic: &'static str,
        #[serde(flatten)]
        asked: Asked<'a>,
    },
    /// A turn has ended.
    TurnEnded {
        /// Its number.
        turn: TurnNumber,
        /// Why, unless with an error.
        stop_reason: Option<Cow<'a, str>>,
        /// The error that it ended with.
        error: Option<Failure<'a>>,
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Asked<'a> {
    /// The kind of the tool call.
    kind: Option<Cow<'a, str>>,
    /// What can be answered to a permission request.
    options: Option<Vec<Choice<'a>>>,
    /// With content: the title of the tool call.
    title: Option<Cow<'a, str>>,
    /// With content: what an elicitation asks.
    message: Option<Cow<'a, str>>,
}

/// An option of a permission request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Option"))]
struct Choice<'a> {
    /// By which it is chosen.
    #[serde(borrow)]
    option_id: Cow<'a, str>,
    /// What it is called.
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    /// Whether it allows or rejects, in the words of ACP.
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

/// An error.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Error"))]
struct Failure<'a> {
    /// The code of JSON-RPC or ACP.
    #[serde(default)]
    code: Option<i64>,
    /// With content: what went wrong.
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    params: RequestParams<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestParams<'a> {
    #[serde(borrow, default)]
    tool_call: ToolCall<'a>,
    #[serde(borrow, default)]
    options: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    message: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
}

/// The body for a note; `None` when there is nothing to tell: what was answered without asking a client, or is not there.
pub(super) async fn of_note(log: &EventLog, note: &Note, content: bool) -> Result<Option<Body>, BodyError> {
    let Some(row) = log.get(&note.session).await? else { return Ok(None) };
    let Some(block) = log.cursor(&note.session, note.seq - 1).await?.next().await? else { return Ok(None) };
    let Some(stored) = block.events().find(|event| event.seq == note.seq) else { return Ok(None) };
    let Ok(event) = Event::read(stored.kind, stored.payload) else { return Ok(None) };
    let words = match &event {
        Event::TurnEnded(ended) if content => {
            Some(content::of_turn(log, &note.session, ended.turn, note.seq).await?)
        }
        _ => None,
    };
    let Some(what) = what(&event, content, words) else { return Ok(None) };
    let title = SessionMeta::read(&row.info).title;
    let session = Session { id: &row.id, agent: &row.agent, cwd: &row.cwd, title };
    let told = Told { what, session, seq: note.seq, at: iso8601(stored.at_ms) };
    let json = serde_json::to_vec(&told).expect("it is JSON").into();
    Ok(Some(Body { json, at_ms: stored.at_ms }))
}

fn what<'a>(event: &'a Event<'_>, content: bool, words: Option<Words>) -> Option<What<'a>> {
    Some(match event {
        Event::PermissionRequested(question) if !question.unasked => What::Question {
            question: question.request,
            topic: "permission",
            asked: asked(question, content),
        },
        Event::ElicitationRequested(question) if !question.unasked => What::Question {
            question: question.request,
            topic: "elicitation",
            asked: asked(question, content),
        },
        Event::TurnEnded(ended) => turn_ended(ended, content, words),
        Event::Ended(info) => run_ended(info),
        Event::Stalled(stalled) => What::Stalled {
            turn: stalled.turn,
            silent_ms: stalled.silent_ms,
            goes_on: stalled.goes_on.then_some(true),
        },
        _ => return None,
    })
}

fn asked<'a>(question: &'a Question<'_>, content: bool) -> Asked<'a> {
    let Ok(Request { params }) = serde_json::from_str::<Request<'_>>(question.message.get()) else {
        return Asked::default();
    };
    let RequestParams { tool_call: ToolCall { kind, title }, options, message } = params;
    Asked { kind, options, title: title.filter(|_| content), message: message.filter(|_| content) }
}

fn turn_ended<'a>(ended: &'a TurnEnded<'_>, content: bool, words: Option<Words>) -> What<'a> {
    let failure = |raw: &'a &RawValue| serde_json::from_str::<Failure<'_>>(raw.get()).unwrap_or_default();
    let mut error = ended.error.as_ref().map(failure);
    if let Some(error) = error.as_mut().filter(|_| !content) {
        error.message = None;
    }
    let (prompt, answer, truncated) = match words {
        Some(words) => (Some(words.prompt), Some(words.answer), words.truncated.then_some(true)),
        None => (None, None, None),
    };
    let stop_reason = ended.stop_reason.as_deref().map(Cow::Borrowed);
    What::TurnEnded { turn: ended.turn, stop_reason, error, prompt, answer, truncated }
}

fn run_ended<'a>(info: &TerminationInfo) -> What<'a> {
    What::RunEnded {
        reason: info.reason,
        terminated_by: info.terminated_by,
        cause: info.cause,
        initiator: info.initiator.clone(),
        message: info.message.clone(),
        exit_code: info.exit_code,
        signal: info.signal.clone(),
        turn_active: info.turn_active,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: programs check bodies by the file, so it is what the code says
    #[test]
    fn the_files_are_what_the_code_says() {
        let description =
            "What a hook is told: the body of the POST, or the stdin of the command. Members may be added.";
        crate::schema_file::check::<Told<'_>>("hook.json", description);
    }
}
