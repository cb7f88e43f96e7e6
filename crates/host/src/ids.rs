//! Session ids: acpd's own, unique across agents and restarts (contract 1, SE-1).

use std::fmt;
use std::sync::Arc;

/// The id of a session, as clients see it. Never the agent's own id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    /// The id as JSON text, quotes included: that is how it is spliced into messages.
    json: Arc<str>,
}

impl SessionId {
    /// A fresh id. Time-ordered, so that new sessions sit together in the index.
    pub(crate) fn new() -> Self {
        Self::from_text(&fresh_id())
    }

    /// The id that stands in the log. Ids are made of letters, digits and dashes, so quoting is all it takes.
    pub(crate) fn from_text(text: &str) -> Self {
        Self { json: format!("\"{text}\"").into() }
    }

    /// The id itself.
    pub fn as_str(&self) -> &str {
        &self.json[1..self.json.len() - 1]
    }

    /// The id as a JSON string, with quotes.
    pub fn as_json(&self) -> &str {
        &self.json
    }
}

/// An id that nothing else has, in this process or another.
pub fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({})", self.as_str())
    }
}
