//! One line as a JSON-RPC message whose parts are borrowed from the line.
//!
//! Invariants: payloads stay raw (nothing is decoded, dropped or reordered); one pass without recursion; an explicit
//! `"id": null` is a request, an absent id a notification.
//! Tolerated, because real peers do it: a missing `jsonrpc`, a response without an id, or with an
//! outcome that is null beside the other one, unknown members, `params: null`.
//! Refused: a known member that is there twice. Receivers differ in which one they take, and the line may be forwarded
//! as it is.
//! Not here: methods and their parameters.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::id::RawId;
use crate::malformed::Malformed;
use crate::raw::decode_string;

/// A JSON-RPC message, borrowed from its line.
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// Wants exactly one response with its id.
    Request {
        /// As the peer wrote it, possibly `null`.
        id: RawId<'a>,
        /// Decoded; borrowed unless it has escapes.
        method: Cow<'a, str>,
        /// An object or an array; `None` also for `null`.
        params: Option<&'a RawValue>,
    },
    /// Gets no response.
    Notification {
        /// Decoded; borrowed unless it has escapes.
        method: Cow<'a, str>,
        /// An object or an array; `None` also for `null`.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request of ours.
    Response {
        /// `None` without an id member, which is how some agents answer what they cannot read.
        id: Option<RawId<'a>>,
        /// The `result` member, or the `error` member, whatever it holds.
        outcome: Result<&'a RawValue, &'a RawValue>,
    },
}

impl<'a> Message<'a> {
    /// Reads one line (or one frame: newlines between tokens are allowed).
    ///
    /// # Errors
    ///
    /// [`Malformed`] says what the line is instead, and whether the peer is owed an answer.
    pub fn parse(line: &'a [u8]) -> Result<Self, Malformed<'a>> {
        let text =
            std::str::from_utf8(line).map_err(|e| Malformed::NotUtf8 { valid_up_to: e.valid_up_to() })?;
        match line.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => Err(Malformed::Blank),
            Some(b'{') => Members::read(text).map_err(|e| not_json(e, true))?.into_message(),
            Some(first) => {
                let _any: IgnoredAny = serde_json::from_str(text).map_err(|e| not_json(e, false))?;
                Err(match first {
                    b'[' => Malformed::Batch,
                    _ => Malformed::NotAnEnvelope { reason: "not an object", id: None, answerable: true },
                })
            }
        }
    }
}

fn not_json<'a>(source: serde_json::Error, looks_like_message: bool) -> Malformed<'a> {
    Malformed::NotJson { column: source.column(), looks_like_message, source }
}

/// The known members of an object, all raw, so that judging them cannot cut the reading short.
#[derive(Default)]
struct Members<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: bool,
}

impl<'a> Members<'a> {
    fn read(text: &'a str) -> serde_json::Result<Self> {
        let mut json = serde_json::Deserializer::from_str(text);
        let members = json.deserialize_map(MembersVisitor)?;
        json.end()?;
        Ok(members)
    }

    fn into_message(self) -> Result<Message<'a>, Malformed<'a>> {
        let id = self.id.and_then(RawId::new);
        let broken = |reason| {
            let answerable = !self.is_response() && !self.is_notification();
            Err(Malformed::NotAnEnvelope { reason, id, answerable })
        };
        if self.duplicate {
            return broken("a member is there twice");
        }
        if self.jsonrpc.is_some_and(|version| decode_string(version).as_deref() != Some("2.0")) {
            return broken("jsonrpc is not \"2.0\"");
        }
        if self.id.is_some() && id.is_none() {
            return broken("id is neither string nor number nor null");
        }
        let Some(method) = self.method else {
            return match (self.result, self.error) {
                (Some(result), None) => Ok(Message::Response { id, outcome: Ok(result) }),
                (None, Some(error)) => Ok(Message::Response { id, outcome: Err(error) }),
                // Some peers write out the member that does not apply.
                (Some(result), Some(error)) if error.get() == "null" => {
                    Ok(Message::Response { id, outcome: Ok(result) })
                }
                (Some(result), Some(error)) if result.get() == "null" => {
                    Ok(Message::Response { id, outcome: Err(error) })
                }
                (Some(_), Some(_)) => broken("both result and error"),
                (None, None) => broken("neither method nor result nor error"),
            };
        };
        if self.result.is_some() || self.error.is_some() {
            return broken("both a method and an outcome");
        }
        let Some(method) = decode_string(method) else {
            return broken("method is not a string");
        };
        let params = match self.params.map(|params| (params, params.get().as_bytes()[0])) {
            None | Some((_, b'n')) => None,
            Some((params, b'{' | b'[')) => Some(params),
            Some(_) => return broken("params are neither object nor array"),
        };
        Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        })
    }

    fn is_response(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }

    fn is_notification(&self) -> bool {
        let named = self.method.is_some_and(|method| method.get().starts_with('"'));
        named && self.id.is_none() && self.result.is_none() && self.error.is_none()
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members::default();
        while let Some(name) = map.next_key()? {
            let member = match name {
                Name::JsonRpc => &mut members.jsonrpc,
                Name::Id => &mut members.id,
                Name::Method => &mut members.method,
                Name::Params => &mut members.params,
                Name::Result => &mut members.result,
                Name::Error => &mut members.error,
                Name::Unknown => {
                    let IgnoredAny = map.next_value()?;
                    continue;
                }
            };
            members.duplicate |= member.replace(map.next_value()?).is_some();
        }
        Ok(members)
    }
}

enum Name {
    JsonRpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    Unknown,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl Visitor<'_> for NameVisitor {
            type Value = Name;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Name, E> {
                Ok(match name {
                    "jsonrpc" => Name::JsonRpc,
                    "id" => Name::Id,
                    "method" => Name::Method,
                    "params" => Name::Params,
                    "result" => Name::Result,
                    "error" => Name::Error,
                    _ => Name::Unknown,
                })
            }
        }

        deserializer.deserialize_identifier(NameVisitor)
    }
}

#[cfg(test)]
mod tests;
