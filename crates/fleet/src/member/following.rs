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

    /// Takes in what the watch tells of a session; its id where that is this node's own and known here.
    fn hear(&self, record: &SessionRecord, revision: Revision) -> Option<SessionId> {
        if record.node_id != self.me().id {
            self.hear_of_own(record, revision);
            return None;
        }
        let is_known = !record.taking_up && self.shared.published.lock().knows_entry(&record.session);
        is_known.then(|| record.session.clone())
    }
}
