//! How the client learns that something is refused.

use crate::access::Refusal;
use crate::limits::Beyond;
use crate::wire_error::{ErrorData, FORBIDDEN, WireError, wire_error};
use acpd_host::{HostError, method};
use acpd_record::SessionId;
use acpd_wire::{OwnedId, write_notification};
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde_json::value::RawValue;

/// Why an answer is refused to a question that was answered.
pub(super) const NO_LONGER_ASKED: &str = "it needs no answer any more";

/// A refusal of what a caller may not do.
pub(super) fn refused(method: &str, session: &str, refusal: Refusal) -> WireError {
    match refusal {
        Refusal::UnknownSession => wire_error(&HostError::UnknownSession { id: session.to_owned() }),
        Refusal::Forbidden { scope, required } => {
            let (scope, required) = (scope.as_str(), required.as_str());
            let message = format!("{method} needs a token with the scope {required}");
            let (scope, required) = (Some(scope), Some(required));
            let data = Some(Box::new(ErrorData { scope, required, ..ErrorData::default() }));
            WireError::Own { code: FORBIDDEN, message, data }
        }
        Refusal::Beyond(beyond) => {
            let Beyond { limit, message, allowed } = *beyond;
            let (limit, allowed) = (Some(limit), Some(allowed));
            let data = Some(Box::new(ErrorData { limit, allowed, ..ErrorData::default() }));
            WireError::Own { code: FORBIDDEN, message, data }
        }
        Refusal::Unreadable { reason } => wire_error(&HostError::InvalidParams { message: reason }),
    }
}

/// A refusal of one session more than a token may have.
pub(super) fn too_many(most: usize) -> WireError {
    wire_error(&HostError::TooManySessions { most })
}

/// The refusal of an answer that the client gave to a question.
pub(in crate::connection) fn answer_refused(
    session: Option<&SessionId>,
    id: &OwnedId,
    reason: &str,
) -> Bytes {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        reason: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a SessionId>,
        request_id: &'a RawValue,
    }
    let params = Params { reason, session_id: session, request_id: id.as_id().as_value() };
    let params = serde_json::to_vec(&params).expect("it is JSON");
    let mut line = BytesMut::new();
    write_notification(&mut line, method::ANSWER_REFUSED, Some(&params));
    line.freeze()
}
