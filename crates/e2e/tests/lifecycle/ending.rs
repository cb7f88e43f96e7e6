//! The requests by which a session ends for a client, and how often that is told.

use acpd_e2e::Client;
use serde_json::{Value, json};

pub(crate) const TERMINATE: &str = "_sandboxagent/session/terminate";
pub(crate) const DETACH: &str = "_sandboxagent/session/detach";

/// Params that name a session and nothing else.
pub(crate) fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

/// Counts how often a session's end was told so far.
pub(crate) fn ends_of(client: &Client, session: &str) -> usize {
    client.ends().iter().filter(|end| end.session() == Some(session)).count()
}
