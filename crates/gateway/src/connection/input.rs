//! What happens to a connection. A line of the client is read once, here: what it is, and of its params what acpd decides by.

use super::call::{Call, Held, Message, Params};
use crate::limits::Beyond;
use crate::methods::{self, StartsRun};
use crate::questions::AskedQuestion;
use crate::wire_error::WireError;
use acpd_host::{HostError, method};
use acpd_record::SessionId;
use acpd_wire::{Message as Envelope, OwnedId, RawId, codes, member};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Something that happens to a connection.
#[derive(Debug)]
pub(super) enum Input {
    /// The client asks for something.
    Request(Box<Call>),
    /// The client asked for something before it was gone, and it was not read in time.
    LateRequest(Box<Call>),
    /// The client tells a session something.
    Notification(Message),
    /// The client withdraws a request of its own.
    Withdrawal(OwnedId),
    /// The client answers something that it was `asked`: with a result, or with an error.
    Answer { id: OwnedId, asked: AskedQuestion, result: Option<Bytes> },
    /// A line is no message, and is answered this.
    Malformed { id: OwnedId, error: WireError },
    /// A line needs no answer and means nothing.
    Noise,
    /// The session that a request names was looked for.
    Found { call: Box<Call>, session: Lookup, is_live: bool },
    /// A run that a request may begin was counted, or is one too many.
    Counted { call: Box<Call>, is_granted: bool },
    /// The run that a message is for was looked for.
    Reached { message: Message, run: Result<Run, HostError> },
    /// It is the prompt of a session that ended with event `end`, and was answered this before.
    AnsweredBefore { message: Message, end: u64, body: Result<Bytes, HostError> },
    /// What was done for a request has ended; or (without one) for something that was none.
    Done { request: Option<OwnedId>, outcome: Outcome },
    /// These sessions are watched no more: their runs are over, or the client has left, and all that was promised was written.
    Over(Vec<SessionId>),
    /// The client is gone, or is to go.
    Gone { is_revoked: bool, host_closes: bool },
    /// Nothing is done any more for any request.
    Drained,
}

/// What is known of a session that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// It was created under this token, or under none.
    Of(Option<Arc<str>>),
    /// There is none, for this caller.
    Unknown,
    /// None is named, or it could not be looked for, which is for the work to report.
    Nothing,
}

/// A live run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The last event before it.
    pub(super) began_after: u64,
    /// The name of the token under which its session was created.
    pub(super) created_by: Option<Arc<str>>,
    /// It is beyond a limit of the client's token.
    pub(super) beyond: Option<Box<Beyond>>,
}

/// What an answered request changes.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Nothing.
    Answered,
    /// It is not answered yet: the work for it panicked.
    Lost,
    /// The client may go on.
    Initialized,
    /// It was answered this, and may try again.
    NotInitialized(WireError),
    /// The client is attached to a session: to this run, or to its history, with the reason. A viewer writes the answer.
    Attached { session: SessionId, run: Option<u64>, unresumable: Option<HostError> },
}

/// Reads a line; `asked` tells what an answer of the client is an answer to.
pub(super) fn read(line: &Bytes, asked: impl FnOnce(&OwnedId) -> AskedQuestion) -> Input {
    let slice = |part| slice_of(line, part);
    match Envelope::parse(line) {
        Ok(Envelope::Request { id, method, params }) => {
            let (name, id) = (method.into_owned(), id.to_owned());
            let method = methods::find(&name);
            let params = Params::read(line, params, method.starts_run != StartsRun::No);
            Input::Request(Box::new(Call { id, name, method, params, held: Held::default() }))
        }
        Ok(Envelope::Notification { method, params }) if method == method::CANCEL_REQUEST => {
            let id = params.and_then(|params| RawId::new(member(params, "requestId")?));
            id.map_or(Input::Noise, |id| Input::Withdrawal(id.to_owned()))
        }
        // What is said of no session is said to none.
        Ok(Envelope::Notification { method, params }) if !method.starts_with("$/") => {
            let params = Params::read(line, params, false);
            match params.session() {
                Some(Ok(session)) => {
                    let (session, method) = (session.clone(), method.into_owned());
                    Input::Notification(Message::new(None, session, method, params.raw))
                }
                Some(Err(_)) | None => Input::Noise,
            }
        }
        Ok(Envelope::Response { id: Some(id), outcome }) => {
            let id = id.to_owned();
            Input::Answer { asked: asked(&id), id, result: outcome.ok().map(slice) }
        }
        Ok(Envelope::Notification { .. } | Envelope::Response { id: None, .. }) => Input::Noise,
        Err(malformed) => match malformed.code() {
            Some(code) => Input::malformed(malformed.answer_id(), code, malformed.to_string()),
            None => Input::Noise,
        },
    }
}

impl Input {
    /// A line over the limit.
    pub(super) fn too_long(limit: usize) -> Self {
        let message = format!("the line is longer than {limit} bytes");
        Self::malformed(RawId::NULL, codes::INVALID_REQUEST, message)
    }

    fn malformed(id: RawId<'_>, code: i64, message: String) -> Self {
        Self::Malformed { id: id.to_owned(), error: WireError::Own { code, message, data: None } }
    }

    /// The work for this request panicked.
    pub(super) fn lost(request: OwnedId) -> Self {
        Self::Done { request: Some(request), outcome: Outcome::Lost }
    }
}

/// Part of a line, without a copy.
pub(super) fn slice_of(line: &Bytes, part: &RawValue) -> Bytes {
    let span = acpd_wire::span_of(line, part).expect("it was parsed from this line");
    line.slice(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> String {
        let read = read(&Bytes::from(line.to_owned()), |_| AskedQuestion::Over);
        match read {
            Input::Request(call) => {
                let raw =
                    call.params.raw.as_deref().map(|raw| std::str::from_utf8(raw).expect("text").to_owned());
                format!("{} {:?} {:?} {raw:?}", call.name, call.params.session(), call.params.cwd())
            }
            Input::Notification(message) => format!("{} {}", message.method, message.session),
            Input::Withdrawal(request) => format!("withdraw {request}"),
            Input::Answer { id, result, .. } => format!("answer {id} {}", result.is_some()),
            Input::Malformed { id, .. } => format!("malformed {id}"),
            Input::Noise => "noise".to_owned(),
            input => panic!("{input:?}"),
        }
    }

    // FR-1, FR-10: of the params, what is not what it should be counts as not there
    #[test]
    fn a_line_is_read_once() {
        for (line, expected) in [
            (r#"{"id":1,"method":"a"}"#, "a None None None"),
            (
                r#"{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/x"}}"#,
                r#"session/load Some(Ok(SessionId(s))) Some("/x") Some("{\"sessionId\":\"s\",\"cwd\":\"/x\"}")"#,
            ),
            (
                r#"{"id":1,"method":"session/new","params":{"cwd":"x"}}"#,
                r#"session/new None None Some("{\"cwd\":\"x\"}")"#,
            ),
            (r#"{"id":1,"method":"a","params":{"sessionId":7}}"#, r#"a None None Some("{\"sessionId\":7}")"#),
            (
                r#"{"id":1,"method":"a","params":{"sessionId":"a","sessionId":"b"}}"#,
                r#"a None None Some("{\"sessionId\":\"a\",\"sessionId\":\"b\"}")"#,
            ),
            (
                r#"{"id":1,"method":"a","params":{"sessionId":"no id"}}"#,
                r#"a Some(Err("no id")) None Some("{\"sessionId\":\"no id\"}")"#,
            ),
            (r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#, "session/cancel s"),
            (r#"{"method":"session/cancel","params":{"sessionId":"no id"}}"#, "noise"),
            (r#"{"method":"$/cancel_request","params":{"requestId":"a"}}"#, r#"withdraw "a""#),
            (r#"{"method":"$/cancel_request","params":{"requestId":{}}}"#, "noise"),
            (r#"{"id":1,"result":1}"#, "answer 1 true"),
            (r#"{"id":1,"error":1}"#, "answer 1 false"),
            (r#"{"result":1}"#, "noise"),
            (r#"{"id":5,"method":7}"#, "malformed 5"),
            ("x", "malformed null"),
            ("", "noise"),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }
}
