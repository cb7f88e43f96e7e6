//! How the last turn of a session ended, whatever became of its run.

use serde::{Deserialize, Serialize};

/// Bytes of a stop reason that are kept: an agent may say anything.
const STOP_REASON: usize = 128;

/// The last turn that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastTurn {
    /// Why it ended; none when it failed, or its run ended first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Box<str>>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: i64,
}

impl LastTurn {
    pub(crate) fn new(stop_reason: Option<&str>, began_ms: i64, ended_ms: i64) -> Self {
        let stop_reason = stop_reason.map(|reason| reason[..reason.floor_char_boundary(STOP_REASON)].into());
        // A clock that was set back makes no turn shorter than nothing.
        let duration_ms = u64::try_from(ended_ms.saturating_sub(began_ms)).unwrap_or_default();
        Self { stop_reason, duration_ms, ended_ms }
    }
}
