//! How a client learns that a session of another node is not reached: which node it is, why, and what helps.

use crate::outbox::Closing;
use crate::wire_error::{ErrorData, FORBIDDEN, WireError};
use acpd_fleet::NodeName;
use acpd_host::error_code;
use acpd_record::{Json, SessionId};
use acpd_wire::{codes, write_notification};
use bytes::{Bytes, BytesMut};
use serde::Serialize;

/// Why a node is not reached, or not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// It has not been there since then.
    Gone(String),
    /// It has not said where it is reached.
    NoAddress,
    /// It did not let this node in, for this reason.
    NoAnswer(String),
    /// It wants a token, and was given another one, or none.
    Token { given: bool },
    /// It refuses the client, in these words.
    Refused(String),
    /// The same as an error of its own.
    NotInitialized(Bytes),
    /// It was reached, and is lost for this reason.
    Lost(String),
}

/// What a client that watches a session is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Closed<'a> {
    reason: &'static str,
    detail: &'a str,
    session_id: &'a SessionId,
}

impl Loss {
    /// What a request is answered.
    pub(super) fn to_error(&self, node: &NodeName, session: &SessionId) -> WireError {
        let (code, message) = match self {
            Self::NotInitialized(error) => return WireError::Raw(error.clone()),
            Self::Gone(_) | Self::NoAddress | Self::NoAnswer(_) | Self::Refused(_) | Self::Lost(_) => {
                (codes::INTERNAL_ERROR, self.words(node))
            }
            Self::Token { .. } => (FORBIDDEN, self.words(node)),
        };
        let since = match self {
            Self::Gone(since) => Some(since.clone()),
            _ => None,
        };
        about(code, message, (node, session), since)
    }

    /// What a client that watches the session is told.
    pub(super) fn to_closing(&self, node: &NodeName, session: &SessionId) -> Bytes {
        let detail = match self {
            Self::Lost(reason) => {
                format!("node {node}, which has it, was lost ({reason}); load the session again")
            }
            _ => self.words(node),
        };
        let params = Json::new(&Closed { reason: "unreachable", detail: &detail, session_id: session });
        let mut line = BytesMut::new();
        write_notification(&mut line, Closing::METHOD, Some(params.get().as_bytes()));
        line.freeze()
    }

    fn words(&self, node: &NodeName) -> String {
        match self {
            Self::Gone(since) => {
                format!("node {node}, which has it, cannot be reached since {since}; nothing was done")
            }
            Self::NoAddress => {
                format!("node {node}, which has it, has no `address` in its [fleet]; ask it there")
            }
            Self::NoAnswer(reason) => {
                format!("node {node}, which has it, does not answer ({reason}); nothing was done")
            }
            Self::Token { given: false } => format!(
                "it is on node {node}, where a token of that node is needed: set ACPD_TOKEN, or Authorization: Bearer TOKEN"
            ),
            Self::Token { given: true } => format!(
                "it is on node {node}, which does not know the token of this connection; the same token in its configuration helps"
            ),
            Self::Refused(detail) => format!("node {node}, which has it, refuses: {detail}"),
            Self::NotInitialized(_) => format!("node {node}, which has it, could not begin with its agent"),
            Self::Lost(reason) => format!(
                "node {node}, which has it, was lost ({reason}); whether the request was done there is not known; load the session again"
            ),
        }
    }
}

/// A request that came by another node is for a session of a third one.
pub(super) fn misplaced(node: &NodeName, session: &SessionId) -> WireError {
    let message = format!("it is not here but on node {node}, which the node that sent this on did not know");
    about(error_code::NOT_FOUND, message, (node, session), None)
}

/// A request is for a session that this node does not have, and which may be one of another node all the same.
pub(super) fn not_known_yet(here: &NodeName, session: &SessionId) -> WireError {
    let message =
        format!("it is not on node {here}, which does not know now what its fleet has; nothing was done");
    about(codes::INTERNAL_ERROR, message, (here, session), None)
}

fn about(
    code: i64,
    message: String,
    (node, session): (&NodeName, &SessionId),
    unreachable_since: Option<String>,
) -> WireError {
    let (node, session_id) = (Some(node.to_string()), Some(session.to_string()));
    let data = Some(Box::new(ErrorData { node, session_id, unreachable_since, ..ErrorData::default() }));
    WireError::Own { code, message, data }
}
