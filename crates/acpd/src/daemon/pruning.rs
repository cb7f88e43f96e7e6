//! Removing old sessions of a daemon, and what is told of those that were removed.

use super::error::DaemonError;
use super::request::Daemon;
use crate::moment::Moment;
use acpd_api::Prunable;
use acpd_host::Keep;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// A session that was removed, or would be.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Pruned {
    pub(crate) session_id: String,
    pub(crate) agent: String,
    pub(crate) cwd: String,
    pub(crate) title: Option<String>,
    pub(crate) updated_at: Moment,
    pub(crate) bytes: u64,
    /// The object as the daemon wrote it.
    #[serde(skip)]
    pub(crate) raw: Option<Box<RawValue>>,
}

impl Pruned {
    fn read(raw: Box<RawValue>) -> Result<Self, serde_json::Error> {
        let pruned: Self = serde_json::from_str(raw.get())?;
        Ok(Self { raw: Some(raw), ..pruned })
    }
}

/// As a daemon would tell it.
pub(crate) fn pruned(sessions: &[Prunable]) -> Result<Vec<Pruned>, serde_json::Error> {
    sessions.iter().map(|session| Pruned::read(to_raw_value(session)?)).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(skip_serializing_if = "Option::is_none")]
    older_than_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_bytes: Option<u64>,
    dry_run: bool,
}

#[derive(Deserialize)]
struct Answer {
    sessions: Vec<Box<RawValue>>,
}

impl Daemon {
    /// Has the daemon remove ended sessions that are not to be kept, or (`dry_run`) say which those are. Takes as long as it
    /// takes.
    pub(crate) async fn prune(&self, keep: Keep, dry_run: bool) -> Result<Vec<Pruned>, DaemonError> {
        let older_than_ms = keep.older_than.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let asked = Asked { older_than_ms, keep_bytes: keep.bytes, dry_run };
        let answer: Answer = self.post("/v1/prune", None, &asked).await?;
        let read = answer.sessions.into_iter().map(Pruned::read).collect::<Result<_, _>>();
        read.map_err(|error| self.unreadable(&error))
    }
}
