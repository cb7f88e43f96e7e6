//! By when processes end whose sessions another node may take up: their keepers count for themselves, so that neither a daemon that is
//! stopped nor a dead one leaves a session running at two nodes.

use super::handle::{AgentRef, InUse};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Weak;
use tokio::time::Instant;

/// The processes that end by themselves, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(Mutex<HashMap<u32, (Weak<InUse>, Instant)>>);

impl Deadlines {
    /// These processes end by then, unless a later time is said before; all others need not any more.
    pub(crate) fn set(&self, agents: impl Iterator<Item = AgentRef>, until: Instant) {
        let mut all = self.0.lock();
        let mut before = std::mem::take(&mut *all);
        for agent in agents {
            let pid = agent.pid();
            if all.contains_key(&pid) {
                continue;
            }
            if before.remove(&pid).is_none_or(|(_, said)| said != until) {
                agent.process.end_within(Some(until.saturating_duration_since(Instant::now())));
            }
            all.insert(pid, (agent.user.clone(), until));
        }
        for process in before.into_values().filter_map(|(user, _)| user.upgrade()) {
            process.0.end_within(None);
        }
    }
}
