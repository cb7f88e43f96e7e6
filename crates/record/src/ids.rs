//! Ids and numbers, each a type of its own.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// The longest session id, in bytes.
const LONGEST: usize = 128;

/// The id of a session, as clients see it: acpd's own, unique across agents and restarts (contract 1, SE-1). Never the
/// agent's id.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    /// As JSON text, quotes included: that is how it is spliced into messages.
    json: Arc<str>,
}

impl SessionId {
    /// Reads an id; `None` for text that cannot be one: empty, longer than 128 bytes, or with other characters than
    /// ASCII letters, digits, dashes, dots and underscores.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=LONGEST).contains(&text.len());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        (fits && text.bytes().all(is_plain)).then(|| Self { json: format!("\"{text}\"").into() })
    }

    /// Reads an id that a client chooses. Beside what [`parse`](Self::parse) refuses: `.` and `..`, which clients take out of
    /// the path of a URL, and what begins with a dash, which is a flag to a command.
    pub fn parse_chosen(text: &str) -> Option<Self> {
        let is_name = !matches!(text, "." | "..") && !text.starts_with('-');
        Self::parse(text).filter(|_| is_name)
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

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no session id")))
    }
}

/// The agent's own id of a session, of any form, in the agent's spelling.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NativeSessionId {
    /// As JSON text, quotes included.
    json: Arc<str>,
}

impl NativeSessionId {
    /// The id with this text.
    pub fn of_text(text: &str) -> Self {
        Self { json: serde_json::Value::from(text).to_string().into() }
    }

    /// The id with this JSON text; `None` when it is no string.
    pub fn of_json(json: &str) -> Option<Self> {
        serde_json::from_str::<String>(json).ok()?;
        Some(Self { json: json.into() })
    }

    /// The id itself.
    pub fn text(&self) -> String {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// The id as a JSON string.
    pub fn as_json(&self) -> &Arc<str> {
        &self.json
    }
}

impl fmt::Debug for NativeSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NativeSessionId({})", self.json)
    }
}

impl Serialize for NativeSessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for NativeSessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of_text(&String::deserialize(deserializer)?))
    }
}

const REST: &str = "REST";

/// A connection of a client; no two have the same id, in any process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(Arc<str>);

impl ConnectionId {
    /// What stands for a connection where there is none: the requests of a client over REST.
    pub fn rest() -> Self {
        Self(REST.into())
    }

    /// Whether this stands for the requests of a client over REST.
    pub fn is_rest(&self) -> bool {
        *self.0 == *REST
    }

    /// The id itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for ConnectionId {
    fn from(id: T) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ConnectionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ConnectionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?.into()))
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SessionId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SessionId".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "description": "acpd's own id of a session.", "pattern": "^[A-Za-z0-9._-]{1,128}$",
        })
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A run of a session, from 1.
    RunNumber
}
number! {
    /// A turn of a session, from 1, counted over all runs.
    TurnNumber
}
number! {
    /// A question of the agent: the sequence number of the event that shows it.
    QuestionNumber
}

impl TurnNumber {
    /// The turn after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl RunNumber {
    /// The run after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SE-1: what is spliced into messages never needs an escape
    #[test]
    fn only_plain_text_is_a_session_id() {
        for text in ["0199f0a2-7c1e-7000-8000-0123456789ab", "s_1.x"] {
            let id = SessionId::parse(text).expect("it is one");
            assert_eq!((id.as_str(), id.as_json()), (text, format!("\"{text}\"").as_str()));
        }
        for text in ["", "a\"b", "a\\b", "ä", "a b", "a/b", &"x".repeat(129)] {
            assert_eq!(SessionId::parse(text), None, "{text}");
        }
    }

    // contract 7.3: an id that a client chooses can be written into a URL and behind a command
    #[test]
    fn an_id_that_is_chosen_is_a_name() {
        for (text, is_one) in [
            (".", false),
            ("..", false),
            ("-x", false),
            ("-", false),
            ("...", true),
            ("a..b", true),
            (".x", true),
            ("x-", true),
        ] {
            assert!(SessionId::parse(text).is_some(), "{text}: it may be there already");
            assert_eq!(SessionId::parse_chosen(text).is_some(), is_one, "{text}");
        }
        assert_eq!(SessionId::parse_chosen("a b"), None);
    }

    #[test]
    fn a_native_id_keeps_the_agents_spelling() {
        let id = NativeSessionId::of_json(r#""a\u002fb""#).expect("a string");
        assert_eq!((id.text(), &**id.as_json()), ("a/b".to_owned(), r#""a\u002fb""#));
        assert_eq!(NativeSessionId::of_json("7"), None);
        assert_eq!(&**NativeSessionId::of_text("a\"b").as_json(), r#""a\"b""#);
    }
}
