//! A raw message of the agent, under the session's own id.

use acpd_wire::member;
use memchr::memmem::Finder;
use serde::Deserialize;
use std::io;
use std::ops::Range;
use std::sync::LazyLock;

/// How far into a line the kind of an update is looked for, in bytes.
const FRONT: usize = 1024;

/// A message of the agent as one line of JSON. When it is written, the session's own id takes the place of the agent's;
/// all else is stored byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawMessage<'a> {
    line: &'a [u8],
    /// Where the agent's session id stands, and what is written in its place.
    session: Option<(Range<usize>, &'a str)>,
}

impl<'a> RawMessage<'a> {
    /// A message as it stands in the log, or without a session id.
    pub fn stored(line: &'a [u8]) -> Self {
        Self { line, session: None }
    }

    /// A message of the agent, whose session id at `span` becomes `id_json`.
    pub fn of_agent(line: &'a [u8], span: Option<Range<usize>>, id_json: &'a str) -> Self {
        Self { line, session: span.map(|span| (span, id_json)) }
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

/// The kind of a `session/update`, from a look at its line; `None` when it is not near the front.
pub fn update_kind(line: &[u8]) -> Option<&str> {
    // Made once: making one costs as much as searching a line.
    static KEY: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\"sessionUpdate\""));
    let front = &line[..line.len().min(FRONT)];
    let end = KEY.find(front)? + KEY.needle().len();
    let mut rest = front[end..].iter().enumerate().skip_while(|(_, byte)| **byte != b'"');
    let (open, _) = rest.next()?;
    let start = end + open + 1;
    let length = front[start..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&front[start..start + length]).ok()
}

/// The update of a `session/update` line, as far as a type wants to know it.
pub fn update_of<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
    let update = member(member(serde_json::from_slice(line).ok()?, "params")?, "update")?;
    serde_json::from_str(update.get()).ok()
}

/// Whether an update belongs to the conversation itself, and so is part of a replay, or only to the present state.
pub fn is_history(kind: &str) -> bool {
    matches!(
        kind,
        "user_message_chunk"
            | "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
            | "compaction_update"
            | "compaction_summary_chunk"
    )
}

/// Whether an update is about the present state, which a [`Snapshot`](crate::Snapshot) keeps.
pub fn is_state(kind: &str) -> bool {
    matches!(
        kind,
        "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "usage_update"
            | "session_info_update"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_without_parsing() {
        assert_eq!(update_kind(br#"{"params":{"update":{"sessionUpdate":"plan"}}}"#), Some("plan"));
        assert_eq!(update_kind(br#"{"x":{ "sessionUpdate" : "a_b" }}"#), Some("a_b"));
        assert_eq!(update_kind(b"{}"), None);
        assert_eq!(update_kind(br#"{"sessionUpdate":""#), None);
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
