//! What waits for a commit: a prompt under a key goes to the agent behind its event. A host that died in between would not
//! know of it, and begin it again when it is sent again.
//!
//! What follows such a prompt waits with it, so that the agent hears all in order. Other prompts do not wait: they cannot be
//! told apart when they come again.

use super::effects::Act;
use super::live::LiveSession;
use super::parts::RunParts;
use std::sync::Weak;

/// Acts that wait. Full: they are done at once, without the commit.
const HELD: usize = 1024;

/// Acts behind a prompt whose event is not committed yet.
#[derive(Default)]
pub(super) struct Held {
    acts: Vec<Act>,
    /// The event that is waited for.
    until: Option<u64>,
    /// The run is over: nothing waits any more.
    over: bool,
}

impl Held {
    /// Whether `act` has to wait.
    pub(super) fn holds(&mut self, act: &Act, parts: &RunParts, live: &Weak<LiveSession>) -> bool {
        let after = match act {
            Act::Request { after, .. } => after.filter(|_| !self.over),
            _ => None,
        };
        if self.until.is_none()
            && let (Some(seq), Some(appender)) = (after, &parts.appender)
            && let committed = appender.committed()
            && committed.seq() < seq
        {
            self.until = Some(seq);
            let live = live.clone();
            parts.scope.spawn("commit of a prompt", async move {
                let is_committed = committed.wait_for(seq).await.is_ok();
                if let Some(live) = live.upgrade() {
                    live.with(|run| run.committed(seq, is_committed));
                }
            });
        }
        self.until.is_some()
    }

    /// Keeps an act that has to wait. When there are too many, gives all of them.
    pub(super) fn keep(&mut self, act: Act) -> Vec<Act> {
        self.acts.push(act);
        match self.acts.len() < HELD {
            true => Vec::new(),
            false => self.release(),
        }
    }

    /// What has waited for event `seq`. The agent hears of no prompt that could not be committed.
    pub(super) fn committed(&mut self, seq: u64, is_committed: bool) -> Vec<Act> {
        let mut acts = if self.until == Some(seq) { self.release() } else { Vec::new() };
        if !is_committed {
            acts.retain(|act| !matches!(act, Act::Request { after: Some(_), .. }));
        }
        acts
    }

    /// The run is over: what is left to be done.
    pub(super) fn end(&mut self) -> Vec<Act> {
        self.over = true;
        self.until.map_or_else(Vec::new, |seq| self.committed(seq, false))
    }

    fn release(&mut self) -> Vec<Act> {
        self.until = None;
        std::mem::take(&mut self.acts)
    }
}
