//! What waits for a commit: the agent is told what events say when these are committed. A host that died in between would not
//! know what its agent was told, and would tell it again, or something else.
//!
//! Of an agent that ends with its host only a prompt that a client may send again waits. What follows something that waits
//! waits with it, so that the agent hears all in order.

use super::effects::{Act, Ordered};
use super::live::LiveSession;
use super::parts::RunParts;
use std::sync::Weak;

/// Acts that wait. Full: they are done at once, without the commit.
const HELD: usize = 1024;

/// Acts behind an event that is not committed yet.
pub(super) struct Held {
    acts: Vec<Ordered>,
    /// The event that is waited for.
    until: Option<u64>,
    /// The run is over: nothing waits any more.
    over: bool,
    /// All that the agent is told waits.
    is_kept: bool,
}

impl Held {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { acts: Vec::new(), until: None, over: false, is_kept }
    }

    /// Whether an act has to wait.
    pub(super) fn holds(&mut self, ordered: &Ordered, parts: &RunParts, live: &Weak<LiveSession>) -> bool {
        let waits = match &ordered.act {
            Act::Request { repeatable: true, .. } => true,
            act => self.is_kept && act.tells_the_agent(),
        };
        if self.until.is_none()
            && let (Some(seq), Some(appender)) =
                (ordered.behind.filter(|_| waits && !self.over), &parts.appender)
            && let committed = appender.committed()
            && committed.seq() < seq
        {
            self.until = Some(seq);
            let live = live.clone();
            parts.scope.spawn("commit before an act", async move {
                let is_committed = committed.wait_for(seq).await.is_ok();
                if let Some(live) = live.upgrade() {
                    live.idle().await;
                    live.with(|run| run.committed(seq, is_committed));
                }
            });
        }
        self.until.is_some()
    }

    /// Keeps an act that has to wait. When there are too many, gives all of them.
    pub(super) fn keep(&mut self, ordered: Ordered) -> Vec<Ordered> {
        self.acts.push(ordered);
        match self.acts.len() < HELD {
            true => Vec::new(),
            false => self.release(),
        }
    }

    /// What has waited for event `seq`. The agent hears of no prompt that could not be committed.
    pub(super) fn committed(&mut self, seq: u64, is_committed: bool) -> Vec<Ordered> {
        let mut acts = if self.until == Some(seq) { self.release() } else { Vec::new() };
        if !is_committed {
            acts.retain(|ordered| !matches!(ordered.act, Act::Request { repeatable: true, .. }));
        }
        acts
    }

    /// The run is over: what is left to be done.
    pub(super) fn end(&mut self) -> Vec<Ordered> {
        self.over = true;
        self.until.map_or_else(Vec::new, |seq| self.committed(seq, false))
    }

    fn release(&mut self) -> Vec<Ordered> {
        self.until = None;
        std::mem::take(&mut self.acts)
    }
}
