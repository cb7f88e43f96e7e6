//! One line as a JSON-RPC message whose parts are borrowed from the line.
//!
//! Invariants: payloads stay raw (nothing is decoded, dropped or reordered); a message is a view of a
//! [`Scan`], and nothing is read twice; an explicit `"id": null` is a request, an absent id a notification.
//! Tolerated, because real peers do it: a missing `jsonrpc`, a response without an id, or with an
//! outcome that is null beside the other one, unknown members, `params: null`.
//! Refused: a known member that is there twice. Receivers differ in which one they take, and the line may be forwarded
//! as it is.
//! Not here: methods and their parameters.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::id::RawId;
use crate::malformed::Malformed;
use crate::raw::{decode_string, raw_value};
use crate::scan::{Member, Scan, scan};

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
        scan(line)?.message()
    }
}

impl<'a> Scan<'a> {
    /// The line as a message.
    ///
    /// # Errors
    ///
    /// [`Malformed::NotAnEnvelope`] for an object that is no message.
    pub fn message(&self) -> Result<Message<'a>, Malformed<'a>> {
        let written_id = self.last(Member::Id);
        let id = written_id.and_then(|id| RawId::new(raw_value(id)));
        let broken = |reason| {
            let answerable = !self.is_response() && !self.is_notification();
            Err(Malformed::NotAnEnvelope { reason, id, answerable })
        };
        if self.has_doubled_root() {
            return broken("a member is there twice");
        }
        let version = self.last(Member::JsonRpc);
        if version.is_some_and(|version| decode_string(version).as_deref() != Some("2.0")) {
            return broken("jsonrpc is not \"2.0\"");
        }
        if written_id.is_some() && id.is_none() {
            return broken("id is neither string nor number nor null");
        }
        let (result, error) = (self.last(Member::Result), self.last(Member::Error));
        let Some(method) = self.last(Member::Method) else {
            let outcome = match (result, error) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(error),
                // Some peers write out the member that does not apply.
                (Some(result), Some("null")) => Ok(result),
                (Some("null"), Some(error)) => Err(error),
                (Some(_), Some(_)) => return broken("both result and error"),
                (None, None) => return broken("neither method nor result nor error"),
            };
            return Ok(Message::Response { id, outcome: outcome.map(raw_value).map_err(raw_value) });
        };
        if result.is_some() || error.is_some() {
            return broken("both a method and an outcome");
        }
        let Some(method) = decode_string(method) else {
            return broken("method is not a string");
        };
        let params = match self.last(Member::Params) {
            None | Some("null") => None,
            Some(params) if params.starts_with(['{', '[']) => Some(raw_value(params)),
            Some(_) => return broken("params are neither object nor array"),
        };
        Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        })
    }

    fn has_outcome(&self) -> bool {
        self.last(Member::Result).is_some() || self.last(Member::Error).is_some()
    }

    fn is_response(&self) -> bool {
        self.last(Member::Method).is_none() && self.has_outcome()
    }

    fn is_notification(&self) -> bool {
        let is_named = self.last(Member::Method).is_some_and(|method| method.starts_with('"'));
        is_named && self.last(Member::Id).is_none() && !self.has_outcome()
    }
}

#[cfg(test)]
mod tests;
