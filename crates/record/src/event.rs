//! One event of a session, typed.

use crate::kind::EventKind;
use crate::message::RawMessage;
use crate::payload::{
    AgentRequest, CancelRequested, Created, ElicitationCompleted, Prompt, Question, Reattached, Resolution,
    RunStarted, Stalled, StateChanged, TerminalNews, TranscriptFacts, TurnEnded,
};
use crate::questions::Topic;
use crate::shape::{ShapeError, read_shape};
use crate::termination::TerminationInfo;
use serde::{Deserialize, Serialize};
use std::io;

/// An event that has not the shape of its kind.
#[derive(Debug, thiserror::Error)]
#[error("a {} event is not readable", kind.name())]
pub struct Unreadable {
    /// Its kind.
    pub kind: EventKind,
    /// What is wrong with it.
    #[source]
    pub source: ShapeError,
}

/// What is stored of an event of one kind.
trait Payload<'a>: Sized {
    fn read(bytes: &'a [u8]) -> Result<Self, ShapeError>;
    fn write(&self, out: &mut impl io::Write) -> io::Result<()>;
}

impl<'a, T: Serialize + Deserialize<'a>> Payload<'a> for T {
    fn read(bytes: &'a [u8]) -> Result<Self, ShapeError> {
        read_shape(bytes)
    }

    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }
}

/// Raw messages are not looked into.
impl<'a> Payload<'a> for RawMessage<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ShapeError> {
        Ok(Self::stored(bytes))
    }

    fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        RawMessage::write(self, out)
    }
}

/// The one table of what each kind holds.
macro_rules! events {
    ($lifetime:lifetime: $($kind:ident($payload:ty),)*) => {
        /// One event of a session. Kinds and their meaning: [`EventKind`].
        #[derive(Debug)]
        #[expect(missing_docs, reason = "the kinds have the words")]
        pub enum Event<$lifetime> {
            $($kind($payload),)*
            /// A kind of a later version, as it is.
            Other { kind: u16, payload: &$lifetime [u8] },
        }

        impl<$lifetime> Event<$lifetime> {
            /// Reads a stored event. Raw messages are not looked into.
            ///
            /// # Errors
            /// When a known kind has another shape than its own.
            pub fn read(number: u16, bytes: &$lifetime [u8]) -> Result<Self, Unreadable> {
                let Some(kind) = EventKind::from_number(number) else {
                    return Ok(Self::Other { kind: number, payload: bytes });
                };
                let read = match kind {
                    $(EventKind::$kind => Payload::read(bytes).map(Self::$kind),)*
                };
                read.map_err(|source| Unreadable { kind, source })
            }

            /// Its kind; `None` for one of a later version.
            pub fn kind(&self) -> Option<EventKind> {
                match self {
                    $(Self::$kind(_) => Some(EventKind::$kind),)*
                    Self::Other { .. } => None,
                }
            }

            /// Writes what is stored of it.
            ///
            /// # Errors
            /// Those of `out`.
            pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
                match self {
                    $(Self::$kind(payload) => Payload::write(payload, out),)*
                    Self::Other { payload, .. } => out.write_all(payload),
                }
            }
        }
    };
}

events! {
    'a:
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
    Stalled(Stalled),
    Reattached(Reattached),
}

impl Event<'_> {
    /// The number of its kind.
    pub fn number(&self) -> u16 {
        match self {
            Self::Other { kind, .. } => *kind,
            known => known.kind().map_or(0, EventKind::number),
        }
    }

    /// The question that it asks, and for what.
    pub(crate) fn question(&self) -> Option<(Topic, &Question<'_>)> {
        match self {
            Self::PermissionRequested(question) => Some((Topic::Permission, question)),
            Self::ElicitationRequested(question) => Some((Topic::Elicitation, question)),
            Self::FileForwarded(question) => Some((Topic::File, question)),
            _ => None,
        }
    }

    /// The question that it closes.
    pub(crate) fn resolution(&self) -> Option<&Resolution<'_>> {
        match self {
            Self::PermissionResolved(resolution)
            | Self::ElicitationResolved(resolution)
            | Self::FileResolved(resolution) => Some(resolution),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One event of each kind, as it stands in a log.
    const STORED: [(u16, &str); 28] = [
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
        (21, r#"{"turn":3,"silentMs":300000}"#),
        (21, r#"{"turn":3,"silentMs":320000,"goesOn":true}"#),
        (22, r#"{"gapMs":1200}"#),
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
        assert_eq!(kinds.len(), 22);
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
        assert_eq!(error.source.to_string(), "turn: it is missing");
    }
}
