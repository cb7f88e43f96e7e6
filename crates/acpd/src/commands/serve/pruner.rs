//! Removes ended sessions by `keep_for` and `keep_bytes` in `[storage]`: at the start, each hour, and when they change; and, once it is old,
//! the database that was migrated.
//!
//! Its task belongs to the host's scope and ends with it. What it removes is in the log, and counted. Not here: which those are.

use crate::migrating::remove_old;
use acpd_host::{Host, Keep, chain};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

const PACE: Duration = Duration::from_secs(3600);

/// What the log calls it, and what removed sessions were removed by.
const CLIENT: &str = "daemon";

/// The task that removes them, and what it goes by.
pub(super) struct Pruner(watch::Sender<Keep>);

impl Pruner {
    pub(super) fn begin(host: &Host, state_dir: &Path, keep: Keep) -> Self {
        let (sender, keep) = watch::channel(keep);
        let pruning = run(host.clone(), state_dir.to_owned(), keep);
        let stop = host.scope().token().child_token();
        host.scope().spawn("pruner", async move {
            let _stopped = stop.run_until_cancelled(pruning).await;
        });
        Self(sender)
    }

    /// Goes by this from now on, at once if it is something else.
    pub(super) fn set(&self, keep: Keep) {
        self.0.send_if_modified(|current| std::mem::replace(current, keep) != keep);
    }
}

async fn run(host: Host, state_dir: PathBuf, mut keep: watch::Receiver<Keep>) {
    loop {
        remove_old(state_dir.clone()).await;
        let current = *keep.borrow_and_update();
        if !current.is_all()
            && let Err(error) = host.prune(current, CLIENT).await
        {
            tracing::warn!(
                error = chain(&error),
                "old sessions could not be removed; it is tried again in an hour"
            );
        }
        tokio::select! {
            () = tokio::time::sleep(PACE) => {}
            changed = keep.changed() => if changed.is_err() {
                return;
            },
        }
    }
}
