//! What is looked at of what a node says of a session, which is what its REST says (contract 1.3).

use crate::record::SessionRecord;
use acpd_record::{NativeSessionId, SessionId};
use serde::Deserialize;

/// What a node says of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Told {
    /// The name of its agent.
    pub agent: String,
    /// Its working directory.
    pub cwd: String,
    /// Its title, if its agent gave one.
    pub title: Option<String>,
    /// The agent's own id of it.
    pub native_session_id: Option<NativeSessionId>,
    /// What acpd knows of it beside.
    pub metadata: ToldMetadata,
}

/// What acpd knows of a session beside all else.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToldMetadata {
    /// The session whose history it began with.
    pub forked_from: Option<SessionId>,
}

impl SessionRecord {
    /// What its node says of it; nothing, where that is not understood.
    pub fn told(&self) -> Told {
        Told::deserialize(&self.info).unwrap_or_default()
    }
}
