//! One line of input to one incoming message, owned by the reading thread.
//!
//! Invariants: a request's id is kept as the bytes it came in, so that an answer repeats it exactly; a broken
//! line becomes an answer and never ends the conversation; a notification is never answered.
//! Not a validator of parameters: each method checks its own.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::quirk_steps::TEXT_ID;

/// JSON as it stood in the line.
pub(crate) type Raw = Box<RawValue>;

/// What a client answered to a request of ours: its result or its error object.
pub(crate) type Reply = Result<Value, Value>;

/// One message from the client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request {
        id: Raw,
        method: String,
        params: Option<Raw>,
    },
    Notification {
        method: String,
        params: Option<Raw>,
    },
    Response {
        id: u64,
        reply: Reply,
    },
    /// To be answered with this failure; without an id, with `null`.
    Broken {
        id: Option<Raw>,
        failure: Failure,
    },
    /// Nothing to do and nothing to answer.
    Ignored,
}

impl Incoming {
    pub(crate) fn parse(line: &[u8]) -> Self {
        if line.trim_ascii().is_empty() {
            return Self::Ignored;
        }
        let members = match serde_json::from_slice::<BTreeMap<String, Raw>>(line) {
            Ok(members) => members,
            Err(error) => return Self::Broken { id: None, failure: why_no_object(line, &error) },
        };
        Self::from_members(members)
    }

    fn from_members(mut members: BTreeMap<String, Raw>) -> Self {
        let id = members.remove("id");
        let legal_id = id.clone().filter(is_legal_id);
        let broken = |message: &str| Self::Broken {
            id: legal_id.clone(),
            failure: Failure::invalid_request(message.to_owned()),
        };
        let version_ok = members.get("jsonrpc").is_some_and(|version| version.get() == "\"2.0\"");
        let Some(method) = members.remove("method") else {
            if let (Some(id), true) = (&id, version_ok)
                && (members.contains_key("result") || members.contains_key("error"))
            {
                return Self::response(id, &members);
            }
            return broken("the message is neither a request nor an answer");
        };
        let Ok(method) = serde_json::from_str::<String>(method.get()) else {
            return broken("the method is not a string");
        };
        let params = members.remove("params");
        match (id, &legal_id) {
            (None, _) => Self::Notification { method, params },
            (Some(_), None) => broken("the id is neither a string nor a number nor null"),
            (Some(_), Some(_)) if !version_ok => broken("jsonrpc is not \"2.0\""),
            (Some(id), Some(_)) => Self::Request { id, method, params },
        }
    }

    /// Our ids are integers, or texts that end in one; an answer to anything else answers nothing of ours.
    fn response(id: &Raw, members: &BTreeMap<String, Raw>) -> Self {
        let number = id.get().trim_matches('"').trim_start_matches(TEXT_ID);
        let Ok(id) = number.parse() else { return Self::Ignored };
        let value = |name: &str| members.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        let reply = match value("error") {
            Some(error) => Err(error),
            None => Ok(value("result").unwrap_or(Value::Null)),
        };
        Self::Response { id, reply }
    }
}

fn why_no_object(line: &[u8], error: &serde_json::Error) -> Failure {
    let valid_json = error.is_data() && serde_json::from_slice::<&RawValue>(line).is_ok();
    if valid_json {
        Failure::invalid_request("a message is one JSON object; batches are not accepted")
    } else {
        Failure::parse_error()
    }
}

fn is_legal_id(id: &Raw) -> bool {
    matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9' | b'n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> (Option<String>, i64) {
        match Incoming::parse(line.as_bytes()) {
            Incoming::Broken { id, failure } => {
                (id.map(|id| id.get().to_owned()), failure.to_json()["code"].as_i64().unwrap())
            }
            other => panic!("{line} gave {other:?}"),
        }
    }

    // FR-5
    #[test]
    fn broken_lines_are_told_apart() {
        for (line, id, expected) in [
            ("{", None, -32700),
            ("hello", None, -32700),
            ("[1,", None, -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, None, -32600),
            ("42", None, -32600),
            ("{}", None, -32600),
            (r#"{"jsonrpc":"2.0","id":7}"#, Some("7"), -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, None, -32600),
            (r#"{"jsonrpc":"1.0","id":"x","method":"a"}"#, Some("\"x\""), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, Some("1"), -32600),
        ] {
            assert_eq!(code(line), (id.map(str::to_owned), expected), "{line}");
        }
        assert!(matches!(
            Incoming::parse(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
            Incoming::Broken { id: None, .. }
        ));
    }

    // FR-2
    #[test]
    fn an_id_keeps_its_bytes() {
        for id in ["1", "-5", "\"a\\u0062\"", "null", "123456789012345678901234567890"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a"}}"#);
            match Incoming::parse(line.as_bytes()) {
                Incoming::Request { id: kept, .. } => assert_eq!(kept.get(), id),
                other => panic!("{id} gave {other:?}"),
            }
        }
    }
}
