//! Which optional methods an agent has turned out not to have (contract 1.4): asked once, remembered per program and
//! version, across restarts.
//!
//! A file of its own in the state directory, replaced whole. Losing it costs one refused request per method, so a
//! failed write is logged and nothing more.

use acpd_supervisor::read_regular;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest file that is read, in bytes.
const MOST: u64 = 16 << 20;

/// What is known of all agents.
#[derive(Clone, Debug)]
pub(crate) struct MethodMemory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// None when nothing is to be recorded.
    path: Option<PathBuf>,
    missing: Mutex<Missing>,
}

/// Methods that answered -32601, by agent program and version.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Missing(BTreeMap<String, BTreeSet<String>>);

impl MethodMemory {
    /// Reads what was remembered in `state_dir`; an unreadable file counts as none.
    pub(crate) fn open(state_dir: &Path) -> Self {
        let path = state_dir.join("agent-methods.json");
        let missing = Mutex::new(read(&path).unwrap_or_default());
        Self(Arc::new(Shared { path: Some(path), missing }))
    }

    /// A memory that ends with the process.
    pub(crate) fn unrecorded() -> Self {
        Self(Arc::new(Shared { path: None, missing: Mutex::default() }))
    }

    /// What is known of one agent; `agent` names its program and version.
    pub(crate) fn of(&self, agent: String) -> AgentMethods {
        AgentMethods { memory: self.clone(), agent: agent.into() }
    }
}

/// What is known of one agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentMethods {
    memory: MethodMemory,
    agent: Arc<str>,
}

impl AgentMethods {
    /// The agent answered `method` with -32601 once.
    pub(crate) fn lacks(&self, method: &str) -> bool {
        self.memory.0.missing.lock().0.get(&*self.agent).is_some_and(|methods| methods.contains(method))
    }

    /// The agent answered `method` with -32601 just now.
    pub(crate) fn remember_missing(&self, method: &str) {
        tracing::info!(
            agent = &*self.agent,
            method,
            "the agent lacks a method that it offers; another way is taken"
        );
        let Shared { path, missing } = &*self.memory.0;
        let mut missing = missing.lock();
        if !missing.0.entry(self.agent.to_string()).or_default().insert(method.to_owned()) {
            return;
        }
        let Some(path) = path else { return };
        // Another process may have written meanwhile; what it found out counts too.
        for (agent, methods) in read(path).unwrap_or_default().0 {
            missing.0.entry(agent).or_default().extend(methods);
        }
        let unnamed = path.with_extension(format!("json.{}", std::process::id()));
        let json = serde_json::to_vec_pretty(&*missing).expect("strings are JSON");
        let written = std::fs::write(&unnamed, json).and_then(|()| std::fs::rename(&unnamed, path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "cannot remember what an agent lacks");
        }
    }
}

fn read(path: &Path) -> Option<Missing> {
    read_regular(path, MOST).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 1.4: marked unsupported for that agent program and version, also after a restart
    #[test]
    fn what_is_missing_is_remembered_per_version() {
        let state = tempfile::tempdir().expect("a scratch directory");
        let memory = MethodMemory::open(state.path());
        let old = memory.of("agent 1".into());
        assert!(!old.lacks("session/close"));
        old.remember_missing("session/close");
        assert!(old.lacks("session/close") && !old.lacks("session/fork"));
        let again = MethodMemory::open(state.path());
        assert!(again.of("agent 1".into()).lacks("session/close"));
        assert!(!again.of("agent 2".into()).lacks("session/close"));
    }

    #[test]
    fn two_processes_add_up_and_garbage_is_forgotten() {
        let state = tempfile::tempdir().expect("a scratch directory");
        let (one, two) = (MethodMemory::open(state.path()), MethodMemory::open(state.path()));
        one.of("a".into()).remember_missing("x");
        two.of("a".into()).remember_missing("y");
        let all = MethodMemory::open(state.path()).of("a".into());
        assert!(all.lacks("x") && all.lacks("y"));
        std::fs::write(state.path().join("agent-methods.json"), "{").expect("written");
        assert!(!MethodMemory::open(state.path()).of("a".into()).lacks("x"));
    }
}
