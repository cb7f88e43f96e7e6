//! What an update says, as far as it is part of a conversation, and whether two say the same.

use acpd_record::{is_history, lenient, update_kind, update_value};
use acpd_wire::UpdateKind;
use serde::Deserialize;
use serde_json::Value;

/// Who says a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Agent,
    Thought,
}

/// An update, as far as it is part of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Text(Role, String),
    /// A tool call or news of it.
    Call(String),
    /// What has to be equal as a whole, such as a picture or a plan.
    Whole {
        by_user: bool,
        value: Value,
    },
    /// About the present state, or of a kind that is not replayed.
    Beside,
}

/// What is compared of an update.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Update {
    #[serde(deserialize_with = "lenient")]
    tool_call_id: Option<String>,
    content: Value,
}

/// What is compared of a content block.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Content {
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    text: Option<String>,
}

impl Said {
    /// Reads a `session/update` line.
    pub(crate) fn of_line(line: &[u8]) -> Self {
        let kind = update_kind(line);
        if !is_history(kind) {
            return Self::Beside;
        }
        let Some(update) = update_value(line) else { return Self::Beside };
        let role = match kind {
            UpdateKind::UserMessageChunk => Some(Role::User),
            UpdateKind::AgentMessageChunk => Some(Role::Agent),
            UpdateKind::AgentThoughtChunk => Some(Role::Thought),
            _ => None,
        };
        let said = Update::deserialize(&update).unwrap_or_default();
        match (role, said.tool_call_id) {
            (Some(role), _) => Self::of_content(role, &said.content),
            (None, Some(id)) => Self::Call(id),
            (None, None) => Self::Whole { by_user: false, value: without_meta(&update) },
        }
    }

    pub(super) fn of_content(role: Role, content: &Value) -> Self {
        match Content::deserialize(content).unwrap_or_default() {
            Content { kind: Some(kind), text: Some(text) } if kind == "text" => Self::Text(role, text),
            _ => Self::Whole { by_user: role == Role::User, value: without_meta(content) },
        }
    }

    /// What an agent has no reason to say again in an answer.
    pub(super) fn is_proof(&self) -> bool {
        self.by_user() || matches!(self, Self::Call(_))
    }

    pub(super) fn by_user(&self) -> bool {
        matches!(self, Self::Text(Role::User, _) | Self::Whole { by_user: true, .. })
    }
}

fn without_meta(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !["_meta", "messageId", "annotations"].contains(&name.as_str()));
    }
    value
}

/// How far a text was told before.
pub(super) enum Along {
    /// All of it was told before: so many bytes of what is recorded.
    Within(usize),
    /// So many bytes were told before, and that is all that is recorded.
    Past(usize),
    Differs,
}

/// Compares two texts from their beginnings on, white space aside.
pub(super) fn along(recorded: &str, said: &str) -> Along {
    let dark = |(_, char): &(usize, char)| !char.is_whitespace();
    let (mut old, mut new) = (recorded.char_indices().filter(dark), said.char_indices().filter(dark));
    let mut told = 0;
    loop {
        let Some((place, said)) = new.next() else { return Along::Within(told) };
        match old.next() {
            Some((at, recorded)) if recorded == said => told = at + recorded.len_utf8(),
            Some(_) => return Along::Differs,
            None => return Along::Past(place),
        }
    }
}
