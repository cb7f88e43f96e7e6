//! The health of a host's agents: the processes of each, the number of restarts, the last failure
//! (contract 6, `GET /v1/agents`).
//!
//! Owned by the host. Written by the start of a process, and by the task that owns it. Nothing is decided by it.

use super::{AgentEnd, AgentInfo};
use crate::clock;
use crate::clock::iso8601;
use crate::metrics;
use crate::reach;
use crate::termination::SessionFacts;
use acpd_api::{AgentHealth, AgentStatus};
use acpd_record::Reason;
use acpd_supervisor::ExitStatus;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

#[derive(Debug, Default)]
struct HealthRecord {
    /// When each of its processes was started.
    running: BTreeMap<u64, Instant>,
    next: u64,
    restarts: u64,
    /// A process ended by itself, and none was started since.
    fell: bool,
    /// The last start failed, or the last process crashed.
    failed: bool,
    last_error: Option<(String, i64)>,
    info: Option<Arc<AgentInfo>>,
}

impl HealthRecord {
    fn failed(&mut self, message: String) {
        self.failed = true;
        self.last_error = Some((message, clock::now_ms()));
    }
}

/// Returns the health of an agent that no host has.
pub fn health_of_none(agent: &str) -> AgentHealth {
    HealthRecords::default().of(agent)
}

/// The health of all agents that were ever started, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct HealthRecords(Arc<Mutex<BTreeMap<String, HealthRecord>>>);

impl HealthRecords {
    fn change<T>(&self, agent: &str, change: impl FnOnce(&mut HealthRecord) -> T) -> T {
        let mut all = self.0.lock();
        let health = all.entry(agent.to_owned()).or_default();
        let changed = change(health);
        metrics::agent_processes(agent, health.running.len());
        changed
    }

    /// A process was started; it counts until what is returned is dropped.
    pub(super) fn process_started(&self, agent: &str) -> Running {
        let number = self.change(agent, |health| {
            if std::mem::take(&mut health.fell) {
                health.restarts += 1;
                metrics::agent_restarted(agent);
            }
            let number = health.next;
            health.next += 1;
            health.running.insert(number, Instant::now());
            number
        });
        Running { health: self.clone(), agent: agent.to_owned(), number }
    }

    /// An agent answered `initialize`. What it says is mostly what it has said before, and then the same is kept for
    /// all its processes.
    pub(super) fn initialized(&self, agent: &str, info: &Arc<AgentInfo>) -> Arc<AgentInfo> {
        self.change(agent, |health| {
            health.failed = false;
            match &health.info {
                Some(known) if known == info => Arc::clone(known),
                _ => Arc::clone(health.info.insert(Arc::clone(info))),
            }
        })
    }

    /// A start failed.
    pub(super) fn start_failed(&self, agent: &str, message: String) {
        self.change(agent, |health| health.failed(message));
    }

    /// What an agent last said of itself.
    pub(crate) fn info(&self, agent: &str) -> Option<Arc<AgentInfo>> {
        self.0.lock().get(agent)?.info.clone()
    }

    /// The health of an agent now.
    pub(crate) fn of(&self, agent: &str) -> AgentHealth {
        let all = self.0.lock();
        let never = HealthRecord::default();
        let health = all.get(agent).unwrap_or(&never);
        let oldest = health.running.values().min();
        let info = health.info.as_deref();
        let said = |member: &str| info?.said(member);
        AgentHealth {
            name: agent.to_owned(),
            status: match (health.running.is_empty(), health.failed) {
                (false, _) => AgentStatus::Running,
                (true, true) => AgentStatus::Error,
                (true, false) => AgentStatus::Stopped,
            },
            uptime_ms: oldest.map(|started| u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)),
            restart_count: health.restarts,
            last_error: health.last_error.as_ref().map(|(message, _)| message.clone()),
            last_error_at: health.last_error.as_ref().map(|(_, at)| iso8601(*at)),
            processes: health.running.len(),
            containment: reach::containment_here(),
            continuity: reach::continuity_here(),
            agent_info: said("agentInfo").and_then(Value::as_object).cloned(),
            auth_methods: said("authMethods").and_then(Value::as_array).cloned(),
            capabilities: info.and_then(AgentInfo::capabilities).cloned(),
        }
    }
}

/// A process that runs.
#[derive(Debug)]
pub(super) struct Running {
    health: HealthRecords,
    agent: String,
    number: u64,
}

impl Running {
    /// It ended; `owing` answers to requests, or not.
    pub(super) fn ended(self, end: &AgentEnd, owing: bool) {
        let by_itself = end.report.rungs.is_empty();
        let facts = SessionFacts { turn_active: owing, ..SessionFacts::default() };
        let info = crate::termination::of_agent(end, None, &facts, clock::now_ms());
        // What a process does while it is being stopped is no crash, unless that is why it is being stopped.
        let crashed = info.reason == Reason::Error
            && (by_itself || end.fault.is_some() || end.report.status == ExitStatus::Unknown);
        self.health.change(&self.agent, |health| {
            health.fell |= by_itself || crashed;
            health.failed = false;
            if crashed {
                health.failed(info.message.unwrap_or_default());
            }
        });
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.health.change(&self.agent, |health| {
            health.running.remove(&self.number);
        });
    }
}
