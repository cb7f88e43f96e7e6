//! What may be taken over of an export, line by line, and of another node's log, event by event.
//!
//! Pure: lines or events come in, checked events go into a batch. They may come from anywhere, so nothing in them is trusted: events
//! are legal, of kinds and with members that this version knows, and its messages are those that an agent may say to this
//! session and to no other. Nothing recurses, so that what was recorded is taken however deep it is nested. Invariant: what is
//! taken is exported again as the same bytes. Not here: the form of a line, and where the events go.

use crate::agent::{Line, read_line};
use crate::termination::{Complete, SessionFacts, of_import};
use acpd_eventlog::{Batch, Event as StoredEvent};
use acpd_record::{
    Created, Event, ExportHead, ExportedEvent, Position, Projection, RunNumber, SessionMeta, TerminationInfo,
    WrongLine, read_shape,
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// The longest first line, in bytes: what it says is in each list of sessions.
const LONGEST_HEAD: usize = 64 * 1024;
/// The longest name of an agent, in bytes.
const LONGEST_AGENT: usize = 128;
/// The times that can be written in ISO 8601, in milliseconds since 1970.
const TIMES: Range<i64> = 0..253_402_207_200_000;

/// Takes the lines of an export.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) head: ExportHead,
    projection: Projection,
    end: Option<TerminationInfo>,
    /// The client that created it.
    client: Option<String>,
    /// Events that were taken and not yet written.
    pub(crate) batch: Batch,
}

/// A session that was taken over.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) head: ExportHead,
    pub(crate) projection: Projection,
    pub(crate) meta: SessionMeta,
    pub(crate) batch: Batch,
}

fn wrong<T>(field: &'static str, wrong: impl Into<String>) -> Result<T, WrongLine> {
    Err(WrongLine::new(field, wrong))
}

impl Intake {
    /// Begins with the first line.
    pub(crate) fn new(line: &[u8]) -> Result<Self, WrongLine> {
        if line.len() > LONGEST_HEAD {
            return wrong("line", format!("the first line has at most {LONGEST_HEAD} bytes"));
        }
        Self::of(ExportHead::read(line)?)
    }

    /// Begins with what such a line says.
    pub(crate) fn of(head: ExportHead) -> Result<Self, WrongLine> {
        let is_name = |text: &str| {
            (1..=LONGEST_AGENT).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        if !is_name(&head.agent) {
            return wrong(
                "agent",
                "the name of an agent is required: letters, digits, dashes, dots, underscores",
            );
        }
        if !head.cwd.starts_with('/') || head.cwd.contains('\0') {
            return wrong("cwd", "an absolute path is required");
        }
        if head.cwd.len() + head.title.as_ref().map_or(0, String::len) > LONGEST_HEAD {
            return wrong("title", format!("it and cwd have at most {LONGEST_HEAD} bytes"));
        }
        check_time("createdMs", head.created_ms)?;
        let projection = Projection::new(head.forked_from.is_some());
        Ok(Self { head, projection, end: None, client: None, batch: Batch::new() })
    }

    /// Takes the next line.
    pub(crate) fn take(&mut self, line: &[u8]) -> Result<(), WrongLine> {
        let read = ExportedEvent::read(line)?;
        let seq = self.next();
        if read.seq != seq {
            return wrong("seq", format!("event {seq} is required here, and it is {}", read.seq));
        }
        if seq > self.head.events {
            return wrong("seq", format!("line 1 announces {} events, and there are more", self.head.events));
        }
        self.take_event(&StoredEvent { seq, kind: read.kind, at_ms: read.at_ms, payload: &read.payload })
    }

    /// Takes the next event as it is stored; whether it is the next is the caller's to know.
    pub(crate) fn take_event(&mut self, read: &StoredEvent<'_>) -> Result<(), WrongLine> {
        let seq = self.next();
        check_time("atMs", read.at_ms)?;
        let event = Event::read(read.kind, read.payload)
            .or_else(|error| wrong("payload", format!("{error}: {}", error.source)))?;
        let legal = self.projection.check(seq, &event);
        legal.or_else(|illegal| wrong("kind", format!("no such event may stand here: {illegal}")))?;
        self.check(&event, read.payload)?;
        match &event {
            Event::Ended(end) => self.end = Some((**end).clone()),
            Event::Created(created) => self.client = created.by.as_deref().map(str::to_owned),
            _ => {}
        }
        self.projection.apply(Position { seq, at_ms: read.at_ms }, &event);
        self.batch.push(read.kind, read.at_ms, read.payload);
        Ok(())
    }

    /// The number of the next event.
    pub(crate) fn next(&self) -> u64 {
        self.projection.last_seq() + 1
    }

    /// What legality does not say of an event.
    fn check(&self, event: &Event<'_>, payload: &[u8]) -> Result<(), WrongLine> {
        let message = match event {
            Event::Other { kind, .. } => {
                return wrong("kind", format!("{kind} is of a later version; use that or a newer acpd"));
            }
            Event::Update(message) => return self.check_notification(message.line(), Some(true)),
            Event::Echo(message) => return self.check_notification(message.line(), Some(true)),
            Event::Notification(message) => return self.check_notification(message.line(), Some(false)),
            Event::Created(created) => {
                self.check_creation(created)?;
                None
            }
            Event::Ended(end)
                if end.last_event_seq.is_some_and(|last| last != self.projection.last_seq()) =>
            {
                return wrong("payload", "lastEventSeq: the number of the event before is required");
            }
            Event::PermissionRequested(question)
            | Event::ElicitationRequested(question)
            | Event::FileForwarded(question) => Some(question.message),
            Event::AgentRequest(request) => Some(request.message),
            Event::ElicitationCompleted(completed) => {
                self.check_notification(completed.message.get().as_bytes(), None)?;
                None
            }
            _ => None,
        };
        check_members(event, payload)?;
        message.map_or(Ok(()), |message| self.check_session(message))
    }

    fn check_creation(&self, created: &Created<'_>) -> Result<(), WrongLine> {
        let head = &self.head;
        if created.agent != head.agent || created.cwd != head.cwd {
            return wrong("payload", "agent and cwd of line 1 are required");
        }
        match created.forked_from.is_some() && created.forked_from != head.forked_from {
            true => wrong("payload", "forkedFrom of line 1 is required"),
            false => Ok(()),
        }
    }

    /// A notification as an agent may send it: it goes to clients as it is. `update`: whether it is an update, if that matters.
    fn check_notification(&self, line: &[u8], update: Option<bool>) -> Result<(), WrongLine> {
        let (_, read) = read_line(Bytes::copy_from_slice(line));
        let is_update = match read {
            Line::Notification { update, .. } => update.is_some(),
            // Earlier versions recorded updates of no session, and notifications in acpd's name. No client is sent these.
            Line::Stray => true,
            Line::Ambiguous { is_update, .. } => is_update,
            Line::Forbidden { .. } => false,
            _ => return wrong("payload", "a notification of an agent is required"),
        };
        if update.is_some_and(|update| update != is_update) {
            return wrong("payload", "session/update is an update, and another method is not");
        }
        let message = serde_json::from_slice(line);
        message.map_or(Ok(()), |message| self.check_session(message))
    }

    /// A message may name no session, and none but this.
    fn check_session(&self, message: &RawValue) -> Result<(), WrongLine> {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            session_id: Option<&'a RawValue>,
        }
        // A member that is there twice is refused: readers differ in which they take.
        let unclear = |error| WrongLine::new("payload", format!("a message is not clear: {error}"));
        let Message { params } =
            read_shape(message.get().as_bytes()).map_err(|error| unclear(error.to_string()))?;
        let Some(params) = params.filter(|params| params.get().starts_with('{')) else { return Ok(()) };
        let Params { session_id } =
            read_shape(params.get().as_bytes()).map_err(|error| unclear(format!("params.{error}")))?;
        match session_id.is_none_or(|named| named.get() == self.head.session_id.as_json()) {
            true => Ok(()),
            false => wrong("payload", "a message names another session than line 1 does"),
        }
    }

    /// All lines were taken. A run that is live goes on elsewhere, if at all: here it has ended.
    pub(crate) fn finish(self, now_ms: i64) -> Result<Taken, WrongLine> {
        let (last, announced) = (self.projection.last_seq(), self.head.events);
        if last != announced {
            return wrong(
                "line",
                format!("line 1 announces {announced} events, and there are {last}: it was cut off"),
            );
        }
        let is_live = self.projection.is_live();
        let mut taken = self.finish_as(of_import(now_ms), now_ms)?;
        taken.meta.added_end = is_live.then_some(last + 1);
        taken.meta.imported = true;
        Ok(taken)
    }

    /// All events were taken. A run that is live has ended so.
    pub(crate) fn finish_as(mut self, end: TerminationInfo, now_ms: i64) -> Result<Taken, WrongLine> {
        if self.projection.runs() == RunNumber(0) {
            return wrong("line", "a session that has never run is none");
        }
        if self.projection.is_live() {
            let end = end.with_facts(&self.facts());
            let event = Event::Ended(Box::new(end.clone()));
            let at = Position { seq: self.next(), at_ms: now_ms };
            self.projection.apply(at, &event);
            crate::recording::push(&mut self.batch, now_ms, &event);
            self.end = Some(end);
        }
        let Self { head, projection, end, client, batch } = self;
        let mut meta = SessionMeta::default();
        meta.tell(&projection);
        meta.client = client;
        meta.title.clone_from(&head.title);
        meta.forked_from.clone_from(&head.forked_from);
        meta.runs = Some(projection.runs());
        if let Some(end) = end {
            meta.ended(&end);
        }
        Ok(Taken { head, projection, meta, batch })
    }

    /// What is known of the run that is live.
    fn facts(&self) -> SessionFacts {
        let projection = &self.projection;
        SessionFacts {
            turn_active: projection.running_turn().is_some(),
            last_stop_reason: projection.last_stop_reason().map(str::to_owned),
            started_ms: Some(projection.run_started_ms()),
            last_event_seq: Some(projection.last_seq()),
        }
    }
}

fn check_time(field: &'static str, ms: i64) -> Result<(), WrongLine> {
    match TIMES.contains(&ms) {
        true => Ok(()),
        false => wrong(field, "a time from 1970 to 9999 is required"),
    }
}

/// Whether an event has only members that this version knows: they are shown beside those of every event.
fn check_members(event: &Event<'_>, payload: &[u8]) -> Result<(), WrongLine> {
    type Members<'a> = BTreeMap<String, &'a RawValue>;
    let mut written = Vec::new();
    event.write(&mut written).expect("memory takes everything, and all members of an event are JSON");
    if written == payload {
        return Ok(());
    }
    let known: Members<'_> = serde_json::from_slice(&written).unwrap_or_default();
    let found = read_shape::<Members<'_>>(payload).or_else(|error| wrong("payload", error.to_string()))?;
    match found.keys().find(|name| !known.contains_key(*name)) {
        Some(name) => wrong("payload", format!("{name:?} is no member that this version writes")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
