//! Following the directory.

use super::Member;
use crate::engine::{Change, Revision};
use crate::record::SessionRecord;
use acpd_record::SessionId;

impl Member {
    /// Follows the directory.
    pub(super) async fn follow(&self) -> ! {
        loop {
            let told = self.shared.engine.watch().await;
            if let Ok(mut changes) = told {
                self.shared.directory.write().directory.apply(Change::Again, self.now());
                while let Some(change) = changes.recv().await {
                    let own = match &change {
                        Change::Session(record, revision) => self.hear(record, *revision),
                        _ => None,
                    };
                    let mut watched = self.shared.directory.write();
                    watched.directory.apply(change, self.now());
                    if let Some(own) = own {
                        watched.directory.drop_info(&own);
                    }
                    watched.is_told = watched.directory.is_complete();
                    if watched.is_told {
                        self.shared.was_told.send_if_modified(|was_told| !std::mem::replace(was_told, true));
                    }
                }
            }
            self.shared.directory.write().is_told = false;
            tokio::time::sleep(self.shared.lease.heartbeat()).await;
        }
    }

    /// Compares a change of the directory with the own sessions, before it is applied. Returns the id of a session that is this
    /// node's there and here.
    fn hear(&self, record: &SessionRecord, revision: Revision) -> Option<SessionId> {
        let session = &record.session;
        let is_own = record.node_id == self.shared.me.lock().record.id;
        // What this node has written itself it knows already.
        if !is_own || !self.shared.published.lock().knows_entry(session) {
            self.hear_of_own(record, revision);
        }
        let is_known = is_own && !record.taking_up && self.shared.published.lock().knows_entry(session);
        is_known.then(|| session.clone())
    }
}
