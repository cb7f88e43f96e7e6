//! The exported form of a session: a line of JSON that says what it is of, then a line for each event (contract 7.3).
//!
//! Pure. Invariant: a session has one form. Members stand in one order without white space between them, and the payload of an
//! event is there byte for byte, so that what was read from an export is exported as the same bytes. Not here: which event may
//! follow which ([`Illegal`](crate::Illegal)), and what of an export may be taken over, which the host says.

use crate::ids::SessionId;
use crate::kind::EventKind;
use crate::shape::{ShapeError, read_shape};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The version of the form.
const VERSION: u64 = 1;
/// What an export calls itself.
const TYPE: &str = "acpd-export";

/// What an export is of: its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportHead {
    /// The session's id.
    pub session_id: SessionId,
    /// The name of its agent.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// Its title, if the index has one.
    pub title: Option<String>,
    /// The session whose history it began with. Logs of earlier versions do not say it themselves.
    pub forked_from: Option<SessionId>,
    /// The number of events that follow.
    pub events: u64,
}

/// One event of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedEvent<'a> {
    /// Its number in its session.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// The number of its kind.
    pub kind: u16,
    /// What is stored of it.
    pub payload: Cow<'a, [u8]>,
}

/// What is stored of an event is not JSON, which only damage explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} is no JSON")]
pub struct NotJson {
    /// Its number.
    pub seq: u64,
}

/// A line that is not one of an export.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {wrong}")]
pub struct WrongLine {
    /// The member with which something is wrong; `line` for all of it.
    pub field: &'static str,
    /// What is wrong, and what would be right.
    pub wrong: String,
}

impl WrongLine {
    /// Something is wrong with `field`.
    pub fn new(field: &'static str, wrong: impl Into<String>) -> Self {
        Self { field, wrong: wrong.into() }
    }
}

/// The first line, as it is written.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenHead<'a> {
    #[serde(rename = "type")]
    form: &'static str,
    version: u64,
    session_id: &'a SessionId,
    agent: &'a str,
    cwd: &'a str,
    created_ms: i64,
    title: Option<&'a str>,
    forked_from: Option<&'a SessionId>,
    events: u64,
}

/// The first line, as far as it is read before its members are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadHead<'a> {
    #[serde(borrow, rename = "type")]
    form: Option<&'a RawValue>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    agent: Option<&'a RawValue>,
    #[serde(borrow)]
    cwd: Option<&'a RawValue>,
    #[serde(borrow)]
    created_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    forked_from: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Option<&'a RawValue>,
}

/// The line of an event, as far as it is read before its members are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadEvent<'a> {
    #[serde(borrow)]
    seq: Option<&'a RawValue>,
    #[serde(borrow)]
    at_ms: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// A member, which is to be `what`.
fn required<'a, T: Deserialize<'a>>(
    field: &'static str,
    raw: Option<&'a RawValue>,
    what: &str,
) -> Result<T, WrongLine> {
    let read = raw.map(|raw| serde_json::from_str(raw.get()));
    read.and_then(Result::ok).ok_or_else(|| WrongLine::new(field, format!("{what} is required")))
}

/// A member that may be absent.
fn optional<'a, T: Deserialize<'a>>(
    field: &'static str,
    raw: Option<&'a RawValue>,
    what: &str,
) -> Result<Option<T>, WrongLine> {
    raw.map(|raw| required(field, Some(raw), what)).transpose()
}

fn object<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, WrongLine> {
    std::str::from_utf8(line).map_err(|_| WrongLine::new("line", "UTF-8 is required"))?;
    read_shape(line).map_err(|error| match error {
        ShapeError::NotJson(why) => WrongLine::new("line", format!("an object of JSON is required: {why}")),
        other => WrongLine::new("line", other.to_string()),
    })
}

/// In any other form it would not be exported as it came.
fn check_form(written: &[u8], line: &[u8], members: &str) -> Result<(), WrongLine> {
    let is_the_form = written.strip_suffix(b"\n") == Some(line);
    let wrong = || {
        format!("the members {members} and no other are required in this order, without white space between")
    };
    is_the_form.then_some(()).ok_or_else(|| WrongLine::new("line", wrong()))
}

impl ExportHead {
    /// Writes the line, with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        let head = WrittenHead {
            form: TYPE,
            version: VERSION,
            session_id: &self.session_id,
            agent: &self.agent,
            cwd: &self.cwd,
            created_ms: self.created_ms,
            title: self.title.as_deref(),
            forked_from: self.forked_from.as_ref(),
            events: self.events,
        };
        serde_json::to_writer(&mut *out, &head).expect("memory takes everything, and all members are JSON");
        out.push(b'\n');
    }

    /// Reads the line, without its end.
    ///
    /// # Errors
    /// With what is wrong, and what would be right.
    pub fn read(line: &[u8]) -> Result<Self, WrongLine> {
        let read: ReadHead<'_> = object(line)?;
        let form: Cow<'_, str> = required("type", read.form, &format!("{TYPE:?}"))?;
        if form != TYPE {
            return Err(WrongLine::new("type", format!("{TYPE:?} is required, and it is {form:?}")));
        }
        let version: u64 = required("version", read.version, "a number")?;
        if version != VERSION {
            let wrong =
                format!("version {VERSION} is required, and it is {version}; use the acpd that wrote it");
            return Err(WrongLine::new("version", wrong));
        }
        let an_id = "an id of at most 128 ASCII letters, digits, dashes, dots and underscores";
        let session_id: SessionId = required("sessionId", read.session_id, an_id)?;
        if SessionId::parse_chosen(session_id.as_str()).is_none() {
            let wrong = "an id that is not \".\" or \"..\" and does not begin with \"-\" is required";
            return Err(WrongLine::new("sessionId", wrong));
        }
        let head = Self {
            session_id,
            agent: required("agent", read.agent, "a string")?,
            cwd: required("cwd", read.cwd, "a string")?,
            created_ms: required("createdMs", read.created_ms, "a number of milliseconds")?,
            title: optional("title", read.title, "a string")?,
            forked_from: optional("forkedFrom", read.forked_from, an_id)?,
            events: required("events", read.events, "the number of events")?,
        };
        let mut written = Vec::new();
        head.write(&mut written);
        let members = "type, version, sessionId, agent, cwd, createdMs, title?, forkedFrom?, events";
        check_form(&written, line, members)?;
        Ok(head)
    }
}

impl<'a> ExportedEvent<'a> {
    /// Writes the line, with its end.
    ///
    /// # Errors
    /// When its payload is no JSON. Something may have been written then.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), NotJson> {
        let Self { seq, at_ms, kind, .. } = self;
        let payload: &RawValue = serde_json::from_slice(&self.payload).map_err(|_| NotJson { seq: *seq })?;
        out.extend_from_slice(format!(r#"{{"seq":{seq},"atMs":{at_ms},"kind":"#).as_bytes());
        match EventKind::from_number(*kind) {
            Some(kind) => out.extend_from_slice(format!("\"{}\"", kind.name()).as_bytes()),
            None => out.extend_from_slice(kind.to_string().as_bytes()),
        }
        // What a client sent may have white space that would end the line, or that a reader of a value passes over.
        let is_line = memchr::memchr2(b'\n', b'\r', &self.payload).is_none();
        if is_line && payload.get().len() == self.payload.len() {
            out.extend_from_slice(b",\"payload\":");
            out.extend_from_slice(&self.payload);
        } else {
            out.extend_from_slice(b",\"text\":");
            let text = String::from_utf8_lossy(&self.payload);
            serde_json::to_writer(&mut *out, &*text).expect("memory takes everything, and text is JSON");
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    /// Reads the line, without its end.
    ///
    /// # Errors
    /// With what is wrong, and what would be right.
    pub fn read(line: &'a [u8]) -> Result<Self, WrongLine> {
        let read: ReadEvent<'a> = object(line)?;
        let event = Self {
            seq: required("seq", read.seq, "the number of the event")?,
            at_ms: required("atMs", read.at_ms, "a number of milliseconds")?,
            kind: read_kind(read.kind)?,
            payload: match (read.payload, read.text) {
                (Some(payload), None) => Cow::Borrowed(payload.get().as_bytes()),
                (None, text) => {
                    let text: String = required("payload", text, "what is stored of the event")?;
                    Cow::Owned(text.into_bytes())
                }
                (Some(_), Some(_)) => {
                    return Err(WrongLine::new("text", "it is for an event without payload"));
                }
            },
        };
        let mut written = Vec::with_capacity(line.len() + 1);
        event.write(&mut written).map_err(|_| WrongLine::new("text", "JSON is required"))?;
        check_form(&written, line, "seq, atMs, kind, payload")?;
        Ok(event)
    }
}

fn read_kind(raw: Option<&RawValue>) -> Result<u16, WrongLine> {
    let name: Cow<'_, str> = match raw.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        // A later version has kinds that have no name here.
        Some(number) => return Ok(number),
        None => required("kind", raw, "the name of a kind of event")?,
    };
    let kind = EventKind::from_name(&name);
    kind.map(EventKind::number).ok_or_else(|| {
        WrongLine::new("kind", format!("{name:?} is no kind of event that this version knows"))
    })
}

#[cfg(test)]
mod tests;
