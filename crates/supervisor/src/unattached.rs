//! Ending a program whose keeper cannot be spoken with: one of a version that is not known here.
//!
//! What holds for keepers of every version is enough: they carry the mark of their program in the environment, climb their ladder on
//! SIGTERM and exit when nothing of the program is left; their program dies with them; and a sweep finds what outlives even that.

use crate::keeper::listening::{END, SOCKET, file_of};
use crate::keeper_process::KeeperProcess;
use crate::ladder::Graces;
use crate::process::keeper_bound;
use crate::standing::{is_keeper_of, keeper_of};
use crate::start::Supervisor;
use crate::sweep::ProcessMark;
use std::path::Path;

impl Supervisor {
    /// Ends the program with this mark, and everything of it: its keeper is asked to and, when that takes longer than the
    /// ladder with `graces` may, killed. What the keeper has left in `directory` is removed unread.
    pub async fn end_unattached(&self, directory: &Path, mark: &ProcessMark, graces: Graces) {
        let looked = tokio::task::spawn_blocking({
            let mark = mark.clone();
            move || found(&mark)
        });
        if let Ok(Some(mut keeper)) = looked.await {
            keeper.ask_to_end();
            if tokio::time::timeout(keeper_bound(graces), keeper.wait()).await.is_err() {
                tracing::error!(mark = mark.as_str(), "a keeper of another version does not end, killing it");
                keeper.start_kill();
                keeper.wait().await;
            }
        }
        let swept = self.lost().sweep(mark.clone()).await;
        if swept > 0 {
            tracing::warn!(
                mark = mark.as_str(),
                swept,
                "ended processes that a keeper of another version has left"
            );
        }
        for what in [SOCKET, END] {
            let _gone = std::fs::remove_file(directory.join(file_of(mark.as_str(), what)));
        }
    }
}

/// The keeper of this program.
fn found(mark: &ProcessMark) -> Option<KeeperProcess> {
    let pid = keeper_of(mark)?;
    let keeper = KeeperProcess::found(pid).ok()?;
    // The number may be another's by now.
    is_keeper_of(pid, mark).then_some(keeper)
}
