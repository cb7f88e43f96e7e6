//! A keeper from its own start to the word that its program runs.
//!
//! Invariant: until that word it is owned here, and if the word does not come, or is not waited for, everything of that
//! start is ended: the keeper is asked to stop what it has started, and has as long for it as any keeper; after that it is
//! killed, and what it kept is swept. Not here: what is said to it.

use crate::keeper_process::wake;
use crate::lineage::Known;
use crate::lost::LostKeepers;
use crate::scope::TaskScope;
use crate::sweep::ProcessMark;
use std::time::Duration;
use tokio::process::Child;

/// A keeper that has not told of its program.
pub(crate) struct Unfinished {
    pub(crate) keeper: Child,
    pub(crate) mark: ProcessMark,
    /// How long it may take to stop what it has started.
    pub(crate) bound: Duration,
    pub(crate) lost: LostKeepers,
    /// As long as anything of it lives.
    pub(crate) known: Option<Known>,
}

impl Unfinished {
    /// Waits until nothing of it lives. Its control socket has to be closed.
    ///
    /// # Cancel safety
    /// It can be called again.
    async fn end(&mut self) {
        // Its program may have stopped it, and it would read nothing.
        wake(&self.keeper);
        match tokio::time::timeout(self.bound, self.keeper.wait()).await {
            // Then it has no child left.
            Ok(Ok(status)) if status.success() => return,
            Ok(_) => {}
            Err(_) => {
                tracing::error!(
                    mark = self.mark.as_str(),
                    "the keeper of an unfinished start does not end, killing it"
                );
                let _gone = self.keeper.start_kill();
                let _status = self.keeper.wait().await;
            }
        }
        self.lost.sweep(self.mark.clone()).await;
    }
}

/// Ends it when dropped, in a task of its own, unless it has come to an end one way or the other.
pub(crate) struct Starting {
    unfinished: Option<Unfinished>,
    scope: TaskScope,
}

impl Starting {
    pub(crate) fn new(unfinished: Unfinished, scope: TaskScope) -> Self {
        Self { unfinished: Some(unfinished), scope }
    }

    /// The program runs.
    pub(crate) fn finish(mut self) -> Unfinished {
        self.unfinished.take().expect("only what consumes this takes it")
    }

    /// There will be no program: waits until nothing of the start lives. Its control socket has to be closed.
    pub(crate) async fn end(mut self) {
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.end().await;
        }
        self.unfinished = None;
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        let Some(mut unfinished) = self.unfinished.take() else { return };
        if tokio::runtime::Handle::try_current().is_ok() {
            self.scope.spawn("unfinished start", async move { unfinished.end().await });
        } else {
            // Nothing runs here any more: the keeper ends by itself, if it can see that this side is gone.
            wake(&unfinished.keeper);
        }
    }
}
