//! What hooks are told of an event, as JSON.
//!
//! Without `content` there is nothing in it of what clients and agents say, but for the options of a question and the
//! session's title.

use super::content::{self, Words};
use acpd_api::{HookBody, HookError, HookEvent, HookOption, HookQuestion, HookSession};
use acpd_eventlog::{CursorError, EventLog, Note, QueryError};
use acpd_host::iso8601;
use acpd_record::{Event, Question, SessionMeta, TerminationInfo, TurnEnded};
use bytes::Bytes;
use serde::Deserialize;
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
    options: Option<Vec<HookOption<'a>>>,
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
    let session = HookSession { id: &row.id, agent: &row.agent, cwd: &row.cwd, title };
    let told = HookBody { what, session, seq: note.seq, at: iso8601(stored.at_ms) };
    let json = serde_json::to_vec(&told).expect("it is JSON").into();
    Ok(Some(Body { json, at_ms: stored.at_ms }))
}

fn what<'a>(event: &'a Event<'_>, content: bool, words: Option<Words>) -> Option<HookEvent<'a>> {
    Some(match event {
        Event::PermissionRequested(question) if !question.unasked => HookEvent::Question {
            question: question.request,
            topic: "permission",
            asked: describe_question(question, content),
        },
        Event::ElicitationRequested(question) if !question.unasked => HookEvent::Question {
            question: question.request,
            topic: "elicitation",
            asked: describe_question(question, content),
        },
        Event::TurnEnded(ended) => turn_ended(ended, content, words),
        Event::Ended(info) => run_ended(info),
        Event::Stalled(stalled) => HookEvent::Stalled {
            turn: stalled.turn,
            silent_ms: stalled.silent_ms,
            goes_on: stalled.goes_on.then_some(true),
        },
        _ => return None,
    })
}

fn describe_question<'a>(question: &'a Question<'_>, content: bool) -> HookQuestion<'a> {
    let Ok(Request { params }) = serde_json::from_str::<Request<'_>>(question.message.get()) else {
        return HookQuestion::default();
    };
    let RequestParams { tool_call: ToolCall { kind, title }, options, message } = params;
    HookQuestion { kind, options, title: title.filter(|_| content), message: message.filter(|_| content) }
}

fn turn_ended<'a>(ended: &'a TurnEnded<'_>, content: bool, words: Option<Words>) -> HookEvent<'a> {
    let failure = |raw: &'a &RawValue| serde_json::from_str::<HookError<'_>>(raw.get()).unwrap_or_default();
    let mut error = ended.error.as_ref().map(failure);
    if let Some(error) = error.as_mut().filter(|_| !content) {
        error.message = None;
    }
    let (prompt, answer, truncated) = match words {
        Some(words) => (Some(words.prompt), Some(words.answer), words.truncated.then_some(true)),
        None => (None, None, None),
    };
    let stop_reason = ended.stop_reason.as_deref().map(Cow::Borrowed);
    HookEvent::TurnEnded { turn: ended.turn, stop_reason, error, prompt, answer, truncated }
}

fn run_ended<'a>(info: &TerminationInfo) -> HookEvent<'a> {
    HookEvent::RunEnded {
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
        crate::schema_file::check::<HookBody<'_>>("hook.json", description);
    }
}
