//! One event of a session, typed.

use crate::kind::EventKind;
use crate::message::RawMessage;
use crate::payload::{
    AgentRequest, CancelRequested, Created, ElicitationCompleted, Prompt, Question, Resolution, RunStarted,
    StateChanged, TerminalNews, TranscriptFacts, TurnEnded,
};
use crate::termination::TerminationInfo;
use serde::Deserialize;
use std::io;

/// One event of a session. Kinds and their meaning: [`EventKind`].
#[derive(Debug)]
#[expect(missing_docs, reason = "the kinds have the words")]
pub enum Event<'a> {
    Created(Created<'a>),
    RunStarted(RunStarted<'a>),
    Prompt(Prompt<'a>),
    Update(RawMessage<'a>),
    Notification(RawMessage<'a>),
    TurnEnded(TurnEnded<'a>),
    CancelRequested(CancelRequested<'a>),
    AgentRequest(AgentRequest<'a>),
    Ended(Box<TerminationInfo>),
    Echo(RawMessage<'a>),
    Transcript(TranscriptFacts),
    PermissionRequested(Question<'a>),
    PermissionResolved(Resolution<'a>),
    ElicitationRequested(Question<'a>),
    ElicitationResolved(Resolution<'a>),
    ElicitationCompleted(ElicitationCompleted<'a>),
    Terminal(TerminalNews<'a>),
    FileForwarded(Question<'a>),
    FileResolved(Resolution<'a>),
    StateChanged(StateChanged<'a>),
    /// A kind of a later version, as it is.
    Other {
        kind: u16,
        payload: &'a [u8],
    },
}

/// An event that has not the shape of its kind.
#[derive(Debug, thiserror::Error)]
#[error("a {} event is not readable", kind.name())]
pub struct Unreadable {
    /// Its kind.
    pub kind: EventKind,
    /// What is wrong with it.
    #[source]
    pub source: serde_json::Error,
}

fn payload<'a, T: Deserialize<'a>>(kind: EventKind, payload: &'a [u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(payload).map_err(|source| Unreadable { kind, source })
}

impl<'a> Event<'a> {
    /// Reads a stored event. Raw messages are not looked into.
    ///
    /// # Errors
    /// When a known kind has another shape than its own.
    pub fn read(number: u16, bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let Some(kind) = EventKind::from_number(number) else {
            return Ok(Self::Other { kind: number, payload: bytes });
        };
        Ok(match kind {
            EventKind::Created => Self::Created(payload(kind, bytes)?),
            EventKind::RunStarted => Self::RunStarted(payload(kind, bytes)?),
            EventKind::Prompt => Self::Prompt(payload(kind, bytes)?),
            EventKind::Update => Self::Update(RawMessage::stored(bytes)),
            EventKind::Notification => Self::Notification(RawMessage::stored(bytes)),
            EventKind::TurnEnded => Self::TurnEnded(payload(kind, bytes)?),
            EventKind::CancelRequested => Self::CancelRequested(payload(kind, bytes)?),
            EventKind::AgentRequest => Self::AgentRequest(payload(kind, bytes)?),
            EventKind::Ended => Self::Ended(payload(kind, bytes)?),
            EventKind::Echo => Self::Echo(RawMessage::stored(bytes)),
            EventKind::Transcript => Self::Transcript(payload(kind, bytes)?),
            EventKind::PermissionRequested => Self::PermissionRequested(payload(kind, bytes)?),
            EventKind::PermissionResolved => Self::PermissionResolved(payload(kind, bytes)?),
            EventKind::ElicitationRequested => Self::ElicitationRequested(payload(kind, bytes)?),
            EventKind::ElicitationResolved => Self::ElicitationResolved(payload(kind, bytes)?),
            EventKind::ElicitationCompleted => Self::ElicitationCompleted(payload(kind, bytes)?),
            EventKind::Terminal => Self::Terminal(payload(kind, bytes)?),
            EventKind::FileForwarded => Self::FileForwarded(payload(kind, bytes)?),
            EventKind::FileResolved => Self::FileResolved(payload(kind, bytes)?),
            EventKind::StateChanged => Self::StateChanged(payload(kind, bytes)?),
        })
    }

    /// Its kind; `None` for one of a later version.
    pub fn kind(&self) -> Option<EventKind> {
        Some(match self {
            Self::Created(_) => EventKind::Created,
            Self::RunStarted(_) => EventKind::RunStarted,
            Self::Prompt(_) => EventKind::Prompt,
            Self::Update(_) => EventKind::Update,
            Self::Notification(_) => EventKind::Notification,
            Self::TurnEnded(_) => EventKind::TurnEnded,
            Self::CancelRequested(_) => EventKind::CancelRequested,
            Self::AgentRequest(_) => EventKind::AgentRequest,
            Self::Ended(_) => EventKind::Ended,
            Self::Echo(_) => EventKind::Echo,
            Self::Transcript(_) => EventKind::Transcript,
            Self::PermissionRequested(_) => EventKind::PermissionRequested,
            Self::PermissionResolved(_) => EventKind::PermissionResolved,
            Self::ElicitationRequested(_) => EventKind::ElicitationRequested,
            Self::ElicitationResolved(_) => EventKind::ElicitationResolved,
            Self::ElicitationCompleted(_) => EventKind::ElicitationCompleted,
            Self::Terminal(_) => EventKind::Terminal,
            Self::FileForwarded(_) => EventKind::FileForwarded,
            Self::FileResolved(_) => EventKind::FileResolved,
            Self::StateChanged(_) => EventKind::StateChanged,
            Self::Other { .. } => return None,
        })
    }

    /// The number of its kind.
    pub fn number(&self) -> u16 {
        match self {
            Self::Other { kind, .. } => *kind,
            known => known.kind().expect("only the other has none").number(),
        }
    }

    /// Writes what is stored of it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        match self {
            Self::Update(message) | Self::Notification(message) | Self::Echo(message) => {
                message.write(out)?
            }
            Self::Other { payload, .. } => out.write_all(payload)?,
            Self::Created(payload) => serde_json::to_writer(out, payload)?,
            Self::RunStarted(payload) => serde_json::to_writer(out, payload)?,
            Self::Prompt(payload) => serde_json::to_writer(out, payload)?,
            Self::TurnEnded(payload) => serde_json::to_writer(out, payload)?,
            Self::CancelRequested(payload) => serde_json::to_writer(out, payload)?,
            Self::AgentRequest(payload) => serde_json::to_writer(out, payload)?,
            Self::Ended(payload) => serde_json::to_writer(out, payload)?,
            Self::Transcript(payload) => serde_json::to_writer(out, payload)?,
            Self::PermissionRequested(payload)
            | Self::ElicitationRequested(payload)
            | Self::FileForwarded(payload) => serde_json::to_writer(out, payload)?,
            Self::PermissionResolved(payload)
            | Self::ElicitationResolved(payload)
            | Self::FileResolved(payload) => serde_json::to_writer(out, payload)?,
            Self::ElicitationCompleted(payload) => serde_json::to_writer(out, payload)?,
            Self::Terminal(payload) => serde_json::to_writer(out, payload)?,
            Self::StateChanged(payload) => serde_json::to_writer(out, payload)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One event of each kind, as it stands in a log.
    const STORED: [(u16, &str); 25] = [
        (1, r#"{"agent":"a","cwd":"/w","by":"c","forkedFrom":"s-1"}"#),
        (
            2,
            r#"{"pid":7,"agentInfo":{"name":"x"},"by":"c","method":"session/load","transcript":{"messages":1,"omittedMessages":0,"bytes":9,"truncated":false},"state":{"modes":{"a":1.0}}}"#,
        ),
        (2, r#"{"pid":7,"agentInfo":null}"#),
        (3, r#"{"turn":3,"by":"c","via":"v","prompt":[ {"type":"text","text":"\u00e4"} ]}"#),
        (4, r#"{ "raw": 1.0 }"#),
        (5, r#"{ "raw": 1.0 }"#),
        (6, r#"{"turn":3,"stopReason":"end_turn","result":{"stopReason": "end_turn"}}"#),
        (6, r#"{"turn":3,"error":{"code":-1}}"#),
        (6, r#"{"turn":3,"stopReason":"cancelled","agentIgnoredCancel":true}"#),
        (7, r#"{"by":"c"}"#),
        (8, r#"{"answer":{"ok": true},"message":{"method":"x"}}"#),
        (
            9,
            r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#,
        ),
        (10, "{}"),
        (11, r#"{"messages":1,"omittedMessages":2,"bytes":3,"truncated":true,"turn":4}"#),
        (12, r#"{"only":"v","unasked":true,"request":5,"message":{"id": 1}}"#),
        (13, r#"{"request":5,"by":{"client":"c"},"result":{"outcome": {}}}"#),
        (13, r#"{"request":5,"by":{"cause":"timeout"},"result":{}}"#),
        (14, r#"{"request":5,"message":{}}"#),
        (15, r#"{"request":5,"by":{"mode":"deny"},"result":{}}"#),
        (16, r#"{"only":"v","message":{}}"#),
        (17, r#"{"terminalId":"t","output":"x\n","droppedBytes":3}"#),
        (
            17,
            r#"{"terminalId":"t","state":"finished","exitStatus":{"exitCode":0,"signal":null},"finalOutput":{"text":"x","truncated":false}}"#,
        ),
        (18, r#"{"only":"v","request":5,"message":{}}"#),
        (19, r#"{"request":5,"by":{"client":"c"}}"#),
        (20, r#"{"modes":{"a":[]},"currentModeId":"m","by":"c"}"#),
    ];

    // ADR 0002: what is read and written again is the same, byte for byte
    #[test]
    fn every_kind_survives_a_rewrite() {
        for (number, stored) in STORED {
            let event = Event::read(number, stored.as_bytes()).expect("its own shape");
            assert_eq!(event.number(), number);
            let mut out = Vec::new();
            event.write(&mut out).expect("memory");
            assert_eq!(String::from_utf8(out).expect("text"), stored);
        }
        let kinds: std::collections::BTreeSet<u16> = STORED.iter().map(|(number, _)| *number).collect();
        assert_eq!(kinds.len(), 20);
    }

    // ADR 0002: an event of a later version survives a rewrite
    #[test]
    fn an_unknown_kind_is_kept() {
        let event = Event::read(999, b"\xff").expect("nothing is known of it");
        assert_eq!((event.kind(), event.number()), (None, 999));
        let mut out = Vec::new();
        event.write(&mut out).expect("memory");
        assert_eq!(out, b"\xff");
    }

    #[test]
    fn another_shape_is_told_with_its_kind() {
        let error = Event::read(3, b"{}").expect_err("no prompt");
        assert_eq!(error.to_string(), "a prompt event is not readable");
    }
}
