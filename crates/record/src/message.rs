//! A raw message of the agent, under the session's own id.

use acpd_wire::{Member, Skimmer, UpdateKind, scan};
use serde::Deserialize;
use serde_json::Value;
use std::io;
use std::ops::Range;

/// A message of the agent as one line of JSON. When it is written, the session's own id takes the place of the agent's;
/// all else is stored byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage<'a> {
    line: &'a [u8],
    /// Where the agent's session id stands, and what is written in its place.
    session: Option<(Range<usize>, &'a str)>,
    /// The kind of the update, where the line has been scanned before.
    kind: Option<UpdateKind>,
}

impl<'a> RawMessage<'a> {
    /// A message as it stands in the log, or without a session id.
    pub fn stored(line: &'a [u8]) -> Self {
        Self { line, session: None, kind: None }
    }

    /// A message of the agent, whose session id at `span` becomes `id_json`.
    pub fn of_agent(line: &'a [u8], span: Option<Range<usize>>, id_json: &'a str) -> Self {
        Self { line, session: span.map(|span| (span, id_json)), kind: None }
    }

    /// The same, an update that is known to be of this kind.
    pub fn of_kind(self, kind: UpdateKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// The kind of the update; for one that is not known the line is scanned.
    pub fn kind(&self) -> UpdateKind {
        self.kind.unwrap_or_else(|| update_kind(self.line))
    }

    /// The same for one of many messages of a log: the line is skimmed.
    pub(crate) fn kind_by(&self, skimmer: &mut Skimmer) -> UpdateKind {
        let skim = || skimmer.skim(self.line).map_or(UpdateKind::Other, |seen| seen.kind());
        self.kind.unwrap_or_else(skim)
    }

    /// The line as it came. What the agent says in it is the same under either id.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    pub(crate) fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        match &self.session {
            Some((span, id)) => {
                out.write_all(&self.line[..span.start])?;
                out.write_all(id.as_bytes())?;
                out.write_all(&self.line[span.end..])
            }
            None => out.write_all(self.line),
        }
    }
}

/// The kind of a `session/update`, as its line says.
pub fn update_kind(line: &[u8]) -> UpdateKind {
    scan(line).map_or(UpdateKind::Other, |scan| scan.kind())
}

/// The update of a `session/update` line, as far as a type wants to know it.
pub fn update_of<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    serde_json::from_str(scan(line).ok()?.value(Member::Update)?.get()).ok()
}

/// The update of a `session/update` line, with all that is in it; `None` when it has none.
pub fn update_value(line: &[u8]) -> Option<Value> {
    acpd_wire::read(scan(line).ok()?.value(Member::Update)?.get().as_bytes()).ok()
}

/// Whether an update belongs to the conversation itself, and so is part of a replay, or only to the present state.
pub fn is_history(kind: UpdateKind) -> bool {
    matches!(
        kind,
        UpdateKind::UserMessageChunk
            | UpdateKind::AgentMessageChunk
            | UpdateKind::AgentThoughtChunk
            | UpdateKind::ToolCall
            | UpdateKind::ToolCallUpdate
            | UpdateKind::Plan
            | UpdateKind::CompactionUpdate
            | UpdateKind::CompactionSummaryChunk
    )
}

/// Whether an update is about the present state, which a [`Snapshot`](crate::Snapshot) keeps.
pub fn is_state(kind: UpdateKind) -> bool {
    matches!(
        kind,
        UpdateKind::AvailableCommandsUpdate
            | UpdateKind::CurrentModeUpdate
            | UpdateKind::ConfigOptionUpdate
            | UpdateKind::UsageUpdate
            | UpdateKind::SessionInfoUpdate
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // FR-8: the kind is the update's own, also in a line that was not scanned before
    #[test]
    fn a_message_knows_its_kind() {
        let line = br#"{"params":{"_meta":{"sessionUpdate":"notice"},"update":{"sessionUpdate":"plan"}}}"#;
        let kind = |message: RawMessage<'_>| {
            assert_eq!(message.kind_by(&mut Skimmer::default()), message.kind());
            message.kind()
        };
        assert_eq!(kind(RawMessage::stored(line)), UpdateKind::Plan);
        assert_eq!(kind(RawMessage::stored(line).of_kind(UpdateKind::Notice)), UpdateKind::Notice);
        assert_eq!(kind(RawMessage::stored(br#"{"x":{"sessionUpdate":"plan"}}"#)), UpdateKind::Other);
        assert_eq!(update_kind(br#"{"sessionUpdate":""#), UpdateKind::Other);
    }

    // SE-1: acpd's own id in place of the agent's, the rest byte for byte
    #[test]
    fn only_the_session_id_is_replaced() {
        let line = br#"{ "x":1.0,"sessionId": "native" }"#;
        let mut out = Vec::new();
        RawMessage::of_agent(line, Some(23..31), "\"ours\"").write(&mut out).expect("memory");
        assert_eq!(out, br#"{ "x":1.0,"sessionId": "ours" }"#);
        out.clear();
        RawMessage::stored(line).write(&mut out).expect("memory");
        assert_eq!(out, line);
    }
}
