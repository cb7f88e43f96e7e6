//! By when processes end whose sessions another node may take up: their keepers count for themselves, so that neither a daemon that is
//! stopped nor a dead one leaves a session running at two nodes.

use super::handle::{AgentRef, InUse};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Weak;
use tokio::time::Instant;

/// The processes that end by themselves.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(Mutex<Ends>);

#[derive(Debug, Default)]
struct Ends {
    /// By their numbers, with when.
    processes: HashMap<u32, (Weak<InUse>, Instant)>,
    /// What was said last.
    until: Option<Instant>,
}

impl Deadlines {
    /// These processes end by then, unless a later time is said before; all others need not any more.
    pub(crate) fn set(&self, agents: impl Iterator<Item = AgentRef>, until: Instant) {
        let mut ends = self.0.lock();
        ends.until = Some(until);
        let all = &mut ends.processes;
        let mut before = std::mem::take(all);
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

    /// A process has a session from now on that another node may take up: it ends by what was said last, also where this process dies
    /// before more is said.
    pub(crate) fn begin(&self, agent: &AgentRef) {
        let mut ends = self.0.lock();
        let Some(until) = ends.until.filter(|_| !ends.processes.contains_key(&agent.pid())) else { return };
        agent.process.end_within(Some(until.saturating_duration_since(Instant::now())));
        ends.processes.insert(agent.pid(), (agent.user.clone(), until));
    }
}
