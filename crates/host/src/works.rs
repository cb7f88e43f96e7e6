//! Where a session works, for decisions on whether a client may use it.

use crate::ends::Found;
use crate::error::HostError;
use crate::host::Host;
use crate::session::SessionHandle;
use acpd_record::{PermissionMode, SessionId, SessionMeta};
use std::path::PathBuf;

/// Where a session works, and how its agent's permission requests are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Works {
    /// The name of its agent.
    pub agent: String,
    /// Its working directory first. Of one that has ended that is all: the others are given with each run, and not recorded.
    pub directories: Vec<PathBuf>,
    /// The permission mode that a client chose for it; without one, that of the agent's entry is in force.
    pub chosen: Option<PermissionMode>,
    /// The one that is in force in its run, if it is live.
    pub in_force: Option<PermissionMode>,
}

impl SessionHandle {
    /// Where it works in this run.
    pub fn works(&self) -> Works {
        let additional = self.additional_directories().iter().cloned();
        Works {
            agent: self.agent().spec().name.clone(),
            directories: std::iter::once(PathBuf::from(self.cwd())).chain(additional).collect(),
            chosen: self.chosen_mode(),
            in_force: Some(self.permission_mode()),
        }
    }
}

impl Host {
    /// Where a session works; `found` is what was found of it just now.
    ///
    /// # Errors
    /// When there is none of that id any more, or the log cannot be read.
    pub async fn works(&self, id: &SessionId, found: &Found) -> Result<Works, HostError> {
        if let Some(live) = self.shared.sessions.live.get(id) {
            return Ok(live.works());
        }
        let read;
        let row = match &found.row {
            Some(row) => row,
            None => {
                read = self.shared.store.row(id).await?;
                &read
            }
        };
        Ok(Works {
            agent: row.agent.clone(),
            directories: vec![PathBuf::from(&row.cwd)],
            chosen: SessionMeta::read(&row.info).permission_mode,
            in_force: None,
        })
    }
}
