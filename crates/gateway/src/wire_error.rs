//! The one table from the host's errors to JSON-RPC errors.

use acpd_host::{HostError, TerminationInfo, chain, error_code};
use acpd_wire::{OwnedId, codes};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use std::sync::Arc;

/// JSON-RPC code of a request that the client's token does not allow.
pub(crate) const FORBIDDEN: i64 = -32003;

/// An error as it goes to a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WireError {
    /// An error object of the agent's own, unchanged.
    Raw(Bytes),
    /// One of ours. The message is one line.
    Own {
        /// JSON-RPC code.
        code: i64,
        /// One concise sentence.
        message: String,
        /// What a program may want to know.
        data: Option<Box<ErrorData>>,
    },
}

/// What programs are told of an error: the members that are of use to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorData {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resumable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) termination_info: Option<Arc<TerminationInfo>>,
    /// What the client's token includes, and what is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) required: Option<&'static str>,
    /// What limits the client's token, and what it allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed: Option<Vec<String>>,
    /// The limit of live sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sessions: Option<usize>,
    /// The node of the fleet that has the session, and since when it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unreachable_since: Option<String>,
}

/// Code, message and data of an error.
pub(crate) fn wire_error(error: &HostError) -> WireError {
    let code = match error {
        HostError::Agent { error } => return WireError::Raw(error.clone()),
        HostError::UnknownSession { .. } | HostError::NotAttached { .. } | HostError::SessionEnded { .. } => {
            error_code::NOT_FOUND
        }
        HostError::InvalidParams { .. }
        | HostError::UnknownAgent { .. }
        | HostError::NotInstalled { .. }
        | HostError::KeyReused { .. } => codes::INVALID_PARAMS,
        HostError::TooManySessions { .. } => FORBIDDEN,
        HostError::MethodNotFound { .. } => codes::METHOD_NOT_FOUND,
        HostError::RequestCancelled => codes::REQUEST_CANCELLED,
        HostError::Start { .. }
        | HostError::AgentGone { .. }
        | HostError::NotResumable { .. }
        | HostError::LoginRequired { .. }
        | HostError::Terminated { .. }
        | HostError::LiveElsewhere { .. }
        | HostError::Detached { .. }
        | HostError::QueueFull { .. }
        | HostError::TurnInterrupted { .. }
        | HostError::History { .. }
        | HostError::AgentNotReading { .. }
        | HostError::Timeout { .. }
        | HostError::BadAnswer { .. }
        | HostError::Log(_)
        | HostError::SearchOff
        | HostError::Broken
        | HostError::Draining
        | HostError::Fenced
        | HostError::OnNode { .. }
        | HostError::ShuttingDown => codes::INTERNAL_ERROR,
    };
    WireError::Own { code, message: one_line(error), data: data(error).map(Box::new) }
}

fn data(error: &HostError) -> Option<ErrorData> {
    let of = |id: &str| ErrorData { session_id: Some(id.to_owned()), ..ErrorData::default() };
    Some(match error {
        HostError::UnknownSession { id } | HostError::NotAttached { id } => of(id),
        HostError::OnNode { id, node } => ErrorData { node: Some(node.clone()), ..of(id) },
        HostError::SessionEnded { id, info } => ErrorData { termination_info: Some(info.clone()), ..of(id) },
        HostError::Start { agent, info, .. } => {
            let (agent, termination_info) = (Some(agent.clone()), Some(info.clone()));
            ErrorData { agent, termination_info, ..ErrorData::default() }
        }
        HostError::AgentGone { info } => {
            ErrorData { termination_info: Some(info.clone()), ..ErrorData::default() }
        }
        HostError::NotResumable { id, .. } | HostError::LoginRequired { id, .. } => {
            ErrorData { resumable: Some(false), ..of(id) }
        }
        HostError::Terminated { id, info } => {
            ErrorData { resumable: Some(false), termination_info: Some(info.clone()), ..of(id) }
        }
        HostError::NotInstalled { name, .. } => {
            ErrorData { agent: Some(name.clone()), ..ErrorData::default() }
        }
        HostError::TooManySessions { most } => ErrorData { sessions: Some(*most), ..ErrorData::default() },
        HostError::LiveElsewhere { id, pid } => ErrorData { pid: *pid, ..of(id) },
        HostError::Detached { id, .. } => of(id),
        _ => return None,
    })
}

impl WireError {
    /// The whole answer line.
    pub(crate) fn to_line(&self, id: &OwnedId) -> Bytes {
        let mut line = BytesMut::new();
        match self {
            Self::Raw(error) => acpd_wire::write_error_raw(&mut line, id.as_id(), error),
            Self::Own { code, message, data } => {
                let data = data.as_ref().map(|data| serde_json::to_vec(data).expect("it is JSON"));
                acpd_wire::write_error(&mut line, id.as_id(), *code, message, data.as_deref());
            }
        }
        line.freeze()
    }
}

/// The error with its sources, without line breaks.
pub(crate) fn one_line(error: &dyn std::error::Error) -> String {
    chain(error).replace(['\n', '\r'], " ")
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
            data: Some(Box::new(ErrorData { session_id: Some("s-1".into()), ..ErrorData::default() })),
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
