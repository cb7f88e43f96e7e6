//! Which agents a host can start, and which process it gives for a session: a spare, the shared one, or one
//! that it starts.
//!
//! Sessions that other nodes of a fleet may take up have processes of their own: these end in time when their node is lost, and those
//! that belong to it do not (docs/adr/0029).
//!
//! Invariant: a process goes on with the entry that it was started with; what is asked for now is started, or given,
//! by the entry that stands now.

use super::{AgentFinder, AgentHandle, AgentInfo, AgentRef, AgentStarter, Sought, Spares, TakenAgent};
use crate::continuity::TakesOver;
use crate::error::HostError;
use crate::files::FileRules;
use crate::keyed_locks::KeyedLocks;
use crate::metrics;
use crate::spec::{AgentSpec, Program};
use acpd_api::AgentHealth;
use acpd_record::{KeeperAddress, Partition, PermissionMode};
use acpd_supervisor::{AttachError, ProcessMark, TaskScope};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The agents of a host: their entries, and the processes that sessions are given.
pub struct Agents {
    /// Where agents are started before a session says where it works.
    cwd: PathBuf,
    entries: RwLock<Entries>,
    /// Asked for those that have no entry.
    finder: Option<Arc<dyn AgentFinder>>,
    pub(super) starter: AgentStarter,
    spares: Spares,
    /// Processes that serve all sessions of their agent and policy, by both.
    shared: Mutex<BTreeMap<(String, Partition), AgentRef>>,
    starting: KeyedLocks,
}

/// The entries that stand, and for which a spare is wanted if its entry says so.
#[derive(Debug)]
struct Entries {
    specs: BTreeMap<String, Arc<AgentSpec>>,
    spared: BTreeSet<String>,
}

fn in_common(specs: BTreeMap<String, AgentSpec>) -> BTreeMap<String, Arc<AgentSpec>> {
    let known = |(name, spec): (String, AgentSpec)| {
        metrics::agent_known(&name);
        (name, Arc::new(spec))
    };
    specs.into_iter().map(known).collect()
}

impl Agents {
    pub(crate) fn new(
        specs: BTreeMap<String, AgentSpec>,
        finder: Option<Arc<dyn AgentFinder>>,
        cwd: PathBuf,
        starter: AgentStarter,
        scope: &TaskScope,
    ) -> Self {
        Self {
            cwd,
            entries: RwLock::new(Entries { specs: in_common(specs), spared: BTreeSet::new() }),
            finder,
            starter,
            spares: Spares::new(scope.child(tracing::Span::none())),
            shared: Mutex::default(),
            starting: KeyedLocks::default(),
        }
    }

    /// The agents that can be started, by name.
    pub fn specs(&self) -> Vec<Arc<AgentSpec>> {
        self.entries.read().specs.values().cloned().collect()
    }

    /// `agentCapabilities` of its last answer to `initialize`, if it ever gave one here.
    pub(crate) fn capabilities_of(&self, agent: &str) -> Option<Map<String, Value>> {
        self.starter.health.info(agent)?.capabilities().cloned()
    }

    /// The health of all, by name.
    pub fn health(&self) -> Vec<AgentHealth> {
        let names: Vec<String> = self.entries.read().specs.keys().cloned().collect();
        names.iter().map(|name| self.starter.health.of(name)).collect()
    }

    /// Replaces the entries. What runs goes on with the entry that it was started with; what is started from now on
    /// has the new one, and what has none any more is not started. Spares of entries that changed are stopped, and
    /// kept anew where one is wanted. To be called in a runtime.
    pub fn set(&self, agents: BTreeMap<String, AgentSpec>) {
        // Held to the end, so that no spare of an old entry is kept after this.
        let mut entries = self.entries.write();
        entries.specs = in_common(agents);
        let stands = |spec: &AgentSpec| entries.specs.get(&spec.name).is_some_and(|now| **now == *spec);
        self.spares.retain(|spec| stands(spec) && wants_spare(spec));
        self.shared.lock().retain(|_, agent| stands(agent.spec()));
        for spec in entries.spared.iter().filter_map(|name| entries.specs.get(name)) {
            self.keep_spare_of(spec);
        }
    }

    /// Whether a process may serve another session: its entry still stands.
    pub fn still_offers(&self, agent: &AgentHandle) -> bool {
        self.stands(agent.spec())
    }

    /// Whether an entry is as it was.
    pub(crate) fn stands(&self, spec: &Arc<AgentSpec>) -> bool {
        self.entries.read().specs.get(&spec.name).is_some_and(|now| now == spec)
    }

    /// An initialized agent process without a session: one that was kept ready, or one that is started, in `cwd` or
    /// where acpd runs; or the one that all sessions of this agent and policy share.
    ///
    /// # Errors
    /// When there is no such agent, or it does not start.
    pub(crate) async fn connect(
        &self,
        agent: &str,
        cwd: Option<&Path>,
        policy: Partition,
    ) -> Result<AgentHandle, HostError> {
        let spec = self.entry(agent)?;
        if self.starter.closing.is_cancelled() {
            return Err(HostError::ShuttingDown);
        }
        if !spec.share_process {
            if let Some(spare) = self.spares.take(agent).await {
                return spare;
            }
            let started = self.starter.start(&spec, cwd.unwrap_or(&self.cwd)).await?;
            return Ok(match cwd {
                Some(cwd) => started.started_for(cwd),
                None => started,
            });
        }
        // Requests while it starts get the same process.
        let _one_at_a_time = self.starting.lock(agent).await;
        let key = (agent.to_owned(), policy);
        let running = self.shared.lock().get(&key).and_then(AgentRef::upgrade);
        if let Some(running) = running {
            return Ok(running);
        }
        // It may have taken long to get here.
        let spec = self.entry(agent)?;
        let started = self.starter.start(&spec, &self.cwd).await?;
        let entries = self.entries.read();
        if entries.specs.get(agent) == Some(&spec) {
            self.shared.lock().insert(key, started.downgrade());
        }
        Ok(started)
    }

    /// Keeps a process of `agent` ready from now on, whenever its entry says so: for those who will serve more than
    /// one session of it.
    pub fn keep_spare(&self, agent: &str) {
        let mut entries = self.entries.write();
        entries.spared.insert(agent.to_owned());
        if let Some(spec) = entries.specs.get(agent) {
            self.keep_spare_of(spec);
        }
    }

    fn keep_spare_of(&self, spec: &Arc<AgentSpec>) {
        if wants_spare(spec) && !self.starter.closing.is_cancelled() {
            self.spares.keep(self.starter.clone(), spec, self.cwd.clone());
        }
    }

    /// Which processes of hosts that are gone may be taken over.
    pub(crate) fn takes_over(&self) -> Option<&TakesOver> {
        self.starter.continuity.as_ref().map(|continuity| &continuity.takes_over)
    }

    /// Takes over a process that another host began for `agent`. It goes on also where there is no such entry any more, as it does
    /// when the entry goes while it runs.
    ///
    /// # Errors
    /// When its keeper is gone or does not answer as it should.
    pub(crate) async fn take_over(
        &self,
        agent: &str,
        address: &KeeperAddress,
    ) -> Result<TakenAgent, AttachError> {
        self.starter.take_over(&self.entry_or_default(agent), address).await
    }

    /// An entry, or what agents have in common where there is none.
    fn entry_or_default(&self, agent: &str) -> Arc<AgentSpec> {
        let entries = self.entries.read();
        if let Some(spec) = entries.specs.get(agent) {
            return Arc::clone(spec);
        }
        tracing::warn!(agent, "an agent goes on that has no entry any more");
        let program = Program { command: agent.into(), args: Vec::new(), env: Vec::new() };
        let bare = AgentSpec::new(agent.to_owned(), program);
        let Some(other) = entries.specs.values().next() else { return Arc::new(bare) };
        let files = FileRules { agent_directory: None, ..other.files.clone() };
        let (timeouts, line_limit) = (other.timeouts, other.line_limit);
        Arc::new(AgentSpec { timeouts, line_limit, files, ..bare })
    }

    /// Ends a process that another host began for `agent`, and whose keeper cannot be spoken with.
    pub(crate) async fn end_unattached(&self, agent: &str, address: &KeeperAddress) {
        let graces = self.entries.read().specs.get(agent).map(|spec| spec.timeouts.graces);
        self.starter.end_unattached(address, graces.unwrap_or_default()).await;
    }

    /// Nothing of the hosts before is left that these ends could be of, unless it was taken over.
    pub(crate) async fn forget_ends(&self, marks: Vec<ProcessMark>) {
        if self.takes_over() == Some(&TakesOver::All) {
            self.starter.forget_ends(marks).await;
        }
    }

    /// A process that another host began serves all sessions of its agent and this policy, if its entry is as it was.
    pub(crate) fn share(&self, agent: &AgentHandle, policy: Partition) {
        let spec = agent.spec();
        if spec.share_process && self.stands(spec) {
            self.shared.lock().insert((spec.name.clone(), policy), agent.downgrade());
        }
    }

    /// Whether a process may serve a session of this policy.
    pub(crate) fn serves(&self, agent: &AgentHandle, policy: Partition) -> bool {
        let is_of = |((name, of), known): (&(String, Partition), &AgentRef)| {
            name == agent.name() && *of == policy && known.pid() == agent.pid()
        };
        !agent.is_shared() || self.shared.lock().iter().any(is_of)
    }

    /// What an agent last said of itself, if it has run yet; nothing is started for it.
    ///
    /// # Errors
    /// When there is no such agent.
    pub fn known(&self, agent: &str) -> Result<Option<Arc<AgentInfo>>, HostError> {
        self.entry(agent).map(|_| self.starter.health.info(agent))
    }

    /// The permission mode of the entry of `agent`, if there is one.
    pub fn permission_mode(&self, agent: &str) -> Option<PermissionMode> {
        self.entries.read().specs.get(agent).map(|spec| spec.permission_mode)
    }

    /// Jumps to the end of the stop ladder for every agent, for good: one that starts later gets no graces either.
    pub fn kill_all(&self) {
        self.starter.kill_all.cancel();
    }

    /// Stops the processes that wait for sessions.
    pub(crate) fn stop_spares(&self) {
        self.spares.stop();
    }

    /// Where agents are started before a session says where it works.
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(super) fn entry(&self, agent: &str) -> Result<Arc<AgentSpec>, HostError> {
        let known: Vec<String> = {
            let entries = self.entries.read();
            if let Some(spec) = entries.specs.get(agent) {
                return Ok(Arc::clone(spec));
            }
            entries.specs.keys().cloned().collect()
        };
        let name = agent.to_owned();
        match self.finder.as_ref().map(|finder| finder.find(agent, &known)) {
            Some(Sought::Found(spec)) => Ok(self.enter(*spec)),
            Some(Sought::NotInstalled { why }) => Err(HostError::NotInstalled { name, why }),
            Some(Sought::Unknown { meant }) => Err(HostError::UnknownAgent { name, known, meant }),
            None => Err(HostError::UnknownAgent { name, known, meant: None }),
        }
    }

    /// An agent was found: from now on it is as if it had an entry.
    fn enter(&self, spec: AgentSpec) -> Arc<AgentSpec> {
        let mut entries = self.entries.write();
        metrics::agent_known(&spec.name);
        // Who was faster has the same.
        Arc::clone(entries.specs.entry(spec.name.clone()).or_insert_with(|| Arc::new(spec)))
    }
}

fn wants_spare(spec: &AgentSpec) -> bool {
    spec.spare && !spec.share_process
}
