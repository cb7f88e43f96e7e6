//! What other hosts of the state directory left behind when they died: processes, and sessions that look live.
//!
//! Looked for when a host opens, and whenever a session turns out to be another host's: that one may have died since
//! (contract 6). Invariant: a session of a living host is never touched.

use crate::clock;
use crate::host::{Host, ended_batch};
use crate::host_file::DeadHost;
use crate::termination::{SessionFacts, TerminationInfo, chain};
use acpd_eventlog::{AppendError, SessionRow};
use acpd_supervisor::{Sweep, sweep};
use serde_json::{Value, json};

impl Host {
    /// Ends the processes of all hosts that are gone, and records their live sessions as lost.
    pub(crate) async fn bury_the_dead(&self) {
        let _one_at_a_time = self.shared.burying.lock().await;
        for dead in self.shared.host_file.dead() {
            self.bury(dead).await;
        }
        // A host that could not record the end of a session when it left has left no file.
        let owners = self.shared.log.owners().await.unwrap_or_default();
        for owner in owners.iter().filter(|owner| self.shared.host_file.pid_of(owner).is_none()) {
            self.record_lost(owner).await;
        }
    }

    /// Whether another host has the session and lives. If it does not, the session is recorded as lost before this
    /// returns, so what was read of it has to be read again.
    pub(crate) async fn is_elsewhere(&self, row: &SessionRow) -> Elsewhere {
        let Some(owner) = row.owner.as_deref().filter(|owner| *owner != self.shared.host_file.id()) else {
            return Elsewhere::No;
        };
        let _one_at_a_time = self.shared.burying.lock().await;
        match self.shared.host_file.dead_host(owner) {
            Some(dead) => self.bury(dead).await,
            None if self.shared.host_file.pid_of(owner).is_none() => drop(self.record_lost(owner).await),
            None => return Elsewhere::Lives,
        }
        Elsewhere::HasDied
    }

    async fn bury(&self, dead: DeadHost) {
        let which = Sweep::Host(dead.id.clone());
        let swept = tokio::task::spawn_blocking(move || sweep(&which)).await.unwrap_or(0);
        if swept > 0 {
            tracing::warn!(host = dead.id, swept, "ended processes that a dead host had left");
        }
        // If that fails, the next who looks tries again.
        if self.record_lost(&dead.id).await {
            dead.forget();
        }
    }

    /// Records the live sessions of a host as lost; false when that could not be written.
    async fn record_lost(&self, owner: &str) -> bool {
        let recorded = self.try_record_lost(owner).await;
        if let Err(error) = &recorded {
            tracing::error!(host = owner, error, "cannot record its sessions as lost");
        }
        recorded.is_ok()
    }

    async fn try_record_lost(&self, owner: &str) -> Result<(), String> {
        let rows = self.shared.log.owned_by(owner).await.map_err(|error| chain(&error))?;
        for row in rows {
            let mut info: Value = serde_json::from_slice(&row.info).unwrap_or_else(|_| json!({}));
            let facts = SessionFacts {
                last_event_seq: Some(row.last_seq),
                started_ms: Some(row.created_ms),
                ..SessionFacts::default()
            };
            let end = json!(TerminationInfo::daemon_lost(&facts, clock::now_ms()));
            info["terminationInfo"] = end.clone();
            let batch = ended_batch(&end, &info);
            match self.shared.log.append_to(&row.id, Some(owner), batch).await {
                // Another process was faster.
                Ok(_) | Err(AppendError::Conflict { .. } | AppendError::Unknown { .. }) => {}
                Err(error) => return Err(chain(&error)),
            }
        }
        Ok(())
    }
}

/// Where a stored session is live, if it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Not in another host.
    No,
    /// In a host that lives.
    Lives,
    /// In a host that was found dead.
    HasDied,
}
