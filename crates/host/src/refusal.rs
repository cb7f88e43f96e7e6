//! An agent's refusal in words for a client: a sentence, under acpd's own id of the session.
//!
//! Pure. Not here: what follows from a refusal.

use crate::acp::{self, error_code};
use acpd_record::lenient;
use acpd_wire::{codes, member, span_of, splice};
use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Members of an error's `data` in which agents say what is wrong.
const DETAILS: [&str; 4] = ["details", "detail", "message", "error"];

/// An error that an agent answers, as far as acpd reads it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentError {
    #[serde(deserialize_with = "lenient")]
    pub(crate) code: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    message: Option<String>,
    data: Value,
}

impl AgentError {
    /// Reads an error object.
    pub(crate) fn read(error: &[u8]) -> Self {
        acpd_wire::read(error).unwrap_or_default()
    }

    /// The agent has not this method.
    pub(crate) fn is_missing(&self) -> bool {
        self.code == Some(codes::METHOD_NOT_FOUND)
    }

    /// It wants a login first.
    pub(crate) fn wants_login(&self) -> bool {
        self.code == Some(error_code::AUTH_REQUIRED)
    }

    /// What it says, in one sentence: its message, and what its data adds in words.
    pub(crate) fn sentence(&self) -> String {
        let message = self.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
        let mut said = match (message, self.code) {
            (Some(message), _) => message.to_owned(),
            (None, Some(code)) => format!("error {code}"),
            (None, None) => "an error without a message".to_owned(),
        };
        if let Some(more) = words(&self.data).filter(|more| !said.contains(more.as_str())) {
            said = format!("{}: {more}", said.trim_end_matches(['.', ':']));
        }
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The command of acpd that logs an agent in.
pub fn login_command(agent: &str) -> String {
    format!("acpd agents login {agent}")
}

/// Behind the words of an agent that wants a login.
fn remedy(agent: &str) -> String {
    format!("; `{}` logs it in", login_command(agent))
}

/// What the agent said itself, of an error's message.
pub fn without_login_command<'a>(message: &'a str, agent: &str) -> &'a str {
    message.strip_suffix(&remedy(agent)).unwrap_or(message)
}

/// An error of an agent as it is told to clients: where it wants a login, its message says the command as well.
pub(crate) fn with_login_command(error: Bytes, agent: &str) -> Bytes {
    let read = AgentError::read(&error);
    let whole = acpd_wire::read::<Map<String, Value>>(&error);
    let (true, Ok(mut told)) = (read.wants_login(), whole) else { return error };
    let message = read.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
    let message = message.unwrap_or("the agent wants a login").trim_end_matches('.');
    told.insert("message".to_owned(), Value::String(format!("{message}{}", remedy(agent))));
    serde_json::to_vec(&told).expect("it is JSON").into()
}

/// What is said in words in the data of an error, which may be JSON in a string.
fn words(data: &Value) -> Option<String> {
    match data {
        Value::String(text) => match acpd_wire::read::<Value>(text.as_bytes()) {
            Ok(inner @ Value::Object(_)) => words(&inner),
            _ => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        },
        Value::Object(members) => DETAILS.iter().find_map(|name| words(members.get(*name)?)),
        _ => None,
    }
}

/// An error of an agent's whose message ends with what to do.
pub(crate) fn advising(error: &Bytes, advice: &str) -> Bytes {
    let message = acp::view::<&RawValue>(error).and_then(|raw| member(raw, "message"));
    let Some((text, span)) =
        message.and_then(|message| Some((acp::text(message)?, span_of(error, message)?)))
    else {
        return error.clone();
    };
    let message = serde_json::to_string(&format!("{text}; {advice}")).expect("a string is JSON");
    let mut out = BytesMut::with_capacity(error.len() + message.len());
    splice(&mut out, error, &[(span, message.as_bytes())]);
    out.freeze()
}

/// An error of an agent's with `id` wherever it names the session by its own id: clients know no other.
pub(crate) fn under_own_id(error: &Bytes, native: &str, id: &str) -> Bytes {
    let mut value = acpd_wire::value(error);
    match rename(&mut value, native, id) {
        true => value.to_string().into(),
        false => error.clone(),
    }
}

fn rename(value: &mut Value, native: &str, id: &str) -> bool {
    match value {
        Value::String(text) => {
            let renamed = named_otherwise(text, native, id);
            let changed = renamed != *text;
            *text = renamed;
            changed
        }
        // All of them, not only up to the first.
        Value::Array(values) => {
            values.iter_mut().filter_map(|value| rename(value, native, id).then_some(())).count() > 0
        }
        Value::Object(members) => {
            members.values_mut().filter_map(|value| rename(value, native, id).then_some(())).count() > 0
        }
        _ => false,
    }
}

/// `text` with `id` for each `native` that is no part of a longer word.
pub(crate) fn named_otherwise(text: &str, native: &str, id: &str) -> String {
    if native.is_empty() {
        return text.to_owned();
    }
    let of_a_word = |char: char| char.is_alphanumeric() || char == '-' || char == '_';
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for (at, found) in text.match_indices(native) {
        let before = text[..at].chars().next_back().is_some_and(of_a_word);
        let after = text[at + found.len()..].chars().next().is_some_and(of_a_word);
        if !before && !after {
            out.push_str(&text[done..at]);
            out.push_str(id);
            done = at + found.len();
        }
    }
    out.push_str(&text[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // issue 14: an agent that wants a login is told with the command that logs it in; nothing else of its error changes
    #[test]
    fn a_wanted_login_names_its_command() {
        let told = |error: &'static str| with_login_command(Bytes::from_static(error.as_bytes()), "a");
        assert_eq!(
            told(r#"{"code":-32000,"message":"Log in.","data":{"b":[1.0]},"x":1}"#),
            r#"{"code":-32000,"message":"Log in; `acpd agents login a` logs it in","data":{"b":[1.0]},"x":1}"#
        );
        assert_eq!(
            told(r#"{"code":-32000}"#),
            r#"{"code":-32000,"message":"the agent wants a login; `acpd agents login a` logs it in"}"#
        );
        for other in [r#"{"code":-32603,"message":"Log in"}"#, "[]", "x"] {
            assert_eq!(told(other), other);
        }
        assert_eq!(without_login_command("Log in; `acpd agents login a` logs it in", "a"), "Log in");
        assert_eq!(
            without_login_command("Log in; `acpd agents login a` logs it in", "b"),
            "Log in; `acpd agents login a` logs it in"
        );
    }

    // contract 1.4: why a session is not resumable is said in a sentence
    // quirk error-with-details
    #[test]
    fn an_error_becomes_a_sentence() {
        for (error, expected) in [
            (
                json!({"code": -32603, "message": "Internal error", "data": {"details": "No such file."}}),
                "Internal error: No such file.",
            ),
            (json!({"code": -32602, "message": "Not found.", "data": {"sessionId": "s"}}), "Not found."),
            (json!({"code": -32602, "message": "Gone", "data": "Gone"}), "Gone"),
            (
                json!({"code": 1, "message": "a\n b", "data": r#"{"error":{"message":"inner"}}"#}),
                "a b: inner",
            ),
            (json!({"code": 7}), "error 7"),
            (json!(null), "an error without a message"),
        ] {
            assert_eq!(AgentError::read(error.to_string().as_bytes()).sentence(), expected);
        }
    }

    // contract 1: session ids are acpd's own
    #[test]
    fn the_agents_own_id_is_not_told() {
        let under = |error: Value, native: &str| -> Value {
            let renamed = under_own_id(&Bytes::from(error.to_string()), native, "own");
            serde_json::from_slice(&renamed).expect("JSON")
        };
        assert_eq!(
            under(
                json!({"code": -32602, "message": "Session not found: 99-ab", "data": {"session_id": "99-ab"}}),
                "99-ab"
            ),
            json!({"code": -32602, "message": "Session not found: own", "data": {"session_id": "own"}})
        );
        assert_eq!(
            under(json!({"message": "line 12: no '1' in 1a", "data": ["1", 1]}), "1"),
            json!({"message": "line 12: no 'own' in 1a", "data": ["own", 1]})
        );
        let raw = Bytes::from_static(br#"{"message" : "as it was"}"#);
        assert_eq!(under_own_id(&raw, "x1", "own"), raw);
    }
}
