//! Children that an earlier image of this process has started: they are this one's to reap.

use crate::keeper_process::KeeperProcess;
use crate::procfs;
use crate::scope::TaskScope;
use crate::sweep::all_processes;

/// Waits for the children that this process has now, side by side, each until its end or that of the scope. To be called
/// where another image of this process ran before: its keepers end as they would without it, and are zombies until then.
pub fn reap_inherited(scope: &TaskScope) {
    let children = all_processes()
        .filter(|pid| procfs::stat(*pid).is_some_and(|(_, parent)| parent == std::process::id()));
    for mut child in children.filter_map(|pid| KeeperProcess::found(pid).ok()) {
        let over = scope.token().clone();
        scope.spawn("inherited child", async move {
            tokio::select! {
                () = child.wait() => {}
                () = over.cancelled() => {}
            }
        });
    }
}
