//! The keys under which clients have prompted a session, and what became of each prompt: a client that has lost an answer
//! sends the prompt again under its key, and it does not run twice (contract 7.3).
//!
//! Not here: keys of prompts that wait in line, which are no events yet.

use crate::checkpoint::{START, hash};
use crate::ids::TurnNumber;
use crate::json::Json;
use crate::payload::TurnEnded;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Keys that are remembered of a session: the last ones. A prompt under an older key is a new one.
const REMEMBERED: usize = 256;

/// Bytes of an error's message that are remembered.
const MESSAGE: usize = 512;

/// Bytes of an agent's result up to which it is remembered as a whole. Seen: 100 to 900, with usage and `_meta`.
const RESULT: usize = 4096;

/// A client's key for a request that may come again, a prompt or a creation, with a digest of what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    key: Box<str>,
    digest: u64,
}

impl RequestKey {
    /// Bytes of a key at most.
    pub const LONGEST: usize = 255;

    /// Whether `key` can be one: 1 to 255 visible ASCII characters.
    pub fn is_valid(key: &str) -> bool {
        (1..=Self::LONGEST).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// A key for this prompt or body; `None` for what cannot be one.
    pub fn new(key: &str, asked: &RawValue) -> Option<Self> {
        Self::is_valid(key).then(|| Self::stored(key, asked))
    }

    /// A key as the log has it.
    pub(crate) fn stored(key: &str, asked: &RawValue) -> Self {
        let digest = match serde_json::from_str::<Value>(asked.get()) {
            // The same value is the same request, however it is written.
            Ok(mut value) => {
                value.sort_all_objects();
                hash(START, value.to_string().as_bytes())
            }
            Err(_too_deep) => hash(START, asked.get().as_bytes()),
        };
        Self { key: key.into(), digest }
    }

    /// The key itself.
    pub fn as_str(&self) -> &str {
        &self.key
    }
}

/// A turn that was prompted under a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeyedTurn {
    /// Its key, with the digest of its prompt.
    pub key: RequestKey,
    /// Its number.
    pub turn: TurnNumber,
    /// The event that began it.
    pub seq: u64,
    /// How it ended; `None` while it runs.
    pub end: Option<KeyedEnd>,
}

/// How a turn ended, as far as its client is told again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyedEnd {
    /// With this result of its agent.
    Answered(Json),
    /// With a stop reason, if there was one, and no result that is remembered.
    Stopped(Option<Box<str>>),
    /// With an error of this code, and the beginning of its message.
    Failed(Option<i64>, Box<str>),
    /// Its run ended first.
    Interrupted,
}

impl KeyedEnd {
    fn of(ended: &TurnEnded<'_>) -> Self {
        #[derive(Default, Deserialize)]
        struct Error<'a> {
            #[serde(default)]
            code: Option<i64>,
            #[serde(borrow, default)]
            message: Cow<'a, str>,
        }
        let Some(error) = ended.error else {
            let result = ended.result.filter(|result| result.get().len() <= RESULT).and_then(Json::compact);
            let stopped = || Self::Stopped(ended.stop_reason.as_deref().map(Into::into));
            return result.map_or_else(stopped, Self::Answered);
        };
        let Error { code, message } = serde_json::from_str(error.get()).unwrap_or_default();
        Self::Failed(code, message[..message.floor_char_boundary(MESSAGE)].into())
    }
}

/// The keyed turns of a session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Keys(VecDeque<KeyedTurn>);

impl Keys {
    pub(crate) fn prompted(&mut self, key: RequestKey, turn: TurnNumber, seq: u64) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(KeyedTurn { key, turn, seq, end: None });
    }

    pub(crate) fn ended(&mut self, turn: TurnNumber, ended: &TurnEnded<'_>) {
        self.end(turn, KeyedEnd::of(ended));
    }

    pub(crate) fn interrupted(&mut self, turn: TurnNumber) {
        self.end(turn, KeyedEnd::Interrupted);
    }

    fn end(&mut self, turn: TurnNumber, end: KeyedEnd) {
        // The turn that ends is the last that began.
        if let Some(last) = self.0.back_mut().filter(|last| last.turn == turn && last.end.is_none()) {
            last.end = Some(end);
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&KeyedTurn> {
        self.0.iter().rev().find(|turn| turn.key.as_str() == key)
    }

    pub(crate) fn of_turn(&self, turn: TurnNumber) -> Option<&RequestKey> {
        self.0.back().filter(|last| last.turn == turn).map(|last| &last.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).expect("JSON")
    }

    // contract 7.3: 1 to 255 visible ASCII characters
    #[test]
    fn only_visible_ascii_is_a_key() {
        let longest = "k".repeat(RequestKey::LONGEST);
        for key in ["k", "9f3e-1/2:3", &longest] {
            assert_eq!(RequestKey::new(key, raw("[]")).expect("it is one").as_str(), key);
        }
        for key in ["", "a b", "ä", "a\n", &(longest + "k")] {
            assert_eq!(RequestKey::new(key, raw("[]")), None, "{key:?}");
        }
    }

    // contract 7.3: the same prompt is known however it is written, and another one is told apart
    #[test]
    fn a_prompt_is_known_by_its_value() {
        let key = |json| RequestKey::new("k", raw(json)).expect("a key");
        let first = key(r#"[{"type":"text","text":"a"}]"#);
        assert_eq!(key(r#"[ {"text": "\u0061", "type":"text"} ]"#), first);
        assert_ne!(key(r#"[{"type":"text","text":"b"}]"#), first);
    }

    // contract 7.3: what is remembered is bounded; the oldest key goes first
    #[test]
    fn the_last_keys_are_remembered() {
        let mut keys = Keys::default();
        for number in 1..=REMEMBERED as u64 + 1 {
            let key = RequestKey::new(&number.to_string(), raw("[]")).expect("a key");
            keys.prompted(key, TurnNumber(number), number);
        }
        assert_eq!(keys.get("1"), None);
        assert_eq!(keys.get("2").map(|known| known.turn), Some(TurnNumber(2)));
        assert_eq!(keys.0.len(), REMEMBERED);
    }
}
