//! The one table from the host's errors to JSON-RPC errors.

use acpd_host::{HostError, error_code};
use acpd_wire::{OwnedId, codes};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};

/// An error as it goes to a client.
#[derive(Clone, Debug, PartialEq)]
pub enum WireError {
    /// An error object of the agent's own, unchanged.
    Raw(Bytes),
    /// One of ours. The message is one line.
    Own {
        /// JSON-RPC code.
        code: i64,
        /// One concise sentence.
        message: String,
        /// What a program may want to know.
        data: Option<Value>,
    },
}

/// Code, message and data of an error.
pub fn wire_error(error: &HostError) -> WireError {
    let (code, data) = match error {
        HostError::Agent { error } => return WireError::Raw(error.clone()),
        HostError::UnknownSession { id } | HostError::NotAttached { id } => {
            (error_code::NOT_FOUND, Some(json!({"sessionId": id})))
        }
        HostError::SessionEnded { id, info } => {
            (error_code::NOT_FOUND, Some(json!({"sessionId": id, "terminationInfo": info})))
        }
        HostError::InvalidParams { .. } | HostError::UnknownAgent { .. } => (codes::INVALID_PARAMS, None),
        HostError::MethodNotFound { .. } => (codes::METHOD_NOT_FOUND, None),
        HostError::RequestCancelled => (codes::REQUEST_CANCELLED, None),
        HostError::Start { agent, info, .. } => {
            (codes::INTERNAL_ERROR, Some(json!({"agent": agent, "terminationInfo": info})))
        }
        HostError::AgentGone { info } => (codes::INTERNAL_ERROR, Some(json!({"terminationInfo": info}))),
        HostError::NotResumable { id, .. } => {
            (codes::INTERNAL_ERROR, Some(json!({"sessionId": id, "resumable": false})))
        }
        HostError::Terminated { id, info } => (
            codes::INTERNAL_ERROR,
            Some(json!({"sessionId": id, "resumable": false, "terminationInfo": info})),
        ),
        HostError::LiveElsewhere { id, pid } => {
            (codes::INTERNAL_ERROR, Some(json!({"sessionId": id, "pid": pid})))
        }
        HostError::QueueFull { .. }
        | HostError::History { .. }
        | HostError::AgentNotReading { .. }
        | HostError::Timeout { .. }
        | HostError::BadAnswer { .. }
        | HostError::Log(_)
        | HostError::Broken
        | HostError::ShuttingDown => (codes::INTERNAL_ERROR, None),
    };
    WireError::Own { code, message: one_line(error), data }
}

impl WireError {
    /// The whole answer line.
    pub(crate) fn to_line(&self, id: &OwnedId) -> Bytes {
        let mut line = BytesMut::new();
        match self {
            Self::Raw(error) => acpd_wire::write_error_raw(&mut line, id.as_id(), error),
            Self::Own { code, message, data } => {
                let data = data.as_ref().map(Value::to_string);
                let data = data.as_ref().map(String::as_bytes);
                acpd_wire::write_error(&mut line, id.as_id(), *code, message, data);
            }
        }
        line.freeze()
    }
}

/// The error with its sources, without line breaks.
pub(crate) fn one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // SE-20: unknown session -> -32002 with data.sessionId
    #[test]
    fn an_unknown_session_is_named() {
        let error = wire_error(&HostError::UnknownSession { id: "s-1".into() });
        let expected = WireError::Own {
            code: -32002,
            message: "session not found".into(),
            data: Some(json!({"sessionId": "s-1"})),
        };
        assert_eq!(error, expected);
    }

    // AU-2: an agent's own error passes through unchanged
    #[test]
    fn an_agents_error_is_not_touched() {
        let raw = Bytes::from_static(br#"{"code":-32000,"message":"login","data":{"a":[1.0]}}"#);
        let error = wire_error(&HostError::Agent { error: raw.clone() });
        let id: &serde_json::value::RawValue = serde_json::from_str("7").expect("JSON");
        let id = acpd_wire::RawId::new(id).expect("an id").to_owned();
        let line = error.to_line(&id);
        let text = std::str::from_utf8(&line).expect("text");
        assert!(text.contains(std::str::from_utf8(&raw).expect("text")), "{text}");
    }
}
