//! Following the directory.

use super::Member;
use crate::engine::Change;

impl Member {
    /// Follows the directory.
    pub(super) async fn follow(&self) -> ! {
        loop {
            let told = self.shared.engine.watch().await;
            if let Ok(mut changes) = told {
                self.shared.directory.write().directory.apply(Change::Again, self.now());
                while let Some(change) = changes.recv().await {
                    if let Change::Session(record, revision) = &change {
                        let me = self.me();
                        if record.node_id != me.id {
                            self.shared.published.lock().found(record, *revision, &me);
                        }
                    }
                    let mut watched = self.shared.directory.write();
                    watched.directory.apply(change, self.now());
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
}
