//! Fresh ids, and the numbers of requests.

use acpd_record::SessionId;

/// A fresh id for a session. Time-ordered, so that new sessions sit together in the index.
pub(crate) fn fresh_session_id() -> SessionId {
    SessionId::parse(&fresh_id()).expect("it is made of hexadecimal digits and dashes")
}

/// An id that nothing else has, in this process or another.
pub fn fresh_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Names a request of a client to its session, so that it can be withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientRequest(pub(crate) u64);

impl ClientRequest {
    /// One whose connection was lost with an earlier host.
    pub(crate) const LOST: Self = Self(u64::MAX);
}
